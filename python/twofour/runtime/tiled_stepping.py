# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Time stepping of one linear stencil on the CPU: native code runs all steps, in time tiles."""

import time
from collections.abc import Callable, Sequence

import numpy as np

from twofour.runtime.boundary import AxisBoundary, HaloRefresh
from twofour.runtime.buffer_pool import BufferPool
from twofour.runtime.dtypes import ElementType, check_array, storage_view
from twofour.runtime.memory import HOST, Memory
from twofour.runtime.native import NativeKernel
from twofour.runtime.page_offset import empty_beside
from twofour.runtime.stepping import PROGRESS_INTERVAL, check_steps, updated_box
from twofour.runtime.sweeps import Box, LinearKernel, around
from twofour.runtime.threads import resolve_threads
from twofour.runtime.tile_choice import (
    DEPTHS,
    caches,
    choose_tiles,
    past_caches,
    worth_threads,
)
from twofour.runtime.tile_program import TileCode, TileProgram
from twofour.runtime.tiles import Geometry

# Calls of native code last about so long: between them progress is told and interrupts are heard.
CALL_SECONDS = 0.05
# What a point and step takes at most, to begin with.
POINT_SECONDS = 2e-9
# Points and steps of a call that are worth waking a thread for.
WAKING_POINTS = 1 << 17


class TiledStepper:
    """Advances arrays by the steps of one kernel; as LinearStepper without fused kernels.

    `work` is the number of multiply-adds of a point. `past_caches` gives the same kernel for arrays
    that do not fit the caches, with `nontemporal` one that stores past them. Kernels compute at
    most `block` points at once along the last axis. `tile` = (steps, extents) are the tiles to use,
    otherwise a model chooses them. Results have the bits of single steps, whatever the tiles and
    the number of threads.
    """

    memory: Memory = HOST

    def __init__(
        self,
        single: LinearKernel,
        code: TileCode,
        element: ElementType,
        boundary: Sequence[AxisBoundary],
        work: float,
        past_caches: Callable[[], NativeKernel | None] = lambda: None,
        nontemporal: bool = True,
        block: int = 1,
        threads: int | None = None,
        interior: tuple[Sequence[int], Sequence[int]] | None = None,
        tile: tuple[int, Sequence[int]] | None = None,
    ):
        self.single = single
        self.element = element
        self.boundary = tuple(boundary)
        self.threads = resolve_threads(threads)
        self.interior = interior and Box(*map(tuple, interior))
        self.rank = len(single.reach_lo)
        self._code, self._work, self._tile = code, work, tile
        self._past_caches, self._nontemporal = past_caches, nontemporal
        self._block = block
        self.pool = BufferPool()
        self._plans: dict[tuple[int, ...], _Plan | None] = {}

    def advance(
        self,
        u: np.ndarray,
        steps: int,
        progress: Callable[[int, int], None] | None = None,
    ) -> np.ndarray:
        """Return `u` after `steps` time steps; as LinearStepper.advance."""
        check_array(u, self.element, rank=self.rank)
        steps = check_steps(steps)
        if u.shape not in self._plans:
            self._plans[u.shape] = self._plan(u.shape)
        plan = self._plans[u.shape]
        if plan is None or steps == 0:
            return np.array(u, order="C", subok=False)
        values = np.require(storage_view(np.asarray(u), self.element), requirements=["C", "A"])
        result = plan.run(values, steps, progress)
        if progress is not None:
            progress(steps, steps)
        return result.view(u.dtype)

    def _plan(self, shape: tuple[int, ...]) -> "_Plan | None":
        """What is prepared for arrays of a shape, None where there is nothing to update."""
        interior = updated_box(shape, self.single, self.boundary, self.interior)
        if interior is None:
            return None
        refresh = HaloRefresh(shape, (interior.lower, interior.upper), self.boundary, self.element)
        geometry = Geometry(interior, self.single.reach_lo, self.single.reach_hi, self.boundary)
        return _Plan(self, geometry, shape, self.interior and refresh)

    def program(self, geometry: Geometry, shape: tuple[int, ...], steps: int) -> TileProgram:
        """Tiles for sweeps of some of `steps` steps."""
        itemsize, machine = self.element.itemsize, caches()
        if self._tile is not None:
            depth, extents = self._tile
        else:
            choice = choose_tiles(geometry, itemsize, self._work, steps, self.threads, machine)
            depth, extents = choice.steps, choice.extents
        large = past_caches(shape, itemsize, machine, self._nontemporal)
        last = self._past_caches() if large else None
        # Scratch arrays stay in the caches.
        first = None if self._nontemporal else last
        depth = min(depth, steps)
        return TileProgram(
            self.single,
            self._code,
            geometry,
            shape,
            self.element,
            depth,
            extents,
            first,
            last,
            self._block,
        )


class _Plan:
    """What is prepared once for all arrays of one shape."""

    def __init__(
        self,
        stepper: TiledStepper,
        geometry: Geometry,
        shape: tuple[int, ...],
        refresh: HaloRefresh | None,
    ):
        self._stepper, self._geometry, self._shape = stepper, geometry, shape
        self._refresh = refresh
        whole = Box((0,) * len(shape), shape)
        # Cells that sweeps do not write.
        self._kept = [box.slices for box in around(whole, geometry.interior)]
        self._points = int(np.prod(geometry.interior.shape))
        self._programs: dict[int, TileProgram] = {}

    def _program(self, steps: int) -> TileProgram:
        if steps not in self._programs:
            self._programs[steps] = self._stepper.program(self._geometry, self._shape, steps)
        return self._programs[steps]

    def run(self, u: np.ndarray, steps: int, progress: Callable | None) -> np.ndarray:
        """`u` after `steps` steps."""
        run = _Run(u, self._kept, steps, progress, self._stepper.pool)
        while run.left:
            program = self._program(min(run.left, DEPTHS[-1]))
            run.sweep(program, self._points, self._stepper.threads)
        if self._refresh is not None:
            self._refresh(run.current)
        return run.current


class _Run:
    """The values now, and the array that the next sweep writes."""

    def __init__(
        self, u: np.ndarray, kept: list, steps: int, progress: Callable | None, pool: BufferPool
    ):
        self.current, self.left = u, steps
        self._pool = pool
        self._kept, self._steps, self._progress = kept, steps, progress
        self._next = self._beside(u)
        self._borrowed = True
        self._reported = time.monotonic()

    def _beside(self, array: np.ndarray) -> np.ndarray:
        """A new array with the cells that no sweep writes.

        Its rows lie apart from those of `array`, modulo pages: loads of one do not wait for stores
        to the other.
        """
        new = empty_beside(array, self._pool.take)
        for box in self._kept:
            new[box] = array[box]
        return new

    def sweep(self, program: TileProgram, points: int, threads: int) -> None:
        """All the sweeps of a program that fit into the steps left."""
        work = points * program.steps
        sweeps = self.left // program.steps
        threads = min(worth_threads(work, threads), max(1, work * sweeps // WAKING_POINTS))
        together = max(1, int(CALL_SECONDS / POINT_SECONDS / work))
        while sweeps:
            if not self._borrowed and self._next is None:
                self._next = self._beside(self.current)
            # The caller's array is read, never written.
            count = 1 if self._borrowed else min(together, sweeps)
            begun = time.monotonic()
            program.run(self.current, self._next, count, threads)
            now = time.monotonic()
            if count % 2:
                self.current, self._next = self._next, self.current
            if self._borrowed:
                self._borrowed, self._next = False, None
            elif now - begun < CALL_SECONDS / 2:
                together *= 2
            sweeps -= count
            self.left -= count * program.steps
            if self._progress is not None and now - self._reported >= PROGRESS_INTERVAL:
                self._progress(self._steps - self.left, self._steps)
                self._reported = now
