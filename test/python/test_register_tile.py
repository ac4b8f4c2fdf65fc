# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The block of outputs that a CPU kernel sums up in registers."""

import itertools

import pytest

from twofour.kernels import built_in_kernels
from twofour.targets.cpu.register_tile import MAX_MULTIPLY_ADDS, choose_tile
from twofour.targets.cpu.vector_unit import vector_unit

MACHINES = ("avx512", "avx2", "sse", "neon")


def box(radius: int, rank: int = 2):
    points = list(itertools.product(range(-radius, radius + 1), repeat=rank))
    return points, [1.0 + n for n in range(len(points))]


def tile_of(terms, machine):
    tile = choose_tile([terms], vector_unit(machine))
    return tile.rows, tile.vectors


@pytest.mark.parametrize("machine", MACHINES)
@pytest.mark.parametrize("name", built_in_kernels())
def test_tiles_fit(name, machine):
    kernel, unit = built_in_kernels()[name], vector_unit(machine)
    rows, vectors = tile_of((kernel.offsets, kernel.weights), machine)
    assert rows * vectors + vectors < unit.registers
    assert rows * vectors * len(kernel.weights) <= max(MAX_MULTIPLY_ADDS, len(kernel.weights))
    assert kernel.rank > 1 or rows == 1


def test_weights_that_stay_in_registers_take_fewer_sums():
    # Nine weights, four sums, a vector on its way: sixteen registers.
    assert tile_of(box(1), "avx2") == (4, 1)
    # Twenty-five weights are loaded, once for two vectors of each row.
    assert tile_of(box(2), "avx2") == (4, 2)
    # Thirty-two registers hold them.
    assert tile_of(box(2), "avx512") == (4, 1)


def test_rows_share_loads():
    column = [(-1, 0), (0, 0), (1, 0)], [1.0, 2.0, 3.0]
    row = [(0, -1), (0, 0), (0, 1)], [1.0, 2.0, 3.0]
    assert tile_of(column, "avx2")[0] > tile_of(row, "avx2")[0]


def test_inputs_count_together():
    one = choose_tile([box(1)], vector_unit("avx2"))
    many = choose_tile([box(1)] * 20, vector_unit("avx2"))
    assert many.rows * many.vectors * 180 <= MAX_MULTIPLY_ADDS
    assert (one.rows, one.vectors) != (many.rows, many.vectors)
