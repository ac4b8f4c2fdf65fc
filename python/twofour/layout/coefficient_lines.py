# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Coefficient lines: the runs of scatter coefficients that become outer products.

See Stencil Matrixization, sections 3.2 to 3.5 and 4.1. In scatter form an input element at x adds
weight * input[x] to the outputs at x + s; s is the negated offset of the gather form (equation 5).
A coefficient line is a run of scatter weights in one direction. The last axis, of unit stride, is
the vector axis; the axis before it is the row axis.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass

from twofour.errors import TwofourError

# Every weight of a line, and every zero between two, costs an outer product.
MAX_EXTENT = 256

Offset = tuple[int, ...]
Terms = Mapping[Offset, float]


@dataclass(frozen=True)
class Line:
    """One coefficient line: weights[k] lies at scatter offset start + k * direction.

    Attributes:
        direction: rank ints of -1, 0 and 1; the first that is not 0 is 1.
        start: scatter offset of the first weight.
        weights: the weights in between may be 0.
    """

    direction: Offset
    start: Offset
    weights: tuple[float, ...]

    @property
    def axis(self) -> int:
        """The first axis along which the line runs."""
        return self.direction.index(1)

    @property
    def first(self) -> int:
        """The line's first scatter offset on its axis, inclusive."""
        return self.start[self.axis]

    @property
    def last(self) -> int:
        """The line's last scatter offset on its axis, inclusive."""
        return self.first + len(self.weights) - 1

    def terms(self) -> list[tuple[Offset, float]]:
        """Scatter offset and weight of every element of the line, zeros included."""
        return [
            (tuple(s + k * d for s, d in zip(self.start, self.direction, strict=True)), weight)
            for k, weight in enumerate(self.weights)
        ]


def scatter(offsets: Sequence[Sequence[int]], weights: Sequence[float]) -> dict[Offset, float]:
    """The weights that are not 0 by scatter offset, ascending (Stencil Matrixization, equation 5).

    `offsets` are gather offsets, of shape (terms, rank), distinct; `weights` of shape (terms,).
    """
    terms = {tuple(-x for x in o): w for o, w in zip(offsets, weights, strict=True) if w != 0}
    return dict(sorted(terms.items()))


def unit(rank: int, axis: int, skew: int = 0) -> Offset:
    """The direction of lines along an axis; `skew` is the step on the last axis that goes with it.

    `unit(3, 1)` is (0, 1, 0), `unit(3, 1, -1)` the anti-diagonal (0, 1, -1).
    """
    direction = [int(a == axis) for a in range(rank)]
    if skew:
        direction[-1] = skew
    return tuple(direction)


def _foot(point: Offset, direction: Offset) -> Offset:
    """What all points on one line of a direction share: the line's point at 0 on its axis."""
    along = point[direction.index(1)]
    return tuple(p - along * d for p, d in zip(point, direction, strict=True))


def _line(points: Iterable[Offset], direction: Offset, terms: Terms) -> Line:
    """The shortest line of a direction over points that lie on it."""
    axis = direction.index(1)
    by_place = {point[axis]: point for point in points}
    low, high = min(by_place), max(by_place)
    weights = tuple(terms[by_place[k]] if k in by_place else 0.0 for k in range(low, high + 1))
    return Line(direction, by_place[low], weights)


def _lines(assigned: Mapping[tuple[Offset, Offset], list[Offset]], terms: Terms) -> list[Line]:
    return [_line(points, direction, terms) for (direction, _), points in assigned.items()]


def lines_along(terms: Terms, direction: Offset) -> list[Line]:
    """All lines of one direction that hold a weight."""
    assigned = defaultdict(list)
    for point in terms:
        assigned[direction, _foot(point, direction)].append(point)
    return _lines(assigned, terms)


def minimal_cover(terms: Terms, first: Offset, second: Offset) -> list[Line]:
    """The fewest lines of two directions over weights in one plane (section 3.5, Koenig's theorem).

    Lines are the vertices of a bipartite graph and weights its edges, so that a cover by lines is a
    vertex cover. Of the minimal covers it is the one with the most lines in the direction `first`,
    and a weight on two of its lines belongs to the one in that direction.
    """
    # Imported late: it takes a tenth of a second, and most compilations need no cover.
    import networkx

    graph = networkx.Graph()
    for point in terms:
        graph.add_edge((0, _foot(point, first)), (1, _foot(point, second)))
    # A fixed order makes the result the same in every process.
    top = sorted(node for node in graph if node[0] == 0)
    matching = networkx.bipartite.hopcroft_karp_matching(graph, top)
    # The vertices reached from unmatched ones of the first side are as few as in any minimal cover.
    chosen = networkx.bipartite.to_vertex_cover(graph, matching, top)
    assigned = defaultdict(list)
    for point in terms:
        direction = first if (0, _foot(point, first)) in chosen else second
        assigned[direction, _foot(point, direction)].append(point)
    return _lines(assigned, terms)


def greedy_cover(terms: Terms, directions: Sequence[Offset]) -> list[Line]:
    """Lines of several directions, each time the one that holds most weights not yet covered.

    Among equals the earlier direction wins. No polynomial algorithm for the fewest lines of three
    directions is known (section 3.5).
    """
    candidates: dict[tuple[Offset, Offset], list[Offset]] = defaultdict(list)
    for direction in directions:
        for point in terms:
            candidates[direction, _foot(point, direction)].append(point)
    left, assigned = set(terms), {}
    while left:
        best = max(candidates, key=lambda line: sum(p in left for p in candidates[line]))
        assigned[best] = [point for point in candidates.pop(best) if point in left]
        left -= set(assigned[best])
    return _lines(assigned, terms)


def _by_plane(terms: Terms, cover: Callable[[Terms], list[Line]]) -> list[Line]:
    """A cover of each plane (row axis, vector axis) by itself."""
    planes = defaultdict(dict)
    for point, weight in terms.items():
        planes[point[:-2]][point] = weight
    return [line for plane in planes.values() for line in cover(plane)]


def _turn_single_weights(lines: list[Line]) -> list[Line]:
    """Let lines of one weight, which have no direction, run where they cost least.

    That is along the row axis, or along the diagonals that most of the other lines follow.
    """
    rank = len(lines[0].direction)
    row = unit(rank, rank - 2)
    skewed = [
        ln.direction for ln in lines if len(ln.weights) > 1 and sum(map(abs, ln.direction)) == 2
    ]
    straight = any(len(ln.weights) > 1 and ln.direction not in skewed for ln in lines)
    direction = row if straight or not skewed else max(sorted(set(skewed)), key=skewed.count)
    return [Line(direction, ln.start, ln.weights) if len(ln.weights) == 1 else ln for ln in lines]


def parallel(terms: Terms) -> list[Line]:
    """Lines along the row axis alone (Tables 1 and 2)."""
    rank = len(next(iter(terms)))
    return lines_along(terms, unit(rank, rank - 2))


def orthogonal(terms: Terms) -> list[Line]:
    """Lines along every axis: the fewest in rank 2, by the greedy rule in rank 3."""
    rank = len(next(iter(terms)))
    if rank == 2:
        return hybrid(terms)
    return greedy_cover(terms, [unit(rank, axis) for axis in (rank - 2, rank - 1, 0)])


def hybrid(terms: Terms) -> list[Line]:
    """Lines along the row and the vector axis, the fewest in each plane (Table 2).

    In rank 2 there is one plane, so this is `orthogonal`.
    """
    rank = len(next(iter(terms)))
    row, column = unit(rank, rank - 2), unit(rank, rank - 1)
    return _by_plane(terms, lambda plane: minimal_cover(plane, row, column))


def diagonal(terms: Terms) -> list[Line]:
    """Diagonal and anti-diagonal lines, the fewest in each plane (equations 15 and 16)."""
    rank = len(next(iter(terms)))
    main, anti = unit(rank, rank - 2, 1), unit(rank, rank - 2, -1)
    return _by_plane(terms, lambda plane: minimal_cover(plane, main, anti))


OPTIONS = {
    "parallel": parallel,
    "orthogonal": orthogonal,
    "hybrid": hybrid,
    "diagonal": diagonal,
}


def cover(terms: Terms, option: str) -> tuple[Line, ...]:
    """The coefficient lines of an option; every weight lies on exactly one of them.

    Args:
        terms: scatter offsets of rank 2 or 3, with weights that are not 0 (see `scatter`).
        option: a key of OPTIONS.

    Raises:
        TwofourError: another rank (section 3.1 leaves 1-D stencils out), no weights, or offsets
            MAX_EXTENT or more apart.
    """
    if not terms:
        raise TwofourError("expected at least one weight that is not zero, got none")
    rank = len(next(iter(terms)))
    if rank not in (2, 3):
        raise TwofourError(f"expected a stencil of rank 2 or 3 for outer products, got rank {rank}")
    for axis, places in enumerate(zip(*terms, strict=True)):
        if (extent := max(places) - min(places) + 1) > MAX_EXTENT:
            raise TwofourError(
                f"expected offsets that span at most {MAX_EXTENT} points on each axis for outer "
                f"products, got {extent} on axis {axis}"
            )
    lines = _turn_single_weights(OPTIONS[option](terms))
    order = [unit(rank, rank - 2), unit(rank, rank - 1)]
    return tuple(
        sorted(
            lines,
            key=lambda ln: (
                order.index(ln.direction) if ln.direction in order else len(order),
                ln.direction,
                ln.start,
            ),
        )
    )
