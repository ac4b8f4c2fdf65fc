# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Launch plans: a program's sweeps one after another, and loops over them, on views of buffers.

Values are numbered: the arguments, then the workspaces, then what loops bring forth.
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial

import numpy as np

from twofour.runtime.memory import HOST, Memory
from twofour.runtime.repetition import Action, Repetition


@dataclass(frozen=True)
class View:
    """A box of a buffer; no slices stand for the whole of it."""

    buffer: int
    slices: tuple[slice, ...]

    def of(self, buffers: Sequence[np.ndarray]) -> np.ndarray:
        return buffers[self.buffer][self.slices]

    def part(self, slices: tuple[slice, ...]) -> "View":
        """A box of this view."""
        if not slices or not self.slices:
            return View(self.buffer, slices or self.slices)
        return View(
            self.buffer,
            tuple(
                slice(outer.start + inner.start, outer.start + inner.stop)
                for outer, inner in zip(self.slices, slices, strict=True)
            ),
        )


@dataclass(frozen=True)
class Launch:
    """One sweep over the whole of its output views.

    `kernel` has `bind(views_in, views_out)`, or is the name of one that has. Where it takes
    numbers, `scalars` say which values these are, and they follow the views.
    """

    kernel: object
    inputs: tuple[View, ...]
    outputs: tuple[View, ...]
    scalars: tuple[int, ...] = ()


@dataclass(frozen=True)
class Carried:
    """A field that a loop carries along, as value `value`.

    It is `initial` at first, then what `following` was at the end of the iteration before.
    """

    value: int
    initial: View
    following: View


@dataclass(frozen=True)
class Bound:
    """Where a loop begins or ends: at an argument of the program that is a number."""

    argument: int


@dataclass(frozen=True)
class Loop:
    """Steps for value `index` = lower, lower + step, ... below upper (step > 0).

    Its `body` may use what it carries and the index, later steps the last of what it carried.
    """

    index: int
    lower: int | Bound
    upper: int | Bound
    step: int
    carried: tuple[Carried, ...]
    body: tuple["Step", ...]


Step = Launch | Loop


def nested_launches(steps: Sequence[Step]) -> Iterator[Launch]:
    """All launches among steps and in their loops."""
    for step in steps:
        if isinstance(step, Loop):
            yield from nested_launches(step.body)
        else:
            yield step


@dataclass(frozen=True)
class Plan:
    """What one call of a program does: `workspaces` are the (shape, dtype) of its own buffers."""

    steps: tuple[Step, ...]
    workspaces: tuple[tuple[tuple[int, ...], np.dtype], ...]
    memory: Memory = HOST

    def prepare(self) -> "PreparedPlan":
        """The plan with buffers of its own, for the calls of one run."""
        return PreparedPlan(self)


class PreparedPlan:
    """A plan, its workspaces, and its kernels bound to the argument buffers seen so far."""

    def __init__(self, plan: Plan):
        self._plan = plan
        self._workspaces = [plan.memory.empty(*kind) for kind in plan.workspaces]
        # Bound kernels keep their buffers alive, so the identities in a key stay unique.
        self._bound: dict[tuple[int, ...], list[Action]] = {}

    def __call__(self, arguments: Sequence[np.ndarray]) -> None:
        """Run every step, in order, on these arguments (buffers are written in place)."""
        key = tuple(map(id, arguments))
        if key not in self._bound:
            binding = _Binding(self._plan, [*arguments, *self._workspaces])
            self._bound[key] = binding.actions(self._plan.steps, {}, {})
        for action in self._bound[key]:
            action()


# What carried values are now, as views of buffers; what the indices of loops are now.
Places = dict[int, View]
Indices = dict[int, int]


class _Binding:
    """Steps on given buffers, arguments first."""

    def __init__(self, plan: Plan, buffers: Sequence[np.ndarray]):
        self._plan, self._buffers = plan, buffers

    def actions(self, steps: Sequence[Step], places: Places, indices: Indices) -> list[Action]:
        """What to call for these steps, in order; `places` is brought up to date."""
        return [
            self._loop(step, places, indices)
            if isinstance(step, Loop)
            else self._launch(step, places, indices)
            for step in steps
        ]

    def _launch(self, launch: Launch, places: Places, indices: Indices) -> Action:
        outputs = [self._array(view, places) for view in launch.outputs]
        inputs = [self._array(view, places) for view in launch.inputs]
        values = [indices[n] if n in indices else self._buffers[n] for n in launch.scalars]
        bound = launch.kernel.bind(inputs, outputs, *([values] if values else []))
        return partial(bound.run, 0, outputs[0].shape[0])

    def _array(self, view: View, places: Places) -> np.ndarray:
        return _place(view, places).of(self._buffers)

    def _loop(self, loop: Loop, places: Places, indices: Indices) -> Action:
        course = _Course(loop, places, self._range)
        places.update(course.at(course.count))
        if any(loop.index in launch.scalars for launch in nested_launches(loop.body)):
            # Every iteration has launches of its own: bound when they are needed, and not kept.
            def run() -> None:
                for number, index in enumerate(course.rounds):
                    inner = {**outer, **course.at(number)}
                    for action in self.actions(loop.body, inner, {**indices, loop.index: index}):
                        action()

            outer = dict(places)
            return run
        iterations = [
            self.actions(loop.body, {**places, **course.at(number)}, indices)
            for number in range(min(course.distinct, course.count))
        ]
        # A recording cannot hold another one.
        innermost = not any(isinstance(step, Loop) for step in loop.body)
        memory = self._plan.memory if innermost else None
        return Repetition(iterations, course.start, course.count, memory)

    def _range(self, loop: Loop) -> range:
        lower, upper = (
            int(self._buffers[bound.argument]) if isinstance(bound, Bound) else bound
            for bound in (loop.lower, loop.upper)
        )
        return range(lower, upper, loop.step)


def _place(view: View, places: Places) -> View:
    outer = places.get(view.buffer)
    return view if outer is None else outer.part(view.slices)


class _Course:
    """Which views a loop carries in each of its iterations.

    They come from the ones before, so that they repeat: iterations `distinct`, `distinct` + 1, ...
    carry what iterations `start`, `start` + 1, ... did.
    """

    def __init__(self, loop: Loop, places: Places, range_of: Callable[[Loop], range]):
        self.rounds = range_of(loop)
        self._range_of = range_of
        self._states: list[Places] = []
        self.start = 0
        state = {item.value: _place(item.initial, places) for item in loop.carried}
        while state not in self._states and len(self._states) <= self.count:
            self._states.append(state)
            inner = {**places, **state}
            self._pass_loops(loop.body, inner)
            state = {item.value: _place(item.following, inner) for item in loop.carried}
        if state in self._states:
            self.start = self._states.index(state)

    def _pass_loops(self, steps: Sequence[Step], places: Places) -> None:
        """Bring `places` to what it is after these steps."""
        for step in steps:
            if isinstance(step, Loop):
                course = _Course(step, places, self._range_of)
                places.update(course.at(course.count))

    @property
    def count(self) -> int:
        """The number of iterations; len() has none for ranges beyond its own."""
        begin, end, step = self.rounds.start, self.rounds.stop, self.rounds.step
        return max(0, -(-(end - begin) // step))

    @property
    def distinct(self) -> int:
        return len(self._states)

    def at(self, number: int) -> Places:
        """What is carried into iteration `number`; behind the last one, what is left."""
        if number >= self.distinct:
            number = self.start + (number - self.start) % (self.distinct - self.start)
        return self._states[number]
