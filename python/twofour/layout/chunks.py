# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Columns of A by chunks of eight: rows of inputs that are 2:4 sparse as they lie in memory.

Lane t of a quad reads eight neighbouring inputs, from x = 8 t on, with one access of 16 bytes, and
takes pair j of them as register j of its fragment of B. A group of four columns then reads x,
x + 1, x + 8 and x + 9, of which a row of at most eight neighbouring nonzeros uses two: nothing is
searched, and no column is padded.

Rows that one time step passes on to the next within a kernel have orders of their own, in which all
but a few words stay in their lanes.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence

import numpy as np

from twofour.layout.compress import check_2to4
from twofour.layout.patch import Offset, PatchOperator, stencil_arrays

CHUNK = 8  # neighbouring inputs of a lane: 16 bytes of 16-bit numbers
OUTPUTS = 16  # outputs of a tile: rows of the instruction
COLUMNS = 32  # inputs of a fragment


def column_places() -> np.ndarray:
    """Where the columns of a fragment lie from its first input on, int (32,)."""
    k = np.arange(COLUMNS)
    return CHUNK * (k % 8 // 2) + 2 * (k // 8) + k % 2


def row_places() -> np.ndarray:
    """The outputs that the rows of A compute, from the first of the tile on, int (16,).

    After a transposition of the result each lane of a quad holds four neighbouring outputs.
    """
    m = np.arange(OUTPUTS)
    return 4 * (m % 8 // 2) + 2 * (m // 8) + m % 2


def passed_row_places() -> np.ndarray:
    """`row_places` of outputs that are inputs of the next level, int (16,).

    Registers 1 and 2 of its fragment of B are the two words of a transposed result as they are:
    groups of four columns then read x, x + 1, x + 8 and x + 9, too.
    """
    m = np.arange(OUTPUTS)
    return 8 * (m // 2 % 2) + 2 * (m % 8 // 4) + 4 * (m // 8) + m % 2


def passed_column_places() -> np.ndarray:
    """`column_places` of rows that were passed on, from the first output of the tile on, int (32,).

    Registers 0 and 3 hold four outputs on each side and the four beyond them. Lanes that have the
    upper half of their tile, those of odd numbers, have that of the tile before it, others the
    lower half of the tile after it: each has a word of the lane four before it or after it.
    """
    own = passed_row_places()
    is_upper = np.arange(8) // 2 % 2 == 1
    near = np.where(is_upper, own[8:] - OUTPUTS, own[:8] + OUTPUTS)
    far = np.where(is_upper, own[:8] - OUTPUTS, own[8:] + OUTPUTS)
    return np.concatenate([near, own, far])


def chunk_operator(offsets: Sequence[Offset], weights: Sequence[float]) -> PatchOperator:
    """The operator of a tile of 16 outputs along the last axis, 32 columns for each read.

    The terms that share their offset on all other axes read the same row of inputs; where they are
    too wide for one fragment, or not 2:4 sparse together, the row takes several, which may begin at
    the same input. Fragments begin at multiples of eight from the tile's first output.

    Raises:
        TwofourError: the stencil is malformed (see stencil_arrays).
    """
    points, values = stencil_arrays(offsets, weights)
    points, values = points[values != 0], values[values != 0]
    rank = points.shape[1]
    rows = defaultdict(dict)
    for point, value in zip(points.tolist(), values.tolist(), strict=True):
        rows[tuple(point[:-1])][point[-1]] = value
    first = min((x for row in rows.values() for x in row), default=0) // CHUNK * CHUNK
    blocks, inputs = [], []
    for lead, terms in sorted(rows.items()):
        for start, part in _parts(terms, first):
            blocks.append(_block(part, start))
            places = np.empty((COLUMNS, rank), np.int64)
            places[:, :-1] = lead
            places[:, -1] = start + column_places()
            inputs.append(places)
    outputs = np.zeros((OUTPUTS, rank), np.int64)
    outputs[:, -1] = row_places()
    tile = (1,) * (rank - 1) + (OUTPUTS,)
    return PatchOperator(np.hstack(blocks), outputs, np.vstack(inputs), tile)


def _parts(terms: dict[int, float], first: int) -> list[tuple[int, dict[int, float]]]:
    """The terms of a row as (first input, terms) of fragments that are 2:4 sparse."""
    parts: list[tuple[int, dict[int, float]]] = []
    for x, weight in sorted(terms.items()):
        # Fragments reach 16 to the right of their first input.
        start = first + OUTPUTS * max(0, -(-(x - first) // OUTPUTS) - 1)
        if parts and parts[-1][0] == start:
            together = parts[-1][1] | {x: weight}
            if check_2to4(_block(together, start)) is None:
                parts[-1] = (start, together)
                continue
        parts.append((start, {x: weight}))
    return parts


def _block(terms: dict[int, float], start: int) -> np.ndarray:
    """A of one fragment, float64 (16, 32)."""
    distance = start + column_places()[None, :] - row_places()[:, None]
    block = np.zeros((OUTPUTS, COLUMNS))
    for x, weight in terms.items():
        block[distance == x] = weight
    return block
