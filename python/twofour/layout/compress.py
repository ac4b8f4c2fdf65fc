# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""2:4 compression: kept values and ordered metadata of mma.sp (PTX ISA, section mma.sp)."""

from __future__ import annotations

import numpy as np

from twofour.errors import TwofourError

GROUPS_PER_WORD = 4
ORDERED_NIBBLES = (0x4, 0x8, 0xC, 0x9, 0xD, 0xE)


def compress(matrix: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Keeps two of every aligned group of four columns.

    Args:
        matrix: shape (M, K) with K a multiple of 16 and at most two nonzeros in each group of
            four columns of every row.

    Returns:
        values: float64 (M, K / 2), the kept columns in increasing order; zeros fill up a group
            with fewer than two nonzeros.
        metadata: uint16 (M, K / 16). Nibble q of a word (bits 4q to 4q + 3) describes group q of
            its 16 columns: the index of the first kept column in the low two bits, that of the
            second in the high two bits, first < second.

    Raises:
        TwofourError: K is not a multiple of 16, or a group has more than two nonzeros.
    """
    matrix = np.asarray(matrix, dtype=np.float64)
    if message := check_2to4(matrix):
        raise TwofourError(message)
    if matrix.shape[1] % 16:
        raise TwofourError(f"expected a multiple of 16 columns, got {matrix.shape[1]}")
    groups = matrix.reshape(len(matrix), -1, 4)
    # Nonzeros are kept first, then zeros from the left; beside a nonzero in column 3 the zero in
    # column 2 comes first, so that a lone one gives the pair (2, 3).
    rank = np.where(groups != 0, 0, 2)
    rank[..., 2] -= (groups[..., 2] == 0) & (groups[..., 3] != 0)
    kept = np.sort(np.argsort(rank, axis=2, kind="stable")[..., :2], axis=2)
    values = np.take_along_axis(groups, kept, axis=2).reshape(len(matrix), -1)
    nibbles = (kept[..., 0] | kept[..., 1] << 2).reshape(len(matrix), -1, GROUPS_PER_WORD)
    words = (nibbles << (4 * np.arange(GROUPS_PER_WORD))).sum(axis=2)
    return values, words.astype(np.uint16)


def decompress(values: np.ndarray, metadata: np.ndarray) -> np.ndarray:
    """The inverse of compress: float64 (M, K) from values (M, K / 2) and metadata (M, K / 16).

    Raises:
        TwofourError: the metadata is not ordered or its shape does not fit the values.
    """
    values = np.asarray(values, dtype=np.float64)
    metadata = np.asarray(metadata)
    if message := check_metadata(metadata):
        raise TwofourError(message)
    expected = (metadata.shape[0], metadata.shape[1] * 8)
    if values.shape != expected:
        raise TwofourError(f"expected values of shape {expected}, got {values.shape}")
    nibbles = _nibbles(metadata)
    kept = np.stack([nibbles & 3, nibbles >> 2], axis=2)
    groups = np.zeros((*nibbles.shape, 4))
    np.put_along_axis(groups, kept, values.reshape(*nibbles.shape, 2), axis=2)
    return groups.reshape(len(values), -1)


def check_2to4(matrix: np.ndarray) -> str | None:
    """None when every aligned group of four columns has at most two nonzeros in every row."""
    matrix = np.asarray(matrix)
    if matrix.ndim != 2 or matrix.shape[1] % 4:
        return f"expected a matrix with a multiple of 4 columns, got shape {matrix.shape}"
    counts = np.count_nonzero(matrix.reshape(len(matrix), -1, 4), axis=2)
    wrong = np.argwhere(counts > 2)
    if not wrong.size:
        return None
    row, group = wrong[0].tolist()
    place = f"columns {4 * group} to {4 * group + 3} of row {row}"
    return f"expected at most 2 nonzeros in {place}, got {counts[row, group]}"


def check_metadata(metadata: np.ndarray) -> str | None:
    """None when every nibble names two columns in increasing order."""
    metadata = np.asarray(metadata)
    if metadata.ndim != 2 or metadata.dtype != np.uint16:
        return f"expected 2-d metadata of uint16, got {metadata.ndim}-d of {metadata.dtype}"
    nibbles = _nibbles(metadata)
    wrong = np.argwhere(~np.isin(nibbles, ORDERED_NIBBLES))
    if not wrong.size:
        return None
    row, group = wrong[0].tolist()
    first, second = nibbles[row, group] & 3, nibbles[row, group] >> 2
    return f"expected ordered indices in group {group} of row {row}, got {first} and {second}"


def _nibbles(metadata: np.ndarray) -> np.ndarray:
    shifts = 4 * np.arange(GROUPS_PER_WORD)
    return (metadata.astype(np.int64)[:, :, None] >> shifts & 15).reshape(len(metadata), -1)
