# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""What is added to some rows of outputs, in which order, and which inputs are added to each other.

Points of one row of inputs that have the same weight up to its sign may be added before they are
multiplied, where another row has such points at the same places. Rows of outputs that are summed
up together then share the sum, as they share a vector: of the 49 multiply-adds of a symmetric box
of 7 x 7 points 28 are left. Sums that no two rows would share stay products: they took longer.
"""

import itertools
import math
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from operator import add

# Sums are worth their additions where, in so many rows together, no more than this part of the
# operations is left, and for so many points: sweeps of fewer wait for memory.
MANY_ROWS, WORTHWHILE, MANY_POINTS = 4, 0.9, 6

# Boxes of so many points have more weights than stay in registers beside the sums of some rows.
MANY_IN_BOX = 16
# Of so many points that lie in several planes, a column at a time is less to read at once.
MANY_IN_PLANES = 25

Offset = tuple[int, ...]
# An input point, and whether it is added (1) or subtracted (-1).
Signed = tuple[Offset, int]


@dataclass(frozen=True)
class Term:
    """A weight times a sum of points, the first of which is added."""

    weight: float
    points: tuple[Signed, ...]

    @property
    def places(self) -> tuple[Signed, ...]:
        """The points, whatever row they lie in."""
        *planes, row, _ = self.points[0][0]
        return self.shifted((*(0 for _ in planes), -row, 0))

    def shifted(self, by: Offset) -> tuple[Signed, ...]:
        """The points for an output so much further on."""
        return tuple((tuple(map(add, at, by)), sign) for at, sign in self.points)


@dataclass(frozen=True)
class Step:
    """Something to add: a sum of input points, as offsets from the first output, times weights.

    `weights` are those of rows of outputs, then of the sums that rows share. One vector from each
    point on feeds them all. The sum of the points in `minus` is subtracted.
    """

    points: tuple[Signed, ...]
    weights: Sequence[tuple[int, float]]
    minus: tuple[Signed, ...] = ()

    @property
    def first(self) -> Offset:
        return self.points[0][0]


@dataclass(frozen=True)
class Rows:
    """Rows that are summed up together: where they lie, and the steps for every input, in order.

    `shared` are sums beside those of the rows: in the end each is added to some of them. With
    `by_columns` terms are added column after column, otherwise all columns of a row of inputs.
    """

    outputs: Sequence[Offset]
    inputs: Sequence[Sequence[Step]]
    shared: Sequence[Sequence[int]] = ()
    by_columns: bool = False


# What is added to so many rows, of so many `planes`; with rows in pairs, from a first one that is
# even (0) or odd (1).
RowsOf = Callable[..., Rows]


def terms_of(
    offsets: Sequence[Offset], weights: Sequence[float], reassociate: bool
) -> tuple[Term, ...]:
    """The terms of one input by ascending offset of their first points.

    Each is one point, or with `reassociate` all points of a row that have the same weight up to its
    sign, if those at the same places of another row have one weight, too, and if this spares enough
    operations. Points of weight zero are dropped.
    """
    points = sorted((tuple(at), w) for at, w in zip(offsets, weights, strict=True) if w)
    alone = tuple(Term(weight, ((at, 1),)) for at, weight in points)
    if not reassociate or len(points[0][0]) == 1 or len(points) < MANY_POINTS:
        return alone
    together = _in_common(points)
    rank = len(points[0][0])
    steps = _steps(together, _outputs(rank, MANY_ROWS))
    operations = sum(len(step.weights) + len(step.points) - 1 for step in steps)
    return together if operations <= WORTHWHILE * MANY_ROWS * len(alone) else alone


def _in_common(points: Sequence[tuple[Offset, float]]) -> tuple[Term, ...]:
    """Terms of points in a row that have one weight, where rows share their sum."""
    groups: dict[tuple[int, float], list[tuple[Offset, float]]] = {}
    for at, weight in points:
        groups.setdefault((at[-2], abs(weight)), []).append((at, weight))
    terms = []
    for members in groups.values():
        first = members[0][1]
        terms.append(Term(first, tuple((at, 1 if w == first else -1) for at, w in members)))
    uses = Counter(term.places for term in terms)
    found: list[Term] = []
    for term in terms:
        if uses[term.places] > 1:
            found.append(term)
        else:
            found += (Term(term.weight * sign, ((at, 1),)) for at, sign in term.points)
    return tuple(sorted(found, key=lambda term: term.points[0]))


def is_box_that_differs(terms: Sequence[Term]) -> bool:
    """Whether terms are many single points that fill a box of two axes."""
    points = {at for term in terms for at, _ in term.points}
    box = math.prod(max(column) - min(column) + 1 for column in zip(*points, strict=True))
    return MANY_IN_BOX <= box == len(points) == len(terms)


def are_many_in_planes(terms: Sequence[Term]) -> bool:
    """Whether terms of three axes or more are many single points."""
    return len(terms) >= MANY_IN_PLANES and all(len(term.points) == 1 for term in terms)


def sum_rows(
    inputs: Sequence[Sequence[Term]],
    rank: int,
    count: int,
    planes: int = 1,
    by_columns: bool = False,
) -> Rows:
    """So many rows of outputs in each of so many planes, for each input; one row of one axis.

    Every output gets its terms in their order, or with `by_columns` column after column, whatever
    the numbers. Planes lie along the last axis but two.
    """
    outputs = _outputs(rank, count, planes)
    steps = [_steps(terms, outputs, by_columns) for terms in inputs]
    return Rows(outputs, steps, by_columns=by_columns)


def _outputs(rank: int, count: int, planes: int = 1) -> list[Offset]:
    rows = itertools.product(range(planes if rank > 2 else 1), range(count if rank > 1 else 1))
    return [((0,) * (rank - 3) + (plane, row, 0))[-rank:] for plane, row in rows]


def _steps(
    terms: Sequence[Term], outputs: Sequence[Offset], by_columns: bool = False
) -> list[Step]:
    found: dict[tuple[Signed, ...], list[tuple[int, float]]] = {}
    for number, output in enumerate(outputs):
        for term in terms:
            found.setdefault(term.shifted(output), []).append((number, term.weight))
    # Terms have different first points, so that shifted ones keep their order.
    steps = [Step(points, weights) for points, weights in sorted(found.items())]
    return sorted(steps, key=lambda step: step.first[-1]) if by_columns else steps
