# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Duplicates crush: one matrix row per output of a tile, one column per distinct input."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from twofour.errors import TwofourError
from twofour.layout.patch import Offset, PatchOperator, box, stencil_arrays


def crush(offsets: Sequence[Offset], weights: Sequence[float], tile: Offset) -> PatchOperator:
    """Merges the outputs of a tile so that each input is named once (SparStencil, section 3.1).

    This does the horizontal (equation 3) and the vertical crush (equation 4) at once and in any
    rank; r1 and r2 of the paper are the tile's extents. A box stencil gives the staircase matrix
    of section 3.2, other stencils give the same matrix without its all-zero columns.

    Args:
        offsets: P distinct offsets of rank ints.
        weights: P finite numbers; points of weight zero are dropped.
        tile: outputs per axis, rank ints of at least 1.

    Returns:
        The operator with M = prod(tile) rows in row-major order of the outputs and its columns in
        row-major (lexicographic) order of the input offsets.

    Raises:
        TwofourError: the stencil is malformed, or the tile has another rank or an extent below 1.
    """
    points, values = stencil_arrays(offsets, weights)
    tile = tuple(int(extent) for extent in tile)
    if len(tile) != points.shape[1] or min(tile) < 1:
        raise TwofourError(f"expected {points.shape[1]} tile extents of at least 1, got {tile}")
    points, values = points[values != 0], values[values != 0]
    outputs = box(tile)
    reached = (outputs[:, None, :] + points).reshape(-1, len(tile))
    inputs, columns = _distinct(reached)
    matrix = np.zeros((len(outputs), len(inputs)))
    rows = np.repeat(np.arange(len(outputs)), len(points))
    matrix[rows, columns] = np.tile(values, len(outputs))
    return PatchOperator(matrix, outputs, inputs, tile)


def _distinct(points: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Distinct rows in lexicographic order, and for each row its index among them."""
    order = np.lexsort(points.T[::-1])
    ordered = points[order]
    first = np.ones(len(points), dtype=bool)
    first[1:] = (ordered[1:] != ordered[:-1]).any(axis=1)
    index = np.empty(len(points), dtype=np.int64)
    index[order] = np.cumsum(first) - 1
    return ordered[first], index
