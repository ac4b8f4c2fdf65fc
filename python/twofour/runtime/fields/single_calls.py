# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The single calls of a program: by what they give, and by the fields that they update in place."""

from collections.abc import Callable, Sequence

import numpy as np

from twofour.runtime.arrays import address_of, is_ready
from twofour.runtime.destinations import are_apart
from twofour.runtime.fields.call_plan import Ends
from twofour.runtime.fields.single_call import SingleCall
from twofour.runtime.fields.spec import FieldSpec

# What a call gives, and the positions of the fields that it updates in the arrays of its caller.
Kind = tuple[Ends, frozenset[int]]
Places = Sequence[np.ndarray | None]


class SingleCalls:
    """Calls of a program over `fields`, each made by `make` when it is first needed.

    After a call argument i takes over the buffer of argument rotation[i].
    """

    def __init__(
        self,
        fields: Sequence[FieldSpec],
        rotation: Sequence[int],
        make: Callable[[Ends, frozenset[int]], SingleCall],
    ):
        self._make = make
        self._calls: dict[Kind, SingleCall] = {}
        self._loaded = [field for field in fields if field.loaded]
        # The buffers of results, by whether a run goes on with these.
        self._ends = {
            True: [(rotation[field.position], field) for field in self._loaded],
            False: [(field.position, field) for field in fields if field.stored],
        }

    def get(self, gives: Ends, in_place: frozenset[int] = frozenset()) -> SingleCall:
        """The call of that kind."""
        kind = gives, in_place
        if kind not in self._calls:
            self._calls[kind] = self._make(*kind)
        return self._calls[kind]

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
        return self.get(_gives(resume), frozenset(updated)), places

    def again(
        self, inputs: Sequence, steps: int, resume: bool, out: object
    ) -> tuple[SingleCall, Places] | None:
        """The same for a call like one before, with nothing left to check or convert.

        None where it is no such call.
        """
        if type(steps) is not int or steps != 1 or not _are_ready(inputs, self._loaded):
            return None
        places = () if out is None else out if isinstance(out, tuple | list) else (out,)
        updated = set()
        if places:
            ends = self._ends[resume]
            if not _are_ready(places, [field for _, field in ends]):
                return None
            positions = self._positions(inputs)
            apart = list(inputs)
            for place, (end, _) in zip(places, ends, strict=True):
                owner = positions.get(address_of(place))
                if owner is None:
                    apart.append(place)
                elif owner == end:
                    updated.add(end)
                else:
                    return None
            if not all(place.flags.writeable for place in places) or not are_apart(apart):
                return None
        call = self._calls.get((_gives(resume), frozenset(updated)))
        return None if call is None else (call, places)

    def _positions(self, inputs: Sequence[np.ndarray]) -> dict[int, int]:
        """The positions of loaded fields by the addresses of their arrays."""
        pairs = zip(inputs, self._loaded, strict=True)
        return {address_of(array): field.position for array, field in pairs}


def _gives(resume: bool) -> Ends:
    return Ends.LOADED if resume else Ends.STORED


def _are_ready(arrays: Sequence, fields: Sequence[FieldSpec]) -> bool:
    """Whether there is one for each field that native code uses as it is."""
    return len(arrays) == len(fields) and all(
        is_ready(array, field.shape, field.element.storage)
        for array, field in zip(arrays, fields, strict=True)
    )
