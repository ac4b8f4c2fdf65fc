# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""How a warp marches along the slowest axis: what it reads of a step, and which outputs that meets.

A warp owns a strip of outputs along the last axis, in arrays of rank 3 a few rows of them.
Advancing along the slowest axis it reads each row of inputs once, adds what it contributes to every
row of outputs that it meets, and keeps the sums of those rows in registers until they are complete.
Lanes read neighbouring inputs with one access each, a fragment for the warp.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cached_property
from typing import NamedTuple

from twofour.errors import TwofourError, Unsuitable
from twofour.layout.fragments import LANES

Extents = tuple[int, ...]

ACCESS, SECTOR = 16, 32  # bytes: of a lane, and what strips begin on
WARPS = (4, 8)  # warps of a block; more than the first where they can share rows of inputs
MAX_STAGES = 12
PREFETCHED, FEW_ROWS = 4, 2  # rows that are prefetched where registers hold so few
MIN_UNROLL = 6  # steps of a loop: fewer would spend too much on counting them
MARCHES = (12, 24, 48, 128)  # about so many steps
MAX_MARCH = 2**31 - 1  # of any kernel
ENOUGH_WARPS = 16  # of a multiprocessor: with fewer, results wait for each other (H200)
MAX_REGISTERS = 217  # of a thread, as estimated: ptxas may take a quarter more
REGISTER_UNIT = 8  # registers that a thread is given together
WARP_REGISTERS, MAX_WARPS = 2048, 64  # of a multiprocessor, for 32 threads of one register


class Meeting(NamedTuple):
    """A fragment that a row of outputs needs.

    It begins `start` inputs from the strip's first output, in the row that lies `along` on the
    slowest axis and `across` on the one between from the output's (0 where there is none).
    """

    along: int
    across: int
    start: int


@dataclass(frozen=True, eq=False, kw_only=True)
class March(ABC):
    """The work of one warp; extents are in elements, slowest axis first.

    Attributes:
        reach_lo, reach_hi: how far the stencil reaches, per axis.
        itemsize: bytes of an element.
        rows: rows of outputs of a step, along the axis between; 1 where there is none.
        stages: fragments in registers, the one that is added and those read ahead.
        march: steps of a warp along the slowest axis.
        warps: of a block, side by side.
        levels: time steps of a march; rows of a level that are complete are inputs of the next.
    """

    reach_lo: Extents
    reach_hi: Extents
    itemsize: int
    rows: int
    stages: int
    march: int
    warps: int
    levels: int = 1

    @property
    @abstractmethod
    def meetings(self) -> frozenset[Meeting]:
        """The fragments of a row of outputs."""

    @property
    @abstractmethod
    def written(self) -> int:
        """Neighbouring outputs of a lane."""

    @property
    @abstractmethod
    def group(self) -> int:
        """Neighbouring lanes that write neighbouring outputs, and read what those need."""

    @property
    @abstractmethod
    def overhang(self) -> int:
        """Elements that a fragment holds beyond the width of a strip."""

    @property
    @abstractmethod
    def registers(self) -> int:
        """An estimate of the registers of a thread."""

    @property
    @abstractmethod
    def compact(self) -> bool:
        """Whether edges have little code rather than fast code.

        Then strips at an edge take one step in a round.
        """

    @property
    def rank(self) -> int:
        """Rank of the arrays."""
        return len(self.reach_lo)

    @property
    def threads(self) -> int:
        """Threads of a block."""
        return LANES * self.warps

    @property
    def chunk(self) -> int:
        """Neighbouring inputs of a lane."""
        return ACCESS // self.itemsize

    @property
    def strip(self) -> int:
        """Outputs of a warp along the last axis, before levels trim them."""
        return LANES * self.written

    @property
    def tile(self) -> Extents:
        """Outputs of a block per axis in one step; its warps lie side by side."""
        if self.rank == 3:
            return (1, self.warps * self.rows, self.width)
        return (1,) * (self.rank - 1) + (self.warps * self.width,)

    @property
    def tile_outputs(self) -> int:
        """Outputs of a block in one step."""
        return self.warps * self.rows * self.width

    @property
    def input_lo(self) -> Extents:
        """How far all levels together reach below, per axis."""
        return tuple(self.levels * reach for reach in self.reach_lo)

    @property
    def trimmed(self) -> tuple[int, int]:
        """Outputs at both ends of a strip that miss inputs of the levels before the last."""
        ends, chunk = (self.reach_lo[-1], self.reach_hi[-1]), self.chunk
        lo, hi = (-(-(self.levels - 1) * max(0, end) // chunk) * chunk for end in ends)
        # Strips begin on sectors.
        return lo, hi + (lo + hi) % (SECTOR // self.itemsize)

    @property
    def width(self) -> int:
        """Outputs of a strip that are written, along the last axis."""
        return self.strip - sum(self.trimmed)

    @property
    def first(self) -> int:
        """The first row of inputs that a row of outputs meets, along the slowest axis."""
        return min(meeting.along for meeting in self.meetings)

    @property
    def depth(self) -> int:
        """Rows of outputs that a row of inputs meets, all but one."""
        return max(meeting.along for meeting in self.meetings) - self.first

    @cached_property
    def reads(self) -> list[tuple[int, int]]:
        """(row along the axis between, start) of the fragments that one step reads."""
        return sorted(
            {
                (row + across, start)
                for _, across, start in self.meetings
                for row in range(self.rows)
            }
        )

    @property
    def first_start(self) -> int:
        """Where the inputs begin that a strip reads of a row, from its first output on."""
        return min(start for _, start in self.reads)

    @property
    def beyond(self) -> int:
        """Inputs that a strip reads of a row beyond its last output."""
        return max(start for _, start in self.reads) + self.overhang

    @property
    def shuffles(self) -> int:
        """Words of 32 bits that a lane gets from others for a step of the next level."""
        own = self.chunk == self.written
        return sum(ACCESS // 4 for _, start in self.reads if start or not own)

    @property
    def steps_ahead(self) -> int:
        """How many steps ahead of its use a fragment is read, at most."""
        return -(-(self.stages - 1) // len(self.reads))

    @property
    def prefetched(self) -> int:
        """How many rows beyond those in registers a round asks the second-level cache for.

        None where registers hold many: on an H200 that took as much time as it saved.
        """
        wanted = self.rank > 1 and self.levels == 1 and self.steps_ahead <= FEW_ROWS
        return PREFETCHED if wanted else 0

    @property
    def unroll(self) -> int:
        """Steps of one round of the main loop: sums are back in the registers they began in."""
        turn = self.depth + 1
        return turn * -(-MIN_UNROLL // turn)

    @property
    def resident(self) -> int:
        """Blocks of a multiprocessor at a time."""
        registers = -(-self.registers // REGISTER_UNIT) * REGISTER_UNIT
        return max(1, min(MAX_WARPS, WARP_REGISTERS // registers) // self.warps)

    @property
    def whole_marches(self) -> list[int]:
        """Steps that are whole rounds of the main loop and what was read ahead, short and long."""
        ahead, unroll = self.steps_ahead, self.unroll
        rounds = dict.fromkeys(max(1, round((steps - ahead) / unroll)) for steps in MARCHES)
        return [ahead + count * unroll for count in rounds]


def marches(
    make: Callable[..., March],
    reach: tuple[Extents, Extents],
    max_rows: int,
    max_registers: int = MAX_REGISTERS,
    *,
    block: Extents | None = None,
    stages: int | None = None,
    march: int | None = None,
    levels: int = 1,
) -> list[March]:
    """All marches that registers hold.

    Args:
        make: gives the march of some `reach_lo`, `reach_hi`, `rows`, `stages`, `march`, `warps` and
            `levels`.
        reach: (lo, hi) of the stencil: minus the smallest and the largest offset per axis.
        max_rows: of a step, in arrays of rank 3.
        max_registers: as the march estimates them.
        block: outputs of a block per axis in one step; all that there are where it is not given.
        stages: fragments in registers; up to MAX_STAGES where it is not given.
        march: steps along the slowest axis; whole rounds of the main loop where it is not given,
            several numbers of them.
        levels: time steps of a march.

    Raises:
        Unsuitable: a rank or levels that no march is for, or more than registers hold.
        TwofourError: stages, a march or a block that there is not.
    """
    reach_lo, reach_hi = (tuple(side) for side in reach)
    rank = len(reach_lo)
    if rank > 3:
        raise Unsuitable(f"expected arrays of rank 1 to 3, got rank {rank}")
    if levels > 1 and rank > 2:
        raise Unsuitable(f"expected arrays of rank 1 or 2 for several levels, got rank {rank}")
    if stages is not None and not 2 <= stages <= MAX_STAGES:
        raise TwofourError(f"expected 2 to {MAX_STAGES} stages, got {stages}")
    if march is not None and not 1 <= march <= MAX_MARCH:
        raise TwofourError(f"expected a march of 1 to {MAX_MARCH}, got {march}")
    shape = {"reach_lo": reach_lo, "reach_hi": reach_hi, "levels": levels, "march": 1}
    found = [
        make(**shape, rows=rows, stages=count, warps=warps)
        for warps in (WARPS if rank == 3 else WARPS[:1])
        for rows in (range(1, max_rows + 1) if rank == 3 else (1,))
        for count in ((stages,) if stages is not None else range(2, MAX_STAGES + 1))
    ]
    if block is not None:
        tiles = dict.fromkeys("x".join(map(str, layout.tile)) for layout in found)
        found = [layout for layout in found if layout.tile == tuple(block)]
        if not found:
            expected = " or ".join(tiles)
            raise TwofourError(f"expected a block of {expected} outputs, got {list(block)}")
    fitting = [layout for layout in found if layout.registers <= max_registers]
    if not fitting:
        needed = min(layout.registers for layout in found)
        raise Unsuitable(f"expected at most {max_registers} registers, got about {needed}")
    if stages is None:
        # A round has one place for every read: those of the round before have to be there.
        fitting = [layout for layout in fitting if layout.steps_ahead <= layout.unroll] or fitting
    enough = [layout for layout in fitting if layout.warps * layout.resident >= ENOUGH_WARPS]
    fitting = enough or fitting
    return [
        replace(layout, march=steps)
        for layout in fitting
        for steps in ([march] if march is not None else layout.whole_marches)
    ]
