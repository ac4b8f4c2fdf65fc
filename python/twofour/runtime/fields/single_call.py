# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Single calls of a program on arrays alike: native code makes all of each.

A sweep leaves nothing in the near caches of what Python needs: what a call takes is looked up
before, and it goes through few functions.
"""

from collections import deque
from collections.abc import Callable, Mapping, Sequence

import numpy as np

from twofour.runtime.arrays import address_of
from twofour.runtime.buffer_pool import Slot
from twofour.runtime.dtypes import ElementType, to_storage
from twofour.runtime.fields.call_plan import CallPlan
from twofour.runtime.page_offset import PAGE
from twofour.runtime.rounds.actions import sweep_points
from twofour.runtime.rounds.single_round import tables_of_round
from twofour.runtime.rounds.skewed import actions_of
from twofour.runtime.rounds.step_tables import BoundTables, StepCode
from twofour.runtime.threads import waking_threads

# Tables that are kept for calls to come.
MOST_IDLE = 4


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
        # More than one where several threads of Python call at the same time.
        self._idle: deque[BoundTables] = deque(maxlen=MOST_IDLE)

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
        begins = [0] * len(self.plan.buffers)
        for number, array in zip(self.plan.inputs, inputs, strict=True):
            begins[number] = address_of(array)
        values = [to_storage(*one) for one in zip(numbers, self._numbers.values(), strict=True)]
        for number, value in zip(self._numbers, values, strict=True):
            begins[number] = address_of(value)
        given = dict(zip(self.plan.inputs, inputs, strict=True))
        for (number, _), place in zip(self._results, places, strict=False):
            if place is not None:
                given[number] = place
                begins[number] = address_of(place)
        leases = {}
        # A load waits for an earlier store at the same place of another page.
        taken = {begins[number] % PAGE for number in self.plan.inputs}
        for number, slots in self._slots:
            if number in given:
                continue
            slot = next((one for one in slots if one.begin not in taken), slots[0])
            taken.add(slot.begin)
            lease, offset = leases[number] = slot.lease()
            begins[number] = lease.address + offset
        try:
            tables = self._idle.pop()
        except IndexError:
            tables = self._tables.bind([buffer.model() for buffer in self.plan.buffers])
        tables.place(begins)
        # All rounds are the same one; an odd one begins at the end.
        self._code.run(tables.stretch(self._turn, 1), self._threads)
        self._turn ^= self._turns
        self._idle.append(tables)
        arrays = []
        for number, buffer in self._results:
            if number in given:
                arrays.append(given[number])
                continue
            lease, offset = leases[number]
            arrays.append(np.ndarray(buffer.shape, buffer.dtype, np.asarray(lease), offset))
        return arrays
