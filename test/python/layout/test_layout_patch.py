# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Patch operators: flattening, crushing, and the check that an operator is its stencil."""

import dataclasses
import math
import time

import numpy as np
import pytest
from hypothesis import given

from layout_cases import box_stencil, star, stencils
from twofour.errors import TwofourError
from twofour.layout.crush import crush
from twofour.layout.patch import PatchOperator, check, flatten
from twofour.layout.search import tiles


def apply(op, field):
    """Evaluates the formula of the patch operator literally on a periodic field."""
    out = np.full(field.shape, np.nan)
    counts = [extent // tile for extent, tile in zip(field.shape, op.tile, strict=True)]
    for index in np.ndindex(*counts):
        origin = np.array(index) * op.tile
        patch = [field[tuple((origin + p) % field.shape)] for p in op.input_offsets]
        for offset, value in zip(op.output_offsets, op.matrix @ patch, strict=True):
            out[tuple(origin + offset)] = value
    return out


def changed(op, **fields):
    return dataclasses.replace(op, **fields)


def test_flatten_is_one_row_of_the_weights():
    op = flatten([(0, -1), (0, 0), (2, 1)], [0.5, 0.25, 0.125])
    assert op.matrix.tolist() == [[0.5, 0.25, 0.125]]
    assert op.input_offsets.tolist() == [[0, -1], [0, 0], [2, 1]]
    assert op.output_offsets.tolist() == [[0, 0]]
    assert op.tile == (1, 1)
    assert (op.matrix.dtype, op.input_offsets.dtype) == (np.float64, np.int64)


def test_crush_of_a_line_is_a_staircase():
    op = crush([(-1,), (0,), (1,)], [1, 2, 3], (4,))
    assert op.matrix.tolist() == [
        [1, 2, 3, 0, 0, 0],
        [0, 1, 2, 3, 0, 0],
        [0, 0, 1, 2, 3, 0],
        [0, 0, 0, 1, 2, 3],
    ]
    assert op.input_offsets.ravel().tolist() == [-1, 0, 1, 2, 3, 4]


def test_crush_drops_unread_inputs_and_zero_weights():
    op = crush(*star(2, 1), (4, 4))
    assert op.matrix.shape == (16, 32)
    assert op.matrix.any(axis=0).all()
    assert [-1, -1] not in op.input_offsets.tolist()
    assert op.input_offsets.tolist() == sorted(op.input_offsets.tolist())
    assert crush([(0,), (1,), (5,)], [1, 0, 2], (2,)).input_offsets.ravel().tolist() == [0, 1, 5, 6]
    assert crush([(0,)], [0], (2,)).matrix.shape == (2, 0)


@pytest.mark.parametrize("tile", [(4, 4), (1, 8), (6, 2)])
def test_crushed_operator_computes_the_stencil(tile):
    offsets, weights = star(2, 2)
    field = np.random.default_rng(0).random((12, 24))
    expected = sum(
        weight * np.roll(field, [-x for x in offset], axis=(0, 1))
        for offset, weight in zip(offsets, weights, strict=True)
    )
    np.testing.assert_allclose(apply(crush(offsets, weights, tile), field), expected)


@given(stencils())
def test_every_tile_holds_the_stencil(stencil):
    offsets, weights = stencil
    exact = sorted(zip(offsets, weights, strict=True))
    assert check(flatten(offsets, weights), offsets, weights) is None
    for tile in tiles(len(offsets[0]), (4,)):
        op = crush(offsets, weights, tile)
        for row, output in zip(op.matrix, op.output_offsets, strict=True):
            held = [
                (tuple(offset), weight)
                for offset, weight in zip((op.input_offsets - output).tolist(), row, strict=True)
                if weight
            ]
            assert sorted(held) == exact
        assert check(op, offsets, weights) is None


def test_check_names_the_wrong_weight():
    op = crush([(-1,), (0,), (1,)], [1, 2, 3], (4,))
    matrix = op.matrix.copy()
    matrix[2, 3] = 2.5
    message = check(changed(op, matrix=matrix), [(-1,), (0,), (1,)], [1, 2, 3])
    assert message == "expected weight 2.0 at offset (0,) of row 2, got 2.5"
    matrix = op.matrix.copy()
    matrix[1, 0] = 7
    message = check(changed(op, matrix=matrix), [(-1,), (0,), (1,)], [1, 2, 3])
    assert message == "expected weight 0.0 at offset (-2,) of row 1, got 7.0"


def test_check_sees_any_single_change():
    offsets, weights = box_stencil(3, 3)
    op = crush(offsets, weights, (2, 4))
    for row, column in np.argwhere(op.matrix):
        matrix = op.matrix.copy()
        matrix[row, column] = np.nextafter(matrix[row, column], np.inf)
        assert f"row {row}" in check(changed(op, matrix=matrix), offsets, weights)
    for column in range(op.matrix.shape[1]):
        inputs = op.input_offsets.copy()
        inputs[column, 1] += 1
        assert check(changed(op, input_offsets=inputs), offsets, weights)
    for row in range(1, len(op.matrix)):
        order = np.arange(len(op.matrix))
        order[[0, row]] = [row, 0]
        assert check(changed(op, matrix=op.matrix[order]), offsets, weights)
        both = changed(op, matrix=op.matrix[order], output_offsets=op.output_offsets[order])
        assert check(both, offsets, weights) is None


def test_check_wants_the_outputs_to_cover_the_tile():
    offsets, weights = [(0,), (1,)], [1, 2]
    op = crush(offsets, weights, (2,))
    twice = changed(op, matrix=op.matrix[[0, 0]], output_offsets=op.output_offsets[[0, 0]])
    assert check(twice, offsets, weights) == (
        "expected the output offsets to cover tile (2,), got (0,) in place of (1,)"
    )
    half = changed(op, matrix=op.matrix[:1], output_offsets=op.output_offsets[:1])
    assert check(half, offsets, weights) == "expected 2 rows for tile (2,), got 1"


@pytest.mark.parametrize(
    ("matrix", "inputs", "message"),
    [
        # A sum of rounded products is not the rounded product.
        ([[0.25, 0.5]], [[3], [3]], "expected one column for offset (3,) of row 0, got 2"),
        # Kernels would read what cancels, wherever it lies.
        ([[0.75, 1, -1]], [[3], [9], [9]], "expected one column for offset (9,) of row 0, got 2"),
        ([[0.75, 1]], [[3], [9]], "expected weight 0.0 at offset (9,) of row 0, got 1.0"),
        ([[0.0, 0.75]], [[3], [3]], None),
    ],
)
def test_check_wants_each_weight_once(matrix, inputs, message):
    op = PatchOperator(matrix, [[0]], inputs, (1,))
    assert check(op, [(3,)], [0.75]) == message
    assert check(op, [(3,), (8,)], [0.75, 0.0]) == message


def test_check_sees_a_row_that_took_the_columns_of_another():
    op = PatchOperator([[1, 1], [0, 0]], [[0], [1]], [[3], [4]], (2,))
    message = "expected weight 0.0 at offset (4,) of row 0, got 1.0"
    assert check(op, [(3,)], [1]) == message


@pytest.mark.parametrize("value", [math.nan, math.inf])
def test_check_refuses_what_is_not_finite(value):
    op = PatchOperator([[value]], [[0]], [[0]], (1,))
    assert check(op, [(0,)], [1]) == (
        "expected finite matrix entries, got infinity or nan in row 0"
    )


def test_check_is_fast_on_a_large_operator():
    offsets, weights = box_stencil(5, 5, 5)
    op = crush(offsets, weights, (2, 4, 4))
    assert op.matrix.shape == (32, 384)
    times = []
    for _ in range(5):
        start = time.perf_counter()
        assert check(op, offsets, weights) is None
        times.append(time.perf_counter() - start)
    assert min(times) < 0.01


@pytest.mark.parametrize(
    ("offsets", "weights", "message"),
    [
        ([], [], "expected at least one stencil offset of rank 1 or more, got none"),
        ([(0,), (0, 1)], [1, 2], "expected stencil offsets of one rank, got several"),
        ([(0,), (1,)], [1], "expected 2 weights, got 1"),
        ([(2,), (0,), (0,)], [1, 2, 3], r"expected distinct stencil offsets, got \(0,\) twice"),
        ([(0,)], [math.nan], "expected finite weights, got nan"),
    ],
)
def test_malformed_stencils_are_refused(offsets, weights, message):
    with pytest.raises(TwofourError, match=message):
        flatten(offsets, weights)
    with pytest.raises(TwofourError, match=message):
        crush(offsets, weights, (4,))


@pytest.mark.parametrize("tile", [(4, 4), (0,), ()])
def test_crush_refuses_a_wrong_tile(tile):
    with pytest.raises(TwofourError, match="expected 1 tile extents of at least 1, got"):
        crush([(0,)], [1], tile)


def test_operator_refuses_shapes_that_do_not_fit():
    with pytest.raises(TwofourError, match=r"expected input offsets of shape \(2, 1\), got"):
        PatchOperator([[1, 2]], [[0]], [[0]], (1,))
    with pytest.raises(TwofourError, match=r"expected output offsets of shape \(1, 2\), got"):
        PatchOperator([[1]], [[0]], [[0, 0]], (1, 1))
    with pytest.raises(TwofourError, match="expected a matrix of rank 2, got rank 1"):
        PatchOperator([1], [[0]], [[0]], (1,))
    with pytest.raises(TwofourError, match="expected tile extents of at least 1, got"):
        PatchOperator([[1]], [[0]], [[0]], (0,))


def test_operator_arrays_are_read_only_copies():
    matrix = np.ones((1, 1))
    op = PatchOperator(matrix, [[0]], [[0]], (1,))
    matrix[0, 0] = 5
    assert op.matrix[0, 0] == 1
    with pytest.raises(ValueError, match="read-only"):
        op.matrix[0, 0] = 2
