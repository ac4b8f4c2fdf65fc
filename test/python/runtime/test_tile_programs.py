# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""What time tiles read and write, carried out in NumPy, against steps of explicit indices."""

import itertools
import math
from types import SimpleNamespace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from runtime_reference import reference
from tile_cases import (
    ASYMMETRIC_2D,
    BOUNDARIES,
    CASES_2D,
    OFFSETS,
    STAR_2D,
    STAR_3D,
    Arrays,
    carry_out,
    geometry_of,
    one_by_one,
    random_cases,
)
from twofour.runtime import element_type, parse_boundary
from twofour.runtime.box import Box
from twofour.runtime.copies import row_axes
from twofour.runtime.sweeps import LinearKernel
from twofour.runtime.tiles.parts import cut
from twofour.runtime.tiles.program import TileCode, TileProgram
from twofour.runtime.tiles.resident import resident_layout
from twofour.runtime.tiles.steps import (
    EVEN,
    POINTS,
    SCRATCH,
    SOURCE,
    TARGET,
    Blocks,
    Layout,
    Repeat,
    Sweep,
    TileSteps,
)
from twofour.runtime.tiles.streamed import StreamedSteps, is_streamed, tile_steps, window


def advance(u, weights, boundary, steps, extents, interior=None, blocks=POINTS, planes=1):
    """One sweep of tiles, each starting from scratch."""
    geometry = geometry_of(weights, boundary, u.shape, interior, planes)
    target = np.full(u.shape, np.nan)
    inside = geometry.interior.slices
    if geometry.interior.empty:
        return u.copy()
    for limits in itertools.product(*cut(geometry, extents, blocks)):
        box = Box(*map(tuple, zip(*limits, strict=True)))
        tile = tile_steps(geometry, box, steps, lambda points: points + 3, blocks)
        before = target.copy()
        carry_out(tile, Arrays(u.copy(), target), weights, geometry)
        before[box.slices] = target[box.slices]
        np.testing.assert_array_equal(target, before, err_msg="written beyond the tile")
    result = u.copy()
    result[inside] = target[inside]
    return result


def check(weights, boundary, shape, steps, extents, interior=None, blocks=POINTS, planes=1):
    entries = parse_boundary(boundary, len(shape))
    u = np.random.default_rng(1).integers(-8, 9, shape).astype(np.float64)
    wanted = reference(u, weights, entries, steps, interior)
    result = advance(u, weights, entries, steps, extents, interior, blocks, planes)
    if interior is not None:
        # Tiles leave the halo to whoever gives the result away.
        box = tuple(map(slice, *interior))
        result, wanted = result[box], wanted[box]
    # Data are small integers and weights dyadic: nothing rounds.
    np.testing.assert_array_equal(result, wanted)


@pytest.mark.parametrize("boundary", list(itertools.product(BOUNDARIES, BOUNDARIES)))
def test_every_pair_of_boundaries(boundary):
    for weights, shape, extents in CASES_2D:
        for steps, blocks in itertools.product((1, 2, 5), (POINTS, Blocks(4, 2))):
            check(weights, ",".join(boundary), shape, steps, extents, blocks=blocks)


@settings(max_examples=60, deadline=None)
@given(st.data(), st.integers(1, 3))
def test_random_stencils(data, rank):
    weights, boundary, shape, extents = data.draw(random_cases(rank))
    blocks = Blocks(data.draw(st.sampled_from([1, 4, 6])), data.draw(st.sampled_from([1, 2, 3])))
    check(weights, boundary, shape, data.draw(st.integers(1, 4)), extents, blocks=blocks)


@settings(max_examples=60, deadline=None)
@given(st.data())
def test_random_stencils_in_streamed_tiles(data):
    points = data.draw(st.lists(st.tuples(*[OFFSETS] * 3), min_size=1, max_size=5, unique=True))
    weights = {point: 0.25 * (1 + n) * (-1) ** n for n, point in enumerate(points)}
    shape = data.draw(st.tuples(st.integers(25, 90), st.integers(1, 6), st.integers(1, 6)))
    extents = data.draw(st.tuples(st.integers(22, 90), st.integers(2, 6), st.integers(2, 6)))
    boundary = data.draw(st.tuples(*[st.sampled_from(BOUNDARIES)] * 3))
    blocks = Blocks(data.draw(st.sampled_from([1, 4])), data.draw(st.sampled_from([1, 2])))
    steps = data.draw(st.integers(2, 5))
    planes = data.draw(st.sampled_from([1, 3, 4]))
    check(weights, ",".join(boundary), shape, steps, extents, blocks=blocks, planes=planes)


@pytest.mark.parametrize("boundary", BOUNDARIES)
@pytest.mark.parametrize("reach", [(-1, 0, 0), (0, 0, 1), (-3, 0, 0), (4, 0, 0), (-8, 0, 0)])
def test_streamed_tiles_of_stencils_that_reach_to_one_side(boundary, reach):
    weights = {reach: 0.25, (0, 0, 0): 0.5}
    for steps in (2, 3):
        check(weights, f"{boundary},fixed,reflect", (41, 3, 3), steps, (41, 3, 3))


@pytest.mark.parametrize("at_once", [1, 4])
@pytest.mark.parametrize("boundary", BOUNDARIES)
@pytest.mark.parametrize("reach", [(1, 1), (3, 0), (0, 4), (8, 8), (8, 0), (0, 8), (8, 1), (1, 8)])
def test_windows_hold_what_streamed_tiles_need(boundary, reach, at_once):
    steps, weights = 4, {(-reach[0], 0, 0): 0.5, (reach[1], 0, 1): 0.25, (0, -1, 0): 0.25}
    entries = parse_boundary(boundary, 3)
    geometry = geometry_of(weights, entries, (90, 7, 9), planes=at_once)
    tile = tile_steps(geometry, geometry.interior, steps, lambda points: points)
    assert isinstance(tile, StreamedSteps)
    planes, swept = window(geometry), 0
    for action in one_by_one(tile.actions):
        sides = [(action.target, action.shape[0])]
        if isinstance(action, Sweep):
            sides.append((action.source, action.shape[0] + sum(reach)))
            swept += math.prod(action.shape)
            assert action.shape[0] <= max(2, at_once)
        elif action.source is not None:
            sides.append((action.source, action.shape[0]))
        for cells, extent in sides:
            if cells.array == EVEN:
                last = cells.start[0] + cells.steps[0] * (extent - 1)
                assert cells.start[0] // planes == last // planes
                assert 0 <= min(cells.start[0], last) <= max(cells.start[0], last)
    # Nothing is computed twice, but for periodic axes, where a tile reaches around.
    points = math.prod(geometry.interior.shape)
    assert swept > steps * points if boundary == "periodic" else swept == steps * points


@pytest.mark.parametrize("boundary", ["fixed", "reflect", "periodic"])
def test_what_repeats_itself_is_encoded_once(boundary):
    lengths = []
    for planes in (100, 900):
        geometry = geometry_of(STAR_3D, parse_boundary(boundary, 3), (planes, 7, 9))
        tile = tile_steps(geometry, geometry.interior, 4, lambda points: points)
        (repeat,) = (action for action in tile.actions if isinstance(action, Repeat))
        assert repeat.times * repeat.planes > planes - 70
        lengths.append(len(tile.actions) + len(repeat.actions))
    assert max(lengths) < 1.5 * min(lengths)


def test_tiles_are_streamed_where_windows_are_smaller_than_scratch_arrays():
    box, line = ((-1, 0, 0), (1, 0, 0)), ((0, -1), (0, 1))
    fixed = geometry_of(dict.fromkeys(box, 0.5), parse_boundary("fixed", 3), (99, 9, 9))
    assert window(fixed) == 12
    # Three windows of 12 planes, or two arrays of 12 planes and 6 that are computed twice.
    assert [is_streamed(fixed, planes, 4) for planes in (12, 13, 90)] == [False, True, True]
    assert not is_streamed(fixed, 90, 1)
    assert [is_streamed(fixed, planes, 9) for planes in (32, 33)] == [False, True]
    two = geometry_of(dict.fromkeys(line, 0.5), parse_boundary("fixed", 2), (99, 9))
    assert not is_streamed(two, 90, 4)


@pytest.mark.parametrize("boundary", ("fixed", "periodic,reflect", "constant(1.5),fixed"))
def test_arrays_with_their_own_halo(boundary):
    interior = (3, 4), (12, 13)
    check(STAR_2D, boundary, (14, 16), 3, (4, 4), interior)
    check(ASYMMETRIC_2D, boundary, (14, 16), 3, (4, 4), interior)


def test_parts_are_no_shorter_than_the_reach():
    boundary = parse_boundary("reflect", 1)
    geometry = geometry_of({(-2,): 1.0, (3,): 1.0}, boundary, (23,))
    assert cut(geometry, (1,)) == [[(0, 5), (5, 11), (11, 17), (17, 23)]]
    assert cut(geometry, (100,)) == [[(0, 23)]]


@pytest.mark.parametrize("rank", [2, 3])
def test_parts_of_many_rows_are_whole_blocks_of_them(rank):
    boundary = parse_boundary("fixed", rank)
    shape = (5, 500, 7)[-rank:]
    interior = tuple((3,) * rank), tuple(n - 1 for n in shape)
    geometry = geometry_of({(0,) * rank: 1.0}, boundary, shape, interior)
    rows = cut(geometry, (2, 41, 7)[-rank:])[rank - 2]
    assert (rows[0][0], rows[-1][1]) == (3, shape[rank - 2] - 1)
    assert all((upper - lower) % 8 == 0 for lower, upper in rows[:-1])
    assert all(a[1] == b[0] for a, b in itertools.pairwise(rows))
    # About as many as before, and few rows are left as they are.
    assert max(upper - lower for lower, upper in rows) <= 48


@pytest.mark.parametrize("reach", [0, 1, 3, 10, 15, 40])
def test_parts_are_whole_blocks_of_rows_where_the_reach_leaves_room(reach):
    line = dict.fromkeys([(-reach, 0), (reach, 0)], 0.5)
    boundary = parse_boundary("zero", 2)
    for extent, wanted in itertools.product((*range(1, 60), 97, 520, 998), (1, 9, 31, 64)):
        geometry = geometry_of(line, boundary, (extent, 5))
        rows = cut(geometry, (wanted, 5))[0]
        sizes = [upper - lower for lower, upper in rows]
        assert (rows[0][0], rows[-1][1], sum(sizes)) == (0, extent, extent)
        if len(rows) == 1:
            continue
        assert min(sizes) >= max(1, 2 * reach)
        whole = all(size % 8 == 0 for size in sizes[:-1])
        # Parts that long would be fewer, or too different.
        few = extent // (max(1, 2 * reach) + 7) < len(rows)
        uneven = extent // len(rows) < 16 and len(rows) < 16
        assert whole or few or uneven, (extent, wanted, sizes)
        # Few parts stay as many, since each may be a thread's.
        assert len(rows) >= 2 / 3 * min(-(-extent // wanted), extent // max(1, 2 * reach))


def test_parts_of_planes_are_as_many_as_are_computed_at_once():
    entries = parse_boundary("fixed", 3)
    for planes in (1, 4):
        geometry = geometry_of(STAR_3D, entries, (102, 9, 9), planes=planes)
        parts = cut(geometry, (15, 7, 7))[0]
        sizes = {upper - lower for lower, upper in parts}
        assert (parts[0][0], parts[-1][1], max(sizes)) == (1, 101, 16 if planes > 1 else 15)
        assert all(size % 4 == 0 for size in sizes) == (planes > 1)


def test_one_step_needs_scratch_at_the_rim_only():
    boundary = parse_boundary("reflect,fixed", 2)
    geometry = geometry_of(STAR_2D, boundary, (20, 20))
    inner, outer = Box((5, 5), (10, 10)), Box((0, 5), (10, 10))
    tile = TileSteps(geometry, inner, 1, lambda points: points)
    assert [type(action) for action in tile.actions] == [Sweep]
    tile = TileSteps(geometry, outer, 1, lambda points: points)
    swept = [math.prod(a.shape) for a in tile.actions if isinstance(a, Sweep)]
    assert swept == [45, 5]
    assert all(a.target.array not in SCRATCH for a in tile.actions if isinstance(a, Sweep))


@pytest.mark.parametrize("boundary", ["fixed", "periodic"])
def test_rows_are_whole_blocks_that_begin_lines(boundary):
    blocks, steps = Blocks(8, 4), 4
    geometry = geometry_of(STAR_2D, parse_boundary(boundary, 2), (40, 300))
    columns = cut(geometry, (40, 64), blocks)[1]
    assert [begin % blocks.points for begin, _ in columns[1:]] == [0] * (len(columns) - 1)
    for number, (begin, end) in enumerate(columns):
        box = Box((10, begin), (20, end))
        tile = TileSteps(geometry, box, steps, lambda points: points, blocks)
        sweeps = [a for a in tile.actions if isinstance(a, Sweep) and a.source.array in SCRATCH]
        to_scratch = [sweep for sweep in sweeps if sweep.target.array in SCRATCH]
        assert len(to_scratch) >= steps - 2
        for sweep in to_scratch[-(steps - 2) :]:
            assert sweep.shape[1] % blocks.points == 0
            if boundary == "periodic" or 0 < number < len(columns) - 1:
                assert sweep.target.start[1] % blocks.line == 0
        # What is needed and little more.
        widest = max(sweep.shape[1] for sweep in to_scratch)
        assert widest <= end - begin + (steps - 1) * 4 + blocks.points + blocks.line


def program_of(geometry, layouts, steps, extents, blocks):
    """A program whose kernel is at address 1, and copies at 2."""
    return TileProgram(
        LinearKernel(SimpleNamespace(address=1), geometry.reach_lo, geometry.reach_hi),
        TileCode(None, 2, None),
        geometry,
        layouts,
        element_type("f64"),
        steps,
        extents,
        block=blocks,
    )


@pytest.mark.parametrize("boundary", ["fixed", "reflect", "periodic"])
@pytest.mark.parametrize("extent", [5, 8, 16, 40])
def test_tiles_that_share_commands_stay_within_arrays(boundary, extent):
    shape, rank = (10, 64), 2
    geometry = geometry_of(STAR_2D, parse_boundary(boundary, rank), shape)
    layouts = (Layout.of_domain(shape),) * 2
    program = program_of(geometry, layouts, 2, (4, extent), 16)
    (_, tiles), (commands, views) = program._tiles, program._tables
    points = {SOURCE: math.prod(shape), TARGET: math.prod(shape), **program._points}
    for first, last, shift, _ in tiles:
        # A command has two views, and does not touch the rows that it skips.
        for view in range(2 * first, 2 * last):
            array, offset, *_, rows, columns, pitch, step = views[view]
            if array not in points:
                continue
            skipped = commands[view // 2][2]
            begin = (offset + (shift if array in (SOURCE, TARGET) else 0)) // 8 + pitch * skipped
            reach = [pitch * (rows - skipped - 1), step * (columns - 1)]
            assert 0 <= begin + sum(min(0, r) for r in reach)
            assert begin + sum(max(0, r) for r in reach) < points[array]


def commands_of(program):
    """For each tile its commands: code, rows and views where the tile has them."""
    commands, views = (table.tolist() for table in program._tables)
    for begin, end, source, target in program._tiles[1].tolist():
        shifts = {SOURCE: source, TARGET: target}
        yield [
            (code, rows, [(at, offset + shifts.get(at, 0), *rest) for at, offset, *rest in pair])
            for code, view, *rows in commands[begin:end]
            for pair in [views[view : view + 2]]
        ]


@settings(max_examples=50, deadline=None)
@given(st.data(), st.integers(1, 3))
def test_tiles_that_share_commands_do_what_they_would_alone(data, rank):
    points = data.draw(st.lists(st.tuples(*[OFFSETS] * rank), min_size=1, max_size=4, unique=True))
    shape = data.draw(st.tuples(*[st.sampled_from([8, 12, 24, 40])] * rank))
    extents = data.draw(st.tuples(*[st.sampled_from([4, 6, 12])] * rank))
    boundary = parse_boundary(
        ",".join(data.draw(st.tuples(*[st.sampled_from(BOUNDARIES)] * rank))), rank
    )
    geometry = geometry_of(dict.fromkeys(points, 1.0), boundary, shape)
    if geometry.interior.empty:
        return
    outside, inside = Layout.of_domain(shape), resident_layout(geometry, 8)
    blocks = data.draw(st.sampled_from([1, 8]))
    for steps, layouts in (
        (data.draw(st.integers(1, 3)), (outside, outside)),
        (1, (outside, inside)),
        (1, (inside, inside)),
        (1, (inside, outside)),
    ):
        shared = program_of(geometry, layouts, steps, extents, blocks)
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(TileProgram, "_near", lambda *_: True)
            alone = program_of(geometry, layouts, steps, extents, blocks)
        assert list(commands_of(shared)) == list(commands_of(alone))


def test_columns_of_few_cells_are_copied_along_another_axis():
    assert row_axes((300, 3)) == [1, 0]
    assert row_axes((4, 300, 3)) == [0, 2, 1]
    assert row_axes((3, 300)) == [0, 1]
    assert row_axes((3,)) == [0]
