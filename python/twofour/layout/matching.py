# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Column permutations that give a matrix 2:4 sparsity (SparStencil, section 3.2, problem 1)."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from twofour.errors import TwofourError
from twofour.layout.blossom import pair_by_blossom
from twofour.layout.conflicts import ZERO, Pair
from twofour.layout.exact import Group, pack_exhaustively, pack_groups
from twofour.layout.patch import PatchOperator
from twofour.layout.staircase import pair_by_staircase

STRATEGIES = ("auto", "staircase", "blossom", "exact")
ROWS_PER_MMA = 16


@dataclass(frozen=True)
class Permutation:
    """An order of the columns of a matrix, with zero columns put in, that satisfies 2:4.

    Attributes:
        order: for each new column the index of the old one, or -1 for a zero column.
        strategy: what found it: staircase, blossom or exact. The first two pair conflict-free
            columns, so their result also satisfies 1:2; that of exact need not.
        k_lower_bound: no 2:4 order of these columns is shorter (a multiple of the fragment).
        fragment: columns of A that one instruction takes; the length is a multiple of it.
    """

    order: tuple[int, ...]
    strategy: str
    k_lower_bound: int
    fragment: int

    @property
    def k(self) -> int:
        """Number of columns after padding."""
        return len(self.order)

    @property
    def padding_columns(self) -> int:
        """Number of zero columns put in."""
        return self.order.count(ZERO)

    @property
    def proven(self) -> bool:
        """True when no 2:4 order of these columns can be shorter."""
        return self.k == self.k_lower_bound


def lower_bound(matrix: np.ndarray, fragment: int) -> int:
    """Columns that any 2:4 order of a matrix needs: a multiple of the fragment.

    Each column that is not all zero needs a place, and a row with z nonzeros needs z / 2 groups.
    """
    pattern = matrix != 0
    columns = int(pattern.any(axis=0).sum())
    fullest = int(pattern.sum(axis=1).max(initial=0))
    return _round_up(max(columns, 2 * fullest), fragment)


def permute_2to4(op: PatchOperator, strategy: str = "auto", fragment: int = 32) -> Permutation:
    """Finds an order of the columns with at most two nonzeros a row in each aligned four.

    Args:
        op: any patch operator; all-zero columns are left out of the order.
        strategy: staircase (linear time, fewest zero columns on box stencils), blossom (fewest
            zero columns of all pairings), exact (fewest columns after padding, never more than
            either of the others; proven says whether fewer are impossible), or auto: the first
            of these that meets the lower bound, else exact.
        fragment: the length of the order is a multiple of this; a multiple of 4.

    Raises:
        TwofourError: an unknown strategy, or a fragment that is no positive multiple of 4.
    """
    if strategy not in STRATEGIES:
        raise TwofourError(f"expected a strategy of {', '.join(STRATEGIES)}, got {strategy}")
    if fragment < 4 or fragment % 4:
        raise TwofourError(f"expected a fragment that is a multiple of 4, got {fragment}")
    bound = lower_bound(op.matrix, fragment)
    best = None
    for name, pair in (("staircase", pair_by_staircase), ("blossom", pair_by_blossom)):
        if strategy in ("auto", "exact", name):
            found = _from_pairs(op.matrix, pair(op), name, bound, fragment)
            if best is None or found.k < best.k:
                best = found
            if best.proven:
                break
    if strategy in ("staircase", "blossom") or (strategy == "auto" and best.proven):
        return best
    return _improve(op.matrix, best)


def apply_permutation(op: PatchOperator, permutation: Permutation) -> PatchOperator:
    """Permutes the columns of A and the input offsets alike (SparStencil, equation 5).

    A zero column reads the input of the column before it (those at the start that of the first
    real column), which is a valid address that is loaded anyway.

    Raises:
        TwofourError: the order does not hold each column that is not all zero exactly once.
    """
    order = np.array(permutation.order, dtype=np.int64)
    places = np.flatnonzero(order != ZERO)
    expected = np.flatnonzero((op.matrix != 0).any(axis=0))
    if not np.array_equal(np.sort(order[places]), expected):
        raise TwofourError(
            f"expected an order that holds each of {len(expected)} nonzero columns once, "
            f"got {len(places)} columns"
        )
    matrix = np.zeros((len(op.matrix), len(order)))
    matrix[:, places] = op.matrix[:, order[places]]
    inputs = np.zeros((len(order), len(op.tile)), dtype=np.int64)
    if places.size:
        nearest = np.searchsorted(places, np.arange(len(order)), side="right") - 1
        inputs = op.input_offsets[order[places[np.maximum(nearest, 0)]]]
    return PatchOperator(matrix, op.output_offsets, inputs, op.tile)


def _from_pairs(
    matrix: np.ndarray, pairs: list[Pair], strategy: str, bound: int, fragment: int
) -> Permutation:
    """Two pairs make a group; pairs that reach the same rows of 16 go together."""
    pairs = _by_row_block(matrix, pairs)
    pairs += [(ZERO, ZERO)] * (len(pairs) % 2)
    groups = [(*pairs[i], *pairs[i + 1]) for i in range(0, len(pairs), 2)]
    return _from_groups(matrix, groups, strategy, bound, fragment)


def _from_groups(
    matrix: np.ndarray, groups: list[Group], strategy: str, bound: int, fragment: int
) -> Permutation:
    order = [column for group in _by_row_block(matrix, groups) for column in group]
    order += [ZERO] * (_round_up(len(order), fragment) - len(order))
    return Permutation(tuple(order), strategy, bound, fragment)


def _by_row_block(matrix: np.ndarray, sets: list) -> list:
    """Sorts sets of columns by the first and last block of 16 rows that they reach.

    It makes all-zero blocks of A, which cost no instruction, where there are several row blocks.
    """
    if len(matrix) <= ROWS_PER_MMA:
        return list(sets)
    pattern = matrix != 0
    first = pattern.argmax(axis=0) // ROWS_PER_MMA
    last = (len(matrix) - 1 - pattern[::-1].argmax(axis=0)) // ROWS_PER_MMA

    def reach(columns: tuple[int, ...]) -> tuple[int, int]:
        real = [column for column in columns if column != ZERO]
        return int(first[real].min()), int(last[real].max())

    return sorted((s for s in sets if any(c != ZERO for c in s)), key=reach)


def _improve(matrix: np.ndarray, best: Permutation) -> Permutation:
    """Takes one fragment away at a time while groups of four can still be found."""
    fragment = best.fragment
    natural = np.flatnonzero((matrix != 0).any(axis=0)).tolist()
    while not best.proven:
        count = (best.k - fragment) // 4
        paired = [column for column in best.order if column != ZERO]
        groups = pack_groups(matrix, natural, count)
        groups = groups or pack_groups(matrix, paired, count)
        exhausted = False
        if groups is None:
            groups, exhausted = pack_exhaustively(matrix, count)
        if groups is None:
            bound = best.k if exhausted else best.k_lower_bound
            return Permutation(best.order, "exact", bound, fragment)
        best = _from_groups(matrix, groups, "exact", best.k_lower_bound, fragment)
    return Permutation(best.order, "exact", best.k_lower_bound, fragment)


def _round_up(number: int, multiple: int) -> int:
    return -(-number // multiple) * multiple
