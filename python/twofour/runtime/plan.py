# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Launch plans: a program's sweeps one after another, and loops over them, on bound buffers."""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial

import numpy as np

from twofour.runtime.loops import (
    Course,
    Launch,
    Loop,
    Places,
    Step,
    View,
    nested_launches,
    place_of,
    range_of,
)
from twofour.runtime.memory import HOST, Memory
from twofour.runtime.repetition import Action, Repetition


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


# What the indices of loops are now.
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
        return place_of(view, places).of(self._buffers)

    def _loop(self, loop: Loop, places: Places, indices: Indices) -> Action:
        course = Course(loop, places, self._range)
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
        return range_of(loop, self._buffers)
