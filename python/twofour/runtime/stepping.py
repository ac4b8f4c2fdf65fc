# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Time stepping of programs with one field and one linear stencil."""

import operator
import time
from collections.abc import Callable, Sequence

import numpy as np

from twofour.errors import TwofourError
from twofour.reach import halo_reach
from twofour.runtime.boundary import AxisBoundary, check_constants
from twofour.runtime.box import Box, around
from twofour.runtime.dtypes import ElementType, check_array, storage_view
from twofour.runtime.halos import SLICES, Halos
from twofour.runtime.memory import HOST, Memory
from twofour.runtime.page_offset import empty_beside
from twofour.runtime.recent import Recent
from twofour.runtime.sweeps import FusedSweep, LinearKernel, SingleSweep, fused_sweep
from twofour.runtime.threads import resolve_threads

PROGRESS_INTERVAL = 0.1  # seconds between two reports of progress


def check_steps(steps: int) -> int:
    """Return `steps` as an int; raises TwofourError where it is not an integer >= 0."""
    try:
        count = -1 if isinstance(steps, bool) else operator.index(steps)
    except TypeError:
        count = -1
    if count < 0:
        raise TwofourError(f"expected a number of steps >= 0, got {steps!r}")
    return count


def check_interior(
    interior: Box, shape: Sequence[int], below: Sequence[int], above: Sequence[int]
) -> None:
    """Raise TwofourError where an interior leaves no such halo in an array of `shape`."""
    rank = len(shape)
    if len(interior.lower) != rank or len(interior.upper) != rank:
        raise TwofourError(f"expected an interior of rank {rank}, got {len(interior.lower)}")
    for axis, (lower, upper, extent) in enumerate(
        zip(interior.lower, interior.upper, shape, strict=True)
    ):
        if not 0 <= lower < upper <= extent:
            raise TwofourError(
                f"expected an interior within [0, {extent}) on axis {axis}, got [{lower}, {upper})"
            )
        if lower < below[axis] or extent - upper < above[axis]:
            raise TwofourError(
                f"expected a halo of {below[axis]} and {above[axis]} cells on axis {axis}, "
                f"got {lower} and {extent - upper}"
            )


def updated_box(
    shape: Sequence[int],
    kernel: LinearKernel,
    boundary: Sequence[AxisBoundary],
    interior: Box | None,
) -> Box | None:
    """Return what a step updates in an array of `shape`, None where there is nothing.

    That is `interior` where the array holds a halo around it, otherwise all but the rim of `fixed`
    axes. Raises TwofourError for an interior that does not leave the kernel's reach.
    """
    below, above = halo_reach(kernel.reach_lo), halo_reach(kernel.reach_hi)
    if interior is not None:
        check_interior(interior, shape, below, above)
        return interior
    fixed = [entry.mode == "fixed" for entry in boundary]
    box = Box.whole(shape).grown(
        [-b * f for b, f in zip(below, fixed, strict=True)],
        [-a * f for a, f in zip(above, fixed, strict=True)],
    )
    return None if box.empty else box


class LinearStepper:
    """Advances arrays by single-step sweeps and, where `fused` is given, by fused ones.

    `boundary` has one entry an axis. Without `interior` the array is the domain: on a `fixed` axis
    points whose neighbours would lie outside keep their values, on any other axis all points are
    updated from a halo that only exists inside. With `interior` = (lower, upper), index tuples, the
    array holds its own halo around that box; only the box is updated, and the halo is refreshed
    before each step and once more in the result, except on `fixed` axes, where it keeps its
    values.

    `threads` is as for resolve_threads. Raises TwofourError for a wrong number of threads.

    Steppers for other memory than the process's own give `memory`, `halos`, `edges` and `granule`
    (see fused_sweep) and override `_start`.
    """

    memory: Memory = HOST
    halos: Halos = SLICES
    edges: LinearKernel | None = None
    granule = 1
    # All calls ask and check everything, unlike those of TiledStepper.
    again = None

    def __init__(
        self,
        single: LinearKernel,
        element: ElementType,
        boundary: Sequence[AxisBoundary],
        fused: LinearKernel | None = None,
        threads: int | None = None,
        interior: tuple[Sequence[int], Sequence[int]] | None = None,
    ):
        self.single = single
        self.fused = fused
        self.element = element
        self.boundary = tuple(boundary)
        check_constants(self.boundary, element)
        self.threads = resolve_threads(threads)
        self.interior = interior and Box(*map(tuple, interior))
        self.rank = len(single.reach_lo)
        if single.steps != 1:
            raise ValueError(f"expected a kernel of one step, got {single.steps}")
        if fused is not None:
            reach = np.subtract(
                fused.reach_lo + fused.reach_hi,
                np.multiply(single.reach_lo + single.reach_hi, fused.steps),
            )
            if fused.steps < 2 or reach.max() > 0:
                raise ValueError("expected a fused kernel of at least two of the single steps")
        self._plans: Recent[LinearPlan | None] = Recent()

    def advance(
        self,
        u: np.ndarray,
        steps: int,
        progress: Callable[[int, int], None] | None = None,
        place: np.ndarray | None = None,
    ) -> np.ndarray:
        """Return `u` after `steps` time steps: a new C-contiguous array of its shape and dtype.

        `u` has the dtype of the stepper's element type and any strides; it is not modified.
        `place` is a C-contiguous array of its shape and of the storage type, which shares no memory
        with it: some steppers make the result there where they can, and return this array then.
        `progress(done, total)` is called at most ten times a second and at the end. Raises
        TwofourError for an unfit array (also: an explicit interior that does not leave the
        stencil's reach), or a number of steps that is not an integer >= 0.
        """
        module = self.memory.array_module
        check_array(u, self.element, rank=self.rank, array_type=module.ndarray)
        steps = check_steps(steps)
        plan = self.plan(u.shape)
        if plan is None or steps == 0:
            return module.array(u, order="C", subok=False)
        state = self._start(plan, u)
        done, reported = 0, time.monotonic()
        while done < steps:
            fused = plan.fused is not None and steps - done >= plan.fused.steps
            done += state.advance(plan.fused if fused else plan.single, steps - done)
            due = done < steps and time.monotonic() - reported >= PROGRESS_INTERVAL
            if progress is not None and due:
                progress(done, steps)
                reported = time.monotonic()
        if progress is not None:
            progress(steps, steps)
        return self._finish(plan, state).view(u.dtype)

    def _start(self, plan: "LinearPlan", u: np.ndarray) -> "_State":
        """What advances the values of `u` sweep by sweep."""
        values = np.require(storage_view(np.asarray(u), self.element), requirements=["C", "A"])
        return _State(plan, values)

    def _finish(self, plan: "LinearPlan", state: "_State") -> np.ndarray:
        """The values after the last sweep, as an array of the caller's shape."""
        return state.result()

    def plan(self, shape: tuple[int, ...]) -> "LinearPlan | None":
        """Return the plan for arrays of `shape`, None where there is nothing to update."""
        return self._plans.get(shape, self._new_plan)

    def _new_plan(self, shape: tuple[int, ...]) -> "LinearPlan | None":
        array = Box((0,) * self.rank, shape)
        interior = updated_box(shape, self.single, self.boundary, self.interior)
        if interior is None:
            return None
        plan = self._padded_plan(array, interior, self.fused)
        if self.fused is not None and plan.fused is None:
            # Without fusion the halo need not be as deep.
            plan = self._padded_plan(array, interior, None)
        return plan

    def _padded_plan(self, array: Box, interior: Box, fused: LinearKernel | None) -> "LinearPlan":
        """Return the plan in buffers that have the halo which the array lacks."""
        kernels = [self.single] if fused is None else [self.single, fused]
        below, above = [], []
        for axis, entry in enumerate(self.boundary):
            deepest = kernels if entry.mode == "periodic" else kernels[:1]
            lo = max(0, *(k.reach_lo[axis] for k in deepest))
            hi = max(0, *(k.reach_hi[axis] for k in deepest))
            below.append(max(0, lo - interior.lower[axis]))
            above.append(max(0, hi - (array.upper[axis] - interior.upper[axis])))
        buffer = array.grown(below, above)
        crop, interior = array.relative_to(buffer.lower), interior.relative_to(buffer.lower)
        single = SingleSweep(
            self.single,
            buffer.shape,
            interior,
            self.boundary,
            self.element,
            self.threads,
            self.halos,
        )
        sweep = fused and fused_sweep(
            single,
            fused,
            self.boundary,
            self.element,
            self.halos,
            edges=self.edges,
            granule=self.granule,
            memory=self.memory,
        )
        return LinearPlan(single, sweep, buffer.shape, crop, self.interior is not None)


class LinearPlan:
    """What is prepared once for all arrays of one shape."""

    def __init__(
        self,
        single: SingleSweep,
        fused: FusedSweep | None,
        shape: tuple[int, ...],
        crop: Box,
        owns_halo: bool,
    ):
        self.single = single
        self.fused = fused
        self.shape = shape
        self.crop = crop.slices
        self.padded = crop.shape != shape
        # The array's own halo is refreshed in the result as well.
        self.refresh_result = owns_halo and not single.refresh.empty
        # Cells of the array that sweeps do not write, as disjoint slabs around the interior.
        self.kept = [box.slices for box in around(crop, single.interior)]


class _State:
    """The field's values now, in one of two buffers, and the sweeps bound to them."""

    def __init__(self, plan: LinearPlan, values: np.ndarray):
        self._plan = plan
        self._bound = {}
        self._current = values
        # The caller's array is the first source as it is where no halo has to be written to it.
        self._borrowed = not plan.padded and plan.single.refresh.empty
        if not self._borrowed:
            self._current = np.empty(plan.shape, values.dtype)
            self._current[plan.crop] = values
        self._next = self._new_buffer()

    def _new_buffer(self) -> np.ndarray:
        buffer = empty_beside(self._current)
        for box in self._plan.kept:
            buffer[box] = self._current[box]
        return buffer

    def advance(self, sweep: SingleSweep | FusedSweep, left: int) -> int:
        """Run one sweep, exchange the buffers and return how many of the steps left that were."""
        if self._next is None:
            self._next = self._new_buffer()
        key = (sweep, id(self._next))
        if key not in self._bound:
            self._bound[key] = sweep.bind(self._current, self._next)
        for call in self._bound[key]:
            call()
        self._current, self._next = self._next, self._current
        if self._borrowed:
            self._bound.clear()
            self._borrowed, self._next = False, None
        return sweep.steps

    def result(self) -> np.ndarray:
        """Return the values as a C-contiguous array of the caller's shape."""
        if self._plan.refresh_result:
            self._plan.single.refresh(self._current)
        cropped = self._current[self._plan.crop]
        return cropped.copy() if self._plan.padded else np.ascontiguousarray(cropped)
