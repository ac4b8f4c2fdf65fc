# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Time stepping of one linear stencil on the CPU: native code runs all steps, in time tiles."""

import math
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from twofour.runtime.boundary import AxisBoundary, HaloRefresh, check_constants
from twofour.runtime.box import Box, around
from twofour.runtime.buffer_pool import BufferPool
from twofour.runtime.dtypes import ElementType, check_array, storage_view
from twofour.runtime.memory import HOST, Memory
from twofour.runtime.page_offset import empty_beside
from twofour.runtime.processor import caches
from twofour.runtime.recent import Recent
from twofour.runtime.rounds.step_tables import StepCode
from twofour.runtime.rounds.stepping import SkewedSteps
from twofour.runtime.rounds.strips import LEAST_RANK
from twofour.runtime.slices import is_one_slice, ordinary_points, run_in_slices
from twofour.runtime.stepping import check_steps, updated_box
from twofour.runtime.sweeps import LinearKernel
from twofour.runtime.threads import resolve_threads, waking_threads
from twofour.runtime.tiles.choice import (
    MANY_STEPS,
    ResidentChoice,
    choose_residence,
    choose_tiles,
    is_skewing_faster,
    past_caches,
    worth_threads,
)
from twofour.runtime.tiles.folding import Folding, folding_of
from twofour.runtime.tiles.itinerary import Itinerary, Pair, Stage
from twofour.runtime.tiles.program import TileCode, TileProgram
from twofour.runtime.tiles.repeated_call import RepeatedCall, Route
from twofour.runtime.tiles.resident import Residence
from twofour.runtime.tiles.runs import Leg, run_legs
from twofour.runtime.tiles.steps import Geometry, Layout

# Runs of fewer steps are not skewed, nor arrays before so many points times steps: it takes about
# as long to plan.
FEWEST_SKEWED, WORTH_PLANNING = 6, 1 << 26


@dataclass(frozen=True)
class TiledKernel:
    """The kernel of one step, and what tiles of it have to know.

    `code` runs its tiles, `skewing` makes the code for skewed steps. `work` is the number of
    multiply-adds of a point. The kernel for arrays that do not fit the caches stores past them with
    `nontemporal`. A call computes at most `block` points at once along the last axis, and `planes`
    planes (see Geometry). `folded` makes the kernel for arrays some of whose axes are folded.
    """

    single: LinearKernel
    element: ElementType
    code: TileCode
    work: float
    nontemporal: bool = True
    block: int = 1
    planes: int = 1
    skewing: Callable[[], StepCode] | None = None
    folded: Callable[[Folding], "TiledKernel"] | None = None


class TiledStepper:
    """Advances arrays by the steps of one kernel; as LinearStepper without fused kernels.

    `tile` = (steps, extents) are the tiles to use, or `resident` = extents those of single steps in
    arrays of the stepper's own; otherwise a model chooses, of three axes and more also between
    tiles and skewed steps where the kernel has these, and short last axes are folded. Results have
    the bits of single steps, whatever the tiles and the number of threads. `again` is what the last
    call was, if it was one that may be made again without asking.
    """

    memory: Memory = HOST

    def __init__(
        self,
        kernel: TiledKernel,
        boundary: Sequence[AxisBoundary],
        threads: int | None = None,
        interior: tuple[Sequence[int], Sequence[int]] | None = None,
        tile: tuple[int, Sequence[int]] | None = None,
        resident: Sequence[int] | None = None,
    ):
        self.kernel, self.single, self.element = kernel, kernel.single, kernel.element
        self.boundary = tuple(boundary)
        check_constants(self.boundary, self.element)
        self.threads = resolve_threads(threads)
        self.interior = interior and Box(*map(tuple, interior))
        self.rank = len(self.single.reach_lo)
        self.tile, self.resident = tile, resident
        # Of results, and of arrays with a halo that these lack.
        self.pool, self.larger_pool = BufferPool(), BufferPool()
        self.again: RepeatedCall | None = None
        self._plans: Recent[_Plan | None] = Recent()
        self._folded: Recent[TiledStepper] = Recent()

    def advance(
        self,
        u: np.ndarray,
        steps: int,
        progress: Callable[[int, int], None] | None = None,
        place: np.ndarray | None = None,
    ) -> np.ndarray:
        """Return `u` after `steps` time steps; as LinearStepper.advance."""
        check_array(u, self.element, rank=self.rank)
        steps = check_steps(steps)
        plan = self.plan(u.shape)
        if plan is None or steps == 0:
            return np.array(u, order="C", subok=False)
        values = storage_view(np.asarray(u), self.element)
        if not (values.flags.c_contiguous and values.flags.aligned):
            values = np.require(values, requirements=["C", "A"])
        result = plan.run(values, steps, progress, place)
        self.again = plan.again(steps)
        if progress is not None:
            progress(steps, steps)
        return result if result is place else result.view(u.dtype)

    def plan(self, shape: tuple[int, ...]) -> "_Plan | None":
        """What is prepared for arrays of a shape, None where there is nothing to update."""
        return self._plans.get(shape, self._new_plan)

    def _new_plan(self, shape: tuple[int, ...]) -> "_Plan | None":
        interior = updated_box(shape, self.single, self.boundary, self.interior)
        if interior is None:
            return None
        refresh = HaloRefresh(shape, (interior.lower, interior.upper), self.boundary, self.element)
        programs, pools = self._programs(interior, shape), (self.pool, self.larger_pool)
        return _Plan(programs, shape, self.interior and refresh, *pools)

    def _programs(self, interior: Box, shape: tuple[int, ...]) -> "TilePrograms":
        """Those for arrays of a shape, or for what they are when axes are folded."""
        reach, itemsize = (self.single.reach_lo, self.single.reach_hi), self.element.itemsize
        folding = folding_of(shape, self.interior, reach, itemsize)
        free = self.tile is None and self.resident is None
        if self.kernel.folded is None or folding is None or not free:
            return TilePrograms(self, interior, shape)
        stepper = self._folded.get(folding, self._new_folded)
        return TilePrograms(stepper, folding.box(interior), folding.extents(shape))

    def _new_folded(self, folding: Folding) -> "TiledStepper":
        boundary = folding.boundary(self.boundary)
        return TiledStepper(self.kernel.folded(folding), boundary, self.threads)

    def geometry(self, interior: Box) -> Geometry:
        """The domain with this interior."""
        reach = self.single.reach_lo, self.single.reach_hi
        return Geometry(interior, *reach, self.boundary, self.kernel.planes)

    def program(
        self,
        geometry: Geometry,
        layouts: tuple[Layout, Layout],
        steps: int,
        extents: Sequence[int],
    ) -> TileProgram:
        """Sweeps of `steps` steps in tiles of about `extents` points."""
        shape = max((layout.shape for layout in layouts), key=math.prod)
        large = past_caches(shape, self.element.itemsize, caches(), self.kernel.nontemporal)
        another = self.single.native.past_caches
        last = another() if large and another is not None else None
        # Scratch arrays stay in the caches.
        first = None if self.kernel.nontemporal else last
        return TileProgram(
            self.single,
            self.kernel.code,
            geometry,
            layouts,
            self.element,
            steps,
            extents,
            first,
            last,
            self.kernel.block,
        )


class TilePrograms:
    """How a stepper sweeps arrays of one shape; what it takes is made when it is first needed."""

    def __init__(self, stepper: TiledStepper, interior: Box, shape: tuple[int, ...]):
        self.geometry, self.shape = stepper.geometry(interior), shape
        self.dtype = np.dtype(stepper.element.storage)
        # Of ordinary work.
        self.points = ordinary_points(math.prod(interior.shape), stepper.kernel.work)
        self._stepper, self._layout = stepper, Layout.of_domain(shape)
        self._programs: dict[int, TileProgram] = {}
        self._are_skewed: dict[int, bool] = {}
        # Points times steps of all runs that may be skewed.
        self._asked_for = 0

    @contextmanager
    def stages(self, u: np.ndarray, steps: int, pair: Pair) -> Iterator[list[Stage]]:
        """What advances `u` by so many steps, into an array of the pair, for one run."""
        if self.are_resident(steps):
            with self._residence.lent(u) as inside:
                yield self._residence.stages(steps, Pair.of(*inside), pair)
            return
        yield [Stage(program, count, pair) for program, count in self._sweeps(steps)]

    def _sweeps(self, steps: int) -> Iterator[tuple[TileProgram, int]]:
        """What makes so many steps between arrays that hold no halo."""
        while steps:
            program = self.program(steps)
            yield program, steps // program.steps
            steps %= program.steps

    def may_be_skewed(self, steps: int) -> bool:
        """Whether so many steps are ever made as skewed ones."""
        return steps >= FEWEST_SKEWED and self.geometry.rank >= LEAST_RANK

    def skewed(self, steps: int) -> SkewedSteps | None:
        """So many steps as skewed ones, None where tiles are expected to be about as fast."""
        if not self.may_be_skewed(steps):
            return None
        self._asked_for += steps * self.points
        s, steps = self._stepper, min(steps, MANY_STEPS)
        given = s.kernel.skewing is None or s.tile is not None or s.resident is not None
        if given or self._asked_for < WORTH_PLANNING:
            return None
        if steps not in self._are_skewed:
            self._are_skewed[steps] = self._is_worth_skewing(steps)
        return self._skewed if self._are_skewed[steps] else None

    def _is_worth_skewing(self, steps: int) -> bool:
        s, itemsize = self._stepper, self._stepper.element.itemsize
        data = self._skewed.cycles(steps)
        if data is None:
            return False
        work = s.kernel.work
        tiles = choose_tiles(self.geometry, itemsize, work, steps, s.threads, caches())
        return is_skewing_faster(tiles, data, work, itemsize)

    @cached_property
    def _skewed(self) -> SkewedSteps:
        s = self._stepper
        code = s.kernel.skewing()
        return SkewedSteps(s.single, code, self.geometry, self.shape, s.element, s.threads)

    def run(self, legs: Sequence[Leg]) -> None:
        """Run legs, on as many threads as they are worth."""
        run_legs(legs, self._threads_for(legs))

    def _threads_for(self, legs: Sequence[Leg]) -> int:
        most = max(leg.program.steps for leg in legs)
        total = sum(leg.program.steps * leg.sweeps for leg in legs)
        threads = worth_threads(self.points * most, self._stepper.threads)
        return waking_threads(self.points * total, threads)

    def route(self, steps: int) -> tuple[Route, int] | None:
        """How so many steps are made between arrays alike, and on how many threads.

        None where they take so long that others are to be heard, or arrays of the stepper's own
        while results hold more than what sweeps write.
        """
        if not self.are_resident(steps):
            route = Route.of_sweeps(self._sweeps(steps))
        elif around(Box.whole(self.shape), self.geometry.interior):
            return None
        else:
            route = Route.of_residence(self._residence, steps)
        if sum(leg.sweeps for leg in route.legs) > 1 and not is_one_slice(steps, self.points):
            return None
        return route, self._threads_for(route.legs)

    def are_resident(self, steps: int) -> bool:
        """Whether so many steps are made in arrays of the stepper's own."""
        if steps < 2 or self._stepper.tile is not None:
            return False
        if self._stepper.resident is not None:
            return True
        return self._choice is not None and steps >= self._choice.least_steps

    def program(self, steps: int) -> TileProgram:
        """Tiles of some of so many steps, in arrays that hold no halo."""
        key = min(steps, MANY_STEPS)
        if key not in self._programs:
            layouts = self._layout, self._layout
            self._programs[key] = self._stepper.program(self.geometry, layouts, *self._tile(key))
        return self._programs[key]

    def _tile(self, steps: int) -> tuple[int, Sequence[int]]:
        """The steps of a tile in a run of so many, and its extents."""
        s = self._stepper
        if s.tile is not None:
            depth, extents = s.tile
            return min(depth, steps), extents
        itemsize, work = s.element.itemsize, s.kernel.work
        choice = choose_tiles(self.geometry, itemsize, work, steps, s.threads, caches())
        return choice.steps, choice.extents

    @cached_property
    def _choice(self) -> ResidentChoice | None:
        s = self._stepper
        itemsize, work = s.element.itemsize, s.kernel.work
        return choose_residence(self.geometry, itemsize, work, s.threads, caches())

    @cached_property
    def _residence(self) -> Residence:
        s = self._stepper
        extents = s.resident or self._choice.extents
        return Residence(
            lambda layouts: s.program(self.geometry, layouts, 1, extents),
            self.geometry,
            self.shape,
            s.element,
        )


class _Plan:
    """What is prepared once for all arrays of one shape, which the programs may see as another."""

    def __init__(
        self,
        programs: TilePrograms,
        shape: tuple[int, ...],
        refresh: HaloRefresh | None,
        pool: BufferPool,
        larger_pool: BufferPool,
    ):
        self.programs, self._shape, self._refresh = programs, shape, refresh
        self._pool, self._larger_pool = pool, larger_pool
        self._calls: Recent[RepeatedCall | None] = Recent()
        whole = Box.whole(programs.shape)
        # Cells that sweeps do not write, one by one.
        self._kept = [box.slices for box in around(whole, programs.geometry.interior)]

    def run(
        self,
        u: np.ndarray,
        steps: int,
        progress: Callable | None,
        place: np.ndarray | None = None,
    ) -> np.ndarray:
        """`u` after `steps` steps, in `place` where that is given and sweeps are few."""
        skewed, seen = self.programs.skewed(steps), u.reshape(self.programs.shape)
        if skewed is not None:
            takers = self._pool.take, self._larger_pool.take
            return skewed.run(seen, steps, progress, *takers).reshape(self._shape)
        call = self._calls.get(steps, self._new_call)
        if call is not None:
            return call.run(u, place)
        result = self._swept(seen, steps, progress).reshape(self._shape)
        if self._refresh is not None:
            self._refresh(result)
        return result

    def _swept(self, u: np.ndarray, steps: int, progress: Callable | None) -> np.ndarray:
        """What the programs see as `u`, after sweeps of `steps` steps."""
        resident = self.programs.are_resident(steps)
        new = self._kept_beside if resident else self._beside
        pair = Pair(lambda: new(u), new, empty=not resident)
        with self.programs.stages(u, steps, pair) as stages:
            itinerary = Itinerary(stages, u)

            def advance(count: int) -> int:
                before = itinerary.left
                self.programs.run(itinerary.legs(count))
                return before - itinerary.left

            run_in_slices(advance, steps, self.programs.points, progress)
        return itinerary.current

    def again(self, steps: int) -> RepeatedCall | None:
        """The call of so many steps, where each one on such an array takes the same sweeps."""
        if self.programs.may_be_skewed(steps):
            return None
        return self._calls.get(steps, self._new_call)

    def _new_call(self, steps: int) -> RepeatedCall | None:
        route = self.programs.route(steps)
        if route is None:
            return None
        return RepeatedCall(*route, self._shape, self.programs.dtype, self._pool, self._refresh)

    def _beside(self, array: np.ndarray) -> np.ndarray:
        """A new array whose rows lie apart from those of `array`, modulo pages.

        Loads of one do not wait for stores to the other.
        """
        return empty_beside(array, self._pool.take)

    def _kept_beside(self, array: np.ndarray) -> np.ndarray:
        """The same with the cells that no sweep writes."""
        new = self._beside(array)
        for box in self._kept:
            new[box] = array[box]
        return new
