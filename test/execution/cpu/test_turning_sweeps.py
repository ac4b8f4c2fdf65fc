# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Sweeps go up and down the rows in turn, so that each begins with what is in the nearer caches."""

import ctypes
from dataclasses import replace

import numpy as np
import pytest

from twofour.runtime import Launch, LinearKernel, NativeKernel, element_type, parse_boundary
from twofour.runtime.box import Box
from twofour.runtime.loops import View
from twofour.runtime.processor import Caches
from twofour.runtime.rounds import step_tables
from twofour.runtime.rounds.actions import Buffer, Copy, footprint
from twofour.runtime.rounds.skewed import SkewedRounds
from twofour.runtime.rounds.step_tables import StepTables, stretches_of
from twofour.runtime.rounds.time_skewing import chain_of
from twofour.runtime.tiles.program import TileProgram
from twofour.runtime.tiles.runs import Leg, run_legs
from twofour.runtime.tiles.steps import Geometry, Layout
from twofour.targets.cpu.step_driver import step_driver
from twofour.targets.cpu.tile_driver import tile_driver

ROWS, COLUMNS = 40, 8


class Recorder:
    """A kernel of one input and one output that notes which rows it is to compute."""

    def __init__(self, rank=2):
        self.calls: list[tuple[int, int]] = []
        kind = ctypes.CFUNCTYPE(None, *[ctypes.c_void_p] * 2, *[ctypes.c_int64] * 2)
        self._function = kind(self._note)
        address = ctypes.cast(self._function, ctypes.c_void_p).value
        self.native = NativeKernel("note", address, rank, 1, 1, self._function)

    def _note(self, source, target, begin, end):
        first = ctypes.cast(target, ctypes.POINTER(ctypes.c_int64))[1]
        self.calls.append((first + 8 * COLUMNS * begin, end - begin))

    def rows_in(self, *arrays):
        """The first row of each call, in whichever of the arrays it is."""
        begins = [array.ctypes.data for array in arrays]
        return [
            next((at - b) // (8 * COLUMNS) for b in begins if 0 <= at - b < 8 * COLUMNS * ROWS)
            for at, _ in self.calls
        ]


def test_tiles_of_single_steps():
    recorder = Recorder()
    entries = parse_boundary("fixed", 2)
    geometry = Geometry(Box((0, 0), (ROWS, COLUMNS)), (0, 0), (0, 0), entries)
    layout = Layout.of_domain((ROWS, COLUMNS))
    program = TileProgram(
        LinearKernel(recorder.native, (0, 0), (0, 0)),
        tile_driver(2, 8),
        geometry,
        (layout, layout),
        element_type("f64"),
        1,
        (10, COLUMNS),
    )
    arrays = np.zeros((2, ROWS, COLUMNS))
    run_legs([Leg(program, *arrays, 3)], 1)
    up = [0, 10, 20, 30]
    assert recorder.rows_in(*arrays) == [*up, *up[::-1], *up]
    recorder.calls.clear()
    run_legs([Leg(program, *arrays, 1, before=3), Leg(program, *arrays[::-1], 2, before=4)], 1)
    run_legs([Leg(program, *arrays, 1, before=5)], 1)
    assert recorder.rows_in(*arrays) == [*up[::-1], *up, *up[::-1], *up[::-1]]


@pytest.mark.parametrize("planes", [1, 4])
def test_blocks_of_planes_are_as_many_as_are_computed_at_once(planes, monkeypatch):
    """However little of them the caches hold."""
    monkeypatch.setattr(step_tables, "caches", lambda: Caches(1 << 8, 1 << 20))
    recorder, whole = Recorder(3), (slice(None),) * 3
    launch = Launch(recorder.native, (View(0, whole),), (View(1, whole),))
    buffers = [Buffer((ROWS, COLUMNS, 1), np.dtype(np.float64))] * 2
    code = replace(step_driver(2), planes=planes)
    tables = StepTables.of_rounds(code, buffers, [[[launch]]], 0)
    arrays = np.zeros((2, ROWS, COLUMNS, 1))
    words = tables.bind(arrays).stretch(0, 1)
    code.run(stretches_of(words), 1)
    assert recorder.rows_in(*arrays) == list(range(0, ROWS, planes))


@pytest.mark.parametrize("rows, up", [(16, [0, 16, 32]), (40, [0])])
def test_rounds_of_programs_over_fields(rows, up, monkeypatch):
    row_bytes = 2 * 8 * COLUMNS
    second = int(rows * row_bytes / step_tables.BLOCK_SHARE)
    monkeypatch.setattr(step_tables, "caches", lambda: Caches(second, 1 << 24))
    recorder = Recorder()
    buffers = [Buffer((ROWS, COLUMNS), np.dtype(np.float64))] * 2
    everything = (slice(None), slice(None))
    there, back = (
        Launch(recorder.native, (View(one, everything),), (View(other, everything),))
        for one, other in ((0, 1), (1, 0))
    )
    code = step_driver(2)
    # A halo is copied in between: one row, which is no sweep.
    copies = [Copy(1, (slice(0, 1), slice(None)), 0, (slice(0, 1), slice(None)))]
    tables = StepTables.of_rounds(code, buffers, [[copies, [there]], [copies, [back]]], 0)
    arrays = np.zeros((2, ROWS, COLUMNS))
    words = tables.bind(arrays).stretch(0, 3)
    code.run(stretches_of(words), 1)
    assert recorder.rows_in(*arrays) == [*up, *up[::-1], *up]
    assert sum(count for _, count in recorder.calls) == 3 * ROWS


def chained(recorder, *actions):
    """Skewed rounds of launches of a recorder's kernel, rows of all columns each."""
    everything = (slice(None), slice(None))
    buffers = [Buffer((ROWS, COLUMNS), np.dtype(np.float64))] * 2
    launch = Launch(recorder.native, (View(0, everything),), (View(1, everything),))
    flat = (launch, *actions)
    chain = chain_of([footprint(action, buffers) for action in flat])
    skewed = SkewedRounds((flat,), chain, 16, 1).with_strips(buffers)
    return buffers, [[[launch]]], skewed


def drive(code, tables, arrays):
    words = tables.bind(arrays).stretch(0, 1)
    code.run(stretches_of(words), 1)


def test_kernels_for_large_arrays_are_for_rounds_that_are_not_skewed():
    usual, large = Recorder(), Recorder()
    usual.native.past_caches = lambda: large.native
    buffers, rounds, skewed = chained(usual)
    code, arrays = step_driver(2), np.zeros((2, ROWS, COLUMNS))
    drive(code, StepTables.of_rounds(code, buffers, rounds, 0), arrays)
    assert (len(usual.calls), sum(count for _, count in large.calls)) == (0, ROWS)
    drive(code, StepTables.of_skewed(code, buffers, skewed), arrays)
    assert usual.rows_in(*arrays) == [0, 16, 32]
    assert sum(count for _, count in large.calls) == ROWS


def test_copies_between_rows_far_apart_are_done_though_nothing_waits_for_them():
    recorder = Recorder()
    copy = Copy(0, (slice(0, 1), slice(None)), 0, (slice(ROWS - 1, ROWS), slice(None)))
    buffers, _, skewed = chained(recorder, copy)
    code, arrays = step_driver(2), np.zeros((2, ROWS, COLUMNS))
    arrays[0] = np.arange(ROWS)[:, None]
    drive(code, StepTables.of_skewed(code, buffers, skewed), arrays)
    assert sum(count for _, count in recorder.calls) == ROWS
    assert (arrays[0, 0] == ROWS - 1).all()
