# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""One call of a program, from the arrays of its caller to new ones, all of it in native code.

Those who step by hand make such calls, for which copies would take as long as sweeps do. Arrays
that are only read stay where they are, and so do those whose halo is refreshed: beside these there
are frames (see twofour.runtime.fields.frames).
"""

import itertools
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import cached_property

import numpy as np

from twofour.runtime.boundary import HaloRefresh
from twofour.runtime.box import Box, around
from twofour.runtime.fields.copies import copied, refreshed
from twofour.runtime.fields.frames import Frames
from twofour.runtime.fields.halos import FieldHalos
from twofour.runtime.fields.spec import FieldSpec
from twofour.runtime.fields.writes import overwritten
from twofour.runtime.loops import Launch
from twofour.runtime.rounds.actions import Action, Buffer, Copy
from twofour.runtime.rounds.program import phases_of
from twofour.runtime.rounds.round_tables import BoundRounds, RoundTables
from twofour.runtime.rounds.step_tables import StepCode
from twofour.runtime.threads import waking_threads


class SingleCall:
    """A call of `launches` on fields whose halos are `halos`, on up to so many threads.

    `buffers` are those of the arguments, then workspaces; after the call argument i takes over that
    of argument rotation[i]. The results are the stored fields, or with `resume` the loaded ones as
    the next call takes them.
    """

    def __init__(
        self,
        fields: Sequence[FieldSpec],
        launches: Sequence[Launch],
        buffers: Sequence[Buffer],
        rotation: Sequence[int],
        halos: FieldHalos,
        code: StepCode,
        threads: int,
        resume: bool,
    ):
        self._fields, self._launches, self._rotation = fields, launches, rotation
        self._halos, self._code, self._buffers = halos, code, list(buffers)
        self._refill = halos.refills.at(0)
        self._frames = self._framed()
        # Where the first values of loaded fields are: callers' arrays are not written to.
        changed = (self._written | {*self._refill.refreshed}).difference(self._frames.numbers)
        loaded = (field.position for field in fields if field.loaded)
        self._given = {one: self._new(one) if one in changed else one for one in loaded}
        results = [field for field in fields if (field.loaded if resume else field.stored)]
        ends = [rotation[field.position] if resume else field.position for field in results]
        # Callers' arrays are not given back either.
        returned = {end: self._new(end) for end in ends if self._given.get(end) == end}
        self._ends = [returned.get(end, end) for end in ends]
        refreshes = {
            end: halos.refresh[field.position]
            for end, field in zip(self._ends, results, strict=True)
            if field.position in halos.refresh
        }
        phases: list[Sequence[Action]] = [
            [*self._loads(), *self._makes(refreshes)],
            *self._refills(),
            *self._sweeps(),
            [copy for end, new in returned.items() for copy in self._whole(end, new)],
            *refreshed(refreshes.items()),
        ]
        rounds = [[phase for phase in phases if phase]]
        self._tables = RoundTables(code, self._buffers, rounds, 0, None, threads, 1)
        self._tables.run_on(self._tables.threads)

    def run(
        self,
        arguments: Mapping[int, np.ndarray],
        place: Callable[[int, Sequence[int], np.dtype], np.ndarray],
    ) -> list[np.ndarray]:
        """The results, in new arrays; `arguments` are loaded fields and numbers by position.

        `place(number, shape, dtype)` gives memory for the buffer of that number.
        """
        given = {self._given.get(position, position): a for position, a in arguments.items()}
        arrays = [
            given[number] if number in given else place(number, buffer.shape, buffer.dtype)
            for number, buffer in enumerate(self._buffers)
        ]
        bound = BoundRounds(self._tables, arrays)
        threads = waking_threads(self._tables.points, self._tables.threads)
        self._code.run(bound.stretches(0, 1), threads)
        return [arrays[end] for end in self._ends]

    def _new(self, like: int) -> int:
        """The number of another buffer like that one."""
        self._buffers.append(self._buffers[like])
        return len(self._buffers) - 1

    @cached_property
    def _written(self) -> set[int]:
        """What is written to, or passes its halo on, but for halos that are refreshed."""
        outputs = (view.buffer for launch in self._launches for view in launch.outputs)
        return {*outputs, *itertools.chain(*self._refill.inherited)}

    def _framed(self) -> Frames:
        refreshes = {
            position: self._halos.refresh[position]
            for position in self._refill.refreshed
            if position not in self._written
        }
        return Frames(refreshes, self._launches, self._buffers, self._new)

    def _whole(self, source: int, target: int) -> list[Copy]:
        return copied(source, target, [Box.whole(self._buffers[target].shape)])

    def _loads(self) -> Iterator[Copy]:
        """What is copied of callers' arrays."""
        for position, given in self._given.items():
            if given != position:
                yield from self._whole(given, position)
        yield from self._frames.copies()

    def _makes(self, refreshes: Mapping[int, HaloRefresh]) -> Iterator[Copy]:
        """What fields that are only stored start with: the values of those that take them over.

        Where only cells around the interior count, no halo does that one of `refreshes` fills in
        the end: no sweep reads it before.
        """
        values = dict(self._given)
        rims = overwritten(self._launches, self._fields, self._halos.inherited)
        for field in self._fields:
            if field.loaded:
                continue
            position = field.position
            boxes = [Box.whole(field.shape)]
            if field in rims:
                cells = refreshes[position].inside if position in refreshes else boxes[0]
                boxes = around(cells, Box(*map(tuple, field.interior)))
            heir = values.get(self._rotation.index(position))
            if heir is None:
                zero = field.element.storage.type(0)
                yield from (Copy(position, box.slices, None, (), zero) for box in boxes)
            else:
                values[position] = heir
                yield from copied(heir, position, boxes)

    def _refills(self) -> Iterator[list[Copy]]:
        """How halos are refilled before the sweeps, in phases."""
        numbers = self._frames.numbers
        yield from refreshed(
            (numbers.get(position, position), self._halos.refresh[position])
            for position in self._refill.refreshed
        )
        for pair in self._refill.inherited:
            yield copied(*pair, self._halos.inherited[pair].boxes)

    def _sweeps(self) -> Iterator[list[Launch]]:
        for phase in phases_of(self._launches, {}):
            yield [part for launch in phase for part in self._frames.parts(launch)]
