# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Steps of programs over several fields as tables of numbers (see twofour.targets.cpu.step_driver).

A round, a step or an iteration of a loop, is a row of phases. Commands of a phase need nothing of
each other: copies to the halos on one axis, copies of halos between fields, sweeps. Buffers change
places from round to round, so that as many rounds have tables as differ.
"""

import ctypes
import itertools
import math
import operator
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from twofour.runtime.copies import row_axes
from twofour.runtime.loops import Launch
from twofour.runtime.native import descriptor
from twofour.runtime.processor import caches
from twofour.runtime.tiles import ROWS

# Part of a core's second cache for the rows of a block, which are a multiple of those that kernels
# sum up at once.
BLOCK_SHARE = 0.25
STRETCH_WORDS = 5


@dataclass(frozen=True)
class StepCode:
    """Native code: the driver, what gives the address of copies of cells, and what owns them.

    `copy(rank, itemsize)` is for views of that rank, of elements of so many bytes. Kernels compute
    `planes` planes at once, of three axes and more.
    """

    drive: Callable
    copy: Callable[[int, int], int]
    keep_alive: object
    planes: int


def step_code(
    drive: int, copy: Callable[[int, int], int], keep_alive: object, planes: int
) -> StepCode:
    """The native code at these addresses."""
    pointer, number = ctypes.c_void_p, ctypes.c_int64
    kind = ctypes.CFUNCTYPE(None, pointer, *[number] * 3)
    return StepCode(kind(drive), copy, keep_alive, planes)


@dataclass(frozen=True)
class Buffer:
    """An array of a run, C-contiguous: that of an argument at first, or a workspace."""

    shape: tuple[int, ...]
    dtype: np.dtype

    @property
    def strides(self) -> tuple[int, ...]:
        """The strides in bytes."""
        cells = itertools.accumulate(self.shape[:0:-1], operator.mul, initial=self.dtype.itemsize)
        return tuple(cells)[::-1] if self.shape else ()


@dataclass(frozen=True)
class Copy:
    """Cells [source] of buffer `read`, or the number `value`, go to cells [target] of `written`.

    Where a source has one cell on an axis, all cells of the target there get it.
    """

    written: int
    target: tuple[slice, ...]
    read: int | None
    source: tuple[slice, ...] = ()
    value: np.generic | None = None


@dataclass(frozen=True)
class Index:
    """The index of a loop, kept in a buffer of rank 0: lower, lower + step, ... from round 0 on."""

    buffer: int
    lower: int
    step: int


class StepTables:
    """The phases of rounds that differ; after the last one, round `start` follows again.

    `buffers` are those of the arguments, then others of the run; a number has one of rank 0. The
    phases of `rounds` hold copies and launches. `points` counts those of all sweeps of a round.
    """

    def __init__(
        self,
        code: StepCode,
        buffers: Sequence[Buffer],
        rounds: Sequence[Sequence[Sequence[Copy | Launch]]],
        start: int,
        index: Index | None = None,
    ):
        self._code = code
        self._models = [_model(buffer) for buffer in buffers]
        self._numbers: list[np.ndarray] = []
        self._views: list[tuple[int, list[int]]] = []
        commands: list[tuple[int, ...]] = []
        first_phases, all_phases = [0], []
        for phases in rounds:
            for phase in phases:
                first, view = len(commands), len(self._views)
                commands += [self._command(action) for action in phase]
                rows = max(rows for *_, rows in commands[first:])
                block = min(rows, self._block(view))
                all_phases.append((first, len(commands), rows, block))
            first_phases.append(len(all_phases))
        self._tables = [np.array(table, np.int64) for table in (first_phases, all_phases, commands)]
        launches = [one for phase in rounds[0] for one in phase if isinstance(one, Launch)]
        self.points = sum(
            self._models[one.outputs[0].buffer][one.outputs[0].slices].size for one in launches
        )
        counted = -1, 0, 0
        if index is not None:
            counted = len(self._views), index.lower, index.step
            self._view(index.buffer, self._models[index.buffer])
        width = max((len(words) for _, words in self._views), default=0)
        self._which = np.array([number for number, _ in self._views], np.int64)
        self._words = np.zeros((len(self._views), width), np.int64)
        for row, (_, words) in zip(self._words, self._views, strict=True):
            row[: len(words)] = words
        self._program = np.array(
            [start, len(rounds), *(table.ctypes.data for table in self._tables), width, *counted],
            np.int64,
        )

    def bind(self, arrays: Sequence[np.ndarray]) -> "BoundTables":
        """The tables on buffers of one run."""
        return BoundTables(self, arrays)

    def _block(self, first_view: int) -> int:
        """Rows that each command of a phase does before it is the next one's turn.

        What the views of these rows hold fits a part of a core's second cache.
        """
        bytes_of_row = sum(
            self._models[buffer].itemsize * math.prod(words[4:][: len(words[3:]) // 2 - 1])
            for buffer, words in self._views[first_view:]
            if buffer >= 0
        )
        # Of planes, more than kernels compute at once may be much.
        least = ROWS if max(model.ndim for model in self._models) < 3 else self._code.planes
        return max(least, int(BLOCK_SHARE * caches().second / bytes_of_row) // least * least)

    def _command(self, action: Copy | Launch) -> tuple[int, ...]:
        """Words of a command; its views are appended."""
        first = len(self._views)
        if isinstance(action, Copy):
            code, shape = self._copied(action)
        else:
            kernel, shape = action.kernel, None
            if kernel.past_caches is not None:
                kernel = kernel.past_caches()
            code = kernel.address
            for view in (*action.inputs, *action.outputs):
                # An array of rank 0 gives a number for an empty index, no view.
                array = self._models[view.buffer][(*view.slices, ...)]
                self._view(view.buffer, array, kernel.name)
                if view is action.outputs[0]:
                    shape = array.shape
        return code, first, len(self._views) - first, shape[0]

    def _copied(self, copy: Copy) -> tuple[int, tuple[int, ...]]:
        """The code of a copy, and its cells; rows of few cells are copied along another axis."""
        target = self._models[copy.written][copy.target]
        if copy.read is None:
            read, source = -1, np.asarray(copy.value, target.dtype)
            self._numbers.append(source)
        else:
            read, source = copy.read, self._models[copy.read][copy.source]
        axes = _axes(target.shape)
        source = np.broadcast_to(source, target.shape).transpose(axes)
        target = target.transpose(axes)
        self._view(read, source)
        self._view(copy.written, target)
        return self._code.copy(target.ndim, target.itemsize), target.shape

    def _view(self, buffer: int, view: np.ndarray, kernel: str | None = None) -> None:
        address, *words = descriptor(view, kernel)
        if buffer >= 0:
            address -= self._models[buffer].ctypes.data
        self._views.append((buffer, [address, *words]))


class BoundTables:
    """Tables on the buffers of one run, for all its threads."""

    def __init__(self, tables: StepTables, arrays: Sequence[np.ndarray]):
        self._tables, self._arrays = tables, arrays
        # The last one is that of numbers, whose addresses are known.
        begins = [array.ctypes.data for array in arrays]
        begins = np.array([*begins, 0], np.int64)
        self._views = tables._words.copy()
        self._views[:, 0] += begins[tables._which]
        self._views[:, 1] = self._views[:, 0]
        self._shared = np.zeros(16, np.int64)
        self._begin = tables._program.ctypes.data, self._views.ctypes.data
        self._meeting = self._shared.ctypes.data

    def stretch(self, first: int, count: int) -> tuple[int, ...]:
        """The words of `count` rounds, from round `first` on."""
        return *self._begin, first, count, self._meeting


def _model(buffer: Buffer) -> np.ndarray:
    """An array of that shape without memory of its own: its cells must not be used."""
    one = np.empty(1, buffer.dtype)
    return np.lib.stride_tricks.as_strided(one, buffer.shape, buffer.strides)


def _axes(shape: Sequence[int]) -> list[int]:
    """An order of axes: the longest one first, but for rows worth copying as one."""
    axes = row_axes(shape)
    return sorted(axes[:-1], key=lambda axis: -shape[axis]) + axes[-1:]
