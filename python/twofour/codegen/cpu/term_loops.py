# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Loops over the terms of long sums, found in what is added to some rows of outputs.

A filter of 31 x 31 points adds 961 terms to every output: unrolled for a few rows of outputs they
take seconds to compile. But along a row of inputs each step differs from the one before in numbers
only, the places it reads and the weights it takes from a table, and always by the same
differences; so does each row of inputs, and each plane. Such steps are turns of loops, nested as
the axes are. All terms keep their order.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import groupby
from operator import sub

from twofour.codegen.cpu.register_tile import MANY_ROWS
from twofour.codegen.cpu.row_sums import Offset, Rows, Step, Term, sum_rows

# Steps along a row that are worth a loop.
MANY_STEPS = 4
# Terms of sums whose eight rows would unroll to more operations are added in loops. Of two axes,
# where rows are long, they are from fewer on if loops leave no more than this part of the code.
MAX_UNROLLED, WORTH_LOOPS, PART_LEFT = 4096, 1200, 1 / 8

Numbers = tuple[int, ...]


@dataclass(frozen=True)
class Update:
    """A step: what is added to some sums.

    `signs` are those of the points that are added up, `sums` the numbers of the sums. `numbers` are
    the coordinates of the points, relative to the first output, then for each sum the place of its
    weight in the table: whatever may change from turn to turn of a loop.
    """

    signs: tuple[int, ...]
    sums: tuple[int, ...]
    numbers: Numbers

    @property
    def shape(self) -> tuple:
        """All but the numbers."""
        return self.signs, self.sums

    @property
    def operations(self) -> int:
        """Multiply-adds, and additions of points."""
        return len(self.sums) + len(self.signs) - 1


@dataclass(frozen=True)
class Loop:
    """`count` turns of a body, whose numbers grow by `strides` in each."""

    count: int
    body: "Nodes"
    strides: Numbers

    @property
    def numbers(self) -> Numbers:
        """Those of the first turn."""
        return _numbers(self.body)

    @property
    def shape(self) -> tuple:
        return self.count, self.strides, _shape(self.body)

    @property
    def operations(self) -> int:
        """Those of one turn: what there is code for."""
        return sum(node.operations for node in self.body)


Nodes = tuple[Update | Loop, ...]


def _numbers(nodes: Nodes) -> Numbers:
    return tuple(number for node in nodes for number in node.numbers)


def _shape(nodes: Nodes) -> tuple:
    return tuple(node.shape for node in nodes)


def code_size(inputs: Sequence[Nodes]) -> int:
    """Multiply-adds and additions that there is code for."""
    return sum(node.operations for nodes in inputs for node in nodes)


def are_added_in_loops(inputs: Sequence[Sequence[Term]], rank: int) -> bool:
    """Whether the terms of some inputs are so many that they are better added in loops."""
    terms = [term for of_input in inputs for term in of_input]
    if MANY_ROWS * sum(len(term.points) for term in terms) <= WORTH_LOOPS:
        return False
    rows = sum_rows(inputs, rank, MANY_ROWS)
    outputs = MANY_ROWS // len(rows.outputs)
    unrolled = outputs * sum(
        len(step.weights) + len(step.points) - 1 for steps in rows.inputs for step in steps
    )
    if unrolled > MAX_UNROLLED:
        return True
    looped = code_size(loops_over(rows, inputs))
    return rank == 2 and unrolled > WORTH_LOOPS and looped <= PART_LEFT * unrolled


def loops_over(rows: Rows, inputs: Sequence[Sequence[Term]]) -> list[Nodes]:
    """The steps of each input in their order, as loops where they repeat.

    `inputs` are the terms that the rows are sums of, and the table of an input holds their weights
    in this order.
    """
    return [
        _nested(_updates(steps, rows.outputs, terms), 0)
        for steps, terms in zip(rows.inputs, inputs, strict=True)
    ]


def _updates(
    steps: Sequence[Step], outputs: Sequence[Offset], terms: Sequence[Term]
) -> list[tuple[Offset, Update]]:
    """Each step, and the place of its first point."""
    places = {term.points[0][0]: place for place, term in enumerate(terms)}

    def update(step: Step) -> Update:
        sums = tuple(number for number, _ in step.weights)
        points = (coordinate for point, _ in step.points for coordinate in point)
        weights = (places[tuple(map(sub, step.first, outputs[number]))] for number in sums)
        return Update(tuple(sign for _, sign in step.points), sums, (*points, *weights))

    return [(step.first, update(step)) for step in steps]


def _nested(updates: Sequence[tuple[Offset, Update]], axis: int) -> Nodes:
    """Loops along an axis and those after it over updates that lie alike on those before it."""
    if axis == len(updates[0][0]) - 1:
        return tuple(_repeated([(update,) for _, update in updates], MANY_STEPS))
    by_place = groupby(updates, key=lambda update: update[0][axis])
    return tuple(_repeated([_nested(list(group), axis + 1) for _, group in by_place], 2))


def _repeated(parts: Sequence[Nodes], least: int) -> Iterator[Update | Loop]:
    """The parts in their order, as a loop where at least so many repeat."""
    shapes = [_shape(part) for part in parts]
    numbers = [_numbers(part) for part in parts]

    def strides(turn: int) -> Numbers:
        return tuple(map(sub, numbers[turn + 1], numbers[turn]))

    begin = 0
    while begin < len(parts):
        last = begin
        while (
            last + 1 < len(parts)
            and shapes[last + 1] == shapes[begin]
            and strides(last) == strides(begin)
        ):
            last += 1
        count = last - begin + 1
        if count >= max(2, least):
            yield Loop(count, parts[begin], strides(begin))
        else:
            yield from parts[begin]
            count = 1
        begin += count
