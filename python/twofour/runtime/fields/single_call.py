# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Single calls of a program on arrays alike: native code makes all of each.

A sweep leaves nothing in the near caches of what Python needs: what a call takes is looked up
before, and it goes through few functions.
"""

from collections import OrderedDict
from collections.abc import Callable, Mapping, Sequence

import numpy as np

from twofour.runtime.buffer_pool import Slot
from twofour.runtime.dtypes import ElementType, to_storage
from twofour.runtime.fields.call_plan import CallPlan
from twofour.runtime.memory import address_of
from twofour.runtime.page_offset import PAGE
from twofour.runtime.rounds.actions import sweep_points
from twofour.runtime.rounds.single_round import tables_of_round
from twofour.runtime.rounds.skewed import actions_of
from twofour.runtime.rounds.step_tables import BoundTables, StepCode, stretches_of
from twofour.runtime.threads import waking_threads

# Tables that are kept for calls to come: steps by hand take turns on a few arrays.
MOST_BOUND = 8


class SingleCall:
    """Calls as planned, on up to so many threads.

    `numbers` are the types of the arguments that are numbers, by their positions. Buffers that
    callers do not give are made where one of `slots(number, shape, dtype)` says: the first one in
    which nothing else begins, modulo pages. Inputs may be results of earlier calls.
    """

    def __init__(
        self,
        plan: CallPlan,
        numbers: Mapping[int, ElementType],
        slots: Callable[[int, Sequence[int], np.dtype], Sequence[Slot]],
        code: StepCode,
        threads: int,
    ):
        self.plan, self._numbers, self._code = plan, numbers, code
        buffers = plan.buffers
        self._tables, worth = tables_of_round(code, buffers, plan.round, plan.sweeps, threads)
        self._threads = waking_threads(sweep_points(actions_of(plan.sweeps), buffers), worth)
        self._results = [(number, buffers[number]) for number in plan.results]
        given = {*plan.inputs, *numbers}
        self._slots = [
            (number, slots(number, buffer.shape, buffer.dtype))
            for number, buffer in enumerate(buffers)
            if number not in given
        ]
        # A call goes on where the one before it ended: what that wrote last is in the near caches.
        self._turn, self._turns = 0, int(self._tables.turns(self._threads))
        # By where buffers begin. A call takes its own out: others may run at the same time.
        self._bound: OrderedDict[tuple[int, ...], _Bound] = OrderedDict()

    def run(
        self,
        inputs: Sequence[np.ndarray],
        numbers: Sequence,
        places: Sequence[np.ndarray | None] = (),
    ) -> list[np.ndarray]:
        """What the call gives; `inputs` are those of loaded fields in order, as kernels read them.

        `numbers` are the arguments that are numbers, in order. `places` are where results are made,
        arrays of theirs or None.
        """
        begins = [*map(address_of, inputs)]
        ends = [0 if place is None else address_of(place) for place in places]
        return self.run_at(inputs, begins, numbers, places, ends)

    def run_at(
        self,
        inputs: Sequence[np.ndarray],
        begins: Sequence[int],
        numbers: Sequence,
        places: Sequence[np.ndarray | None] = (),
        place_begins: Sequence[int] = (),
    ) -> list[np.ndarray]:
        """The same where it is known at which addresses inputs and places begin.

        All in one function: after a sweep each one more comes from the last-level cache.
        """
        addresses = [0] * len(self.plan.buffers)
        given = dict(zip(self.plan.inputs, inputs, strict=True))
        # A load waits for an earlier store at the same place of another page.
        taken = set()
        for number, begin in zip(self.plan.inputs, begins, strict=True):
            addresses[number] = begin
            taken.add(begin % PAGE)
        for number, place, begin in zip(self.plan.results, places, place_begins, strict=False):
            if place is not None:
                addresses[number], given[number] = begin, place
        leases = {}
        for number, slots in self._slots:
            if number not in given:
                for slot in slots:
                    if slot.begin not in taken:
                        break
                else:
                    slot = slots[0]
                taken.add(slot.begin)
                lease, offset = leases[number] = slot.lease()
                addresses[number] = lease.address + offset
        key = tuple(addresses)
        bound = self._bound.pop(key, None) or self._bind(addresses)
        if self._numbers or numbers:
            bound.set_numbers(numbers)
        self._code.run(bound.stretches[self._turn], self._threads)
        self._turn ^= self._turns
        self._bound[key] = bound
        results = []
        for number, buffer in self._results:
            if number in given:
                results.append(given[number])
            else:
                lease, offset = leases[number]
                results.append(np.ndarray(buffer.shape, buffer.dtype, np.asarray(lease), offset))
        return results

    def _bind(self, begins: Sequence[int]) -> "_Bound":
        """Tables on buffers at these addresses: the ones that were used least, or new ones."""
        bound = None
        while len(self._bound) >= MOST_BOUND:
            _, bound = self._bound.popitem(last=False)
        if bound is None:
            tables = self._tables.bind([buffer.model() for buffer in self.plan.buffers])
            bound = _Bound(tables, self._numbers, 1 + self._turns)
        bound.place(begins)
        return bound


class _Bound:
    """Tables on the buffers of calls, with cells of their own for arguments that are numbers.

    `stretches` are one round each, of the first `turns` ones. All are the same one; an odd one
    begins at the end.
    """

    def __init__(self, tables: BoundTables, numbers: Mapping[int, ElementType], turns: int):
        self._tables = tables
        self._cells = [
            (number, element, np.empty((), element.storage)) for number, element in numbers.items()
        ]
        self.stretches = [stretches_of(tables.stretch(turn, 1)) for turn in range(turns)]

    def place(self, begins: Sequence[int]) -> None:
        """Go on with buffers at these addresses, which callers keep alive."""
        begins = list(begins)
        for number, _, cell in self._cells:
            begins[number] = address_of(cell)
        self._tables.place(begins)

    def set_numbers(self, numbers: Sequence) -> None:
        """Give the arguments that are numbers these values."""
        for (_, element, cell), value in zip(self._cells, numbers, strict=True):
            cell[()] = to_storage(value, element)
