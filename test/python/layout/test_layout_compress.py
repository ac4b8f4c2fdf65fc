# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""2:4 compression with ordered metadata."""

import itertools

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from twofour.errors import TwofourError
from twofour.layout.compress import check_2to4, check_metadata, compress, decompress

PAIRS = list(itertools.combinations(range(4), 2))


def row(*groups):
    return np.array([np.concatenate([*groups, np.zeros(16 - 4 * len(groups))])])


@pytest.mark.parametrize(
    ("group", "kept", "nibble"),
    [
        ([5, 6, 0, 0], [5, 6], 0x4),
        ([5, 0, 6, 0], [5, 6], 0x8),
        ([5, 0, 0, 6], [5, 6], 0xC),
        ([0, 5, 6, 0], [5, 6], 0x9),
        ([0, 5, 0, 6], [5, 6], 0xD),
        ([0, 0, 5, 6], [5, 6], 0xE),
        ([5, 0, 0, 0], [5, 0], 0x4),
        ([0, 5, 0, 0], [0, 5], 0x4),
        ([0, 0, 5, 0], [0, 5], 0x8),
        ([0, 0, 0, 5], [0, 5], 0xE),
        ([0, 0, 0, 0], [0, 0], 0x4),
    ],
)
def test_nibble_of_each_group(group, kept, nibble):
    values, metadata = compress(row([1, 2, 0, 0], group))
    assert values[0].tolist() == [1, 2, *kept, 0, 0, 0, 0]
    assert metadata.tolist() == [[0x4404 | nibble << 4]]
    assert (values.dtype, metadata.dtype) == (np.float64, np.uint16)


@st.composite
def sparse_matrices(draw):
    rows, words = draw(st.integers(1, 5)), draw(st.integers(1, 4))
    rng = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    groups = rng.standard_normal((rows, 4 * words, 4))
    kept = rng.integers(0, 6, (rows, 4 * words))
    for place in np.ndindex(kept.shape):
        mask = np.isin(range(4), PAIRS[kept[place]]) & (rng.random(4) < 0.8)
        groups[place] *= mask
    return groups.reshape(rows, -1)


@given(sparse_matrices())
def test_round_trip(matrix):
    values, metadata = compress(matrix)
    assert values.shape == (len(matrix), matrix.shape[1] // 2)
    assert metadata.shape == (len(matrix), matrix.shape[1] // 16)
    assert check_metadata(metadata) is None
    np.testing.assert_array_equal(decompress(values, metadata), matrix)


@given(st.integers(0, 15))
def test_every_flipped_metadata_bit_is_seen(bit):
    matrix = row([1, 2, 0, 0], [0, 3, 0, 4], [0, 0, 5, 6], [7, 0, 8, 0])
    values, metadata = compress(matrix)
    metadata = metadata ^ np.uint16(1 << bit)
    if check_metadata(metadata) is None:
        assert (decompress(values, metadata) != matrix).any()
    else:
        with pytest.raises(TwofourError, match="expected ordered indices"):
            decompress(values, metadata)


def test_ordered_metadata_is_exactly_the_six_nibbles():
    legal = {n for n in range(16) if check_metadata(np.array([[0x4440 | n]], np.uint16)) is None}
    assert legal == {0x4, 0x8, 0xC, 0x9, 0xD, 0xE}


def test_messages():
    assert check_2to4(np.ones((1, 6))) == (
        "expected a matrix with a multiple of 4 columns, got shape (1, 6)"
    )
    matrix = np.zeros((2, 8))
    matrix[1, 4:7] = 1
    message = "expected at most 2 nonzeros in columns 4 to 7 of row 1, got 3"
    assert check_2to4(matrix) == message
    with pytest.raises(TwofourError, match=message):
        compress(matrix)
    with pytest.raises(TwofourError, match="expected a multiple of 16 columns, got 8"):
        compress(np.zeros((1, 8)))
    assert check_metadata(np.array([[0x4144]], np.uint16)) == (
        "expected ordered indices in group 2 of row 0, got 1 and 0"
    )
    assert check_metadata(np.zeros((1, 1))) == "expected 2-d metadata of uint16, got 2-d of float64"
    with pytest.raises(TwofourError, match=r"expected values of shape \(1, 8\), got \(1, 4\)"):
        decompress(np.zeros((1, 4)), np.array([[0x4444]], np.uint16))
