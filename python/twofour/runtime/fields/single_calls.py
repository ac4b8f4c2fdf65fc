# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The single calls of a program: by what they give, and what callers have for that.

Callers may have arrays for results, fields that are to be updated in place among them. Of loaded
fields that a call leaves as they are, a run goes on with the array of the caller itself, unless
its halo may be out of date.
"""

from collections.abc import Callable, Collection, Iterable, Sequence
from typing import NamedTuple

import numpy as np

from twofour.runtime.arrays import begins_of
from twofour.runtime.destinations import are_apart
from twofour.runtime.fields.call_plan import Ends
from twofour.runtime.fields.single_call import SingleCall
from twofour.runtime.fields.spec import FieldSpec
from twofour.runtime.memory import address_of

# Calls that are kept by where their arrays begin: steps by hand take turns on a few.
MOST_KNOWN = 64
NONE: frozenset[int] = frozenset()
Places = Sequence[np.ndarray | None]


class Kind(NamedTuple):
    """What a call gives, and by their positions the fields that it updates in arrays of its caller,
    and those of which it gives back these.
    """

    gives: Ends
    in_place: frozenset[int] = NONE
    as_is: frozenset[int] = NONE


PLAIN = Kind(Ends.STORED)


class SingleCalls:
    """Calls of a program over `fields`, each made by `make` when it is first needed.

    After a call argument i takes over the buffer of argument rotation[i]. The halos of the fields
    `refreshed` are brought up to date in results, which `is_result` tells from other arrays.
    """

    def __init__(
        self,
        fields: Sequence[FieldSpec],
        rotation: Sequence[int],
        make: Callable[[Kind], SingleCall],
        refreshed: Collection[int],
        is_result: Callable[[np.ndarray], bool],
    ):
        self._make, self._refreshed, self._is_result = make, refreshed, is_result
        self._calls: dict[Kind, SingleCall] = {}
        # To find it by its kind takes a function of Python's enumerations.
        self._plain: SingleCall | None = None
        self._loaded = [field for field in fields if field.loaded]
        self._taken = _array_kinds(self._loaded)
        # The buffers of results, by whether a run goes on with these.
        self._ends = {
            True: [(rotation[field.position], field) for field in self._loaded],
            False: [(field.position, field) for field in fields if field.stored],
        }
        self._given = {
            resume: _array_kinds(field for _, field in ends) for resume, ends in self._ends.items()
        }
        # The loaded fields that may stay as they are.
        ends = {end for end, _ in self._ends[True]}
        self._passed_on = ends & {field.position for field in self._loaded}
        # Of which inputs it matters whether they are results.
        self._made_here = [
            number
            for number, field in enumerate(self._loaded)
            if field.position in self._passed_on and field.position in refreshed
        ]
        # Calls by where their arrays begin, and which of them are results.
        self._known: dict[tuple[int, ...], SingleCall] = {}

    def get(self, kind: Kind) -> SingleCall:
        """The call of that kind."""
        if kind not in self._calls:
            self._calls[kind] = self._make(kind)
            self._plain = self._calls.get(PLAIN)
        return self._calls[kind]

    def first(self) -> SingleCall:
        """What gives the inputs of the next call of a run."""
        return self.get(Kind(Ends.LOADED, as_is=frozenset(self._passed_on)))

    def last(
        self, inputs: Sequence[np.ndarray], places: Places, resume: bool
    ) -> tuple[SingleCall, Places]:
        """What gives results, and which of the places it makes them in.

        Each place is one of the inputs or apart from them. An input is where a result may be made
        if it is the buffer that the result would be in.
        """
        positions = self._positions(inputs)
        ends = [end for end, _ in self._ends[resume]]
        owners = [None if place is None else positions.get(address_of(place)) for place in places]
        places = [
            place if owner in (None, end) else None
            for place, owner, end in zip(places, owners, ends, strict=True)
        ]
        updated = {end for owner, end in zip(owners, ends, strict=True) if owner == end}
        return self.get(self._kind(inputs, resume, places, updated)), places

    def again(
        self, inputs: Sequence, steps: int, numbers: Sequence, resume: bool, out: object
    ) -> list[np.ndarray] | None:
        """What a call gives that is like one before, with nothing left to check or convert.

        None where it is no such call.
        """
        begins = begins_of(inputs, self._taken) if type(steps) is int and steps == 1 else None
        if begins is None:
            return None
        if out is None and not resume:
            call = self._plain
            return None if call is None else call.run_at(inputs, begins, numbers)
        places: Places = ()
        ends: Sequence[int] | None = ()
        if out is not None:
            places = out if isinstance(out, tuple | list) else (out,)
            ends = begins_of(places, self._given[resume])
            if ends is None or not all(place.flags.writeable for place in places):
                return None
        # All that is asked of them depends on where they lie, and on who made some of them.
        made = (self._is_result(inputs[number]) for number in self._made_here) if resume else ()
        key = (resume, *made, *begins, *ends)
        call = self._known.get(key)
        if call is None:
            call = self._made_before(inputs, begins, places, ends, resume)
            if call is None:
                return None
            if len(self._known) >= MOST_KNOWN:
                self._known.clear()
            self._known[key] = call
        return call.run_at(inputs, begins, numbers, places, ends)

    def _made_before(
        self,
        inputs: Sequence[np.ndarray],
        begins: Sequence[int],
        places: Sequence[np.ndarray],
        ends: Sequence[int],
        resume: bool,
    ) -> SingleCall | None:
        """The call for such inputs and places if one of its kind was made; else None."""
        in_place = self._updated_by(inputs, begins, places, ends, resume) if places else NONE
        if in_place is None:
            return None
        return self._calls.get(self._kind(inputs, resume, places, in_place))

    def _updated_by(
        self,
        inputs: Sequence[np.ndarray],
        begins: Sequence[int],
        places: Sequence[np.ndarray],
        ends: Sequence[int],
        resume: bool,
    ) -> set[int] | None:
        """The positions of inputs that are places of their own results.

        `begins` and `ends` are where inputs and places begin. None where another input or place
        lies where a place is.
        """
        updated: set[int] = set()
        owners = {begin: field.position for begin, field in zip(begins, self._loaded, strict=True)}
        if len(owners) != len(inputs):
            return None
        spans = [(begin, array.nbytes) for begin, array in zip(begins, inputs, strict=True)]
        for place, begin, (end, _) in zip(places, ends, self._ends[resume], strict=True):
            owner = owners.get(begin)
            if owner not in (None, end):
                return None
            if owner is None:
                spans.append((begin, place.nbytes))
            else:
                updated.add(end)
        return updated if are_apart(spans) else None

    def _kind(
        self,
        inputs: Sequence[np.ndarray],
        resume: bool,
        places: Places,
        in_place: Collection[int],
    ) -> Kind:
        """The kind of a call with such inputs that updates some of them."""
        if not resume:
            return Kind(Ends.STORED, frozenset(in_place))
        ends = self._ends[True]
        elsewhere = {
            end for place, (end, _) in zip(places, ends, strict=False) if place is not None
        }
        as_is = {
            field.position
            for array, field in zip(inputs, self._loaded, strict=True)
            if field.position in self._passed_on
            and (field.position not in self._refreshed or self._is_result(array))
        }
        return Kind(Ends.LOADED, frozenset(in_place), frozenset(as_is - elsewhere))

    def _positions(self, inputs: Sequence[np.ndarray]) -> dict[int, int]:
        """The positions of loaded fields by the addresses of their arrays."""
        pairs = zip(inputs, self._loaded, strict=True)
        return {address_of(array): field.position for array, field in pairs}


def _array_kinds(fields: Iterable[FieldSpec]) -> list[tuple[tuple[int, ...], np.dtype]]:
    """The shapes and dtypes of arrays that native code uses as they are."""
    return [(field.shape, field.element.storage) for field in fields]
