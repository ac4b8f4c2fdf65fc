# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""What a warp that streams reads, multiplies and keeps."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from twofour.errors import TwofourError, Unsuitable
from twofour.kernels import built_in_kernels
from twofour.layout.chunks import (
    COLUMNS,
    chunk_operator,
    column_places,
    passed_column_places,
    passed_row_places,
    row_places,
)
from twofour.layout.compress import check_2to4
from twofour.layout.crush import crush
from twofour.layout.march import MAX_REGISTERS, RING_BYTES
from twofour.layout.matching import apply_permutation, permute_2to4
from twofour.layout.stream import is_chunked, metadata_words, stream_layouts

KERNELS = built_in_kernels()
TOO_LARGE = "acoustic_iso3d_o16"  # for registers, and for a ring's code


def reach(offsets):
    columns = list(zip(*offsets, strict=True))
    return tuple(-min(c) for c in columns), tuple(max(c) for c in columns)


def layouts(name, **choices):
    kernel = KERNELS[name]
    operator = chunk_operator(kernel.offsets, kernel.weights)
    return stream_layouts(operator, reach(kernel.offsets), **choices)


@pytest.mark.parametrize("name", [name for name in KERNELS if name != TOO_LARGE])
def test_the_terms_are_the_stencil(name):
    kernel, layout = KERNELS[name], layouts(name)[-1]
    rank, sums = len(kernel.offsets[0]), {}
    for term in layout.terms:
        lead = term.meeting[: rank - 1]
        rows, columns = np.nonzero(layout.blocks[term.block])
        for row, column in zip(rows, columns, strict=True):
            x = term.meeting.start + column_places()[column] - row_places()[row]
            key = (row, *lead, int(x))
            sums[key] = sums.get(key, 0.0) + layout.blocks[term.block][row, column]
    points = {o: w for o, w in zip(kernel.offsets, kernel.weights, strict=True) if w}
    assert sums == {(row, *o): w for row in range(16) for o, w in points.items()}


@pytest.mark.parametrize("name", ["heat2d_ftcs", "heat3d_ftcs", "elastic_staggered_div3d_o4"])
def test_every_fragment_is_read_once_a_step(name):
    for layout in layouts(name):
        meetings = {term.meeting for term in layout.terms}
        needed = {(row + m.across, m.start) for m in meetings for row in range(layout.rows)}
        assert layout.reads == sorted(needed)
        rows = {meeting.along for meeting in meetings}
        assert (layout.first, layout.depth) == (min(rows), max(rows) - min(rows))


@pytest.mark.parametrize("name", [name for name in KERNELS if name != TOO_LARGE])
def test_marches_are_whole_rounds(name):
    for layout in layouts(name):
        assert layout.registers <= MAX_REGISTERS
        assert layout.unroll % (layout.depth + 1) == 0
        ahead = layout.steps_ahead
        assert (layout.march - ahead) % layout.unroll == 0 and layout.march > ahead


def test_equal_blocks_of_a_are_kept_once():
    layout = layouts("paper_box3d27p")[0]
    assert len(layout.terms) == 9 and len(layout.blocks) == 1
    words, numbers = metadata_words(layouts("tti2d_gzz_o8")[0])
    assert len(numbers) == 18 and len(words) < 18
    assert len(np.unique(words, axis=0)) == len(words)


def test_choices_are_kept():
    (layout,) = layouts("heat3d_ftcs", block=(1, 8, 128), stages=3, march=17)[:1]
    assert (layout.tile, layout.stages, layout.march) == ((1, 8, 128), 3, 17)
    assert {layout.tile for layout in layouts("heat2d_ftcs")} == {(1, 512)}


@pytest.mark.parametrize(
    "name, block", [("heat2d_ftcs", (1, 256)), ("heat3d_ftcs", (1, 5, 128)), ("heat1d_ftcs", (8,))]
)
def test_a_block_that_warps_cannot_have_is_refused(name, block):
    with pytest.raises(TwofourError, match=r"expected a block of (1x)*.* outputs, got"):
        layouts(name, block=block)


@pytest.mark.parametrize(
    "name, levels, trimmed, width",
    [
        ("heat2d_ftcs", 1, (0, 0), 128),
        ("heat2d_ftcs", 2, (8, 8), 112),
        ("heat2d_ftcs", 9, (8, 8), 112),
        ("heat2d_ftcs", 10, (16, 16), 96),
        ("advect1d_beam_warming", 5, (8, 8), 112),  # reaches to one side only
        ("advect1d_beam_warming", 6, (16, 0), 112),
    ],
)
def test_levels_trim_the_ends_of_a_strip(name, levels, trimmed, width):
    layout = layouts(name, levels=levels)[0]
    assert (layout.trimmed, layout.width, layout.tile[-1]) == (trimmed, width, 4 * width)
    assert layout.input_lo == tuple(levels * reach for reach in layout.reach_lo)


@given(st.sets(st.integers(-8, 8), min_size=1).filter(lambda xs: min(xs) < 0))
def test_rows_that_are_passed_on_are_2_4_sparse(xs):
    offsets = [(x,) for x in sorted(xs)]
    operator = chunk_operator(offsets, np.arange(1.0, len(offsets) + 1))
    reaches = (max(0, -min(xs)),), (max(0, max(xs)),)
    for layout in stream_layouts(operator, reaches, levels=3, stages=2)[:1]:
        assert layout.exchanged
        assert all(check_2to4(matrix) is None for matrix in layout.matrices)


@pytest.mark.parametrize("levels", [2, 3, 5])
@pytest.mark.parametrize(
    "name, exchanged",
    [
        ("heat1d_ftcs", (0,)),
        ("lbm_d2q9_diffusion", (0,)),
        # Further than four points to one side.
        ("advect1d_reach5", (0, 3)),
        ("laplacian1d_o8", (0,)),
        # Nothing lies before the first output.
        ("forward", ()),
    ],
)
def test_levels_pass_on_rows_as_they_lie_in_lanes(name, exchanged, levels):
    own = {"advect1d_reach5": [-5, 0, 1], "forward": [0, 1]}
    if name in own:
        offsets = [(x,) for x in own[name]]
        operator = chunk_operator(offsets, np.arange(1.0, len(offsets) + 1))
        found = stream_layouts(operator, reach(offsets), levels=levels)
    else:
        found = layouts(name, levels=levels)
    for layout in found:
        assert layout.exchanged == exchanged
        assert layout.shuffles == (len(exchanged) or 4) * len(layout.reads)


@pytest.mark.parametrize("name", ["heat2d_ftcs", "advect1d_upwind1", "gauss7x7_binomial"])
def test_matrices_of_all_levels_are_the_stencil(name):
    layout = layouts(name, levels=3)[0]
    orders = [
        (None, passed_row_places()),
        (passed_column_places(), passed_row_places()),
        (passed_column_places(), row_places()),
    ]
    for term in layout.terms:
        expected = {}
        for row, column in np.argwhere(layout.blocks[term.block]).tolist():
            output, x = row_places()[row], term.meeting.start + column_places()[column]
            expected[output, x] = layout.blocks[term.block][row, column]
        for level, (columns, rows) in enumerate(orders):
            if level == 0:
                columns = term.meeting.start + column_places()
            matrix = layout.matrices[layout.matrix(term, level)]
            assert check_2to4(matrix) is None
            found = {
                (rows[row], columns[column]): matrix[row, column]
                for row, column in np.argwhere(matrix).tolist()
            }
            assert found == expected


@pytest.mark.parametrize("levels", [1, 2, 5])
def test_marches_leave_nothing_to_a_loop_of_one_step(levels):
    for layout in layouts("heat2d_ftcs", levels=levels):
        assert layout.drained == layout.steps_ahead + levels - 1
        assert (layout.march - layout.drained) % layout.unroll == 0


def test_levels_leave_something_of_a_strip():
    """Where they trim a strip by all of it, it does not stream."""

    def layouts_of(offset, levels):
        offsets = [(offset,), (11,)]
        operator = chunk_operator(offsets, [0.5, 0.5])
        return stream_layouts(operator, reach(offsets), levels=levels)

    assert all(layout.width > 0 for layout in layouts_of(-36, 2))
    with pytest.raises(Unsuitable, match="expected 4 levels that trim a strip of"):
        layouts_of(-36, 4)


def test_what_does_not_stream():
    kernel = KERNELS["heat2d_ftcs"]
    crushed = crush(kernel.offsets, kernel.weights, (1, 16))
    staircase = apply_permutation(crushed, permute_2to4(crushed, "staircase"))
    assert not is_chunked(staircase)
    assert is_chunked(chunk_operator(kernel.offsets, kernel.weights))
    with pytest.raises(Unsuitable, match="expected columns in chunks of eight"):
        stream_layouts(staircase, reach(kernel.offsets))
    operator = chunk_operator([(0, 0, 0, 0)], [1.0])
    with pytest.raises(Unsuitable, match="expected arrays of rank 1 to 3, got rank 4"):
        stream_layouts(operator, ((0,) * 4, (0,) * 4))
    with pytest.raises(Unsuitable, match="expected arrays of rank 1 or 2 for several levels"):
        layouts("heat3d_ftcs", levels=2)
    wide = KERNELS[TOO_LARGE]
    assert chunk_operator(wide.offsets, wide.weights).matrix.shape[1] == 35 * COLUMNS
    with pytest.raises(Unsuitable, match=f"expected at most {MAX_REGISTERS} registers"):
        layouts(TOO_LARGE, ring=False)
    with pytest.raises(Unsuitable, match="expected at most 1024 matrix instructions in a kernel"):
        layouts(TOO_LARGE)


def test_rings_hold_every_input_of_a_step_once():
    """Without what lanes, or warps of a block, would read twice."""
    for layout in layouts("heat3d_ftcs", ring=True):
        # 128 outputs and 8 inputs on either side, 16 bytes an access.
        assert (layout.first_start, layout.row_accesses) == (-8, 18)
        assert layout.ring_rows == range(-1, layout.warps * layout.rows + 1)
        assert layout.shared_bytes == layout.stages * len(layout.ring_rows) * 18 * 16
        assert layout.resident * layout.shared_bytes <= RING_BYTES
    for layout in layouts("heat2d_ftcs", ring=True):
        assert layout.ring_rows == range(1)
        assert layout.shared_bytes == layout.warps * layout.stages * 18 * 16


def test_rings_that_shared_memory_cannot_hold_are_refused():
    with pytest.raises(Unsuitable, match="expected rings of at most 101376 bytes, got larger"):
        layouts("laplacian3d_o6", ring=True, stages=12, block=(1, 24, 128))
    assert not any(layout.shared_bytes for layout in layouts("heat2d_ftcs", ring=False))
