# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Time stepping of one linear stencil on a device.

The geometry is that of twofour.runtime.stepping; what differs is the memory. Two buffers take
turns. Their rows are laid out for kernels that ask for alignment: the interior begins at a multiple
of `alignment` bytes, the pitch of rows is one too, and what lies between a row's ends and those
multiples belongs to the buffer and holds zeros.
"""

from collections import deque
from collections.abc import Callable, Sequence

import numpy as np

from twofour.runtime.boundary import AxisBoundary
from twofour.runtime.box import Box
from twofour.runtime.devices.device import Device, DeviceKernel
from twofour.runtime.devices.halo_kernels import halo_kernels
from twofour.runtime.dtypes import ElementType, storage_view
from twofour.runtime.halos import SLICES, Halos
from twofour.runtime.manifest import LinearProgram
from twofour.runtime.memory import Memory
from twofour.runtime.stepping import LinearPlan, LinearStepper
from twofour.runtime.sweeps import FusedSweep, LinearKernel, SingleSweep

# Bytes that a GPU moves at once: rows that begin on them are fast for every kernel.
SECTOR = 32

# Sweeps recorded at once (even: the buffers take turns), so that starting them costs little beside
# running them, and short runs need not record.
RECORDED_SWEEPS = 32


class DeviceLinearStepper(LinearStepper):
    """LinearStepper in the memory of a device: arrays and results are of its array module.

    `alignment` (bytes) is the largest that `single` and `fused` ask for; `edges` asks for none and
    is required with `fused`. `halos` are refreshed as it says. Everything else is as in
    LinearStepper, results too.
    """

    def __init__(
        self,
        single: LinearKernel,
        element: ElementType,
        boundary: Sequence[AxisBoundary],
        memory: Memory,
        *,
        alignment: int,
        fused: LinearKernel | None = None,
        edges: LinearKernel | None = None,
        interior: tuple[Sequence[int], Sequence[int]] | None = None,
        halos: Halos = SLICES,
    ):
        # One launch covers a sweep: there is nothing to divide among threads.
        super().__init__(single, element, boundary, fused, threads=1, interior=interior)
        if fused is not None and edges is None:
            raise ValueError("expected a kernel for the edges of fused sweeps")
        self.memory = memory
        self.halos = halos
        self.edges = edges
        self.granule = max(1, alignment // element.itemsize)
        # Buffers of the last run, with everything bound to them and recorded on them.
        self._idle: deque[tuple[object, LinearPlan, _DeviceState]] = deque(maxlen=1)

    def advance(
        self,
        u: np.ndarray,
        steps: int,
        progress: Callable[[int, int], None] | None = None,
        place: np.ndarray | None = None,
    ) -> np.ndarray:
        """Return `u` after `steps` time steps; as LinearStepper.advance.

        The result may still be under way; whatever uses it on the same stream waits for it.
        """
        if progress is None:
            return super().advance(u, steps)

        def report(done: int, total: int) -> None:
            # What was asked for is done when the device says so.
            self.memory.synchronize()
            progress(done, total)

        return super().advance(u, steps, report)

    def _start(self, plan: LinearPlan, u: np.ndarray) -> "_DeviceState":
        state = None
        try:
            idle = self._idle.pop()
        except IndexError:
            idle = None
        if idle is not None and idle[0] == self.memory.stream and idle[1] is plan:
            state = idle[2]
        # What is of no use here leaves its memory to what is made instead.
        del idle
        if state is None:
            state = _DeviceState(plan, self.memory, self.element, self.granule, self.halos)
        state.fill(storage_view(u, self.element))
        return state

    def _finish(self, plan: LinearPlan, state: "_DeviceState") -> np.ndarray:
        result = state.result()
        # Slabs hold copies of the fixed rims of one run.
        if plan.fused is None or not plan.fused.slabs:
            self._idle.append((self.memory.stream, plan, state))
        return result


class _DeviceState:
    """The field's values now, in one of two buffers, and the sweeps bound to them."""

    def __init__(
        self,
        plan: LinearPlan,
        memory: Memory,
        element: ElementType,
        granule: int,
        halos: Halos,
    ):
        self._plan, self._memory = plan, memory
        begin = plan.single.interior.lower[-1]
        self._buffers = [
            aligned_rows(memory, plan.shape, begin, element.storage, granule) for _ in range(2)
        ]
        self._keep: list[Callable[[], None]] = []
        if plan.kept:
            cells = Box(*zip(*((axis.start, axis.stop) for axis in plan.crop), strict=True))
            interior = plan.single.interior
            kept = halos.copy(cells, (interior.lower, interior.upper), element)
            self._keep.append(kept.bind(*self._buffers))
        self._bound: dict[tuple, list[Callable[[], None]]] = {}
        self._recorded: dict[tuple, Callable[[], None] | None] = {}
        self._turn = 0

    def fill(self, values: np.ndarray) -> None:
        """Start from `values`; the other buffer gets what sweeps do not write of them."""
        self._buffers[0][self._plan.crop] = values
        _call(self._keep)
        self._turn = 0

    def advance(self, sweep: SingleSweep | FusedSweep, left: int) -> int:
        """Run sweeps of one kind and return how many of the steps left they were."""
        first, second = (sweep, self._turn), (sweep, 1 - self._turn)
        # A recording needs kernels that have run before: it must not load or compile any.
        if left >= RECORDED_SWEEPS * sweep.steps and first in self._bound and second in self._bound:
            if first not in self._recorded:
                calls = [*self._bound[first], *self._bound[second]] * (RECORDED_SWEEPS // 2)
                self._recorded[first] = self._memory.record(lambda: _call(calls))
            repeat = self._recorded[first]
            if repeat is not None:
                repeat()
                return RECORDED_SWEEPS * sweep.steps
        if first not in self._bound:
            self._bound[first] = sweep.bind(
                self._buffers[self._turn], self._buffers[1 - self._turn]
            )
        _call(self._bound[first])
        self._turn = 1 - self._turn
        return sweep.steps

    def result(self) -> np.ndarray:
        """Return the values as a new C-contiguous array of the caller's shape."""
        current = self._buffers[self._turn]
        if self._plan.refresh_result:
            self._plan.single.refresh(current)
        return current[self._plan.crop].copy()


def _call(calls: Sequence[Callable[[], None]]) -> None:
    for call in calls:
        call()


def aligned_rows(
    memory: Memory, shape: Sequence[int], begin: int, dtype: np.dtype, granule: int
) -> np.ndarray:
    """Return zeros of `shape` whose rows have element `begin` at a multiple of `granule` elements.

    Rows follow each other at a multiple of it, and lie in storage that begins and ends at one.
    """
    lead = -begin % granule
    pitch = -(-(lead + shape[-1]) // granule) * granule
    return memory.zeros((*shape[:-1], pitch), dtype)[..., lead : lead + shape[-1]]


def linear_stepper(
    program: LinearProgram,
    kernels: dict[str, DeviceKernel],
    device: Device,
    element: ElementType,
    boundary: Sequence[AxisBoundary],
) -> DeviceLinearStepper:
    """The stepper of a bundle's linear program, for the field of a file or for any domain."""

    def kernel(name: str | None, steps: int = 1) -> LinearKernel | None:
        if name is None:
            return None
        lo, hi = (tuple(r * steps for r in reach) for reach in (program.reach_lo, program.reach_hi))
        return LinearKernel(kernels[name].aligned_for(lo[-1]), lo, hi, steps)

    used = [kernels[name].spec for name in (program.single, program.fused) if name is not None]
    interior = None
    if program.fields is not None:
        interior = next(field.interior for field in program.fields if field.loaded)
    return DeviceLinearStepper(
        kernel(program.single),
        element,
        boundary,
        device,
        alignment=max(SECTOR, *(spec.alignment for spec in used)),
        fused=kernel(program.fused, program.fused_steps),
        edges=kernel(program.edges),
        interior=interior,
        halos=halo_kernels(program, kernels),
    )
