# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Which rounds of a program go over the rows together: where that spares much of the memory."""

from dataclasses import replace

import numpy as np
import pytest

from round_cases import FAR, MANY, NEAR, box, in_place, square, update
from twofour.runtime import Launch
from twofour.runtime.loops import View
from twofour.runtime.rounds import choice as skew_choice
from twofour.runtime.rounds.actions import Buffer, Copy, footprint, pass_on_whole
from twofour.runtime.rounds.choice import (
    LEAST_PARTS,
    MOST_ROUNDS,
    NEAR_SHARE,
    WORTH_FEWER_MEETINGS,
    WORTHWHILE,
    skew_rounds,
)
from twofour.runtime.rounds.time_skewing import Touch
from twofour.runtime.tiles.costs import MEMORY
from twofour.runtime.tiles.costs import NEAR as L2_RATE
from twofour.runtime.tiles.extents import WINDOW_SHARE


def rotating(edge, radius=1):
    """Three steps, each from two arrays into a third."""

    def step(old, now, new):
        inputs = View(old, box(edge, halo=radius)), View(now, box(edge, radius, radius, radius))
        return [[Launch(None, inputs, (View(new, box(edge, halo=radius)),))]]

    return [step(0, 1, 2), step(1, 2, 0), step(2, 0, 1)]


def skewed(cycle, edge, machine=FAR, threads=2, most=MANY, halo=1, count=3):
    return skew_rounds(cycle, [square(edge, halo)] * count, 1, threads, most, machine)


@pytest.mark.parametrize(
    "machine, size", [(FAR, NEAR_SHARE * FAR.second), (NEAR, WINDOW_SHARE * NEAR.last / 2)]
)
def test_arrays_in_memory_are_passed_over_once_for_many_steps(machine, size):
    """In the rows in use, which threads have in a near last-level cache as well."""
    for cycle in ([in_place(4096)], rotating(4096)):
        found = skewed(cycle, 4096, machine)
        assert found.depth >= 3 and found.depth % len(cycle) == 0
        assert found.depth <= MOST_ROUNDS + 2
        rows, arrays = found.chain.window + found.block, 2 if len(cycle) == 1 else 3
        assert rows * arrays * 4098 * 8 <= size
        assert found.threads == 2


def test_as_few_as_there_are():
    assert skewed([in_place(4096)], 4096, most=5).depth == 5
    # A period is not cut.
    assert skewed(rotating(4096), 4096, most=2).depth == 3


def test_one_step_of_two_phases_is_worthwhile_and_one_sweep_is_not():
    assert skewed([in_place(4096)], 4096).fewest == 1
    assert skewed(rotating(4096), 4096).fewest == 2
    # Nor one whose lines have been read when they are written.
    assert skewed([[[update(4096, 0, f1=(0, 0))]]], 4096, most=4).fewest == 2


def test_a_near_last_level_cache_spares_nothing():
    """Nor does anything where arrays stay in the second-level caches."""
    assert skewed(rotating(512), 512, FAR).depth > 1
    assert skewed(rotating(512), 512, NEAR) is None
    assert skewed(rotating(64), 64, FAR, threads=1) is None


def test_small_arrays_are_worth_more_threads_where_these_meet_less_often():
    assert skewed(rotating(150), 150, FAR, threads=1) is None
    assert skewed(rotating(150), 150, FAR, threads=2).threads == 2
    # Few rounds are enough for that, where a sweep is worth one thread alone.
    assert skewed(rotating(150), 150, FAR, threads=2, most=6).depth == 6
    # A sweep of more points is worth both.
    assert skewed(rotating(300), 300, FAR, threads=2).depth >= WORTH_FEWER_MEETINGS
    assert skewed(rotating(300), 300, FAR, threads=2, most=6) is None


def test_wide_reaches_are_not_read_again_and_again():
    """Where the rows in use fit the last-level cache alone, and each block reads many more."""
    assert skewed(rotating(30000, 1), 30000, replace(FAR, last=1 << 30)) is not None
    wide = skewed(rotating(30000, 12), 30000, replace(FAR, last=1 << 30), halo=12)
    assert wide is None


def test_parts_of_many_threads_have_rows_for_two_seams():
    for threads in (1, 8, 30):
        found = skewed([in_place(2000)], 2000, threads=threads)
        assert 2000 >= LEAST_PARTS * found.threads * found.chain.least_part
    assert skewed([in_place(2000)], 2000, threads=1000) is None


def test_tables_are_read_as_a_whole():
    buffers = [square(4096)] * 3
    inside = [View(number, box(4096)) for number in range(3)]
    near = Launch(None, (inside[0], inside[2]), (inside[1],))
    table = replace(near, tables=(1,))
    writes = Launch(None, (inside[1],), (inside[2],))
    assert not pass_on_whole([near, writes], buffers) and pass_on_whole([table, writes], buffers)
    reads = [{touch.buffer for touch in footprint(one, buffers).touches} for one in (near, table)]
    assert reads == [{0, 1, 2}, {0, 1}]


def test_what_is_read_as_a_whole_must_not_be_written():
    row = Buffer((4098,), np.dtype(np.float64))
    buffers = [square(4096)] * 2 + [row]
    along = View(2, (slice(1, 4097),))
    reads = Launch(None, (View(0, box(4096)), along), (View(1, box(4096)),))
    back = Launch(None, (View(1, box(4096)),), (View(0, box(4096)),))
    writes = Launch(None, (along,), (along,))
    assert not pass_on_whole([reads, back], buffers)
    assert skew_rounds([[[reads], [back]]], buffers, 1, 2, MANY, FAR).depth > 1
    halo = Copy(2, (slice(0, 1),), 2, (slice(1, 2),))
    for action in (writes, halo):
        assert pass_on_whole([reads, action], buffers)
        found = skew_rounds([[[reads], [back]]], buffers, 1, 2, MANY, FAR)
        assert found.after([[[back]]], 0, buffers).depth == found.depth + 1
        assert found.after([[[action]]], 0, buffers) is None
        assert skew_rounds([[[reads], [back], [action]]], buffers, 1, 2, MANY, FAR) is None


def levels(*shape, radius=1, uses_index=False):
    """Three steps of three axes, each from two arrays into a third; and the arrays."""

    def box(around=0):
        return tuple(slice(radius - around, radius + extent + around) for extent in shape)

    def step(old, now, new):
        inputs = View(old, box()), View(now, box(radius))
        return [[Launch(None, inputs, (View(new, box()),), uses_index=uses_index)]]

    array = Buffer(tuple(extent + 2 * radius for extent in shape), np.dtype(np.float64))
    return [step(0, 1, 2), step(1, 2, 0), step(2, 0, 1)], [array] * 3


@pytest.mark.parametrize("edge", [256, 384, 512])
def test_planes_that_are_too_large_are_cut(edge):
    """The rows in use of all planes in use fit the second-level cache."""
    cycle, buffers = levels(edge, edge, edge)
    found = skew_rounds(cycle, buffers, 4, 2, MANY, FAR)
    assert found.depth >= 6 and found.cutting is not None
    planes, rows = (
        found.chain.window + found.block,
        found.cutting.width + found.cutting.along.window,
    )
    assert planes * rows * 3 * 8 * (edge + 2) <= NEAR_SHARE * FAR.second
    assert sum(strip.rounds[0] != () for strip in found.strips) >= edge // found.cutting.width


def test_what_data_take():
    """Less than plain rounds, by more than a little, and more in few rounds than in many."""
    cycle, buffers = levels(256, 256, 256)
    found = skew_rounds(cycle, buffers, 4, 2, MANY, FAR)
    assert 0 < found.near < found.cycles(found.depth) < found.cycles(3)
    row = 8 * 258 * 258
    # Two arrays are read, and another one written to, which is read before.
    assert found.cycles(found.depth) < WORTHWHILE * 4 * row / MEMORY
    assert found.cycles(found.fewest) < 4 * row / MEMORY <= found.cycles(found.fewest - 1)
    # Once from memory instead of the second-level cache, and rows at the ends of strips from where
    # those of a strip are.
    missed = FAR.missed(3 * 258 * row * found.cutting.share)
    again = missed / MEMORY + (1 - missed) / FAR.last_rate
    passes = 1 / MEMORY - 1 / L2_RATE + (found.cutting.passes - 1) * (again - 1 / L2_RATE)
    assert found.far == pytest.approx(6 * row * passes)
    # A row of one array is read with those around it, by each block and each strip.
    around = (1 + 2 / found.block) * (1 + 2 / found.cutting.width)
    assert found.near == pytest.approx((around + 3) * row / L2_RATE)


def test_arrays_of_which_a_larger_cache_holds_a_part():
    """Rounds one by one are as fast there: 128 points an edge, order 8."""
    cycle, buffers = levels(128, 128, 128, radius=4)
    assert skew_rounds(cycle, buffers, 4, 1, MANY, replace(FAR, most=FAR.last * 3)) is None
    assert skew_rounds(cycle, buffers, 4, 1, MANY, FAR) is not None


def test_planes_that_are_read_again_from_the_last_cache():
    """Of single planes at once more than of four, so that wide reaches are worth strips."""
    cycle, buffers = levels(200, 200, 200, radius=6)
    far = replace(FAR, most=FAR.last * 3)
    assert skew_rounds(cycle, buffers, 16, 2, MANY, far) is None
    assert skew_rounds(cycle, buffers, 1, 2, MANY, far).cutting is not None


def test_small_planes_are_not_cut():
    assert skew_rounds(*levels(96, 32, 32), 4, 2, MANY, FAR).cutting is None
    cycle, buffers = levels(256, 256, 256, uses_index=True)
    assert skew_rounds(cycle, buffers, 4, 2, MANY, FAR) is None


def test_strips_pass_over_rows_at_their_ends_again():
    """With more than a few rows it is not worthwhile."""
    assert skew_rounds(*levels(256, 256, 256, radius=2), 4, 2, MANY, FAR).cutting is not None
    for machine in (FAR, NEAR):
        assert skew_rounds(*levels(256, 256, 256, radius=8), 4, 2, MANY, machine) is None


def test_few_rows_are_not_cut_for_many_rounds(monkeypatch):
    """What strips leave at both ends would overlap."""
    with monkeypatch.context() as patch:
        seen = []
        patch.setattr(skew_choice, "_of_far_arrays", lambda _, found, *rest: seen.extend(found))
        skew_rounds(*levels(1000, 20, 2000), 4, 2, MANY, FAR)
    cut = [one for one in seen if one.cutting is not None]
    assert all(one.cutting.along.least_part <= 20 for one in cut)
    depths = {one.depth for one in cut}
    assert 3 in depths and 18 not in depths and 18 in {one.depth for one in seen}
    cycle, buffers = levels(256, 256, 256)
    found = skew_rounds(cycle, buffers, 4, 2, MANY, FAR)
    assert found.after(cycle[:1], 3, buffers).depth == found.depth - 2
    more = found.after(cycle, 0, buffers)
    assert more.depth == found.depth + 3 and len(more.strips[0].rounds) == more.depth
    assert more.cutting.along.least_part > found.cutting.along.least_part
    assert found.after(cycle * 40, 0, buffers) is None
    placed, _ = levels(256, 256, 256, uses_index=True)
    assert found.after(placed, 0, buffers) is None


def test_rounds_without_sweeps():
    edge = (slice(0, 1), slice(None))
    far = (slice(4096, 4097), slice(None))
    assert skewed([[[Copy(0, edge, 0, far)]]], 4096) is None


def test_footprints():
    buffers = [square(8), square(8)]
    sweep = footprint(update(8, 0, f1=(1, 0)), buffers)
    assert (sweep.begin, sweep.end, sweep.anchored) == (1, 9, False)
    assert sweep.touches == (Touch(0, 0, 0, False), Touch(1, -1, 0, False), Touch(0, 0, 0, True))
    column = footprint(Copy(0, (slice(None), slice(0, 1)), 1, (slice(None), slice(8, 9))), buffers)
    assert (column.begin, column.end, column.anchored) == (0, 10, False)
    assert column.touches == (Touch(0, 0, 0, True), Touch(1, 0, 0, False))
    number = footprint(Copy(0, (slice(9, 10), slice(None)), None, value=np.float64(1)), buffers)
    assert (number.begin, number.end, number.anchored) == (9, 10, False)
    # Rows of another array, which has no halo; fewer of them would be an end of this one.
    large, inner = square(40), Buffer((40, 40), np.dtype(np.float64))
    for rows, anchored in ((40, False), (16, True)):
        here, there = slice(1, 1 + rows), slice(0, rows)
        taken = footprint(Copy(0, (here,), 1, (there,)), [large, inner])
        assert taken.anchored == anchored
        assert anchored or taken.touches == (Touch(0, 0, 0, True), Touch(1, -1, -1, False))
        assert anchored or (taken.begin, taken.end) == (1, 41)
    row = footprint(Copy(0, (slice(0, 1), slice(None)), 0, (slice(8, 9), slice(None))), buffers)
    assert row.anchored and row.touches == (Touch(0, 0, 0, True), Touch(0, 8, 8, False))


@pytest.mark.parametrize("rows", [slice(3, 0, -1), slice(2, None, -1)])
def test_rows_of_a_mirrored_copy(rows):
    """Slices of them go down, to the first row without an end."""
    mirrored = Copy(0, (slice(7, 10), slice(None)), 1, (rows, slice(None)))
    found = footprint(mirrored, [square(8), square(8)])
    read = range(10)[rows]
    assert found.anchored
    assert found.touches == (Touch(0, 7, 9, True), Touch(1, read[-1], read[0], False))
    # Also of the rows that are written, in the other order.
    same = Copy(0, (slice(1, 4), slice(None)), 1, (slice(3, 0, -1), slice(None)))
    assert footprint(same, [square(8), square(8)]).anchored
