# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Thread blocks: what a block computes, that it fits, and how its accesses meet the banks."""

import math
from dataclasses import replace
from functools import cache

import numpy as np
import pytest

from twofour.errors import TwofourError
from twofour.kernels import TABLE_2, built_in_kernels
from twofour.layout.banks import wavefronts
from twofour.layout.block import MAX_BULK_SHARED, MAX_SHARED, lay_out_block
from twofour.layout.column_order import order_columns
from twofour.layout.crush import crush
from twofour.layout.fragments import DENSE_16, DENSE_64, SPARSE_16, SPARSE_32
from twofour.layout.matching import apply_permutation, permute_2to4
from twofour.layout.patch import PatchOperator, check
from twofour.layout.search import best_tile

FRAGMENTS = {"f16": (SPARSE_16, 2), "tf32": (SPARSE_32, 4), "dense f16": (DENSE_16, 2),
             "dense f64": (DENSE_64, 8)}  # fmt: skip


def reach(offsets):
    columns = list(zip(*offsets, strict=True))
    return tuple(-min(c) for c in columns), tuple(max(c) for c in columns)


@cache
def operator_of(name, kind):
    """The kernel, its operator for a kind of fragment, and the instructions for 128 outputs."""
    kernel = built_in_kernels()[name]
    tile, permutation, mma = best_tile(kernel.offsets, kernel.weights)
    operator = crush(kernel.offsets, kernel.weights, tile)
    if kind == "f16":
        operator = apply_permutation(operator, permutation)
    elif kind == "tf32":
        operator = apply_permutation(operator, permute_2to4(operator, "blossom", 16))
    return kernel, operator, mma


def lay_out(name, kind, bulk=False):
    kernel, operator, mma = operator_of(name, kind)
    fragment, itemsize = FRAGMENTS[kind]
    layout = lay_out_block(operator, fragment, itemsize, reach(kernel.offsets), bulk=bulk)
    return kernel, layout, mma


@pytest.mark.parametrize("bulk", [False, True])
@pytest.mark.parametrize("kind", FRAGMENTS)
@pytest.mark.parametrize(
    "name",
    [
        *TABLE_2.values(),
        "acoustic_iso3d_o16",
        "schroedinger_kinetic3d_o12",
        "curlcurl_diag3d",
        "log9x9",
        "advect1d_beam_warming",
        "wrf_advection5_2d",
    ],
)
def test_a_block_computes_its_stencil_and_fits(name, kind, bulk):
    kernel, layout, _ = lay_out(name, kind, bulk)
    operator, rank = layout.operator, len(layout.tile)
    rows = slice(0, layout.outputs)
    outputs = PatchOperator(
        operator.matrix[rows], operator.output_offsets[rows], operator.input_offsets, operator.tile
    )
    offsets = [(0, *o) if layout.folded else o for o in kernel.offsets]
    assert check(outputs, offsets, kernel.weights) is None
    assert (layout.reach_lo[-kernel.rank :], layout.reach_hi[-kernel.rank :]) == reach(
        kernel.offsets
    )
    for step in range(layout.steps):
        for block in range(layout.row_blocks):
            layout.fragment.operands(layout.block(block, step))  # raises for a group too full
    for axis in range(rank):
        per_warp = layout.groups[axis] * layout.group[axis] * operator.tile[axis]
        assert per_warp * layout.warps[axis] == layout.tile[axis]
    assert math.prod(layout.group) == 8
    assert layout.shared_bytes <= (MAX_BULK_SHARED if layout.bulk else MAX_SHARED)
    strides = np.array(layout.input_strides)
    assert layout.lead >= layout.reach_lo[-1]
    assert layout.row >= layout.lead + layout.tile[-1] + layout.reach_hi[-1]
    assert all(s * layout.itemsize % 16 == 0 for s in (*strides[:-1], layout.lead, layout.row))
    last = np.array(layout.tile) - operator.tile
    reads = layout.input_offsets()
    assert reads.min() >= 0
    assert reads.max() + last @ strides < layout.input_elements
    first = np.array([*layout.reach_lo[:-1], layout.lead])
    assert (reads == (operator.input_offsets + first) @ strides).all()


@pytest.mark.parametrize("name", TABLE_2.values())
def test_table_2_kernels_of_f16_meet_few_conflicts(name):
    _, layout, mma = lay_out(name, "f16")
    loads = wavefronts(layout.load_accesses(), 2)
    stores = wavefronts(layout.store_accesses(), 2)
    ideal = len(loads) + len(stores)
    assert loads.sum() + stores.sum() <= 1.05 * ideal
    assert len(layout.used_blocks()) * 16 / layout.outputs == mma


@pytest.mark.parametrize("kind", FRAGMENTS)
@pytest.mark.parametrize("name", ["heat2d_ftcs", "lbm_d2q9_diffusion", "heat3d_ftcs", "log9x9"])
def test_tiles_are_boxes_of_the_copy_engine(name, kind):
    _, layout, _ = lay_out(name, kind, bulk=True)
    assert layout.bulk and layout.stages >= 3
    size, rows = layout.itemsize, layout.halo_rows
    for box in (layout.input_box, layout.output_box):
        assert max(box) <= 256 and box[-1] * size % 16 == 0
    assert math.prod(layout.input_box) == layout.input_elements
    assert layout.input_strides[-2] >= layout.row
    assert layout.input_strides[:-1] == tuple(
        layout.input_box[-1] * math.prod(rows[axis + 1 :]) for axis in range(len(rows))
    )
    assert layout.stage_elements * size % 128 == layout.staging_elements * size % 128 == 0
    assert math.prod(layout.output_box) * size % 128 == 0
    assert layout.output_boxes * layout.output_width == layout.tile[-1]


@pytest.mark.parametrize("narrow", [False, True])
@pytest.mark.parametrize("kind", FRAGMENTS)
@pytest.mark.parametrize("name", ["heat2d_ftcs", "lbm_d2q9_diffusion", "heat3d_ftcs", "log9x9"])
def test_every_output_has_its_place_in_the_boxes(name, kind, narrow):
    _, layout, _ = lay_out(name, kind, bulk=True)
    patch = np.array(layout.operator.tile)
    if narrow:
        # As wide as a tile of the operator, so that a group has several boxes.
        width = int(patch[-1])
        strides = np.cumprod([1, width, *layout.tile[-2:0:-1]])[::-1]
        layout = replace(layout, output_width=width, output_strides=tuple(map(int, strides)))
    extents = patch * layout.group
    bases = np.indices(np.array(layout.tile) // extents).reshape(len(patch), -1).T * extents
    tiles = np.indices(layout.group).reshape(len(patch), -1).T * patch
    # By number: the group, its tile, the output of a tile.
    places = (
        (bases @ layout.output_base_strides)[:, None, None]
        + layout.output_tile_offsets()[:, None]
        + layout.output_offsets()
    )
    outputs = layout.operator.output_offsets[: layout.outputs]
    points = bases[:, None, None] + tiles[:, None] + outputs
    box, column = np.divmod(points[..., -1], layout.output_width)
    whole = np.concatenate([box[..., None], points[..., :-1], column[..., None]], axis=-1)
    extents = (layout.output_boxes, *layout.output_box)
    assert layout.output_elements == math.prod(extents)
    assert (
        places
        == np.ravel_multi_index(whole.reshape(-1, whole.shape[-1]).T, extents).reshape(places.shape)
    ).all()


@pytest.mark.parametrize(
    "name, kind, matrices",
    [
        ("lbm_d2q9_diffusion", "f16", True),
        ("paper_box2d49p", "dense f16", True),
        ("heat2d_ftcs", "f16", False),
        ("lbm_d2q9_diffusion", "tf32", False),
    ],
)
def test_runs_of_eight_outputs_are_stored_as_matrices(name, kind, matrices):
    _, layout, _ = lay_out(name, kind, bulk=True)
    assert layout.stores_matrices == matrices
    assert not replace(layout, bulk=False).stores_matrices
    # Two matrices of 128 bytes.
    assert layout.store_wavefronts() >= (2 if matrices else 4)


def test_what_does_not_fit_into_boxes_is_copied_by_threads():
    kernel, layout, _ = lay_out("heat1d_ftcs", "f16", bulk=True)
    assert layout.folded and not layout.bulk
    kernel, _, _ = lay_out("heat2d_ftcs", "f16")
    operator = crush(kernel.offsets, kernel.weights, (4, 4))
    wide = {"tile": (16, 512), "bulk": True}
    layout = lay_out_block(operator, DENSE_16, 2, reach(kernel.offsets), **wide)
    assert not layout.bulk and layout.tile == (16, 512)


def test_a_given_tile_and_stages_are_kept():
    kernel, _, _ = lay_out("heat2d_ftcs", "f16")
    operator = crush(kernel.offsets, kernel.weights, (4, 4))
    layout = lay_out_block(operator, DENSE_16, 2, reach(kernel.offsets), tile=(8, 64), stages=1)
    assert layout.tile == (8, 64) and layout.stages == 1


@pytest.mark.parametrize("tile", [(16, 72), (3, 64), (4, 16), (12, 16), (64,), (-8, -64)])
def test_a_tile_that_does_not_fit_is_refused(tile):
    kernel, _, _ = lay_out("heat2d_ftcs", "f16")
    operator = crush(kernel.offsets, kernel.weights, (4, 4))
    with pytest.raises(TwofourError, match="expected a block"):
        lay_out_block(operator, DENSE_16, 2, reach(kernel.offsets), tile=tile)


def test_a_reach_beyond_shared_memory_is_refused():
    offsets = [(-200, 0), (200, 0), (0, 200), (0, -200)]
    operator = crush(offsets, [1.0] * 4, (4, 4))
    with pytest.raises(TwofourError, match="shared memory"):
        lay_out_block(operator, DENSE_16, 2, reach(offsets))


@pytest.mark.parametrize("fragment", [SPARSE_16, SPARSE_32, DENSE_16, DENSE_64])
@pytest.mark.parametrize("fragments", [1, 2, 13])
def test_column_order_keeps_groups_together(fragment, fragments):
    columns = fragments * 32
    free = np.random.default_rng(fragments).random((columns, columns)) < 0.5
    order = order_columns(columns, fragment, free & free.T)
    assert sorted(order) == list(range(columns))
    for start in range(0, columns, fragment.of):
        group = sorted(order[start : start + fragment.of])
        first = group[0]
        assert first % fragment.of == 0
        assert group == list(range(first, first + fragment.of))


def test_column_order_finds_loads_without_conflicts():
    # Columns of four kinds that must not meet: a load of four has to take one kind only.
    kind = np.arange(32) // 4 % 2 + 2 * (np.arange(32) % 2)
    free = kind[:, None] == kind[None, :]
    order = order_columns(32, SPARSE_16, free)
    lanes = np.array(order)[SPARSE_16.b_row[:4]]
    assert all(free[np.ix_(load, load)].all() for load in lanes.T)


@pytest.mark.parametrize("fragment", [SPARSE_16, DENSE_64])
def test_rows_and_columns_that_fill_no_fragment_are_zeros(fragment):
    kernel = built_in_kernels()["heat2d_ftcs"]
    operator = crush(kernel.offsets, kernel.weights, (3, 4))
    if fragment.sparse:
        operator = apply_permutation(operator, permute_2to4(operator, "blossom"))
    layout = lay_out_block(operator, fragment, 2, reach(kernel.offsets))
    matrix = layout.operator.matrix
    assert layout.outputs == 12 and len(matrix) == 16
    assert not matrix[12:].any()
    assert matrix.sum() == pytest.approx(operator.matrix.sum())
