# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Rows of inputs whose numbers plain threads add to the rows of outputs that they meet.

The scatter view of Stencil Matrixization with multiply-adds of scalars: a lane owns as many
neighbouring outputs as one access writes, and reads the aligned accesses around them that its
outputs need (see layout.march).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property, lru_cache, partial

from twofour.errors import Unsuitable
from twofour.layout.march import ACCESS, MIN_UNROLL, March, Meeting
from twofour.layout.marches import marches
from twofour.layout.patch import Offset, stencil_arrays
from twofour.reach import Reach

MAX_ROWS = 4
# Multiply-adds of a round of the main loop: more would cost registers, and compile time.
MAX_TERMS = 512
MAX_STEP_TERMS = 1024  # of one step
MANY_TERMS = 32  # of a stencil: with more, a march with a ring is looped
# Estimates of more are too low.
MAX_ESTIMATE, MAX_ESTIMATE_OF_LEVELS, MAX_ESTIMATE_LOOPED = 170, 200, 200
# Registers of a thread that do not depend on the stencil, by rank.
OTHER_REGISTERS = {1: 26, 2: 14, 3: 31}
OTHER_WITH_RING = {1: 26, 2: 14, 3: 20}


@dataclass(frozen=True, eq=False, kw_only=True)
class RollingLayout(March):
    """The work of one warp.

    Attributes:
        terms: (offset, weight) of the stencil, the lowest offset first; offsets have three axes,
            those that the arrays lack before the last.
    """

    terms: tuple[tuple[Offset, float], ...]

    @cached_property
    def meetings(self) -> frozenset[Meeting]:
        """The fragments of a row of outputs."""
        return _meetings(tuple(point for point, _ in self.terms), self.chunk)

    @cached_property
    def used(self) -> int:
        """Inputs of a lane that a step adds to any sum, of those that it reads."""
        return len(
            {
                (row + across, x + place)
                for (_, across, x), _ in self.terms
                for place in range(self.written)
                for row in range(self.rows)
            }
        )

    @property
    def written(self) -> int:
        """Neighbouring outputs of a lane."""
        return self.chunk

    @property
    def group(self) -> int:
        """Every lane reads for itself."""
        return 1

    @property
    def overhang(self) -> int:
        """A fragment is as wide as a strip."""
        return 0

    @property
    def compact(self) -> bool:
        """More code takes more registers.

        Compilers put off sums that only some of the last steps write, and keep their inputs; at
        edges they keep an address for every read of a round.
        """
        return True

    @property
    def looped(self) -> bool:
        """Where there are many terms, steps side by side would cost registers.

        Compilers put off sums, and keep their inputs.
        """
        return self.ring and len(self.terms) > MANY_TERMS

    @property
    def unroll(self) -> int:
        """Steps of one round of the main loop.

        Every sum is added to in every step, so that none has to be moved whatever their number.
        """
        if self.looped:
            return 1
        terms = self.levels * self.rows * self.written * len(self.terms)
        # In three dimensions every row that a step reads has an address of its own.
        most = MIN_UNROLL if self.rank < 3 else 2
        return max(1, min(most, MAX_TERMS // terms))

    @property
    def max_registers(self) -> int:
        """Estimates of more are too low."""
        if self.looped:
            return MAX_ESTIMATE_LOOPED
        return MAX_ESTIMATE if self.levels == 1 else MAX_ESTIMATE_OF_LEVELS

    @cached_property
    def registers(self) -> int:
        """An estimate of the registers of a thread."""
        number = max(1, self.itemsize // 4)
        sums = number * self.written * self.levels * self.rows * (self.depth + 1)
        addresses = 4 * (self.rows_addressed + self.rows)
        more = len(self.terms) // 8
        if self.looped:
            # Copies keep their addresses, and many terms much of what they read.
            more += -(-len(self.ring_rows) // self.ring_warps)
            more += 3 * max(0, len(self.terms) - 64) // 4
        else:
            # The steps before the main loop keep more on the way.
            more += 3 * self.depth // 2 + max(0, self.depth - 8)
            if self.itemsize < 8:
                more += max(0, len(self.terms) - 41)
        if not self.ring:
            more += 3 * max(0, len(self.reads) - self.rows_addressed - 2 * self.rows)
        if self.levels > 1:
            # What the step before completed, and what lanes got from others.
            more += 4 * (self.levels - 1)
            more += 4 * len(self.reads) + 6 * self.levels + 4 * self.depth + len(self.terms) // 2
        if self.itemsize == 8:
            # Constants have no room in instructions.
            distinct = len({weight for _, weight in self.terms})
            more += 5 * min(max(0, distinct - 6), 24) // 2
            if self.ring and not self.looped:
                more += 2 * self.depth
        other = (OTHER_WITH_RING if self.ring else OTHER_REGISTERS)[self.rank]
        return sums + self.inputs_held + addresses + more + other


@lru_cache(maxsize=16)
def _meetings(points: tuple[Offset, ...], chunk: int) -> frozenset[Meeting]:
    """The fragments of a row of outputs, of which a lane has `chunk`."""
    return frozenset(
        Meeting(along, across, (x + place) // chunk * chunk)
        for along, across, x in points
        for place in range(chunk)
    )


def rolling_layouts(
    offsets: Sequence[Offset],
    weights: Sequence[float],
    itemsize: int,
    reach: Reach,
    **choices,
) -> list[RollingLayout]:
    """The marches of a stencil of plain threads, on fields of `itemsize` bytes an element.

    `reach` and `choices` are as for `layout.marches.marches`, which says what else is
    refused: levels of more than MANY_TERMS terms with a ring, too.
    """
    points, values = stencil_arrays(offsets, weights)
    terms = sorted(
        ((*point[:-1], 0, 0)[:2] + (point[-1],), value)
        for point, value in zip(points.tolist(), values.tolist(), strict=True)
        if value
    )
    make = partial(RollingLayout, itemsize=itemsize, terms=tuple(terms))
    rows = max(1, min(MAX_ROWS, MAX_STEP_TERMS * itemsize // (ACCESS * len(terms))))
    if choices.get("levels", 1) > 1 and len(terms) > MANY_TERMS:
        if choices.get("ring"):
            expected = f"expected at most {MANY_TERMS} terms for levels with a ring"
            raise Unsuitable(f"{expected}, got {len(terms)}")
        choices["ring"] = False
    return marches(make, reach, rows, **choices)
