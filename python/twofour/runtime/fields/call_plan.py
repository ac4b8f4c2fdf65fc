# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""What one call of a program copies and sweeps, from the arrays of its caller to new ones.

Those who step by hand make such calls, for which copies would take as long as sweeps do. Arrays
that are only read stay where they are, and so do those whose halo is refreshed: beside these there
are frames (see twofour.runtime.fields.frames). What is updated in place is read in the caller's
array by the sweep that writes it to a new one.
"""

import itertools
from collections.abc import Collection, Iterator, Mapping, Sequence
from enum import Enum, auto
from functools import cached_property

from twofour.runtime.boundary import HaloRefresh
from twofour.runtime.box import Box, around
from twofour.runtime.fields.copies import copied, first_values, refreshed
from twofour.runtime.fields.frames import Frames
from twofour.runtime.fields.halos import FieldHalos
from twofour.runtime.fields.spec import FieldSpec
from twofour.runtime.fields.writes import overwritten, stores_interior
from twofour.runtime.loops import Launch
from twofour.runtime.rounds.actions import Action, Buffer, Copy, Round
from twofour.runtime.rounds.program import phases_of


class Ends(Enum):
    """What a call gives: the stored fields, or the loaded ones as the next call takes them."""

    STORED = auto()
    LOADED = auto()


class CallPlan:
    """A call of `launches` on fields whose halos are `halos`, as a round of copies and sweeps.

    `buffers` are those of the arguments, then workspaces; others are added. After the call argument
    i takes over that of argument rotation[i]. `inputs` and `results` are the buffers of loaded
    fields and of what the call gives, in order. Callers give those of inputs, which nothing is
    written to but the values of the fields `in_place`, by their positions. Results are new arrays,
    but for inputs that may be given back `as_is` where a call does not change them.
    """

    def __init__(
        self,
        fields: Sequence[FieldSpec],
        launches: Sequence[Launch],
        buffers: Sequence[Buffer],
        rotation: Sequence[int],
        halos: FieldHalos,
        gives: Ends,
        in_place: Collection[int] = (),
        as_is: Collection[int] = (),
    ):
        self._fields, self._launches, self._rotation = fields, tuple(launches), rotation
        self._halos, self._refill, self.buffers = halos, halos.refills.at(0), list(buffers)
        self._frames = self._framed()
        changed = (self._written | {*self._refill.refreshed}).difference(self._frames.numbers)
        loaded = [field.position for field in fields if field.loaded]
        # Where their first values are.
        copied_to = changed.difference(in_place)
        self._given = {one: self._new(one) if one in copied_to else one for one in loaded}
        self._replaced = [field for field in fields if self._is_replaced(field)]
        for field in self._replaced:
            self._read_given(field.position)
        self.inputs = tuple(self._given.values())
        stored = gives is Ends.STORED
        ends = {
            field.position if stored else rotation[field.position]: field
            for field in fields
            if (field.stored if stored else field.loaded)
        }
        kept = {end for end in ends if self._given.get(end) == end}
        copies = {end: self._new(end) for end in kept.difference(in_place, as_is)}
        self.results = tuple(copies.get(end, end) for end in ends)
        # What brings their halos up to date.
        refreshes = {
            number: halos.refresh[field.position]
            for number, field in zip(self.results, ends.values(), strict=True)
            if field.position in halos.refresh and (number not in self.inputs or number in in_place)
        }
        self.sweeps = phases_of(self._launches, {})
        phases: list[Sequence[Action]] = [
            [*self._loads(refreshes), *self._makes(refreshes)],
            *self._refills(),
            *map(self._in_parts, self.sweeps),
            [copy for end, number in copies.items() for copy in self._whole(end, number)],
            *refreshed(refreshes.items()),
        ]
        self.round: Round = [phase for phase in phases if phase]

    @property
    def framed(self) -> tuple[int, ...]:
        """The positions of the fields that are read in frames."""
        return tuple(self._frames.numbers)

    def _new(self, like: int) -> int:
        """The number of another buffer like that one."""
        self.buffers.append(self.buffers[like])
        return len(self.buffers) - 1

    @cached_property
    def _written(self) -> set[int]:
        """What is written to, or passes its halo on, but for halos that are refreshed."""
        outputs = (view.buffer for launch in self._launches for view in launch.outputs)
        return {*outputs, *itertools.chain(*self._refill.inherited)}

    def _framed(self) -> Frames:
        # What is beside a frame is refreshed in the end, if not as a part of another interior.
        refreshes = {
            position: self._halos.refresh[position]
            for position in self._refill.refreshed
            if position not in self._written and self._halos.same_interiors
        }
        return Frames(refreshes, self._launches, self.buffers, self._new)

    def _is_replaced(self, field: FieldSpec) -> bool:
        """Whether the first sweep that writes to a loaded field writes its whole interior.

        Its halo is that of the caller until then.
        """
        position = field.position
        if self._given.get(position, position) == position or field.interior is None:
            return False
        if position in (*self._refill.refreshed, *itertools.chain(*self._refill.inherited)):
            return False
        first = next(one for one in self._launches if _writes(one, position))
        return stores_interior(first, field)

    def _read_given(self, position: int) -> None:
        """Have sweeps up to the first one that writes to a field read the caller's array."""
        launches, given = [], self._given[position]
        is_new = False
        for launch in self._launches:
            if not is_new:
                is_new = _writes(launch, position)
                launch = launch.reading({position: given})
            launches.append(launch)
        self._launches = tuple(launches)

    def _whole(self, source: int, target: int) -> list[Copy]:
        return copied(source, target, [Box.whole(self.buffers[target].shape)])

    def _rim(self, field: FieldSpec, refreshes: Mapping[int, HaloRefresh]) -> list[Box]:
        """The cells around an interior, but halos that one of `refreshes` fills in the end."""
        position, cells = field.position, Box.whole(field.shape)
        if position in refreshes:
            cells = refreshes[position].inside
        return around(cells, Box(*map(tuple, field.interior)))

    def _loads(self, refreshes: Mapping[int, HaloRefresh]) -> Iterator[Copy]:
        """What is copied of callers' arrays."""
        rims = {field.position: self._rim(field, refreshes) for field in self._replaced}
        for position, given in self._given.items():
            if position in rims:
                yield from copied(given, position, rims[position])
            elif given != position:
                yield from self._whole(given, position)
        yield from self._frames.copies()

    def _makes(self, refreshes: Mapping[int, HaloRefresh]) -> Iterator[Copy]:
        """The first values of fields that are only stored.

        No sweep reads their halo before it is refreshed.
        """
        rims = overwritten(self._launches, self._fields)

        def cells(field: FieldSpec) -> list[Box]:
            return self._rim(field, refreshes) if field in rims else [Box.whole(field.shape)]

        return first_values(self._fields, self._rotation, self._given, cells)

    def _refills(self) -> Iterator[list[Copy]]:
        """How halos are refilled before the sweeps, in phases."""
        numbers = self._frames.numbers
        yield from refreshed(
            (numbers.get(position, position), self._halos.refresh[position])
            for position in self._refill.refreshed
        )
        for pair in self._refill.inherited:
            yield copied(*pair, self._halos.inherited[pair].boxes)

    def _in_parts(self, phase: Sequence[Launch]) -> list[Launch]:
        return [part for launch in phase for part in self._frames.parts(launch)]


def _writes(launch: Launch, position: int) -> bool:
    return any(view.buffer == position for view in launch.outputs)
