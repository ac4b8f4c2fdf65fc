# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""A maximum matching of conflict-free columns (Edmonds' blossom algorithm, through networkx)."""

from __future__ import annotations

import numpy as np

from twofour.layout.conflicts import ZERO, Pair, pair_greedily, row_masks
from twofour.layout.patch import PatchOperator

SPARSE_DEGREE = 3


def pair_by_blossom(op: PatchOperator) -> list[Pair]:
    """Fewest zero columns of all pairings: a maximum matching on the complement of the conflicts.

    SparStencil, section 3.2, the fallback for matrices that are no staircase. Any pattern is
    accepted. The blossom algorithm is slow on hundreds of columns, so it is run only after a
    greedy matching, and on the whole graph only after a sparse part of it, fell short of matching
    every column (but one) that has a partner at all.

    Returns:
        Pairs of column indices; the second is ZERO for a zero column. Every column that is not
        all zero occurs once, the all-zero ones never.
    """
    masks = row_masks(op.matrix)
    columns = [column for column, mask in enumerate(masks) if mask]
    pattern = (op.matrix != 0).astype(np.float32)
    partners = {
        column: [other for other in np.flatnonzero(shared == 0).tolist() if masks[other]]
        for column, shared in zip(columns, (pattern.T @ pattern)[columns], strict=True)
    }
    most = sum(bool(others) for others in partners.values()) // 2
    matching = [pair for pair in pair_greedily(columns, masks) if ZERO not in pair]
    if len(matching) < most:
        some = [
            (column, other)
            for place, column in enumerate(columns)
            for other in _spread(partners[column], place)
        ]
        matching = _maximum_matching(matching + some)
    if len(matching) < most:
        matching = _maximum_matching(
            [(column, other) for column in columns for other in partners[column] if column < other]
        )
    pairs = sorted((min(pair), max(pair)) for pair in matching)
    matched = {column for pair in pairs for column in pair}
    return pairs + [(column, ZERO) for column in columns if column not in matched]


def _maximum_matching(edges: list[Pair]) -> set[Pair]:
    # Imported here: it takes longer to import than most programs to compile, and few need it.
    import networkx

    return networkx.max_weight_matching(networkx.Graph(edges), maxcardinality=True)


def _spread(others: list[int], start: int) -> list[int]:
    """A few entries of a list far from each other, different ones for different starts."""
    step = max(1, len(others) // SPARSE_DEGREE)
    count = min(SPARSE_DEGREE, len(others))
    return [others[(start + step * place) % len(others)] for place in range(count)]
