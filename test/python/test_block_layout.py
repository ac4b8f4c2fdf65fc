# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Thread blocks: what a block computes, that it fits, and how its accesses meet the banks."""

import math

import numpy as np
import pytest

from twofour.errors import TwofourError
from twofour.kernels import TABLE_2, built_in_kernels
from twofour.layout.banks import wavefronts
from twofour.layout.block import MAX_SHARED, lay_out_block
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


def lay_out(name, kind):
    kernel = built_in_kernels()[name]
    fragment, itemsize = FRAGMENTS[kind]
    tile, permutation, mma = best_tile(kernel.offsets, kernel.weights)
    operator = crush(kernel.offsets, kernel.weights, tile)
    if kind == "f16":
        operator = apply_permutation(operator, permutation)
    elif kind == "tf32":
        operator = apply_permutation(operator, permute_2to4(operator, "blossom", 16))
    layout = lay_out_block(operator, fragment, itemsize, reach(kernel.offsets))
    return kernel, layout, mma


@pytest.mark.parametrize("kind", FRAGMENTS)
@pytest.mark.parametrize(
    "name",
    [
        *TABLE_2.values(),
        "acoustic_iso3d_o16",
        "curlcurl_diag3d",
        "log9x9",
        "advect1d_beam_warming",
        "wrf_advection5_2d",
    ],
)
def test_a_block_computes_its_stencil_and_fits(name, kind):
    kernel, layout, _ = lay_out(name, kind)
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
    assert layout.shared_bytes <= MAX_SHARED
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
