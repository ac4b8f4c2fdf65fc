# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Steps of programs over several fields as tables of numbers (see twofour.targets.cpu.step_driver).

A round, a step or an iteration of a loop, is a row of phases. Commands of a phase need nothing of
each other: copies to the halos on one axis, copies of halos between fields, sweeps. Buffers change
places from round to round, so that as many rounds have tables as differ. Skewed rounds are a phase
together, in which each command stays behind those that it needs.
"""

import ctypes
import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from twofour.runtime.copies import row_axes
from twofour.runtime.crew import JOB, Crew, run_table, table_of
from twofour.runtime.native import descriptor
from twofour.runtime.processor import caches
from twofour.runtime.rounds.actions import Action, Buffer, Copy, Round
from twofour.runtime.rounds.skewed import SkewedRounds
from twofour.runtime.rounds.strips import Strip
from twofour.runtime.tiles.parts import ROWS

# Part of a core's second cache for the rows of a block, which are a multiple of those that kernels
# sum up at once.
BLOCK_SHARE = 0.25
STRETCH_WORDS = 5


@dataclass(frozen=True)
class StepCode:
    """Native code: the driver, copies of cells, what owns them, and threads that run it.

    `drive(stretches, thread, threads)` is the part of one of them in stretches: their number and
    their words. `copy(rank, itemsize)` is the address of copies for views of that rank, of elements
    of so many bytes. Kernels compute `planes` planes at once, of three axes and more.
    """

    drive: Callable
    copy: Callable[[int, int], int]
    keep_alive: object
    planes: int
    crew: Callable[[], Crew] | None = None

    def run(self, stretches: ctypes.Array, threads: int) -> None:
        """Run stretches on up to so many threads."""
        run_table(self.drive, stretches, threads, self.crew)


def stretches_of(words: Sequence[int]) -> ctypes.Array:
    """Stretches, given by the words of each, as native code reads them."""
    return table_of([len(words) // STRETCH_WORDS, *words])


def step_code(
    drive: int,
    copy: Callable[[int, int], int],
    keep_alive: object,
    planes: int,
    crew: Callable[[], Crew],
) -> StepCode:
    """The native code at these addresses."""
    return StepCode(JOB(drive), copy, keep_alive, planes, crew)


@dataclass(frozen=True)
class Index:
    """The index of a loop, kept in a buffer of rank 0: lower, lower + step, ... from round 0 on."""

    buffer: int
    lower: int
    step: int


class Phase(NamedTuple):
    """The words of a phase: its commands are [first, last).

    Threads share out up to `rows` rows, and do `block` at a time. The last command is up to `lag`
    rows behind the first one; `has_seams` where commands leave rows to seams.
    """

    first: int
    last: int
    rows: int
    block: int
    lag: int = 0
    has_seams: int = 0


class Command(NamedTuple):
    """The words of a command: the code for its views, from `view` on, and their rows.

    Rows [begin, end) are shared out to threads: all of them, or in a chain those of all of its
    commands. The rest is its Skew.
    """

    code: int
    view: int
    views: int
    rows: int
    begin: int
    end: int
    low: int = 0
    high: int = 0
    first_low: int = 0
    last_high: int = 0


class StepTables:
    """The phases of rounds that differ; after the last one, round `start` follows again.

    `buffers` are those of the arguments, then others of the run; a number has one of rank 0.
    """

    def __init__(self, code: StepCode, buffers: Sequence[Buffer], index: Index | None = None):
        self._code = code
        self._models = [buffer.model() for buffer in buffers]
        self._numbers: list[np.ndarray] = []
        self._views: list[tuple[int, list[int]]] = []
        self._commands: list[Command] = []
        self._counted = -1, 0, 0
        if index is not None:
            self._counted = 0, index.lower, index.step
            self._view(index.buffer, self._models[index.buffer])

    @classmethod
    def of_rounds(
        cls,
        code: StepCode,
        buffers: Sequence[Buffer],
        rounds: Sequence[Round],
        start: int,
        index: Index | None = None,
    ) -> "StepTables":
        """Rounds one after the other, phase by phase."""
        tables = cls(code, buffers, index)
        tables._finish([[*map(tables._phase, one)] for one in rounds], start)
        return tables

    @classmethod
    def of_skewed(
        cls, code: StepCode, buffers: Sequence[Buffer], skewed: SkewedRounds
    ) -> "StepTables":
        """Round n is the first n + 1 skewed rounds, a phase a strip; then all of them repeat."""
        tables = cls(code, buffers)
        strips = [tables._skewed_phases(strip, skewed.block) for strip in skewed.strips]
        rounds = list(zip(*strips, strict=True))
        tables._finish(rounds, len(rounds) - 1)
        return tables

    def turns(self, threads: int) -> bool:
        """Whether the first round ends on so many threads where it did not begin."""
        firsts, phases, _ = self._tables
        found = [Phase(*words) for words in phases[firsts[0] : firsts[1]].tolist()]
        return sum(phase.rows // threads > phase.block for phase in found) % 2 == 1

    def bind(self, arrays: Sequence[np.ndarray]) -> "BoundTables":
        """The tables on buffers of one run."""
        return BoundTables(self, arrays)

    def _finish(self, rounds: Sequence[Sequence[Phase]], start: int) -> None:
        phases = [phase for one in rounds for phase in one]
        firsts = np.cumsum([0, *map(len, rounds)])
        self._tables = [np.array(table, np.int64) for table in (firsts, phases, self._commands)]
        width = max((len(words) for _, words in self._views), default=0)
        self._which = np.array([number for number, _ in self._views], np.int64)
        self._words = np.zeros((len(self._views), width), np.int64)
        for row, (_, words) in zip(self._words, self._views, strict=True):
            row[: len(words)] = words
        addresses = (table.ctypes.data for table in self._tables)
        self._program = np.array([start, len(rounds), *addresses, width, *self._counted], np.int64)

    def _phase(self, actions: Sequence[Action]) -> Phase:
        """Actions that need nothing of each other: each has its own rows, and shares them out."""
        first, view = len(self._commands), len(self._views)
        for action in actions:
            words = self._call(action, past_caches=True)
            self._commands.append(Command(*words, 0, words[-1]))
        rows = max(command.rows for command in self._commands[first:])
        return Phase(first, len(self._commands), rows, min(rows, self._block(view)))

    def _skewed_phases(self, strip: Strip, block: int) -> list[Phase]:
        chain, phases, first = strip.chain, [], len(self._commands)
        plans = iter(zip(chain.footprints, chain.skews, strict=True))
        lag, has_seams = 0, False
        for one in strip.rounds:
            for action, (footprint, skew) in zip(one, plans, strict=False):
                words = self._call(action, rows_first=not footprint.anchored)
                # An anchored action shares out no rows: all of them are in the first seam.
                shared = words[-1], words[-1]
                if not footprint.anchored:
                    shared = chain.begin - footprint.begin, chain.end - footprint.begin
                self._commands.append(Command(*words, *shared, *skew))
                lag = max(lag, skew.lag)
                has_seams |= footprint.anchored or skew.leaves_rows
            rows = chain.end - chain.begin
            phases.append(Phase(first, len(self._commands), rows, block, lag, has_seams))
        return phases

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

    def _call(
        self, action: Action, *, rows_first: bool = False, past_caches: bool = False
    ) -> tuple[int, int, int, int]:
        """The words of a call: code, first view, views, rows; its views are appended.

        With `rows_first` rows are those of the first axis. With `past_caches` kernels for large
        arrays take the place of others where there are any.
        """
        first = len(self._views)
        if isinstance(action, Copy):
            code, shape = self._copied(action, rows_first)
        else:
            kernel, shape = action.kernel, None
            if past_caches and kernel.past_caches is not None:
                kernel = kernel.past_caches()
            code = kernel.address
            for view in (*action.inputs, *action.outputs):
                # An array of rank 0 gives a number for an empty index, no view.
                array = self._models[view.buffer][(*view.slices, ...)]
                self._view(view.buffer, array, kernel.name)
                if view is action.outputs[0]:
                    shape = array.shape
        return code, first, len(self._views) - first, shape[0]

    def _copied(self, copy: Copy, rows_first: bool) -> tuple[int, tuple[int, ...]]:
        """The code of a copy, and its cells; rows of few cells are copied along another axis."""
        target = self._models[copy.written][copy.target]
        if copy.read is None:
            read, source = -1, np.asarray(copy.value, target.dtype)
            self._numbers.append(source)
        else:
            read, source = copy.read, self._models[copy.read][copy.source]
        axes = _axes(target.shape, rows_first)
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
        self._views = tables._words.copy()
        self._shared = np.zeros(16, np.int64)
        self._begin = tables._program.ctypes.data, self._views.ctypes.data
        self._meeting = self._shared.ctypes.data
        self.place([array.__array_interface__["data"][0] for array in arrays])

    def place(self, begins: Sequence[int]) -> None:
        """Go on with buffers at these addresses, which callers keep alive."""
        # The last one is that of numbers, whose addresses are known.
        offsets = np.array([*begins, 0], np.int64)[self._tables._which]
        np.add(self._tables._words[:, 0], offsets, out=self._views[:, 0])
        self._views[:, 1] = self._views[:, 0]

    def stretch(self, first: int, count: int) -> tuple[int, ...]:
        """The words of `count` rounds, from round `first` on."""
        return *self._begin, first, count, self._meeting


def _axes(shape: Sequence[int], rows_first: bool) -> list[int]:
    """An order of axes: the longest one first, but for rows worth copying as one."""
    axes = row_axes(shape)
    if rows_first:
        return [0, *(axis for axis in axes if axis)]
    return sorted(axes[:-1], key=lambda axis: -shape[axis]) + axes[-1:]
