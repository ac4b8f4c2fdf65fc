# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The order of columns inside fragments: which four columns the lanes of a quad read at once.

A load of B reads four columns, one for each t of a quad, for eight tiles. Columns of one group (a
2:4 group of four, a 1:2 pair, a single column) have to stay together; which groups share a load,
and in which order a group's columns stand, is free, and decides about bank conflicts.
"""

from __future__ import annotations

from itertools import combinations

import numpy as np

from twofour.layout.fragments import Fragment

# Maximum matching is cubic; beyond this many groups each takes the best partner that is left.
MAX_MATCHED = 48

Pair = tuple[int, int]


def order_columns(columns: int, fragment: Fragment, free: np.ndarray) -> list[int]:
    """An order of the columns in which as many loads as possible are free of conflicts.

    Args:
        columns: number of columns, a multiple of the fragment's k.
        fragment: its groups stay together.
        free: bool (columns, columns), see banks.compatible.
    """
    if fragment.of == 1:
        singles = [[((column,),)] for column in range(columns)]
        pairs = [[(tuple(a[0] + b[0]),)] for a, b in _matched(singles, free)]
        loads = [first[0] + second[0] for first, second in _matched(pairs, free)]
        return _place(loads, fragment)
    if fragment.of == 2:
        groups = [[((c, c + 1),)] for c in range(0, columns, 2)]
        return _place([a[0] + b[0] for a, b in _matched(groups, free)], fragment)
    groups = [_splits(range(c, c + 4)) for c in range(0, columns, 4)]
    loads = []
    for first, second in _matched(groups, free):
        loads += [a + b for a, b in zip(first, second, strict=True)]
    return _place(loads, fragment)


def _splits(group: range) -> list[tuple[Pair, Pair]]:
    """All ways to read a group of four columns by two loads of two columns."""
    return [(pair, tuple(c for c in group if c not in pair)) for pair in combinations(group, 2)]


def _matched(groups: list, free: np.ndarray) -> list[tuple]:
    """Groups two by two, each in the reading that leaves the fewest conflicts."""
    loads = len(groups[0][0])
    if len(groups) > MAX_MATCHED:
        chosen, left = [], list(groups)
        while left:
            group, best, partner = left.pop(0), (-1, None), 0
            for index, other in enumerate(left):
                found = _best_reading(group, other, free)
                if found[0] > best[0]:
                    best, partner = found, index
                if best[0] == loads:
                    break
            left.pop(partner)
            chosen.append(best[1])
        return chosen
    readings = {
        (i, j): _best_reading(groups[i], groups[j], free)
        for i, j in combinations(range(len(groups)), 2)
    }
    # Imported late, as in blossom.py.
    import networkx

    graph = networkx.Graph()
    graph.add_weighted_edges_from((i, j, 1 + count) for (i, j), (count, _) in readings.items())
    matching = networkx.max_weight_matching(graph, maxcardinality=True)
    return [readings[edge][1] for edge in sorted(tuple(sorted(edge)) for edge in matching)]


def _best_reading(first: list, second: list, free: np.ndarray) -> tuple[int, tuple]:
    """How many loads of two groups are free of conflicts at best, and the reading of each."""
    best = (-1, None)
    for a in first[: (len(first) + 1) // 2]:  # the others only change the order of the loads
        for b in second:
            count = _free_loads(a, b, free)
            if count > best[0]:
                best = (count, (a, b))
                if count == len(a):
                    return best
    return best


def _free_loads(a: tuple, b: tuple, free: np.ndarray) -> int:
    return sum(
        all(free[x, y] for x in first + second for y in first + second)
        for first, second in zip(a, b, strict=True)
    )


def _place(loads: list[tuple[int, ...]], fragment: Fragment) -> list[int]:
    """The columns in order, where load i of a fragment reads its four columns by t = 0, 1, 2, 3."""
    elements = fragment.b_row.shape[1]
    order = [0] * (4 * len(loads))
    for number, load in enumerate(loads):
        step, element = divmod(number, elements)
        for t, column in enumerate(load):
            order[step * fragment.k + fragment.b_row[t, element]] = column
    return order
