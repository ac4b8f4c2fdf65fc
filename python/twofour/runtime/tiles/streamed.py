# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Time tiles that are streamed along the slowest of three axes or more, slab by slab.

All steps follow each other through the tile: when a step has written a slab of planes, the next one
writes what it can, as far behind as it reaches. So a tile may be as long as the domain, and
computes nothing twice along that axis, while the caches need to hold a few planes of every step
only. Those lie in a window of each step, which moves on when it is full: what is still to be read
is copied to its begin. Away from the ends this repeats itself as soon as all windows have moved.
"""

from collections.abc import Callable, Iterator, Sequence

from twofour.runtime.box import Box
from twofour.runtime.tiles.steps import (
    EVEN,
    POINTS,
    Action,
    Blocks,
    Cells,
    Copy,
    Geometry,
    Repeat,
    Sweep,
    TileSteps,
)


def window(geometry: Geometry) -> int:
    """Planes that the window of a step holds: those in use, and room to move on."""
    return 3 * _lag(geometry) + 1 + 4 * geometry.slab


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

    def _in_order(self) -> Iterator[Action]:
        g, last = self._geometry, self._steps
        self._levels = {step: self._level(step) for step in range(1, last + 1)}
        self._window = window(g)
        self._extents = ((last - 1) * self._window, *self._extents[1:])
        lower = {step: level.lower[0] for step, level in self._levels.items()}
        # By step: the plane that its window begins with, the first one that it has not written, and
        # the first one of those it reads that has not its halo.
        self._begins = {step: lower[step] - g.below[0] for step in range(1, last)}
        self._fronts = lower
        self._refreshed = {step: lower[step] - g.below[0] for step in range(2, last + 1)}
        # By where steps are to each other: the number of actions before, and the first front.
        seen: dict[tuple, tuple[int, int]] = {}
        actions: list[Action] = []
        while self._fronts[last] < self._levels[last].upper[0]:
            begun, first = seen.setdefault(self._state(), (len(actions), self._fronts[1]))
            planes = self._fronts[1] - first
            # Steps that have not begun, or not refreshed their first halo, are nowhere twice.
            if planes and (times := self._repeats(planes)):
                actions[begun:] = [Repeat(tuple(actions[begun:]), 1 + times, planes)]
                self._skip(times * planes)
                seen.clear()
            for step in self._levels:
                actions += self._advanced(step)
        yield from actions

    def _advanced(self, step: int) -> Iterator[Sweep | Copy]:
        """The next slab of a step, as far as there is one."""
        begin, end = self._fronts[step], self._reached(step)
        if end <= begin:
            return
        slab = self._levels[step].with_axis(0, begin, end)
        if step < self._steps:
            yield from self._moved(step, end)
        if step == 1:
            yield from self._first(slab)
        else:
            read = self._geometry.read_by(slab)
            fresh = read.with_axis(0, self._refreshed[step], read.upper[0])
            self._refreshed[step] = read.upper[0]
            yield from self._refresh(step, fresh)
            yield from self._later(step, slab)
        self._fronts[step] = end

    def _state(self) -> tuple:
        """Where all steps are, from the front of the first one."""
        kept = (self._begins, self._fronts, self._refreshed)
        return tuple(at - self._fronts[1] for planes in kept for at in planes.values())

    def _repeats(self, planes: int) -> int:
        """How often steps may advance by so many planes before one of them meets an end."""
        g = self._geometry
        end = min(g.interior.upper[0], *(level.upper[0] for level in self._levels.values()))
        return max(0, end - _lag(g) - g.above[0] - g.slab - self._fronts[1]) // planes

    def _skip(self, planes: int) -> None:
        """Let all steps be so many planes further on."""
        for kept in (self._begins, self._fronts, self._refreshed):
            for step in kept:
                kept[step] += planes

    def _reached(self, step: int) -> int:
        """The plane before which a step can write now."""
        most = min(self._levels[step].upper[0], self._fronts[step] + self._geometry.slab)
        if step > 1 and self._fronts[step - 1] < self._levels[step - 1].upper[0]:
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
