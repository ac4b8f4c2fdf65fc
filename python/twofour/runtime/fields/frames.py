# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Frames: the rims of arrays with a refreshed halo around them, in buffers of their own.

A caller's array must not be written to, but its halo is refreshed before a sweep reads it. Instead
of a copy of the array there is one of the cells near its ends, with the halo. What a sweep computes
from these it reads in the frame, and all else in the array.
"""

from collections.abc import Callable, Mapping, Sequence

from twofour.runtime.boundary import HaloRefresh
from twofour.runtime.box import Box, around
from twofour.runtime.fields.copies import copied
from twofour.runtime.loops import Launch, View
from twofour.runtime.rounds.actions import Buffer, Copy, part_of

# Bytes of rows from which on their ends are few of their cache lines.
LEAST_ROW = 768


class Frames:
    """Frames of those buffers of `refreshes` that launches can read in one.

    No launch writes to these buffers. `new(number)` gives the number of another buffer like that
    one; those of frames are in `numbers`. There are none where one would have most cache lines.
    """

    def __init__(
        self,
        refreshes: Mapping[int, HaloRefresh],
        launches: Sequence[Launch],
        buffers: Sequence[Buffer],
        new: Callable[[int], int],
    ):
        self._buffers = buffers
        # The cells that no refresh writes to.
        self._insides = {
            number: refresh.inside
            for number, refresh in refreshes.items()
            if all(_can_be_parted(one, buffers) for one in launches if _reads(one, number))
            and not _is_of_ends(refresh.inside, buffers[number])
        }
        # Those that are read nowhere but in the array.
        self._hollows = {
            number: self._hollow(number, refreshes[number].far, launches)
            for number in self._insides
        }
        boxes = [*self._hollows.values(), *map(self._core, launches)]
        if any(box.empty for box in boxes):
            self._insides = {}
        self.numbers = {number: new(number) for number in self._insides}

    def copies(self) -> list[Copy]:
        """What frames take from the arrays, before their halos are refreshed."""
        return [
            copy
            for number, frame in self.numbers.items()
            for copy in copied(number, frame, around(self._insides[number], self._hollows[number]))
        ]

    def parts(self, launch: Launch) -> list[Launch]:
        """A launch as several: its core, and what is computed from frames."""
        whole, core = self._box(launch.outputs[0]), self._core(launch)
        beside = [self._part(launch, box).reading(self.numbers) for box in around(whole, core)]
        return [self._part(launch, core), *beside]

    def _box(self, view: View) -> Box:
        return view.box(self._buffers[view.buffer].shape)

    def _part(self, launch: Launch, box: Box) -> Launch:
        margins = self._box(launch.outputs[0]).margins(box)
        return part_of(launch, self._buffers, *margins)

    def _core(self, launch: Launch) -> Box:
        """The points that are computed from cells inside."""
        core = whole = self._box(launch.outputs[0])
        for view in launch.inputs:
            if view.buffer in self._insides:
                read = self._box(view)
                outside = read.margins(read.within(self._insides[view.buffer]))
                core = core.within(whole.without(*outside))
        return core

    def _hollow(self, number: int, far: Box, launches: Sequence[Launch]) -> Box:
        """The cells of a buffer that are read in the array alone: no refresh reads those `far`."""
        hollow = far
        for launch in launches:
            whole = self._box(launch.outputs[0])
            below, above = whole.margins(self._core(launch))
            for view in launch.inputs:
                if view.buffer == number:
                    read = self._box(view)
                    hollow = hollow.within(_unread(read, whole.shape, below, above, far))
        return hollow


def _is_of_ends(inside: Box, buffer: Buffer) -> bool:
    """Whether the ends of rows are refreshed, which are short."""
    cells = buffer.shape[-1]
    has_ends = (inside.lower[-1], inside.upper[-1]) != (0, cells)
    return has_ends and len(buffer.shape) > 1 and cells * buffer.dtype.itemsize < LEAST_ROW


def _can_be_parted(launch: Launch, buffers: Sequence[Buffer]) -> bool:
    """Whether all arrays have the axes of the results, and none is read but around each point."""
    ranks = {len(buffers[view.buffer].shape) for view in (*launch.inputs, *launch.outputs)} - {0}
    return len(ranks) == 1 and not (launch.uses_index or launch.tables)


def _unread(
    read: Box, points: Sequence[int], below: Sequence[int], above: Sequence[int], far: Box
) -> Box:
    """The cells, on each axis of those `far`, that the outer ones of so many points do not read."""
    lower, upper = [], []
    for axis, (first, last) in enumerate(zip(below, above, strict=True)):
        reach = read.shape[axis] - points[axis]
        lower.append(read.lower[axis] + first + reach if first else far.lower[axis])
        upper.append(read.upper[axis] - last - reach if last else far.upper[axis])
    return Box(tuple(lower), tuple(upper))


def _reads(launch: Launch, number: int) -> bool:
    return any(view.buffer == number for view in launch.inputs)
