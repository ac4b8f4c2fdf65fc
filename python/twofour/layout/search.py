# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The tile with the fewest sparse tensor-core instructions (SparStencil, section 3.3)."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from twofour.layout.crush import crush
from twofour.layout.matching import (
    ROWS_PER_MMA,
    Permutation,
    apply_permutation,
    lower_bound,
    permute_2to4,
)
from twofour.layout.patch import Offset


def mma_per_128_outputs(matrix: np.ndarray, fragment: int = 32) -> float:
    """Instructions mma.sp.m16n8k<fragment> that 128 outputs take.

    One instruction multiplies 16 rows and a fragment of columns of A with 8 tiles. Blocks of A
    that are all zero need none; rows are padded to a multiple of 16.

    Args:
        matrix: A after the permutation, shape (M, K) with K a multiple of the fragment.
        fragment: columns of A that one instruction takes.
    """
    rows, columns = matrix.shape
    blocks = np.zeros((-(-rows // ROWS_PER_MMA) * ROWS_PER_MMA, columns), dtype=bool)
    blocks[:rows] = matrix != 0
    used = blocks.reshape(-1, ROWS_PER_MMA, columns // fragment, fragment).any(axis=(1, 3))
    return float(used.sum()) * ROWS_PER_MMA / rows


def tiles(rank: int, outputs: Sequence[int] = (16, 32)) -> list[Offset]:
    """All tiles of a rank whose extents are powers of two and whose product is one of outputs."""
    if rank == 1:
        return [(count,) for count in outputs]
    return [
        (first, *rest)
        for count in outputs
        for first in (1 << bit for bit in range(count.bit_length()))
        if count % first == 0
        for rest in tiles(rank - 1, (count // first,))
    ]


def best_tile(
    offsets: Sequence[Offset],
    weights: Sequence[float],
    strategy: str = "auto",
    fragment: int = 32,
) -> tuple[Offset, Permutation, float]:
    """The tile of 16 or 32 outputs that needs the fewest instructions.

    All power-of-two tiles are compared, except those whose lower bound is above the best. Ties
    go to the fewest columns after padding, then the fewest outputs, then the tile that is longest
    on the last axis, the next to last and so on. With strategy exact a tile of 32 outputs never
    needs fewer instructions than each of its halves of 16; it can only share operands.

    Returns:
        The tile, the permutation of its crushed operator (the columns of crush(offsets, weights,
        tile)), and the instructions per 128 outputs.

    Raises:
        TwofourError: the stencil is malformed, or an unknown strategy or fragment.
    """
    candidates = []
    for tile in tiles(len(offsets[0])):
        op = crush(offsets, weights, tile)
        shape = (len(op.matrix), tuple(-extent for extent in reversed(tile)))
        bound = lower_bound(op.matrix, fragment)
        candidates.append(((_fewest_mma(op.matrix, fragment), bound, *shape), tile, op))
    candidates.sort(key=lambda candidate: candidate[0])
    best, result = None, None
    for bound, tile, op in candidates:
        if best is not None and bound >= best:
            break
        permutation = permute_2to4(op, strategy, fragment)
        mma = mma_per_128_outputs(apply_permutation(op, permutation).matrix, fragment)
        cost = (mma, permutation.k, *bound[2:])
        if best is None or cost < best:
            best, result = cost, (tile, permutation, mma)
    return result


def _fewest_mma(matrix: np.ndarray, fragment: int) -> float:
    """A lower bound of mma_per_128_outputs over all orders of the columns."""
    rows = len(matrix)
    blocks = (matrix[row : row + ROWS_PER_MMA] for row in range(0, rows, ROWS_PER_MMA))
    used = sum(lower_bound(block, fragment) // fragment for block in blocks)
    return used * ROWS_PER_MMA / rows
