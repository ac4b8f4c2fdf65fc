# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Time tiles as tables of numbers that native code runs (see twofour.targets.cpu.tile_driver)."""

import ctypes
import itertools
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from twofour.runtime.boundary import AxisBoundary, storage_constant
from twofour.runtime.buffer_pool import BufferPool
from twofour.runtime.dtypes import ElementType
from twofour.runtime.native import NativeKernel
from twofour.runtime.page_offset import CACHE_LINE, PAGE
from twofour.runtime.streamed_tiles import tile_steps
from twofour.runtime.sweeps import Box, LinearKernel
from twofour.runtime.threads import run_together
from twofour.runtime.tiles import (
    SCRATCH,
    SOURCE,
    TARGET,
    Blocks,
    Cells,
    Copy,
    Geometry,
    Repeat,
    Sweep,
    TileSteps,
    cut,
)

CONSTANTS = len((SOURCE, TARGET)) + len(SCRATCH)
ARRAYS = CONSTANTS + 1
# Words of a thread, the last one its number; of what threads share, beside 8 a thread.
ARRAY_WORDS = 8
SHARED_WORDS = 16


@dataclass(frozen=True)
class TileCode:
    """Addresses of native code: the driver, copies of cells, and what owns them."""

    drive: Callable
    copy: int
    keep_alive: object


def tile_code(drive: int, copy: int, keep_alive: object) -> TileCode:
    """The native code at these addresses."""
    pointer, number = ctypes.c_void_p, ctypes.c_int64
    kind = ctypes.CFUNCTYPE(None, pointer, pointer, number, number, pointer)
    return TileCode(kind(drive), copy, keep_alive)


class TileProgram:
    """Sweeps of `steps` steps over C-contiguous arrays of `shape`, in tiles of about `extents`.

    `first` is the kernel that reads the source, `last` the one that writes the target, the same as
    the others where they are None. Kernels compute at most `block` points at once along the last
    axis.
    """

    def __init__(
        self,
        kernel: LinearKernel,
        code: TileCode,
        geometry: Geometry,
        shape: Sequence[int],
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
        self._code, self._kernel, self._element = code, kernel, element
        self._scratch = BufferPool()
        self._strides = _strides(shape)
        self._views: list[list[int]] = []
        self._commands: list[tuple[int, ...]] = []
        self._constants: dict[float, int] = {}
        self._points: dict[int, int] = {}
        self._tiles = self._encode(geometry, cut(geometry, extents, self._blocks))
        self.tiles = len(self._tiles)
        self._freeze()

    def _encode(self, geometry: Geometry, parts) -> list[tuple[int, ...]]:
        """Tiles that lie alike share commands, and say how far from each other they are."""
        itemsize = self._element.itemsize
        known: dict[tuple, tuple[int, int, Box]] = {}
        tiles = []
        for limits in itertools.product(*parts):
            box = Box(*map(tuple, zip(*limits, strict=True)))
            key = tuple(
                (upper - lower, lower if self._near(geometry, axis, lower, upper) else None)
                for axis, (lower, upper) in enumerate(limits)
            ) + (box.lower[-1] % self._blocks.line, box.lower[0] % 2)
            if key not in known:
                begin = len(self._commands)
                self._add(tile_steps(geometry, box, self.steps, self._row, self._blocks))
                known[key] = begin, len(self._commands), box
            begin, end, first = known[key]
            shift = itemsize * _dot(
                self._strides, [a - b for a, b in zip(box.lower, first.lower, strict=True)]
            )
            tiles.append((begin, end, shift, shift))
        return tiles

    def _near(self, geometry: Geometry, axis: int, lower: int, upper: int) -> bool:
        """Whether steps of a tile come near an end of the interior on an axis."""
        below, above = self.steps * geometry.below[axis], self.steps * geometry.above[axis]
        if axis == geometry.rank - 1:
            below, above = (n + self._blocks.points + self._blocks.line for n in (below, above))
        inside = geometry.interior
        return lower - below < inside.lower[axis] or upper + above > inside.upper[axis]

    def _row(self, points: int) -> int:
        """The length of rows in scratch arrays: near rows share no sets of the cache."""
        itemsize = self._element.itemsize
        lines = -(-points * itemsize // CACHE_LINE)
        if lines > 4:
            # An odd number of lines a row visits all sets.
            lines |= 1
        return max(points, lines * CACHE_LINE // itemsize)

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
            shift = self._element.itemsize * self._strides[0] * repeat.planes * time
            self._views += [
                [array, offset + shift * (array in (SOURCE, TARGET)), *rest]
                for array, offset, *rest in views
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
        else:
            self._copied(action)
            address = self._code.copy
        self._view(action.target, shape, begin)
        self._commands.append((address, first, begin, shape[0]))

    def _view(self, cells: Cells, shape: tuple[int, ...], skipped: int = 0) -> None:
        """A view of cells and of `skipped` rows before them, which may lie before the array."""
        strides = self._strides if cells.extents is None else _strides(cells.extents)
        offset = self._element.itemsize * (_dot(strides, cells.start) - skipped * strides[0])
        steps = [s * step for s, step in zip(strides, cells.steps, strict=True)]
        self._views.append([cells.array, offset, 0, 0, 0, *shape, *steps])

    def _copied(self, action: Copy) -> None:
        if action.source is not None:
            self._view(action.source, action.shape)
            return
        slot = self._constants.setdefault(action.value, len(self._constants))
        nowhere = [0] * len(action.shape)
        offset = slot * self._element.itemsize
        self._views.append([CONSTANTS, offset, 0, 0, 0, *action.shape, *nowhere])

    def _freeze(self) -> None:
        """Make the tables."""
        self._values = np.array(
            [
                storage_constant(AxisBoundary("constant", value), self._element)
                for value in self._constants
            ]
            or [0],
            self._element.storage,
        )
        words = 5 + 2 * len(self._strides)
        self._tables = [
            np.array(rows, np.int64).reshape(-1, width)
            for rows, width in ((self._tiles, 4), (self._commands, 4), (self._views, words))
        ]
        self._program = np.array(
            [len(self._tiles), *(table.ctypes.data for table in self._tables), words], np.int64
        )
        # Scratch arrays of a thread, one behind the other.
        self._offsets, end = {}, 0
        for array, points in sorted(self._points.items()):
            self._offsets[array] = end
            end += -(-points * self._element.itemsize // CACHE_LINE) * CACHE_LINE + 5 * CACHE_LINE
        self.scratch_bytes = end

    def run(self, source: np.ndarray, target: np.ndarray, sweeps: int, threads: int) -> None:
        """Advance `source` into `target`, then back and forth, `sweeps` times in all.

        Both are C-contiguous arrays of the storage type; with more than one sweep both are written.
        """
        threads = max(1, min(threads, self.tiles))
        pitch = -(-(self.scratch_bytes + CACHE_LINE) // PAGE) * PAGE + 9 * CACHE_LINE
        scratch = self._scratch.take(threads * pitch + CACHE_LINE)
        start = -(-scratch.ctypes.data // CACHE_LINE) * CACHE_LINE
        shared = np.zeros(SHARED_WORDS + 8 * threads, np.int64)
        arrays = np.zeros((threads, ARRAY_WORDS), np.int64)
        arrays[:, -1] = np.arange(threads)
        arrays[:, SOURCE], arrays[:, TARGET] = source.ctypes.data, target.ctypes.data
        arrays[:, CONSTANTS] = self._values.ctypes.data
        for array, offset in self._offsets.items():
            arrays[:, array] = start + offset + pitch * np.arange(threads)

        def work(thread: int, together: int) -> None:
            self._code.drive(
                self._program.ctypes.data,
                arrays[thread].ctypes.data,
                sweeps,
                together,
                shared.ctypes.data,
            )

        run_together(work, threads)


def _strides(shape: Sequence[int]) -> tuple[int, ...]:
    """Strides of a C-contiguous array, in elements."""
    strides = [1]
    for extent in reversed(shape[1:]):
        strides.append(strides[-1] * extent)
    return tuple(reversed(strides))


def _dot(a: Sequence[int], b: Sequence[int]) -> int:
    return sum(x * y for x, y in zip(a, b, strict=True))
