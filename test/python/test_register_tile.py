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


def test_sums_that_wait_for_memory_take_one_row():
    star = [(-1, 0), (0, -1), (0, 0), (0, 1), (1, 0)], [1.0, 2.0, 3.0, 4.0, 5.0]
    assert tile_of(star, "avx2")[0] == tile_of(star, "avx512")[0] == 1


@pytest.mark.parametrize("radius", [2, 3])
def test_long_sums_have_chains_enough(radius):
    for machine in MACHINES:
        rows, vectors = tile_of(box(radius), machine)
        assert rows > 1 and rows * vectors >= 8


def test_weights_that_stay_leave_room_for_fewer_sums():
    # Nine weights and sixteen registers, or thirty-two.
    rows, vectors = tile_of(box(1), "avx2")
    assert rows == 2 and rows * vectors + vectors + 9 <= 16
    assert tile_of(box(1), "avx512")[1] >= vectors


def test_rows_that_share_no_loads_are_streams():
    """A star of three axes reads other rows for every row that it writes; a box shares most."""
    star = [(0, 0, 0)] + [
        tuple(sign * n if a == axis else 0 for a in range(3))
        for axis in range(3)
        for n in range(1, 5)
        for sign in (-1, 1)
    ]
    assert tile_of((star, [1.0] * len(star)), "avx2") == (1, 4)
    assert tile_of(box(1, 3), "avx2") == (2, 4)


def test_inputs_count_together():
    one = choose_tile([box(1)], vector_unit("avx2"))
    many = choose_tile([box(1)] * 20, vector_unit("avx2"))
    assert many.rows * many.vectors * 180 <= MAX_MULTIPLY_ADDS
    assert (one.rows, one.vectors) != (many.rows, many.vectors)
