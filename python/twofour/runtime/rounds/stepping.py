# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Many steps of one linear stencil as skewed rounds, from an array to a new one.

The first round reads the caller's array, those after it go between two arrays of the run. Where
halos are refreshed, the first one copies the caller's array to one of them, which holds the halo
that it may lack; if it does, the last step goes to an array without one, on its own.
"""

import itertools
import math
from collections.abc import Callable, Sequence
from functools import cached_property

import numpy as np

from twofour.runtime.boundary import HaloRefresh
from twofour.runtime.box import Box, around
from twofour.runtime.dtypes import ElementType
from twofour.runtime.loops import Launch, View
from twofour.runtime.page_offset import (
    empty_at,
    empty_beside,
    fresh_bytes,
    offset_to_line,
    page_offsets,
)
from twofour.runtime.rounds.actions import Buffer, Copy, Round
from twofour.runtime.rounds.program import Run, Stretch
from twofour.runtime.rounds.round_tables import BoundRounds, RoundTables
from twofour.runtime.rounds.skewed import SkewedRounds
from twofour.runtime.rounds.step_tables import StepCode
from twofour.runtime.slices import run_in_slices
from twofour.runtime.sweeps import LinearKernel
from twofour.runtime.tiles.steps import Geometry

# Buffers of a run: the caller's array, two that steps go between, and a result without a halo.
GIVEN, ONE, OTHER, RESULT = range(4)
# As many steps as a run has.
ANY_NUMBER = 1 << 62


class SkewedSteps:
    """Steps of a kernel on arrays of a shape, whose interior and boundary are in `geometry`.

    `code` is the driver. There are so many threads.
    """

    def __init__(
        self,
        kernel: LinearKernel,
        code: StepCode,
        geometry: Geometry,
        shape: Sequence[int],
        element: ElementType,
        threads: int,
    ):
        self._kernel, self._code, self._threads = kernel, code, threads
        array = Box.whole(shape)
        needed = geometry.read_by(geometry.interior)
        held = Box(
            tuple(map(min, array.lower, needed.lower)),
            tuple(map(max, array.upper, needed.upper)),
        )
        self._lacks_halo = held != array
        self._given = array.relative_to(held.lower)
        self._interior = geometry.interior.relative_to(held.lower)
        inside = self._interior.lower, self._interior.upper
        self._refresh = HaloRefresh(held.shape, inside, geometry.boundary, element)
        shapes = (tuple(shape), held.shape, held.shape, tuple(shape))
        self._buffers = [Buffer(one, np.dtype(element.storage)) for one in shapes]
        if self._refresh.empty:
            rounds = [self._round(*pair) for pair in ((GIVEN, ONE), (ONE, OTHER), (OTHER, ONE))]
            rounds[0] = [*self._kept(ONE, OTHER), *rounds[0]]
            # What an even number of steps ends in, and an odd one.
            self._targets = OTHER, ONE
        else:
            given = tuple(map(slice, shape))
            taken = [[Copy(ONE, self._given.slices, GIVEN, given)]]
            pairs = (ONE, OTHER), (OTHER, ONE), (ONE, OTHER)
            rounds = [self._refreshed_round(*pair) for pair in pairs]
            rounds[0] = [*taken, *self._kept(OTHER), *rounds[0]]
            self._targets = ONE, OTHER
        self._tables = self._tables_of(rounds, 1, ANY_NUMBER)
        # Where the two arrays begin, modulo pages: their interiors on cache lines.
        strides = self._buffers[ONE].strides
        line = offset_to_line(self._interior.lower, strides)
        self._begins = [begin + line for begin in page_offsets(strides[:-1], 2)]

    @property
    def rounds(self) -> SkewedRounds | None:
        """The steps that are skewed together, None where none are."""
        return self._tables.skewed_rounds

    def cycles(self, steps: int) -> float | None:
        """Cycles a point and step that data take in so many steps.

        None where none are skewed, or only so that threads meet less often: tiles do as well.
        """
        if self.rounds is None or not self.rounds.far:
            return None
        points = math.prod(self._interior.shape[1:])
        return self.rounds.cycles(min(steps, self.rounds.depth)) / points

    def run(
        self,
        u: np.ndarray,
        steps: int,
        progress: Callable[[int, int], None] | None,
        take: Callable[[int], np.ndarray] = fresh_bytes,
        take_larger: Callable[[int], np.ndarray] = fresh_bytes,
    ) -> np.ndarray:
        """A new array with the values of `u` after two steps or more.

        `take(n)` gives n bytes for it, `take_larger` those for arrays with a halo that it lacks.
        """
        take_held = take_larger if self._lacks_halo else take
        arrays = [u, *(self._held(number, take_held) for number in (ONE, OTHER)), u]
        inner = steps - 1 if self._lacks_halo else steps
        self._advance(self._tables, arrays, inner, progress)
        last = self._targets[inner % 2]
        if not self._lacks_halo:
            self._refresh(arrays[last])
            return arrays[last]
        result = arrays[RESULT] = empty_beside(u, take)
        self._advance(self._last_tables[last], arrays, 1, None)
        return result

    def _held(self, number: int, take: Callable[[int], np.ndarray]) -> np.ndarray:
        """An array of the run."""
        shape, dtype = self._buffers[number].shape, self._buffers[number].dtype
        return empty_at(self._begins[number - 1], shape, dtype, take)

    @cached_property
    def _last_tables(self) -> dict[int, RoundTables]:
        """The last step from each array to one without a halo."""
        return {
            source: self._tables_of(
                [[*self._kept(RESULT), *self._refreshed_round(source, RESULT)]], 0, 1
            )
            for source in (ONE, OTHER)
        }

    def _kept(self, *numbers: int) -> list[list[Copy]]:
        """Copies of the cells that no step writes, from the caller's array to others."""
        copies = []
        for number, box in itertools.product(numbers, around(self._given, self._interior)):
            given = box.relative_to(self._given.lower)
            target = given if number == RESULT else box
            copies.append(Copy(number, target.slices, GIVEN, given.slices))
        return [copies] if copies else []

    def _tables_of(self, rounds: Sequence[Round], start: int, most: int) -> RoundTables:
        tables = RoundTables(self._code, self._buffers, rounds, start, None, self._threads, most)
        tables.run_on(tables.threads)
        return tables

    def _round(self, source: int, target: int) -> Round:
        read = self._interior.grown(self._kernel.reach_lo, self._kernel.reach_hi)
        written = self._interior
        if target == RESULT:
            written = written.relative_to(self._given.lower)
        views = View(source, read.slices), View(target, written.slices)
        return [[Launch(self._kernel.native, views[:1], views[1:])]]

    def _refreshed_round(self, source: int, target: int) -> Round:
        copies = [
            [
                Copy(source, cells, None if images is None else source, images, value)
                for cells, images, value in axis
            ]
            for axis in self._refresh.by_axis
        ]
        return [*copies, *self._round(source, target)]

    def _advance(
        self,
        tables: RoundTables,
        arrays: Sequence[np.ndarray],
        steps: int,
        progress: Callable[[int, int], None] | None,
    ) -> None:
        bound = {tables: BoundRounds(tables, arrays)}
        run = Run(self._code, [Stretch(tables, steps)], arrays, bound)

        def advance(rounds: int) -> int:
            return run.advance(rounds, tables.points, tables.threads)

        run_in_slices(advance, steps, tables.points, progress)
