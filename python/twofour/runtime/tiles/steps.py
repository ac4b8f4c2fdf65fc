# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Time tiles: several steps of a part of the domain, one after another, while it is in the cache.

The domain is cut into boxes. A tile writes its box after T steps; its step t writes that box grown
by T - t reaches, but not beyond the interior on axes whose halo is an image or a constant, and on
`fixed` ones. Step 1 reads the source array, step T writes the target array, the steps between go
from one scratch array to another. What neighbours compute as well is the price for needing nothing
of them: tiles are independent, in any order and on any thread.

Before step t the halo of the scratch array is refreshed where the tile touches the domain's end.
Cells of the source array that need a halo are gathered into a small array first. Periodic axes have
no end: tiles reach around. Hence every step sees the boundary exactly, and since all points are
computed by the kernel of single steps, results have the bits of single steps.

With T = 1 there is no scratch array, and only the rim that needs a halo is gathered.

Rows of scratch arrays are written in whole blocks of the kernel where the domain leaves room for
them: what remains of a row takes as long as several blocks. The points beside those that are needed
are computed from whatever is there, and nobody reads them.
"""

import itertools
import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property, lru_cache
from operator import mul, sub
from typing import NamedTuple

from twofour.reach import halo_reach
from twofour.runtime.boundary import AxisBoundary
from twofour.runtime.box import Box, around
from twofour.runtime.tiles.cells import Kind, Piece, pieces

SOURCE, TARGET, EVEN, ODD, GATHERED = range(5)
SCRATCH = (EVEN, ODD, GATHERED)


@dataclass(frozen=True)
class Layout:
    """A C-contiguous array of `shape` whose first element is the cell at `origin` of the domain.

    With `halo` it holds all cells that a step reads, whatever the boundary; otherwise those of the
    interior and of rims.
    """

    shape: tuple[int, ...]
    origin: tuple[int, ...]
    halo: bool = False

    @classmethod
    def of_domain(cls, shape: tuple[int, ...]) -> "Layout":
        """An array of the domain that begins with it."""
        return cls(tuple(shape), (0,) * len(shape))

    @property
    def strides(self) -> tuple[int, ...]:
        """The strides in elements."""
        return _strides(self.shape)

    def offset(self, cell: tuple[int, ...]) -> int:
        """Elements from the first one to a cell."""
        return sum(map(mul, map(sub, cell, self.origin), self.strides))


# Tiles ask again and again.
@lru_cache(maxsize=64)
def _strides(shape: tuple[int, ...]) -> tuple[int, ...]:
    strides = [1]
    for extent in reversed(shape[1:]):
        strides.append(strides[-1] * extent)
    return tuple(reversed(strides))


class Cells(NamedTuple):
    """Cells of one of the arrays of a tile: from `start` on with a step an axis.

    Coordinates are those of the domain for SOURCE and TARGET, and relative to a tile's scratch
    array otherwise, which is C-contiguous and of `extents`.
    """

    array: int
    start: tuple[int, ...]
    steps: tuple[int, ...]
    extents: tuple[int, ...] | None = None


class Sweep(NamedTuple):
    """The kernel writes cells of `shape` at `target`, its view of the input begins at `source`.

    `skipped` rows before them are counted, but not written: kernels may pair rows from even ones.
    """

    source: Cells
    target: Cells
    shape: tuple[int, ...]
    skipped: int = 0


class Copy(NamedTuple):
    """Cells of `shape` go from `source` to `target`; without a source they become `value`."""

    source: Cells | None
    target: Cells
    shape: tuple[int, ...]
    value: float = 0.0


@dataclass(frozen=True)
class Repeat:
    """Actions that are done `times` times, each time so many planes further on in the domain."""

    actions: tuple[Sweep | Copy, ...]
    times: int
    planes: int


Action = Sweep | Copy | Repeat


@dataclass(frozen=True)
class Geometry:
    """A domain in an array: its interior, the reach of one step and the boundary, an axis each.

    The interior is what is updated. On `fixed` axes the array holds the rim that is read, on other
    axes nothing outside the interior is read. Kernels compute `planes` planes at once, of three
    axes and more.
    """

    interior: Box
    reach_lo: tuple[int, ...]
    reach_hi: tuple[int, ...]
    boundary: tuple[AxisBoundary, ...]
    planes: int = 1

    @property
    def slab(self) -> int:
        """Planes that a step of a streamed tile writes at a time."""
        return max(2, self.planes)

    @property
    def rank(self) -> int:
        return len(self.reach_lo)

    @cached_property
    def below(self) -> tuple[int, ...]:
        """Cells of halo that a step reads below, an axis each."""
        return halo_reach(self.reach_lo)

    @cached_property
    def above(self) -> tuple[int, ...]:
        """Cells of halo that a step reads above, an axis each."""
        return halo_reach(self.reach_hi)

    def read_by(self, box: Box) -> Box:
        """The cells that a step reads to write a box, its halo included."""
        return box.grown(self.below, self.above)


@dataclass(frozen=True)
class Blocks:
    """Points that a kernel computes at once along the last axis, and those of a cache line."""

    points: int = 1
    line: int = 1


POINTS = Blocks()


class TileSteps:
    """What one tile does in `steps` steps, as sweeps and copies in order.

    `row` makes the length of a row that scratch arrays have from the one they need.
    """

    def __init__(
        self,
        geometry: Geometry,
        box: Box,
        steps: int,
        row: Callable[[int], int],
        blocks: Blocks = POINTS,
    ):
        self._geometry, self._box, self._steps = geometry, box, steps
        self._blocks = blocks
        self._storage = self._stored() if steps > 1 else box
        self._extents = (*self._storage.shape[:-1], row(self._storage.shape[-1]))
        self.actions: list[Action] = list(self._in_order())

    def _in_order(self) -> Iterator[Action]:
        """What is done, step by step."""
        yield from self._first(self._level(1))
        for step in range(2, self._steps + 1):
            box = self._level(step)
            yield from self._refresh(step, self._geometry.read_by(box))
            yield from self._later(step, box)

    def scratch_points(self) -> dict[int, int]:
        """The number of points of each scratch array that is used."""
        used = {}
        for action in _single(self.actions):
            if action.target.array in SCRATCH:
                used[action.target.array] = max(
                    used.get(action.target.array, 0), math.prod(action.target.extents)
                )
        return used

    def _level(self, step: int) -> Box:
        """What a step writes."""
        g, left = self._geometry, self._steps - step
        grown = self._box.grown([left * b for b in g.below], [left * a for a in g.above])
        lower, upper = list(grown.lower), list(grown.upper)
        for axis, entry in enumerate(g.boundary):
            if entry.mode != "periodic":
                lower[axis] = max(lower[axis], g.interior.lower[axis])
                upper[axis] = min(upper[axis], g.interior.upper[axis])
        return Box(tuple(lower), tuple(upper))

    def _stored(self) -> Box:
        """The cells of scratch arrays: all that a step writes there or reads."""
        found = [
            self._geometry.read_by(self._swept(step, self._level(step)))
            for step in range(2, self._steps + 1)
        ]
        if not (bulk := self._bulk(self._level(1))).empty:
            found.append(self._widened(bulk, self._free_of_halo()))
        lower = [min(column) for column in zip(*(box.lower for box in found), strict=True)]
        upper = [max(column) for column in zip(*(box.upper for box in found), strict=True)]
        lower[-1] -= lower[-1] % self._blocks.line
        return Box(tuple(lower), tuple(upper))

    def _swept(self, step: int, box: Box) -> Box:
        """What the kernel computes of a step after the first: whole blocks where it may."""
        g, limits = self._geometry, self._geometry.interior
        if g.boundary[-1].mode == "periodic":
            room = self._blocks.points
            limits = self._level(1).grown([room] * g.rank, [room] * g.rank)
        return self._widened(box, limits) if step < self._steps else box

    def _widened(self, box: Box, limits: Box) -> Box:
        """A box of rows that are whole blocks and begin a cache line, as far as limits allow."""
        blocks, axis = self._blocks, self._geometry.rank - 1
        least, most = limits.lower[axis], limits.upper[axis]
        lower, upper = box.lower[axis], box.upper[axis]
        begin = max(least, lower - lower % blocks.line)
        end = begin - (begin - upper) // blocks.points * blocks.points
        if end > most:
            # Whole blocks up to the limit; part of one at an end if they do not fit.
            end = most
            begin = end + (lower - end) // blocks.points * blocks.points
            begin = begin if begin >= least else lower
        return box.with_axis(axis, begin, end)

    def _written(self, step: int, start: Sequence[int]) -> Cells:
        """Where the output of a step lies that begins at `start`."""
        if step == self._steps:
            return Cells(TARGET, tuple(start), (1,) * self._geometry.rank)
        return self._in_scratch(step, start)

    def _in_scratch(
        self, step: int, start: Sequence[int], steps: tuple[int, ...] | None = None
    ) -> Cells:
        """Cells of the array that a step writes."""
        at = tuple(s - lo for s, lo in zip(start, self._storage.lower, strict=True))
        steps = steps or (1,) * self._geometry.rank
        return Cells((EVEN, ODD)[step % 2], at, steps, self._extents)

    def _first(self, box: Box) -> Iterator[Sweep | Copy]:
        """Step 1 of a box: straight from the source, but for the rim that needs a halo."""
        g, bulk = self._geometry, self._bulk(box)
        ones = (1,) * g.rank
        if bulk.empty:
            rims = [box]
        else:
            rims = around(box, bulk)
            if self._steps > 1:
                bulk = self._widened(bulk, self._free_of_halo())
            for part, skipped in self._in_turn(bulk):
                begin = tuple(lo - r for lo, r in zip(part.lower, g.reach_lo, strict=True))
                target = self._written(1, part.lower)
                yield Sweep(Cells(SOURCE, begin, ones), target, part.shape, skipped)
        for rim in rims:
            region = g.read_by(rim)
            for piece in pieces(region, g.interior, g.boundary):
                at = piece.target.relative_to(region.lower).lower
                target = Cells(GATHERED, at, ones, region.shape)
                yield _copy(piece, Cells(SOURCE, piece.source, piece.steps), target)
            for part, skipped in self._in_turn(rim):
                at = part.relative_to(region.lower).lower
                begin = tuple(lo - r for lo, r in zip(at, g.reach_lo, strict=True))
                gathered = Cells(GATHERED, begin, ones, region.shape)
                yield Sweep(gathered, self._written(1, part.lower), part.shape, skipped)

    def _bulk(self, box: Box) -> Box:
        """What step 1 computes of a box straight from the source."""
        free = self._free_of_halo()
        return box.within(free)

    def _free_of_halo(self) -> Box:
        """The points of the interior whose step reads cells of the source array only."""
        g = self._geometry
        depth = [entry.mode != "fixed" for entry in g.boundary]
        return g.interior.grown(
            [-b * d for b, d in zip(g.below, depth, strict=True)],
            [-a * d for a, d in zip(g.above, depth, strict=True)],
        )

    def _refresh(self, step: int, region: Box) -> Iterator[Copy]:
        """The halo in a region that a step from scratch reads."""
        # Periodic axes have no ends here: what lies beyond was computed.
        for piece in pieces(region, self._geometry.interior, self._geometry.boundary):
            source = self._refreshed_from(piece, step - 1)
            if source is None or (piece.kind in (Kind.RIM, Kind.CONSTANT) and self._is_kept(step)):
                continue
            yield _copy(piece, source, self._in_scratch(step - 1, piece.target.lower))

    def _is_kept(self, step: int) -> bool:
        """Whether what never changes is there already."""
        # Steps 2 and 3 have filled both arrays.
        return step > 3

    def _later(self, step: int, box: Box) -> Iterator[Sweep]:
        """A box of a step from scratch."""
        g = self._geometry
        for part, skipped in self._in_turn(self._swept(step, box)):
            begin = [lo - r for lo, r in zip(part.lower, g.reach_lo, strict=True)]
            source, target = self._in_scratch(step - 1, begin), self._written(step, part.lower)
            yield Sweep(source, target, part.shape, skipped)

    def _in_turn(self, box: Box) -> Iterator[tuple[Box, int]]:
        """Parts of a box whose even and odd rows of the domain alternate, and what each one skips.

        Where an odd number of rows repeats, the last one and the first one are both even.
        """
        g = self._geometry
        if g.rank != 2:
            yield box, 0
            return
        first, period = g.interior.lower[0], g.interior.shape[0]
        lower, upper = box.lower[0], box.upper[0]
        seams = range(first - (first - lower) // period * period, upper, period)
        cuts = [seam for seam in seams if seam > lower] if period % 2 else []
        for begin, end in itertools.pairwise([lower, *cuts, upper]):
            yield box.with_axis(0, begin, end), (begin - first) % period % 2

    def _refreshed_from(self, piece: Piece, step: int) -> Cells | None:
        """Where cells beside what a step wrote are read from, None where they are there."""
        if piece.kind in (Kind.RIM, Kind.CONSTANT):
            return Cells(SOURCE, piece.source, piece.steps)
        source, steps = list(piece.source), list(piece.steps)
        for axis, entry in enumerate(self._geometry.boundary):
            if entry.mode == "periodic":
                source[axis], steps[axis] = piece.target.lower[axis], 1
        if tuple(source) == piece.target.lower and set(steps) == {1}:
            return None
        return self._in_scratch(step, source, tuple(steps))


def _single(actions: Sequence[Action]) -> Iterator[Sweep | Copy]:
    """The actions, those that are repeated once."""
    for action in actions:
        yield from action.actions if isinstance(action, Repeat) else (action,)


def _copy(piece: Piece, source: Cells, target: Cells) -> Copy:
    constant = piece.kind is Kind.CONSTANT
    return Copy(None if constant else source, target, piece.target.shape, piece.value)
