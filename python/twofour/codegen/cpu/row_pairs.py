# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Rows of outputs summed up in pairs, with three products for four.

Two rows of outputs need, of two rows of weights w0 and w1 and three rows of inputs d0, d1 and d2,

    w0 d0 + w1 d1 = (w0 + w1) d1 + w0 (d0 - d1)
    w0 d1 + w1 d2 = (w0 + w1) d1 + w1 (d2 - d1)

which is the minimal filtering F(2, 2) of Winograd (Arithmetic Complexity of Computations, 1980).
The product that both rows need goes to a sum of its own, one for all such terms of the two rows. So
a box of 5 x 5 takes 20 multiply-adds an output, and additions. It pays on a core that adds beside
its multiply-adds.

An even row and the next one are a pair. A row that is summed up alone gets the same products in the
same order, so that its bits do not depend on the rows beside it.
"""

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass

from twofour.codegen.cpu.row_sums import Rows, Signed, Step, Term

# Weights of a pair differ by this factor at most. Then |w0 + w1| + |w0| is at most 7 |w1|, which
# keeps rounding errors within 7 times those of plain sums, at every point.
COMPARABLE = 3


@dataclass(frozen=True)
class Pair:
    """Terms of the same points but for the row: those of `upper` are one row before."""

    upper: Term
    lower: Term


@dataclass(frozen=True)
class PairedTerms:
    """The terms of one input: pairs, and those that have no other beside them."""

    pairs: tuple[Pair, ...]
    alone: tuple[Term, ...]


def pair_terms(terms: Sequence[Term]) -> PairedTerms:
    """Pair terms of points in adjacent rows, whose weights are comparable, from the first row on.

    The points have two axes at least.
    """
    columns: dict[tuple[Signed, ...], dict[int, Term]] = defaultdict(dict)
    for term in terms:
        columns[term.places][_row(term)] = term
    pairs, alone = [], []
    for column in columns.values():
        for row in sorted(column):
            upper, lower = column.pop(row, None), column.get(row + 1)
            if upper is None:
                continue
            if lower is not None and _comparable(upper.weight, lower.weight):
                pairs.append(Pair(upper, column.pop(row + 1)))
            else:
                alone.append(upper)
    return PairedTerms(tuple(pairs), tuple(alone))


def _row(term: Term) -> int:
    return term.points[0][0][-2]


def _comparable(a: float, b: float) -> bool:
    return max(abs(a), abs(b)) <= COMPARABLE * min(abs(a), abs(b))


def sum_row_pairs(inputs: Sequence[PairedTerms], count: int, first: int = 0) -> Rows:
    """So many rows of outputs along the first of two axes, from an even or odd (`first` = 1) one.

    Terms are added column by column, whatever the count; the sum that two rows share comes last.
    """
    outputs = [(row, 0) for row in range(count)]
    pairs = sorted({(row + first) // 2 for row in range(count)})
    shared = [[row for row in range(count) if (row + first) // 2 == pair] for pair in pairs]
    steps = [_steps(terms, count, first) for terms in inputs]
    return Rows(outputs, steps, shared, by_columns=True)


def _steps(terms: PairedTerms, count: int, first: int) -> list[Step]:
    found: dict[tuple[tuple[Signed, ...], ...], list[tuple[int, float]]] = defaultdict(list)

    def add(
        target: int, weight: float, term: Term, row: int, minus: tuple[Signed, ...] = ()
    ) -> None:
        if weight:
            found[term.shifted((row, 0)), minus].append((target, weight))

    for row in range(count):
        for term in terms.alone:
            add(row, term.weight, term, row)
        parity = (row + first) % 2
        for pair in terms.pairs:
            upper, lower = pair.upper, pair.lower
            both = lower.shifted((row - parity, 0))
            if parity == 0 or row == 0:
                add(count + (row + first) // 2, upper.weight + lower.weight, lower, row - parity)
            own = lower if parity else upper
            add(row, own.weight, own, row, both)
    return [Step(*key[:1], weights, *key[1:]) for key, weights in sorted(found.items(), key=_order)]


def _order(item: tuple) -> tuple:
    """Column by column, and down each one: neighbours in a column are read once then."""
    (points, minus), _ = item
    (place, _), row = points[0], max(at[-2] for at, _ in points + minus)
    return (*place[:-2], place[-1], row, points, minus)
