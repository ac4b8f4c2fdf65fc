# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Search for groups of four columns with at most two nonzeros a row, given the number of groups.

Searches end after a fixed number of steps: results do not depend on how fast the machine is.
"""

from __future__ import annotations

import numpy as np

from twofour.layout.conflicts import ZERO, row_masks

Group = tuple[int, int, int, int]

STEPS = 5000
WORK = 20_000_000
TABU = 12
VISITS = 500_000
DEEPEST = 200


def pack_groups(matrix: np.ndarray, start: list[int], count: int) -> list[Group] | None:
    """Packs the columns of a matrix into so many groups of four that satisfy 2:4.

    2:4 asks for at most two nonzeros of a row among four columns, which is weaker than two
    conflict-free pairs (SparStencil, section 3.2, composes 2:4 of 1:2). A tabu search over swaps
    of two columns: of the column that is swapped out of a group with too many nonzeros and its
    partner in any other group, the pair that lowers the excess most is taken. It is deterministic
    and stops after STEPS swaps, of large matrices after WORK / (4 * count * M).

    Args:
        matrix: shape (M, K).
        start: the columns in an order to start from, each once.
        count: number of groups; 4 * count must be at least len(start).

    Returns:
        The groups (ZERO for a zero column), or None when none were found.
    """
    slots = 4 * count
    order = np.full(slots, ZERO)
    order[: len(start)] = start
    pattern = np.vstack([(matrix != 0).T, np.zeros((1, len(matrix)), bool)]).astype(np.int8)
    columns = pattern[order]
    group = np.arange(slots) // 4
    counts = columns.reshape(count, 4, -1).sum(axis=1, dtype=np.int8)
    excess = np.maximum(counts - 2, 0).sum(axis=1)
    blocked = np.zeros(slots, dtype=np.int64)
    rng = np.random.default_rng(0)
    for step in range(min(STEPS, WORK // columns.size)):
        wrong = np.flatnonzero(excess)
        if not wrong.size:
            return [tuple(four) for four in order.reshape(count, 4).tolist()]
        here = rng.choice(wrong)
        mine = np.arange(4 * here, 4 * here + 4)
        change = columns[None, :, :] - columns[mine, None, :]
        gain = np.maximum(counts[here] + change - 2, 0).sum(axis=2, dtype=np.int32)
        gain += np.maximum(counts[group] - change - 2, 0).sum(axis=2, dtype=np.int32)
        gain -= excess[here] + excess[group]
        gain[:, mine] = np.iinfo(np.int32).max // 2
        tabu = (blocked[mine, None] > step) | (blocked > step)
        gain = gain + np.where(tabu & (excess.sum() + gain > 0), 1000, 0)
        best = np.flatnonzero(gain == gain.min())
        out, into = divmod(int(rng.choice(best)), slots)
        out = int(mine[out])
        order[[out, into]] = order[[into, out]]
        columns[[out, into]] = columns[[into, out]]
        blocked[[out, into]] = step + TABU + rng.integers(TABU)
        for changed in (here, group[into]):
            counts[changed] = columns[4 * changed : 4 * changed + 4].sum(axis=0)
            excess[changed] = np.maximum(counts[changed] - 2, 0).sum()
    return None


def pack_exhaustively(matrix: np.ndarray, count: int) -> tuple[list[Group] | None, bool]:
    """Tries every way to pack the columns into so many groups of four that satisfy 2:4.

    Meant for small matrices: it gives up after VISITS looks at a group.

    Args:
        matrix: shape (M, K); all-zero columns are left out.
        count: number of groups.

    Returns:
        The groups or None, and whether the search was complete: (None, True) is a proof that
        there are none.
    """
    masks = row_masks(matrix)
    columns = [column for column, mask in enumerate(masks) if mask]
    columns.sort(key=lambda column: -masks[column].bit_count())
    members: list[list[int]] = [[] for _ in range(count)]
    once, twice = [0] * count, [0] * count
    visits = 0

    def place(depth: int) -> bool | None:
        """True when the columns from depth on were placed, None when the search was cut off."""
        nonlocal visits
        if depth == len(columns):
            return True
        mask = masks[columns[depth]]
        tried = set()
        for index in range(count):
            visits += 1
            if visits > VISITS:
                return None
            state = (once[index], twice[index], len(members[index]))
            if len(members[index]) == 4 or twice[index] & mask or state in tried:
                continue
            tried.add(state)
            members[index].append(columns[depth])
            once[index], twice[index] = state[0] | mask, state[1] | state[0] & mask
            placed = place(depth + 1)
            if placed is not False:
                return placed
            members[index].pop()
            once[index], twice[index] = state[:2]
        return False

    if len(columns) > 4 * count:
        return None, True
    if len(columns) > DEEPEST:
        return None, False
    placed = place(0)
    if not placed:
        return None, placed is False
    return [(*group, *[ZERO] * (4 - len(group))) for group in members], True
