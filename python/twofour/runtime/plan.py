# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Launch plans: a program's sweeps one after another, each over views of its buffers."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from twofour.runtime.memory import HOST, Memory
from twofour.runtime.native import BoundKernel
from twofour.runtime.threads import parallel_run


@dataclass(frozen=True)
class View:
    """A box of a buffer: buffers are numbered, arguments first, then workspaces."""

    buffer: int
    slices: tuple[slice, ...]

    def of(self, buffers: Sequence[np.ndarray]) -> np.ndarray:
        return buffers[self.buffer][self.slices]


@dataclass(frozen=True)
class Launch:
    """One sweep over the whole of its output views.

    `kernel` has `bind(views_in, views_out)`; where it takes numbers, `scalars` are the positions of
    those among the arguments, and they follow the views.
    """

    kernel: object
    inputs: tuple[View, ...]
    outputs: tuple[View, ...]
    scalars: tuple[int, ...] = ()


@dataclass(frozen=True)
class Plan:
    """What one call of a program does: `workspaces` are the (shape, dtype) of its own buffers."""

    launches: tuple[Launch, ...]
    workspaces: tuple[tuple[tuple[int, ...], np.dtype], ...]
    threads: int
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
        self._bound: dict[tuple[int, ...], list[tuple[BoundKernel, int, int]]] = {}

    def __call__(self, arguments: Sequence[np.ndarray]) -> None:
        """Run every sweep, in order, on these arguments (buffers are written in place)."""
        key = tuple(map(id, arguments))
        if key not in self._bound:
            self._bound[key] = self._bind([*arguments, *self._workspaces])
        for bound, extent, points in self._bound[key]:
            parallel_run(bound, extent, self._plan.threads, points)

    def _bind(self, buffers: Sequence[np.ndarray]) -> list[tuple[BoundKernel, int, int]]:
        calls = []
        for launch in self._plan.launches:
            outputs = [view.of(buffers) for view in launch.outputs]
            inputs = [view.of(buffers) for view in launch.inputs]
            numbers = [[buffers[position] for position in launch.scalars]] if launch.scalars else []
            bound = launch.kernel.bind(inputs, outputs, *numbers)
            calls.append((bound, outputs[0].shape[0], outputs[0].size))
        return calls
