# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Tile search: instructions per 128 outputs, and the tiles that need the fewest."""

import time

import numpy as np
import pytest
from hypothesis import given, settings

from layout_cases import box_stencil, built_in_kernels, fused, star, stencils
from twofour.layout.compress import check_2to4
from twofour.layout.crush import crush
from twofour.layout.matching import apply_permutation, permute_2to4
from twofour.layout.patch import check
from twofour.layout.search import best_tile, mma_per_128_outputs, tiles


def test_tiles():
    assert tiles(1) == [(16,), (32,)]
    assert tiles(2, (8,)) == [(1, 8), (2, 4), (4, 2), (8, 1)]
    assert len(tiles(3)) == 15 + 21
    assert {int(np.prod(tile)) for tile in tiles(3)} == {16, 32}
    assert len(set(tiles(3))) == 36


def test_all_zero_blocks_take_no_instruction():
    matrix = np.ones((32, 64))
    assert mma_per_128_outputs(matrix) == 2
    matrix[16:, :32] = 0
    assert mma_per_128_outputs(matrix) == 1.5
    assert mma_per_128_outputs(matrix, fragment=16) == 3
    assert mma_per_128_outputs(np.ones((8, 32))) == 2
    assert mma_per_128_outputs(np.ones((24, 32))) == pytest.approx(4 / 3)
    assert mma_per_128_outputs(np.zeros((16, 32))) == 0


@pytest.mark.parametrize(
    ("stencil", "most"),
    [
        pytest.param(box_stencil(3), 1, id="heat-1d"),
        pytest.param(box_stencil(5), 1, id="1d5p"),
        pytest.param(star(2, 1), 1, id="heat-2d"),
        pytest.param(box_stencil(3, 3), 2, id="box-2d9p"),
        pytest.param(star(2, 3), 2, id="star-2d13p"),
        pytest.param(box_stencil(7, 7), 4, id="box-2d49p"),
        pytest.param(star(3, 1), 2, id="heat-3d"),
        pytest.param(box_stencil(3, 3, 3), 3, id="box-3d27p"),
        pytest.param(fused(*box_stencil(3), 3), 1, id="heat-1d-3-steps"),
        pytest.param(fused(*star(2, 1), 3), 3, id="heat-2d-3-steps"),
        pytest.param(fused(*box_stencil(3, 3), 3), 4, id="box-2d9p-3-steps"),
        pytest.param(fused(*star(3, 1), 3), 8, id="heat-3d-3-steps"),
    ],
)
def test_instructions_of_known_stencils(stencil, most):
    tile, permutation, mma = best_tile(*stencil)
    assert mma <= most
    assert permutation.proven
    op = apply_permutation(crush(*stencil, tile), permutation)
    assert check(op, *stencil) is None
    assert check_2to4(op.matrix) is None
    assert mma_per_128_outputs(op.matrix) == mma


def test_tile_of_heat_2d():
    tile, permutation, mma = best_tile(*star(2, 1))
    assert (tile, permutation.k, mma) == ((4, 4), 32, 1)


def test_ties_go_to_the_longest_last_axis():
    assert best_tile([(0, 0)], [2])[0] == (1, 16)
    assert best_tile(*box_stencil(7, 7))[0] == (2, 8)


@settings(max_examples=15)
@given(stencils(max_rank=2))
def test_pruning_loses_nothing(stencil):
    costs = []
    for tile in tiles(len(stencil[0][0])):
        op = crush(*stencil, tile)
        permutation = permute_2to4(op)
        mma = mma_per_128_outputs(apply_permutation(op, permutation).matrix)
        costs.append((mma, permutation.k, len(op.matrix), [-t for t in reversed(tile)], tile))
    tile, permutation, mma = best_tile(*stencil)
    assert (mma, permutation.k, tile) == (*min(costs)[:2], min(costs)[-1])


@pytest.mark.parametrize(
    ("stencil", "seconds"), [(box_stencil(5, 5, 5), 1), (star(3, 1), 0.05)], ids=["large", "small"]
)
def test_search_is_fast(stencil, seconds):
    times = []
    for _ in range(3):
        start = time.perf_counter()
        best_tile(*stencil)
        times.append(time.perf_counter() - start)
    assert min(times) < seconds


@pytest.mark.parametrize(("offsets", "weights"), built_in_kernels())
def test_best_tile_of_every_kernel_is_proven(offsets, weights):
    tile, permutation, mma = best_tile(offsets, weights)
    op = apply_permutation(crush(offsets, weights, tile), permutation)
    assert check(op, offsets, weights) is None
    assert check_2to4(op.matrix) is None
    assert permutation.proven
    assert mma == permutation.k / 32
