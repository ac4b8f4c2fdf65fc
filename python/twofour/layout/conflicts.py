# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The conflict graph of SparStencil, section 3.2: which columns share a nonzero row."""

from __future__ import annotations

import numpy as np

Pair = tuple[int, int]
ZERO = -1
"""Stands for a zero column wherever a column index is expected."""


def row_masks(matrix: np.ndarray) -> list[int]:
    """For each column of an (M, K) matrix the set of its nonzero rows, bit r for row r."""
    packed = np.packbits(matrix != 0, axis=0, bitorder="little")
    return [int.from_bytes(column.tobytes(), "little") for column in packed.T]


def pair_greedily(columns: list[int], masks: list[int]) -> list[Pair]:
    """Pairs columns that share no row, the fullest first; the rest get a zero column.

    The partner is the fullest that still fits. Quadratic in the number of columns at worst.
    """
    left = sorted(columns, key=lambda column: -masks[column].bit_count())
    pairs = []
    while left:
        column = left.pop(0)
        partner = next((other for other in left if not masks[column] & masks[other]), ZERO)
        if partner != ZERO:
            left.remove(partner)
        pairs.append((column, partner))
    return pairs
