# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Time stepping of programs over several fields in the memory of the process."""

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import cached_property, partial

import numpy as np

from twofour.runtime.boundary import AxisBoundary
from twofour.runtime.box import Box, around
from twofour.runtime.buffer_pool import BufferPool, Slot
from twofour.runtime.dtypes import ElementType, to_storage
from twofour.runtime.fields.call_plan import CallPlan
from twofour.runtime.fields.copies import copied, first_values, refreshed
from twofour.runtime.fields.refills import Refill
from twofour.runtime.fields.single_call import SingleCall
from twofour.runtime.fields.single_calls import Kind, SingleCalls
from twofour.runtime.fields.spec import FieldSpec
from twofour.runtime.fields.stepping import FieldStepper
from twofour.runtime.fields.writes import (
    covered_fields,
    overwritten,
    read_halos,
    unwritten_calls,
    written_interiors,
)
from twofour.runtime.loops import (
    Carried,
    Course,
    Loop,
    Step,
    View,
    bound_arguments,
    nested_launches,
    used_indices,
)
from twofour.runtime.page_offset import PAGE, offset_to_line, page_offsets
from twofour.runtime.recent import Recent
from twofour.runtime.rounds.actions import Buffer
from twofour.runtime.rounds.program import Copies, Program
from twofour.runtime.rounds.step_tables import StepCode
from twofour.runtime.slices import run_in_slices

# Arrays of a program that lie apart in a page; others lie like them again.
APART = 16
# As many calls as a run has.
ANY_NUMBER = 1 << 62
# Runs of so many steps copy also inputs that they only read: the copies begin at a cache line and
# lie apart from what is written.
COPYING_STEPS = 16
# So many steps are faster in single calls, each to new arrays, than in a run that copies its inputs
# first, or about as fast.
FEW_STEPS = 3
# Programs that are kept: runs of few steps copy other inputs than those of many.
MOST_PROGRAMS = 2
# Values of a program that are inputs of a run: this one and those before it, down from the index of
# the loop over calls.
CALLS = -1
INPUTS = CALLS - 1
# Type of the indices of loops.
INDEX = np.dtype(np.int64)


class HostFieldStepper(FieldStepper):
    """A FieldStepper whose buffers lie apart in a page, and are used again in later runs.

    Interiors begin on cache lines, and all of their rows where rows are whole lines: loads and
    stores of two lines take twice the time.
    """

    def __init__(self, *arguments, **options):
        super().__init__(*arguments, **options)
        self._pools: dict[int, BufferPool] = {}
        self._slots: dict[tuple[int, tuple[int, ...], np.dtype], Slot] = {}
        # The first cell that is updated, of fields of each shape: rows begin on cache lines there.
        self._first_updated = {
            field.shape: field.interior[0] for field in self.fields if field.interior
        }

    def _copied(self, position: int, values: np.ndarray) -> np.ndarray:
        buffer = self._placed(position, values.shape, values.dtype)
        buffer[...] = values
        return buffer

    def _zeros(self, position: int, shape: Sequence[int], dtype: np.dtype) -> np.ndarray:
        buffer = self._placed(position, shape, dtype)
        buffer[...] = 0
        return buffer

    def _placed(self, number: int, shape: Sequence[int], dtype: np.dtype) -> np.ndarray:
        """An uninitialised buffer, the one of that number among those of a run."""
        lease, offset = self._slot(number, shape, dtype).lease()
        return np.ndarray(shape, dtype, np.asarray(lease), offset)

    def _slot(self, number: int, shape: Sequence[int], dtype: np.dtype) -> Slot:
        """Where that buffer is made."""
        kind = number % APART, tuple(shape), dtype
        if kind not in self._slots:
            size = math.prod(shape) * np.dtype(dtype).itemsize
            # A call has buffers for frames too, beside the results of the one before it.
            pool = self._pools.setdefault(size, BufferPool(most=2 * len(self.rotation)))
            self._slots[kind] = Slot(pool, size, self._begin_of(*kind))
        return self._slots[kind]

    def _begin_of(self, place: int, shape: tuple[int, ...], dtype: np.dtype) -> int:
        """The address, modulo pages, of one of APART arrays that lie apart."""
        strides = Buffer(shape, np.dtype(dtype)).strides
        first = self._first_updated.get(shape, ())
        begin = page_offsets(strides[:-1], APART)[place] + offset_to_line(first, strides)
        return begin % PAGE

    def _is_result(self, array: np.ndarray) -> bool:
        """Whether an array was made here: its halo is up to date, as far as nobody changed it."""
        pool = self._pools.get(array.nbytes)
        return pool is not None and pool.has(array)


class NativeFieldStepper(HostFieldStepper):
    """Advances fields by the launches and loops of a program: native code runs all of them.

    `numbers` are the types of the arguments that are numbers, by their positions. `steps` are those
    of one call, on the arguments and on `workspaces`, (shape, dtype) each.
    """

    def __init__(
        self,
        fields: Sequence[FieldSpec],
        numbers: Mapping[int, ElementType],
        rotation: Sequence[int],
        steps: Sequence[Step],
        workspaces: Sequence[tuple[tuple[int, ...], np.dtype]],
        boundary: Sequence[AxisBoundary],
        code: Callable[[int], StepCode],
        threads: int,
    ):
        super().__init__(
            fields,
            rotation,
            None,
            boundary,
            written=written_interiors(steps, fields),
            read=read_halos(steps, fields),
            covered=covered_fields(steps, fields),
        )
        self._numbers, self._workspaces, self._threads = numbers, workspaces, threads
        self._steps, self._code = steps, code
        self._copies = self.halos.refills.map(self._copies_of)
        refilled = {
            copy.written for call in self._copies.items for copies in call for copy in copies
        }
        self._unwritten_calls = unwritten_calls(steps, refilled, rotation)
        self._overwritten = overwritten(steps, self.fields)
        # Arguments that say how often loops run.
        self._bounds = bound_arguments(steps)
        self._indices = used_indices(steps)
        carried = tuple(
            Carried(place, View(place, ()), View(heir, ())) for place, heir in enumerate(rotation)
        )
        self._calls = Loop(CALLS, 0, ANY_NUMBER, 1, carried, tuple(steps))
        calls = replace(self._calls, body=())
        self._course = Course(calls, {}, lambda loop: range(loop.upper))
        self._programs: Recent[Program] = Recent(MOST_PROGRAMS)
        self.single_calls = SingleCalls(
            self.fields, self.rotation, self._new_single_call, self.halos.refresh, self._is_result
        )

    def get_ready(self) -> None:
        """Compile the driver, and make its tables where no argument decides on them."""
        _ = self._driver
        if not self._bounds:
            self._program_for((), self._taken(COPYING_STEPS)).get_ready()

    def _advanced(
        self,
        inputs: Sequence[np.ndarray],
        steps: int,
        scalars: Sequence[float | int],
        progress: Callable[[int, int], None] | None,
        resume: bool,
        places: Sequence[np.ndarray | None],
    ) -> list:
        if not 0 < steps <= self._single_steps:
            return super()._advanced(inputs, steps, scalars, progress, resume, places)
        arrays = [*self._values(inputs).values()]
        for _ in range(steps - 1):
            arrays = self.single_calls.first().run(arrays, scalars)
        call, places = self.single_calls.last(arrays, places, resume)
        return call.run(arrays, scalars, places)

    def _values(self, inputs: Sequence[np.ndarray]) -> dict[int, np.ndarray]:
        values = super()._values(inputs)
        return {at: one if one.flags.aligned else one.copy() for at, one in values.items()}

    def _taken(self, steps: int) -> tuple[int, ...]:
        """The positions of inputs that runs of so many steps copy."""
        loaded = [field.position for field in self.fields if field.loaded]
        if steps >= COPYING_STEPS:
            return tuple(loaded)
        return tuple(at for at in loaded if steps > self._unwritten_calls.get(at, steps))

    def _start(
        self, values: Mapping[int, np.ndarray], scalars: Sequence[float | int], steps: int
    ) -> list:
        """As that of FieldStepper, but that a run copies first values itself."""
        if not steps:
            return super()._start(values, scalars, steps)
        arguments: list = [None] * len(self.rotation)
        taken = self._taken(steps)
        for field in self.fields:
            place = field.position
            is_read = field.loaded and place not in taken
            new = partial(self._placed, place, field.shape, field.element.storage)
            arguments[place] = values[place] if is_read else new()
        numbers = iter(scalars)
        return [next(numbers) if argument is None else argument for argument in arguments]

    def _run(
        self,
        arguments: list,
        values: Mapping[int, np.ndarray],
        steps: int,
        progress: Callable[[int, int], None] | None,
    ) -> list:
        workspaces = [
            self._placed(len(arguments) + number, *kind)
            for number, kind in enumerate(self._workspaces)
        ]
        arrays = [
            to_storage(argument, self._numbers[place]) if place in self._numbers else argument
            for place, argument in enumerate(arguments)
        ]
        cells = [np.empty((), INDEX) for _ in self._indices]
        taken = self._taken(steps)
        program = self._program_for(tuple(arguments[place] for place in self._bounds), taken)
        given = [values[place] for place in taken]
        run = program.bind([*arrays, *workspaces, *cells, *given], steps)

        def advance(rounds: int) -> int:
            return run.advance(rounds, program.points, program.threads)

        def tell(done: int, of: int) -> None:
            progress(done * steps // of, steps)

        run_in_slices(advance, run.rounds, program.points, tell if progress else None)
        last = self._course.at(steps - 1)
        return [arguments[last[place].buffer] for place in range(len(arguments))]

    @cached_property
    def _driver(self) -> StepCode:
        """Compiled when it is needed: of linear programs other steppers run."""
        launches = nested_launches(self._steps)
        return self._code(max([2, *(len(one.inputs) + len(one.outputs) for one in launches)]))

    def _program_for(self, bounds: tuple[int, ...], taken: tuple[int, ...]) -> Program:
        """The program where loops run to these numbers and these inputs are copied."""
        return self._programs.get((bounds, taken), self._new_program)

    def _new_single_call(self, kind: Kind) -> SingleCall:
        plan = CallPlan(self.fields, self._steps, self._buffers, self.rotation, self.halos, *kind)
        return SingleCall(plan, self._numbers, self._slots_of, self._driver, self._threads)

    def _slots_of(self, number: int, shape: Sequence[int], dtype: np.dtype) -> list[Slot]:
        """Where a buffer may be made, apart in a page."""
        return [self._slot(place, shape, dtype) for place in range(number, number + APART, 4)]

    def again(
        self, inputs: Sequence, steps: int, scalars: Sequence, resume: bool, out: object
    ) -> list | None:
        return self.single_calls.again(inputs, steps, scalars, resume, out)

    @property
    def _single_steps(self) -> int:
        """Up to how many steps are made by single calls.

        Several are where each starts with nothing of those before but the loaded fields.
        """
        if any(isinstance(step, Loop) for step in self._steps):
            return 0
        starts_anew = all(field in self._overwritten for field in self.outputs)
        in_place = any(field.loaded for field in self.outputs)
        return FEW_STEPS if starts_anew and not in_place else 1

    @property
    def _buffers(self) -> list[Buffer]:
        """The buffers of arguments, then those of workspaces."""
        arguments = {field.position: (field.shape, field.element.storage) for field in self.fields}
        arguments |= {place: ((), element.storage) for place, element in self._numbers.items()}
        kinds = [*(arguments[place] for place in range(len(arguments))), *self._workspaces]
        return [Buffer(shape, np.dtype(dtype)) for shape, dtype in kinds]

    def _new_program(self, key: tuple[tuple[int, ...], tuple[int, ...]]) -> Program:
        bounds, taken = key
        numbers = dict(zip(self._bounds, bounds, strict=True))
        buffers = self._buffers
        cells = {index: len(buffers) + number for number, index in enumerate(self._indices)}
        buffers += [Buffer((), INDEX) for _ in cells]
        # Values of their own, by the arguments that they are copied to.
        inputs = {place: INPUTS - place for place in taken}
        given = {value: len(buffers) + number for number, value in enumerate(inputs.values())}
        buffers += [buffers[place] for place in taken]
        copies = self._copies.beginning((self._first_copies(inputs), *self._copies.at(0)))
        return Program(
            self._driver, self._calls, copies, numbers, cells, given, buffers, self._threads
        )

    def _first_copies(self, inputs: Mapping[int, int]) -> Copies:
        """What the first call copies before all else: these values to these arguments."""
        loads = [
            copy
            for place, value in inputs.items()
            for copy in copied(value, place, [Box.whole(self._buffers[place].shape)])
        ]
        loaded = {field.position: field.position for field in self.fields if field.loaded}
        makes = first_values(self.fields, self.rotation, loaded | inputs, self._first_cells)
        return (*loads, *makes)

    def _first_cells(self, field: FieldSpec) -> list[Box]:
        """The cells of a field that is only stored whose first values count."""
        cells = Box.whole(field.shape)
        if field not in self._overwritten:
            return [cells]
        return around(cells, Box(*map(tuple, field.interior)))

    def _copies_of(self, refill: Refill) -> tuple[Copies, ...]:
        """The copies of a refill, in order."""
        refreshes = ((place, self.halos.refresh[place]) for place in refill.refreshed)
        inherited = (copied(*pair, self.halos.inherited[pair].boxes) for pair in refill.inherited)
        return tuple(map(tuple, (*refreshed(refreshes), *inherited)))
