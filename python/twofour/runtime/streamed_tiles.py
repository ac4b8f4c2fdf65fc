# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Time tiles that are streamed along the slowest of three axes or more, slab by slab.

All steps follow each other through the tile: when a step has written a slab of planes, the next one
writes what it can, as far behind as it reaches. So a tile may be as long as the domain, and
computes nothing twice along that axis, while the caches need to hold a few planes of every step
only. Those lie in a window of each step, which moves on when it is full: what is still to be read
is copied to its begin.
"""

from collections.abc import Callable, Iterator, Sequence

from twofour.runtime.sweeps import Box
from twofour.runtime.tiles import EVEN, POINTS, Blocks, Cells, Copy, Geometry, Sweep, TileSteps

SLAB = 2


def window(geometry: Geometry) -> int:
    """Planes that the window of a step holds: those in use, and room to move on."""
    return 3 * _lag(geometry) + 1 + 4 * SLAB


def _lag(geometry: Geometry) -> int:
    """Planes that a step is behind the one before it: those that it reads, and at the first end
    those that images of its halo are of.
    """
    return max(geometry.below[0], geometry.above[0])


def is_streamed(geometry: Geometry, planes: int, steps: int) -> bool:
    """Whether tiles of so many planes are streamed: windows are smaller than scratch arrays.

    The interior is longer then than steps reach, so that halos along the slowest axis are images of
    planes nearby.
    """
    if geometry.rank < 3 or steps == 1:
        return False
    grown = (steps - 1) * (geometry.below[0] + geometry.above[0])
    return (steps - 1) * window(geometry) < 2 * (planes + grown) and planes > window(geometry)


def tile_steps(
    geometry: Geometry,
    box: Box,
    steps: int,
    row: Callable[[int], int],
    blocks: Blocks = POINTS,
) -> TileSteps:
    """What one tile does, streamed or not; arguments as for TileSteps."""
    kind = StreamedSteps if is_streamed(geometry, box.shape[0], steps) else TileSteps
    return kind(geometry, box, steps, row, blocks)


class StreamedSteps(TileSteps):
    """What one tile does in `steps` steps, slab by slab; see `is_streamed`."""

    def _in_order(self) -> Iterator[Sweep | Copy]:
        g, last = self._geometry, self._steps
        levels = {step: self._level(step) for step in range(1, last + 1)}
        self._window = window(g)
        self._extents = ((last - 1) * self._window, *self._extents[1:])
        # By step: the plane that its window begins with, the first one that it has not written, and
        # the first one of those it reads that has not its halo.
        self._begins = {step: level.lower[0] - g.below[0] for step, level in levels.items()}
        self._fronts = {step: level.lower[0] for step, level in levels.items()}
        refreshed = dict(self._begins)
        while self._fronts[last] < levels[last].upper[0]:
            for step, level in levels.items():
                begin, end = self._fronts[step], self._reached(step, levels)
                if end <= begin:
                    continue
                slab = level.with_axis(0, begin, end)
                if step < last:
                    yield from self._moved(step, end)
                if step == 1:
                    yield from self._first(slab)
                else:
                    read = g.read_by(slab)
                    fresh = read.with_axis(0, refreshed[step], read.upper[0])
                    refreshed[step] = read.upper[0]
                    yield from self._refresh(step, fresh)
                    yield from self._later(step, slab)
                self._fronts[step] = end

    def _reached(self, step: int, levels: dict[int, Box]) -> int:
        """The plane before which a step can write now."""
        most = min(levels[step].upper[0], self._fronts[step] + SLAB)
        if step > 1 and self._fronts[step - 1] < levels[step - 1].upper[0]:
            most = min(most, self._fronts[step - 1] - _lag(self._geometry))
        return most

    def _moved(self, step: int, end: int) -> Iterator[Copy]:
        """Make room in the window of a step for planes before `end`, and for a halo there."""
        g, begin = self._geometry, self._begins[step]
        if end + g.above[0] - begin <= self._window:
            return
        # At the last end the image of a halo lies as far before the end as the halo beyond it.
        first = self._fronts[step + 1] - _lag(g)
        lower = (first, *self._storage.lower[1:])
        source = self._in_scratch(step, lower)
        self._begins[step] = first
        shape = (self._fronts[step] - first, *self._extents[1:])
        yield Copy(source, self._in_scratch(step, lower), shape)

    def _in_scratch(
        self, step: int, start: Sequence[int], steps: tuple[int, ...] | None = None
    ) -> Cells:
        at = [s - lo for s, lo in zip(start, self._storage.lower, strict=True)]
        at[0] = (step - 1) * self._window + start[0] - self._begins[step]
        return Cells(EVEN, tuple(at), steps or (1,) * self._geometry.rank, self._extents)

    def _is_kept(self, step: int) -> bool:
        return False
