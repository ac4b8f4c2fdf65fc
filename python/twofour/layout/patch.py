# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The patch operator: a linear stencil as a small constant matrix with two offset tables."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from twofour.errors import TwofourError

Offset = tuple[int, ...]


@dataclass(frozen=True, eq=False)
class PatchOperator:
    """out[n * tile + o_m] = sum_k A[m, k] * in[n * tile + p_k] for every tile index n.

    Attributes (the arrays are read-only copies):
        matrix: A, float64, shape (M, K).
        output_offsets: o, int64, shape (M, rank).
        input_offsets: p, int64, shape (K, rank); the lookup table of SparStencil, section 3.3.
        tile: outputs of one tile per axis, rank ints; M is their product.

    Raises:
        TwofourError: the shapes do not fit each other.
    """

    matrix: np.ndarray
    output_offsets: np.ndarray
    input_offsets: np.ndarray
    tile: Offset

    def __post_init__(self) -> None:
        object.__setattr__(self, "tile", tuple(int(extent) for extent in self.tile))
        for name, dtype in (
            ("matrix", np.float64),
            ("output_offsets", np.int64),
            ("input_offsets", np.int64),
        ):
            array = np.array(getattr(self, name), dtype=dtype)
            array.setflags(write=False)
            object.__setattr__(self, name, array)
        if not self.tile or min(self.tile) < 1:
            raise TwofourError(f"expected tile extents of at least 1, got {self.tile}")
        if self.matrix.ndim != 2:
            raise TwofourError(f"expected a matrix of rank 2, got rank {self.matrix.ndim}")
        rows, columns = self.matrix.shape
        rank = len(self.tile)
        for name, shape in (("output", (rows, rank)), ("input", (columns, rank))):
            got = getattr(self, f"{name}_offsets").shape
            if got != shape:
                raise TwofourError(f"expected {name} offsets of shape {shape}, got {got}")


def stencil_arrays(offsets: Sequence[Offset], weights: Sequence[float]) -> tuple:
    """Offsets as int64 (P, rank) and weights as float64 (P,), after checking them.

    Raises:
        TwofourError: no points, offsets of several ranks, a repeated offset, a weight that is not
            finite, or not as many weights as offsets.
    """
    points = [tuple(int(x) for x in offset) for offset in offsets]
    values = np.asarray(weights, dtype=np.float64).reshape(-1)
    if not points or not points[0]:
        raise TwofourError("expected at least one stencil offset of rank 1 or more, got none")
    if len({len(point) for point in points}) != 1:
        raise TwofourError("expected stencil offsets of one rank, got several")
    if len(points) != len(values):
        raise TwofourError(f"expected {len(points)} weights, got {len(values)}")
    if len(set(points)) != len(points):
        repeated = next(point for point in points if points.count(point) > 1)
        raise TwofourError(f"expected distinct stencil offsets, got {repeated} twice")
    if not np.isfinite(values).all():
        wrong = values[~np.isfinite(values)][0]
        raise TwofourError(f"expected finite weights, got {wrong}")
    return np.array(points, dtype=np.int64), values


def flatten(offsets: Sequence[Offset], weights: Sequence[float]) -> PatchOperator:
    """Stencil flattening (SparStencil, section 3.1, figure 2): A is the 1 x P kernel vector.

    Args:
        offsets: P distinct offsets of rank ints; out[x] = sum_i weights[i] * in[x + offsets[i]].
        weights: P finite numbers.

    Raises:
        TwofourError: the stencil is malformed (see stencil_arrays).
    """
    points, values = stencil_arrays(offsets, weights)
    rank = points.shape[1]
    return PatchOperator(values[None, :], np.zeros((1, rank)), points, (1,) * rank)


def box(extents: Sequence[int]) -> np.ndarray:
    """All points of a box from the origin in row-major order, int64, shape (volume, rank)."""
    return np.indices(tuple(extents), dtype=np.int64).reshape(len(extents), -1).T


def check(op: PatchOperator, offsets: Sequence[Offset], weights: Sequence[float]) -> str | None:
    """None when op computes exactly the stencil, else one line 'expected ..., got ...'.

    Every row must hold each weight in one column, so that its sum is that of the stencil and reads
    nothing else, and the output offsets must be a permutation of the tile's box. Points of weight
    zero do not count.
    """
    rows, rank = op.output_offsets.shape
    if rows != (volume := math.prod(op.tile)):
        return f"expected {volume} rows for tile {op.tile}, got {rows}"
    outputs = op.output_offsets[np.lexsort(op.output_offsets.T[::-1])]
    wrong = np.flatnonzero((outputs != box(op.tile)).any(axis=1))
    if wrong.size:
        first = wrong[0]
        want, got = _point(box(op.tile)[first]), _point(outputs[first])
        return f"expected the output offsets to cover tile {op.tile}, got {got} in place of {want}"
    points, values = stencil_arrays(offsets, weights)
    if points.shape[1] != rank:
        return f"expected offsets of rank {points.shape[1]}, got rank {rank}"
    if not np.isfinite(op.matrix).all():
        row = int(np.flatnonzero(~np.isfinite(op.matrix).all(axis=1))[0])
        return f"expected finite matrix entries, got infinity or nan in row {row}"
    points, values = points[values != 0], values[values != 0]
    if _holds_each_once(op, points, values):
        return None
    expected = {_point(point): float(value) for point, value in zip(points, values, strict=True)}
    for row in range(rows):
        got = _row_entries(op, row)
        for offset in sorted(expected.keys() | got.keys()):
            found = got.get(offset, [0.0])
            if len(found) > 1:
                return f"expected one column for offset {offset} of row {row}, got {len(found)}"
            want = expected.get(offset, 0.0)
            if want != found[0]:
                return f"expected weight {want} at offset {offset} of row {row}, got {found[0]}"
    return None


def _point(offset: np.ndarray) -> Offset:
    return tuple(offset.tolist())


def _row_entries(op: PatchOperator, row: int) -> dict[Offset, list[float]]:
    """The entries of a row that are not zero, by what they are weights of: p_k - o_m."""
    entries: dict[Offset, list[float]] = {}
    columns = np.flatnonzero(op.matrix[row])
    offsets = (op.input_offsets[columns] - op.output_offsets[row]).tolist()
    for offset, value in zip(map(tuple, offsets), op.matrix[row, columns].tolist(), strict=True):
        entries.setdefault(offset, []).append(value)
    return entries


def _holds_each_once(op: PatchOperator, points: np.ndarray, values: np.ndarray) -> bool:
    """Whether every row holds each weight in one column: what `check` asks for, at once."""
    rows, columns = np.nonzero(op.matrix)
    if len(rows) != len(op.matrix) * len(points):
        return False
    keys = op.input_offsets[columns] - op.output_offsets[rows]
    by_row = np.lexsort((*keys.T[::-1], rows))
    by_point = np.lexsort(points.T[::-1])
    shape = (len(op.matrix), len(points))
    return bool(
        (rows[by_row].reshape(shape) == np.arange(shape[0])[:, None]).all()
        and (keys[by_row].reshape(*shape, -1) == points[by_point]).all()
        and (op.matrix[rows, columns][by_row].reshape(shape) == values[by_point]).all()
    )
