# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Time tiles as tables of numbers that native code runs (see twofour.targets.cpu.tile_driver)."""

import itertools
import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from operator import mul

import numpy as np

from twofour.runtime.boundary import AxisBoundary, storage_constant
from twofour.runtime.box import Box, around
from twofour.runtime.copies import row_axes
from twofour.runtime.crew import JOB, Crew
from twofour.runtime.dtypes import ElementType
from twofour.runtime.native import NativeKernel
from twofour.runtime.page_offset import CACHE_LINE, spread_row
from twofour.runtime.sweeps import LinearKernel
from twofour.runtime.tiles.haloed import HaloedSteps
from twofour.runtime.tiles.parts import cut
from twofour.runtime.tiles.steps import (
    SCRATCH,
    SOURCE,
    TARGET,
    Blocks,
    Cells,
    Copy,
    Geometry,
    Layout,
    Repeat,
    Sweep,
    TileSteps,
)
from twofour.runtime.tiles.streamed import tile_steps
from twofour.runtime.tiles.workspace import Workspace

CONSTANTS = len((SOURCE, TARGET)) + len(SCRATCH)
# Workspaces that are kept for later runs.
MOST_IDLE = 3


# Words of a leg: addresses of a program and of the tables of its threads, those of the source and
# the target, numbers of the first sweep and of the one after the last, and the address of what
# threads share.
LEG_WORDS, LEG_SOURCE, LEG_TARGET = 7, 2, 3


@dataclass(frozen=True)
class TileCode:
    """Native code: the driver, copies of cells, threads that run it, and what owns it.

    `drive(legs, thread, threads)` is the part of one of them in legs, which are made one after the
    other: their number and their words.
    """

    drive: Callable
    copy: int
    keep_alive: object
    crew: Callable[[], Crew] | None = None


def tile_code(drive: int, copy: int, keep_alive: object, crew: Callable[[], Crew]) -> TileCode:
    """The native code at these addresses."""
    return TileCode(JOB(drive), copy, keep_alive, crew)


class TileProgram:
    """Sweeps of `steps` steps from one array to another, in tiles of about `extents`.

    `layouts` are those of the source and the target. Of arrays that hold a halo one step is made;
    the halo of the source is read, that of the target is written as far as it consists of images.
    Between arrays of the domain, sweeps write the interior alone or also, as they are in the
    source, the cells beside it.
    `first` is the kernel that reads the source, `last` the one that writes the target, the same as
    the others where they are None. Kernels compute at most `block` points at once along the last
    axis.
    """

    def __init__(
        self,
        kernel: LinearKernel,
        code: TileCode,
        geometry: Geometry,
        layouts: tuple[Layout, Layout],
        element: ElementType,
        steps: int,
        extents: Sequence[int],
        first: NativeKernel | None = None,
        last: NativeKernel | None = None,
        block: int = 1,
    ):
        self.steps = steps
        self._blocks = Blocks(block, max(1, CACHE_LINE // element.itemsize))
        self._first, self._last = first or kernel.native, last or kernel.native
        self.code, self._kernel, self._element = code, kernel, element
        self._idle: list[Workspace] = []
        self._layouts = dict(zip((SOURCE, TARGET), layouts, strict=True))
        self._views: list[list[int]] = []
        self._commands: list[tuple[int, ...]] = []
        # With the sign: zeros of either one are equal.
        self._constants: dict[tuple[float, float], int] = {}
        self._points: dict[int, int] = {}
        tiles = self._encode(geometry, cut(geometry, extents, self._blocks))
        self.tiles = len(tiles)
        self._freeze(tiles)

    def _encode(
        self, geometry: Geometry, parts: list[list[tuple[int, int]]]
    ) -> list[tuple[int, ...]]:
        """Tiles that lie alike share commands, and say how far from each other they are.

        Commands that copy the cells beside the interior are the last ones of a tile: its words are
        the first command, the ends without and with these, and bytes to add to source and target.
        """
        known: dict[tuple, tuple[int, int, int, Box]] = {}
        of_domain = not any(layout.halo for layout in self._layouts.values())
        tiles = []
        for limits in itertools.product(*parts):
            box = Box(*map(tuple, zip(*limits, strict=True)))
            key = tuple(
                (upper - lower, lower if self._near(geometry, axis, lower, upper) else None)
                for axis, (lower, upper) in enumerate(limits)
            ) + (box.lower[-1] % self._blocks.line, box.lower[0] % 2)
            if key not in known:
                begin = len(self._commands)
                self._add(self._steps_of(geometry, box))
                end = len(self._commands)
                if of_domain:
                    self._keep(around(self._owned(geometry, box), box))
                known[key] = begin, end, len(self._commands), box
            *words, first = known[key]
            shifts = [
                self._element.itemsize * (layout.offset(box.lower) - layout.offset(first.lower))
                for layout in self._layouts.values()
            ]
            tiles.append((*words, *shifts))
        return tiles

    def _steps_of(self, geometry: Geometry, box: Box) -> TileSteps:
        if any(layout.halo for layout in self._layouts.values()):
            return HaloedSteps(geometry, box, *self._layouts.values())
        row = partial(spread_row, itemsize=self._element.itemsize)
        return tile_steps(geometry, box, self.steps, row, self._blocks)

    def _near(self, geometry: Geometry, axis: int, lower: int, upper: int) -> bool:
        """Whether steps of a tile come near an end of the interior on an axis.

        Cells at an end may be in the halo of the other one: the farther reach counts at both.
        """
        reach = self.steps * max(geometry.below[axis], geometry.above[axis])
        if axis == geometry.rank - 1:
            reach += self._blocks.points + self._blocks.line
        inside = geometry.interior
        return lower - reach <= inside.lower[axis] or upper + reach >= inside.upper[axis]

    def _owned(self, geometry: Geometry, box: Box) -> Box:
        """The box and what lies between it and the ends of the array that it is next to."""
        inside, shape = geometry.interior, self._layouts[TARGET].shape
        ends = zip(box.lower, box.upper, inside.lower, inside.upper, shape, strict=True)
        lower, upper = zip(
            *(
                (begin if begin > least else 0, end if end < most else extent)
                for begin, end, least, most, extent in ends
            ),
            strict=True,
        )
        return Box(lower, upper)

    def _keep(self, boxes: Sequence[Box]) -> None:
        """Commands that copy cells as they are."""
        ones = (1,) * len(self._kernel.reach_lo)
        for box in boxes:
            cells = (Cells(array, box.lower, ones) for array in (SOURCE, TARGET))
            self._command(Copy(*cells, box.shape))

    def _add(self, tile: TileSteps) -> None:
        for array, points in tile.scratch_points().items():
            self._points[array] = max(self._points.get(array, 0), points)
        for action in tile.actions:
            if isinstance(action, Repeat):
                self._repeat(action)
            else:
                self._command(action)

    def _repeat(self, repeat: Repeat) -> None:
        """Actions once, and their commands with views that lie further on for the other times."""
        commands, views = len(self._commands), len(self._views)
        for action in repeat.actions:
            self._command(action)
        commands, views = self._commands[commands:], self._views[views:]
        for time in range(1, repeat.times):
            planes = self._element.itemsize * repeat.planes * time
            shifts = {at: planes * layout.strides[0] for at, layout in self._layouts.items()}
            self._views += [
                [array, offset + shifts.get(array, 0), *rest] for array, offset, *rest in views
            ]
            further = len(views) * time
            self._commands += [(code, view + further, *rows) for code, view, *rows in commands]

    def _command(self, action: Sweep | Copy) -> None:
        """The command of an action, and its views."""
        shape, begin = action.shape, 0
        first = len(self._views)
        if isinstance(action, Sweep):
            begin = action.skipped
            shape = (shape[0] + begin, *shape[1:])
            reach = zip(shape, self._kernel.reach_lo, self._kernel.reach_hi, strict=True)
            self._view(action.source, tuple(n + lo + hi for n, lo, hi in reach), begin)
            native = self._kernel.native
            if action.source.array == SOURCE:
                native = self._first
            if action.target.array == TARGET:
                native = self._last
            address = native.address
            self._view(action.target, shape, begin)
        else:
            shape = self._copied(action)
            address = self.code.copy
        self._commands.append((address, first, begin, shape[0]))

    def _view(
        self,
        cells: Cells,
        shape: tuple[int, ...],
        skipped: int = 0,
        axes: Sequence[int] | None = None,
    ) -> None:
        """A view of cells and of `skipped` rows before them, which may lie before the array.

        `axes` are those of the cells in the view's order, their own where it is None.
        """
        if cells.extents is None:
            layout = self._layouts[cells.array]
        else:
            layout = Layout.of_domain(cells.extents)
        strides = layout.strides
        offset = self._element.itemsize * (layout.offset(cells.start) - skipped * strides[0])
        steps = tuple(map(mul, strides, cells.steps))
        if axes is not None:
            shape, steps = [shape[axis] for axis in axes], [steps[axis] for axis in axes]
        self._views.append([cells.array, offset, 0, 0, 0, *shape, *steps])

    def _copied(self, action: Copy) -> tuple[int, ...]:
        """The views of a copy; returns their shape."""
        axes = row_axes(action.shape)
        shape = tuple(action.shape[axis] for axis in axes)
        if action.source is not None:
            self._view(action.source, action.shape, axes=axes)
        else:
            constant = action.value, math.copysign(1, action.value)
            slot = self._constants.setdefault(constant, len(self._constants))
            offset = slot * self._element.itemsize
            self._views.append([CONSTANTS, offset, 0, 0, 0, *shape, *(0 for _ in shape)])
        self._view(action.target, action.shape, axes=axes)
        return shape

    def _freeze(self, tiles: list[tuple[int, ...]]) -> None:
        """Make the tables."""
        self._values = np.array(
            [
                storage_constant(AxisBoundary("constant", value), self._element)
                for value, _ in self._constants
            ]
            or [0],
            self._element.storage,
        )
        words = 5 + 2 * len(self._kernel.reach_lo)
        tiles, commands, views = (
            np.array(rows, np.int64).reshape(-1, width)
            for rows, width in ((tiles, 5), (self._commands, 4), (self._views, words))
        )
        # Without and with the cells beside the interior.
        kinds = [np.delete(tiles, unused, axis=1) for unused in (2, 1)]
        self._programs = [
            np.array(
                [len(kind), *(table.ctypes.data for table in (kind, commands, views)), words],
                np.int64,
            )
            for kind in kinds
        ]
        self._addresses = [program.ctypes.data for program in self._programs]
        self._tables = commands, views
        self._tiles = kinds

    def take_workspace(self, threads: int) -> Workspace:
        """A workspace for so many threads that no other run has."""
        try:
            found = self._idle.pop()
        except IndexError:
            found = None
        if found is None or found.threads < threads:
            constants = {CONSTANTS: self._values.ctypes.data}
            found = Workspace(self._points, constants, self._element.itemsize, threads)
        return found

    def give_back(self, workspace: Workspace) -> None:
        """Keep a workspace for the next run."""
        if len(self._idle) < MOST_IDLE:
            self._idle.append(workspace)

    def leg(
        self, workspace: Workspace, sweeps: int, whole: bool = False, before: int = 0
    ) -> tuple[int, ...]:
        """The words of sweeps, `before` of which were made, between arrays at addresses to come.

        Arrays of the domain are written as a `whole`, or the interior alone.
        """
        ends = before, before + sweeps
        return self._addresses[whole], workspace.of_threads, 0, 0, *ends, workspace.of_all
