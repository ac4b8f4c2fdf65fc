# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Time stepping of programs over several fields in the memory of the process."""

import itertools
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import cached_property

import numpy as np

from twofour.runtime.boundary import AxisBoundary
from twofour.runtime.buffer_pool import BufferPool
from twofour.runtime.fields import FieldSpec, FieldStepper
from twofour.runtime.page_offset import empty_at, page_offsets
from twofour.runtime.plan import Launch
from twofour.runtime.slices import run_in_slices, waking_threads
from twofour.runtime.step_tables import Buffer, Copy, StepCode, StepTables
from twofour.runtime.threads import run_together
from twofour.runtime.tile_choice import worth_threads

# Arrays of a program that lie apart in a page; others lie like them again.
APART = 16


class HostFieldStepper(FieldStepper):
    """A FieldStepper whose buffers lie apart in a page, and are used again in later runs."""

    def __init__(self, *arguments, **options):
        super().__init__(*arguments, **options)
        self._pools: dict[int, BufferPool] = {}

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
        strides = Buffer(tuple(shape), np.dtype(dtype)).strides
        begin = page_offsets(strides[:-1], APART)[number % APART]
        return empty_at(begin, shape, dtype, self._take)

    def _take(self, size: int) -> np.ndarray:
        pool = self._pools.setdefault(size, BufferPool(most=len(self.rotation)))
        return pool.take(size)


class NativeFieldStepper(HostFieldStepper):
    """Advances fields by the launches of a program: native code runs all of them, and all steps.

    `numbers` are the types of the arguments that are numbers, by their positions. `launches` are
    those of one call, on the arguments and on `workspaces`, (shape, dtype) each.
    """

    def __init__(
        self,
        fields: Sequence[FieldSpec],
        numbers: Mapping[int, np.dtype],
        rotation: Sequence[int],
        launches: Sequence[Launch],
        workspaces: Sequence[tuple[tuple[int, ...], np.dtype]],
        boundary: Sequence[AxisBoundary],
        code: Callable[[int], StepCode],
        threads: int,
    ):
        super().__init__(fields, rotation, None, boundary)
        self._numbers, self._launches, self._workspaces = numbers, launches, workspaces
        self._code, self._threads = code, threads

    def get_ready(self) -> None:
        """Compile the driver, and make its tables."""
        _ = self._tables

    def _run(
        self, arguments: list, steps: int, progress: Callable[[int, int], None] | None
    ) -> list:
        workspaces = [
            self._placed(len(arguments) + number, *kind)
            for number, kind in enumerate(self._workspaces)
        ]
        arrays = [
            np.array(argument, self._numbers[place]) if place in self._numbers else argument
            for place, argument in enumerate(arguments)
        ]
        tables = self._tables
        bound, points = tables.bind([*arrays, *workspaces]), tables.points
        most, done = worth_threads(points, self._threads), 0

        def advance(count: int) -> int:
            nonlocal done
            run_together(
                lambda thread, together: bound.run(done, count, thread, together),
                waking_threads(points * count, most),
            )
            done += count
            return count

        run_in_slices(advance, steps, points, progress)
        return [arguments[place] for place in tables.places(steps)[: len(arguments)]]

    @cached_property
    def _tables(self) -> StepTables:
        """Made when it is needed: of linear programs other steppers run."""
        arguments = {field.position: (field.shape, field.element.storage) for field in self.fields}
        arguments |= {place: ((), dtype) for place, dtype in self._numbers.items()}
        kinds = [*(arguments[place] for place in range(len(arguments))), *self._workspaces]
        buffers = [Buffer(shape, np.dtype(dtype)) for shape, dtype in kinds]
        most = max([2, *(len(one.inputs) + len(one.outputs) for one in self._launches)])
        return StepTables(self._code(most), buffers, self.rotation, list(self._phases()))

    def _phases(self) -> Iterator[list[Copy | Launch]]:
        """What a call does, in order: the first phases refill halos."""
        loaded = [field.position for field in self.fields if field.loaded]
        refreshed = [(at, self._refresh[at].by_axis) for at in loaded if at in self._refresh]
        for axis in itertools.zip_longest(*(axes for _, axes in refreshed), fillvalue=()):
            yield [
                Copy(at, target, None if source is None else at, source, value)
                for (at, _), operations in zip(refreshed, axis, strict=True)
                for target, source, value in operations
            ]
        for heir, to, copy in self._inherited:
            yield [Copy(to, box, heir, box) for box in copy.boxes]
        yield from _together(self._launches)


def _together(launches: Sequence[Launch]) -> Iterator[list[Launch]]:
    """Launches in order, in runs of those that need nothing of each other."""
    run: list[Launch] = []
    for launch in launches:
        if any(_depend(launch, other) for other in run):
            yield run
            run = []
        run.append(launch)
    yield run


def _depend(one: Launch, other: Launch) -> bool:
    """Whether two launches must not change places."""
    written = [{view.buffer for view in launch.outputs} for launch in (one, other)]
    touched = [
        {view.buffer for view in (*launch.inputs, *launch.outputs)} for launch in (one, other)
    ]
    return bool(written[0] & touched[1] or written[1] & touched[0])
