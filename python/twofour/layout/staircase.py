# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Pairs of conflict-free columns from the geometry of a staircase matrix, in linear time."""

from __future__ import annotations

from math import prod

import numpy as np

from twofour.layout.conflicts import Pair, pair_greedily, row_masks
from twofour.layout.patch import Offset, PatchOperator


def pair_by_staircase(op: PatchOperator) -> list[Pair]:
    """Hierarchical matching (SparStencil, algorithm 1) for any rank.

    Let the inputs span n_d points and the stencil k_d points on axis d. Inputs that are k_d or
    more apart on some axis share no row (theorem 5). As in algorithm 1, index i of the first axis
    is matched with i + s, s = max(n // 2, k), for all indices of the other axes at once; what
    stays unmatched is matched likewise on the next axis, and so on. A hole (an input that no
    output reads) counts as a zero column: two holes vanish, and columns matched with a hole are
    paired with each other greedily.

    It differs from algorithm 1 in one point. On an axis with an odd n >= 2 k the algorithm leaves
    one whole block unmatched and descends into it, and where an outer axis with n < 2 k left
    several blocks it descends into each of them alone; both pad although better matchings exist:
    with n = (5, 3) and k = (2, 3) it adds 3 zero columns where 1 is enough. That contradicts
    theorem 6, whose proof looks at one block at a time. Here the first axis with n >= 2 k, if
    there is one, is matched before all others, and which of its two ends an odd n leaves over
    alternates with the index on the other axes: the leftovers of two neighbouring lines are
    n - 1 >= k apart and are matched with each other, so that at most one column of the whole box
    stays single. With no such axis only the inputs that every output can read stay single, and
    these conflict with all others. Hence the padding on a box is minimal: the product of
    max(0, 2 k_d - n_d), plus one where the number of the other inputs is odd.

    Returns:
        Pairs of column indices; the second is ZERO for a zero column. Every column that is not
        all zero occurs once, the all-zero ones never.
    """
    masks = row_masks(op.matrix)
    used = [column for column, mask in enumerate(masks) if mask]
    if not used:
        return []
    inputs = op.input_offsets[used]
    rows, columns = np.nonzero(op.matrix)
    reach = op.input_offsets[columns] - op.output_offsets[rows]
    size = tuple((inputs.max(axis=0) - inputs.min(axis=0) + 1).tolist())
    stencil = tuple((reach.max(axis=0) - reach.min(axis=0) + 1).tolist())
    positions = list(map(tuple, (inputs - inputs.min(axis=0)).tolist()))
    column_at = dict(zip(positions, used, strict=True))

    pairs, singles = [], []
    for position, column in zip(positions, used, strict=True):
        if column_at[position] != column:
            singles.append(column)
            continue
        other = column_at.get(partner(position, size, stencil))
        if other is None:
            singles.append(column)
        elif column < other:
            pairs.append((column, other))
    return pairs + pair_greedily(singles, masks)


def partner(position: Offset, size: Offset, stencil: Offset) -> Offset | None:
    """The position matched with this one in a box without holes; None where it stays single.

    Args:
        position: from the corner of the box, rank ints.
        size: inputs of the box per axis.
        stencil: extent of the stencil per axis.
    """
    for axis, (n, k) in enumerate(zip(size, stencil, strict=True)):
        if n >= 2 * k:
            return _partner_on_long_axis(position, size, axis)
    for axis, (n, k) in enumerate(zip(size, stencil, strict=True)):
        index = position[axis]
        if index + k < n:
            return _moved(position, axis, index + k)
        if index >= k:
            return _moved(position, axis, index - k)
    return None


def _partner_on_long_axis(position: Offset, size: Offset, axis: int) -> Offset | None:
    """The partner along an axis of n >= 2 k points, where the only single is one of an odd n."""
    half = size[axis] // 2
    if size[axis] % 2 == 0:
        return _moved(position, axis, (position[axis] + half) % size[axis])
    line = 0
    for other, n in enumerate(size):
        if other != axis:
            line = line * n + position[other]
    first = line % 2
    index = position[axis] - first
    if 0 <= index < 2 * half:
        return _moved(position, axis, first + (index + half) % (2 * half))
    line += -1 if first else 1
    if line >= prod(size) // size[axis]:
        return None
    other_end = list(position)
    other_end[axis] = 0 if position[axis] else size[axis] - 1
    for other in reversed(range(len(size))):
        if other != axis:
            line, other_end[other] = divmod(line, size[other])
    return tuple(other_end)


def _moved(position: Offset, axis: int, index: int) -> Offset:
    return (*position[:axis], index, *position[axis + 1 :])
