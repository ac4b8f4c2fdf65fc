# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Columns by chunks of eight: the stencil is kept, and lanes read what they multiply."""

import numpy as np
import pytest
from hypothesis import given

import layout_cases as cases
from twofour.errors import TwofourError
from twofour.layout.chunks import (
    CHUNK,
    COLUMNS,
    OUTPUTS,
    chunk_operator,
    passed_column_places,
    passed_row_places,
)
from twofour.layout.compress import check_2to4
from twofour.layout.fragments import SPARSE_16
from twofour.layout.patch import check

TILES = 8


@pytest.mark.parametrize("offsets, weights", cases.built_in_kernels())
def test_kernels_keep_their_stencil(offsets, weights):
    operator = chunk_operator(offsets, weights)
    assert check(operator, offsets, weights) is None
    assert check_2to4(operator.matrix) is None


@given(cases.stencils())
def test_random_stencils_keep_theirs(stencil):
    operator = chunk_operator(*stencil)
    assert check(operator, *stencil) is None
    assert check_2to4(operator.matrix) is None


@pytest.mark.parametrize(
    "offsets, fragments",
    [
        ([(x,) for x in range(-3, 5)], 1),  # eight neighbours
        ([(x,) for x in range(-4, 5)], 2),  # nine
        ([(-8,), (8,)], 1),  # both ends of a fragment
        ([(-8,), (9,)], 2),  # one more than a fragment reaches
        ([(0,), (16,), (32,)], 2),
        ([(y, x) for y in (-1, 0, 2) for x in (-1, 0, 1)], 3),  # rows of inputs
        ([(y, x) for y in (0, 1) for x in range(17)], 6),
    ],
)
def test_the_number_of_fragments(offsets, fragments):
    operator = chunk_operator(offsets, np.arange(1.0, len(offsets) + 1))
    assert operator.matrix.shape == (OUTPUTS, fragments * COLUMNS)


@pytest.mark.parametrize("offsets, weights", cases.built_in_kernels()[::9])
def test_a_lane_multiplies_the_chunk_that_it_reads(offsets, weights):
    """Fragments of B are eight neighbouring inputs a lane, tile g of lanes 4 g to 4 g + 3."""
    operator = chunk_operator(offsets, weights)
    rank, width = len(offsets[0]), TILES * OUTPUTS
    halo = 40
    rng = np.random.default_rng(0)
    inputs = rng.integers(-8, 9, (17,) * (rank - 1) + (width + 2 * halo,)).astype(float)
    middle = (8,) * (rank - 1)
    total = np.zeros((OUTPUTS, TILES))
    for begin in range(0, operator.matrix.shape[1], COLUMNS):
        *lead, start = operator.input_offsets[begin]
        assert start % CHUNK == 0
        row = inputs[tuple(m + x for m, x in zip(middle, lead, strict=True))]
        b = np.zeros((COLUMNS, TILES))
        for lane in range(32):
            tile, place = divmod(lane, 4)
            first = halo + OUTPUTS * tile + start + CHUNK * place
            b[SPARSE_16.b_row[lane], tile] = row[first : first + CHUNK]
        total += operator.matrix[:, begin : begin + COLUMNS] @ b
    for tile in range(TILES):
        for row, offset in enumerate(operator.output_offsets):
            point = np.array([*middle, halo + OUTPUTS * tile]) + offset
            expected = sum(
                weight * inputs[tuple(point + np.array(o))]
                for o, weight in zip(offsets, weights, strict=True)
            )
            assert total[row, tile] == pytest.approx(expected, rel=1e-12, abs=1e-12)


def test_pairs_of_outputs_that_a_lane_packs_are_neighbours():
    """The result of a lane after transposition: rows 2 t, 2 t + 1 and 8 + 2 t, 9 + 2 t."""
    outputs = chunk_operator([(0,)], [1.0]).output_offsets[:, 0]
    for t in range(4):
        assert outputs[[2 * t, 2 * t + 1, 8 + 2 * t, 9 + 2 * t]].tolist() == [
            4 * t + i for i in range(4)
        ]


def test_a_malformed_stencil_is_refused():
    with pytest.raises(TwofourError, match="expected distinct stencil offsets"):
        chunk_operator([(0,), (0,)], [1.0, 2.0])


def test_rows_that_are_passed_on_are_the_inputs_of_a_tile():
    """Each lane has two of its four words, and gets the others of one other lane."""
    places = passed_column_places()
    assert sorted(places) == list(range(-CHUNK, OUTPUTS + CHUNK))
    assert sorted(passed_row_places()) == list(range(OUTPUTS))
    for tile in range(1, TILES - 1):
        for lane in range(4):
            other = tile - 1 if lane % 2 else tile + 1
            # The nearer half of the neighbour first: the upper one of the tile before.
            near = lane % 2
            sent = ((other, near), (tile, 0), (tile, 1), (other, 1 - near))
            for register, (source, word) in enumerate(sent):
                wanted = OUTPUTS * tile + places[CHUNK * register + 2 * lane :][:2]
                words = passed_row_places().reshape(2, 4, 2)[:, lane] + OUTPUTS * source
                assert wanted.tolist() == words[word].tolist()
