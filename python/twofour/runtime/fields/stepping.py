# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Time stepping of programs over several fields, each with its halo in its own array."""

import math
import time
from collections.abc import Callable, Collection, Mapping, Sequence

import numpy as np

from twofour.errors import TwofourError
from twofour.runtime.boundary import AxisBoundary
from twofour.runtime.dtypes import check_array, storage_view
from twofour.runtime.fields.halos import FieldHalos
from twofour.runtime.fields.spec import FieldSpec, heir_of
from twofour.runtime.halos import SLICES, Halos
from twofour.runtime.memory import HOST, Memory
from twofour.runtime.stepping import PROGRESS_INTERVAL, check_steps


class FieldStepper:
    """Advances fields by calls of a program.

    `prepare()` gives the callable of one run; called with all arguments it runs the program once,
    in place. After a call, argument i takes over the buffer of argument rotation[i].

    Before each call the halo of every loaded field that the program updates is refreshed, axis by
    axis, from its interior; `boundary` holds one entry an axis. On axes with boundary `fixed` a
    field that is only stored takes its halo from the field whose place its buffer takes, which
    holds the newest values there are, and so it does its interior unless each call stores to all of
    it, as to those of the fields `covered`. What halos hold already is not copied again where it is
    known that a call writes to the interiors of the fields `written` and nowhere else; then what no
    call reads is not copied either, where it is known that it reads the halos of the fields `read`
    only.

    Fields are kept in `memory`, and arrays in and out are of its array module; their halos are
    refreshed as `halos` says. `records` tells whether calls may be recorded, for programs that do
    not record parts of a call by themselves.
    """

    def __init__(
        self,
        fields: Sequence[FieldSpec],
        rotation: Sequence[int],
        prepare: Callable[[], Callable[[Sequence], None]],
        boundary: Sequence[AxisBoundary],
        memory: Memory = HOST,
        records: bool = True,
        halos: Halos = SLICES,
        written: Collection[int] | None = None,
        read: Collection[int] | None = None,
        covered: Collection[int] = (),
    ):
        self.fields = tuple(fields)
        self.memory, self.records = memory, records
        self.rotation = tuple(rotation)
        self._prepare = prepare
        self.halos = FieldHalos(self.fields, self.rotation, boundary, halos, written, read, covered)

    def advance(
        self,
        inputs: Sequence[np.ndarray],
        steps: int,
        scalars: Sequence[float | int] = (),
        progress: Callable[[int, int], None] | None = None,
        resume: bool = False,
        places: Sequence[np.ndarray | None] | None = None,
    ) -> list[np.ndarray]:
        """Return the stored fields after `steps` calls, as new arrays in the order of arguments.

        With `resume` it is the loaded ones, as the next call takes them: what a run goes on with.
        Inputs among these that no call changes may be themselves. `inputs` are the loaded fields in
        order; they are not modified, unless they are `places`. A field that is only stored starts
        as a copy of the field that takes over its buffer, so that halos keep their values, or as
        zeros. `scalars` are the arguments that are numbers, as `read_scalars` gives them. `places`
        are C-contiguous arrays of storage types for results, or None: some steppers make a result
        there where they can, and return this array then. Each is one of the inputs, or shares no
        memory with them, nor with other places. Raises TwofourError for unfit arrays, and for
        several steps of a program whose results do not become its inputs.
        """
        steps = check_steps(steps)
        loaded = self.loaded(inputs)
        for number, (array, field) in enumerate(zip(inputs, loaded, strict=True)):
            check_array(
                array,
                field.element,
                shape=field.shape,
                what=f"input {number}",
                array_type=self.memory.array_module.ndarray,
            )
        if steps > 1 and loaded and not self._feeds_back():
            raise TwofourError(
                f"expected outputs of the type of inputs to run {steps} steps, got a program whose "
                "results do not become its inputs"
            )
        given = loaded if resume else self.outputs
        places = places or [None] * len(given)
        buffers = self._advanced(inputs, steps, scalars, progress, resume, places)
        if progress is not None:
            self.memory.synchronize()
            progress(steps, steps)
        results, inputs_by_place = [], self._by_place(inputs)
        for buffer, place, field in zip(buffers, places, given, strict=True):
            own = place if buffer is place else inputs_by_place.get(self._place_of(buffer))
            results.append(self._like(buffer, field, inputs, loaded) if own is None else own)
        return results

    def again(
        self, inputs: Sequence, steps: int, scalars: Sequence, resume: bool, out: object
    ) -> list | None:
        """What a call gives that is like one before; None where it is to be made as a new one."""
        return None

    def get_ready(self) -> None:
        """Do what the first run would have to do before it begins."""

    def _advanced(
        self,
        inputs: Sequence[np.ndarray],
        steps: int,
        scalars: Sequence[float | int],
        progress: Callable[[int, int], None] | None,
        resume: bool,
        places: Sequence[np.ndarray | None],
    ) -> list:
        """The buffers that `advance` gives, from inputs that fit."""
        values = self._values(inputs)
        arguments = self._start(values, scalars, steps)
        if steps:
            arguments = self._run(arguments, values, steps, progress)
        return self._results(arguments, inputs, steps, resume)

    def _run(
        self,
        arguments: list,
        values: Mapping[int, np.ndarray],
        steps: int,
        progress: Callable[[int, int], None] | None,
    ) -> list:
        """The arguments of the last one of `steps` calls, from those that `_start` made."""
        run = _Run(self, arguments, self._prepare())
        done, reported = 0, time.monotonic()
        while done < steps:
            done += run.advance(steps - done)
            due = done < steps and time.monotonic() - reported >= PROGRESS_INTERVAL
            if progress is not None and due:
                self.memory.synchronize()
                progress(done, steps)
                reported = time.monotonic()
        return run.arguments

    @property
    def outputs(self) -> list[FieldSpec]:
        """The stored fields."""
        return [field for field in self.fields if field.stored]

    def loaded(self, inputs: Sequence) -> list[FieldSpec]:
        """The loaded fields; raises TwofourError where there are not as many inputs."""
        loaded = [field for field in self.fields if field.loaded]
        if len(inputs) != len(loaded):
            raise TwofourError(f"expected {len(loaded)} input fields, got {len(inputs)}")
        return loaded

    def _feeds_back(self) -> bool:
        moved = any(source != i for i, source in enumerate(self.rotation))
        return moved or any(field.loaded and field.stored for field in self.fields)

    def _start(
        self, values: Mapping[int, np.ndarray], scalars: Sequence[float | int], steps: int
    ) -> list:
        """The first arguments: buffers of fields, and numbers where they stand.

        `values` are those of loaded fields, by their positions.
        """
        arguments: list = [None] * len(self.rotation)
        for position, array in values.items():
            arguments[position] = self._input_buffer(position, array, steps)
        for field in self.fields:
            if not field.loaded:
                heir = heir_of(field, self.fields, self.rotation)
                arguments[field.position] = (
                    self._result_buffer(field, arguments[heir], steps)
                    if heir is not None
                    else self._zeros(field.position, field.shape, field.element.storage)
                )
        numbers = iter(scalars)
        return [next(numbers) if argument is None else argument for argument in arguments]

    def _values(self, inputs: Sequence) -> dict[int, np.ndarray]:
        """Inputs as kernels take them, by the positions of their fields."""
        contiguous = self.memory.array_module.ascontiguousarray
        return {
            field.position: storage_view(contiguous(array), field.element)
            for array, field in zip(inputs, self.loaded(inputs), strict=True)
        }

    def _input_buffer(self, position: int, values, steps: int):
        """The buffer of an input in a run of so many steps."""
        return self._copied(position, values)

    def _result_buffer(self, field: FieldSpec, heir, steps: int):
        """The buffer of a field that is only stored, with values of the one that takes it over."""
        return self._copied(field.position, heir)

    def _by_place(self, inputs: Sequence) -> dict[tuple, object]:
        """The inputs that may be buffers, by where they are and what is there."""
        found: dict[tuple, object] = {}
        for array, field in zip(inputs, self.loaded(inputs), strict=True):
            values = storage_view(array, field.element)
            if values.flags.c_contiguous:
                found.setdefault(self._place_of(values), array)
        return found

    def _place_of(self, array) -> tuple:
        """What C-contiguous arrays have in common that are the same one."""
        return self.memory.address(array), array.shape, array.dtype

    def _result(self, buffer):
        """What callers are given of a buffer."""
        return self.memory.result(buffer)

    def _copied(self, position: int, values):
        """A buffer for an argument, with these values."""
        return self.memory.array(values)

    def _zeros(self, position: int, shape: Sequence[int], dtype: np.dtype):
        """The buffer of an argument, with zeros."""
        return self.memory.zeros(shape, dtype)

    def _results(self, arguments: Sequence, inputs: Sequence, steps: int, resume: bool) -> list:
        """The buffers of results, with their halos; inputs that a run goes on with are themselves.

        Those are such as are only read, and have no halo to refresh.
        """
        results, inputs_by_place = [], self._by_place(inputs)
        for field in self.loaded(inputs) if resume else self.outputs:
            place = self.rotation[field.position] if resume and steps else field.position
            buffer = arguments[place]
            refresh = self.halos.refresh.get(field.position) if steps else None
            if refresh is not None:
                if self._place_of(buffer) in inputs_by_place:
                    buffer = self._copied(place, buffer)
                refresh(buffer)
            results.append(buffer)
        return results

    def _like(self, buffer, field: FieldSpec, inputs: Sequence, loaded: Sequence[FieldSpec]):
        """A result of the dtype of the first input of its element type."""
        array = self._result(buffer)
        like = (a for a, f in zip(inputs, loaded, strict=True) if f.element == field.element)
        first = next(like, None)
        return array if first is None else array.view(first.dtype)


# As many calls are recorded at once as bring all fields back to their places, at least so many
# that starting them costs little beside running them.
RECORDED_CALLS = 32


class _Run:
    """The arguments now, and the calls on them, one by one or recorded."""

    def __init__(self, stepper: FieldStepper, arguments: list, call: Callable[[Sequence], None]):
        self._stepper, self._call = stepper, call
        self.arguments = arguments
        # Bound refreshes keep their buffers alive, so the identities in a key stay unique.
        self._halos: dict[tuple, list[Callable[[], None]]] = {}
        self._period = math.lcm(_period(stepper.rotation), stepper.halos.refills.period)
        self._settled = max(self._period, stepper.halos.refills.start)
        self._done = 0
        self._recorded: Callable[[], None] | None = None
        self._tried = False

    def advance(self, left: int) -> int:
        """Call the program once or, on a device, several times; returns how often."""
        if self._done:
            self._rotate()
        count = self._period * max(1, RECORDED_CALLS // self._period)
        # A recording needs kernels that have run before: it must not load or compile any.
        if self._stepper.records and left >= count and self._done >= self._settled:
            if not self._tried:
                self._recorded = self._stepper.memory.record(lambda: self._calls(count))
                self._tried = True
            if self._recorded is not None:
                self._recorded()
                self._done += count
                # The last of those calls leaves the arguments one rotation short of the period.
                self._rotate_back()
                return count
        self._once(self._done)
        self._done += 1
        return 1

    def _once(self, number: int) -> None:
        refill = self._stepper.halos.refills.at(number)
        key = refill, *(id(self.arguments[field.position]) for field in self._stepper.fields)
        if key not in self._halos:
            self._halos[key] = self._stepper.halos.bind(self.arguments, refill)
        for halo in self._halos[key]:
            halo()
        self._call(self.arguments)

    def _calls(self, count: int) -> None:
        for number in range(self._done, self._done + count):
            self._once(number)
            self._rotate()

    def _rotate(self) -> None:
        self.arguments = [self.arguments[source] for source in self._stepper.rotation]

    def _rotate_back(self) -> None:
        before = list(self.arguments)
        for place, source in enumerate(self._stepper.rotation):
            before[source] = self.arguments[place]
        self.arguments = before


def _period(rotation: Sequence[int]) -> int:
    """After how many calls all arguments are back in their places."""
    lengths = []
    for start in range(len(rotation)):
        length, place = 1, rotation[start]
        while place != start:
            length, place = length + 1, rotation[place]
        lengths.append(length)
    return math.lcm(*lengths)
