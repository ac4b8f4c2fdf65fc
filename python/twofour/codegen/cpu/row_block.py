# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Code of one block of outputs of a CPU kernel: reads, sums and writes."""

import itertools
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from twofour.codegen.cpu.elements import ElementCode
from twofour.codegen.cpu.kernel_abi import EntryConstants, shifted
from twofour.codegen.cpu.lanes import Width, read_lanes, write_lanes
from twofour.codegen.cpu.row_sums import Offset, Rows, Signed, Step
from twofour.mlir import arith, ir, math

# Of each row, one for each of its vectors; None where nothing was added yet.
Sums = list[list[ir.Value | None]]


@dataclass(frozen=True)
class KernelViews:
    """The views of a kernel: inputs with their reach below, the addend or None, and the output."""

    inputs: Sequence[tuple[ir.Value, Offset]]
    addend: ir.Value | None
    output: ir.Value


@dataclass(frozen=True)
class _Products:
    """Sums of vectors, each from points on of one of a block's vectors, and what to do with them.

    `added` are products: of which of the sums, in which row and vector of the block they are added,
    and the weight.
    """

    read: list[tuple[int, Step]]
    added: list[tuple[int, int, int, float]]


def _rows_of_inputs(steps: Sequence[Step]) -> Iterator[list[Step]]:
    """Runs of steps that read one row of inputs from its begin to its end."""
    run: list[Step] = []
    for step in steps:
        if run and not (step.first[:-1] == run[-1].first[:-1] and step.first > run[-1].first):
            yield run
            run = []
        run.append(step)
    yield run


class RowBlock:
    """Blocks of outputs that start from a constant and the addend."""

    def __init__(
        self, views: KernelViews, constant: float, code: ElementCode, constants: EntryConstants
    ):
        self._views, self._constant = views, constant
        self._code, self._constants = code, constants

    def emit(self, rows: Rows, bases: list[ir.Value], width: Width) -> None:
        """Some vectors of every row."""
        places = [[*bases[:-1], base] for base in self._columns(bases[-1], width)]
        sums = [[self._start(at, output, width) for at in places] for output in rows.outputs]
        sums += [[None] * width.vectors for _ in rows.shared]
        sums = self._add_terms(rows, places, sums, width)
        shared = sums[len(rows.outputs) :]
        for totals, users in zip(shared, rows.shared, strict=True):
            for row, place in itertools.product(users, range(width.vectors)):
                if totals[place] is not None:
                    sums[row][place] = arith.addf(sums[row][place], totals[place])
        for output, totals in zip(rows.outputs, sums, strict=False):
            for at, total in zip(places, totals, strict=True):
                self._write(total, shifted(self._constants, at, output), width)

    def _add_terms(
        self, rows: Rows, places: list[list[ir.Value]], sums: Sums, width: Width
    ) -> Sums:
        """The sums after all terms, in a block that begins at `places`, one for each vector."""
        for (view, reach_lo), steps in zip(self._views.inputs, rows.inputs, strict=True):
            inputs = _BlockInputs(self, view, places, reach_lo, width)
            for group in self._products(steps, len(rows.outputs), width):
                values = [inputs.value_of(step, place) for place, step in group.read]
                for read, row, place, weight in group.added:
                    total = sums[row][place]
                    sums[row][place] = self._added(weight, values[read], total, width)
        return sums

    def _products(self, steps: Sequence[Step], rows: int, width: Width) -> Iterator[_Products]:
        """All products of a block, in an order that is that of the steps for every sum.

        Where several sums of a row use a vector as it is, it is read once and used at once: LLVM
        would read it once, too, and keep it on the stack in between. Sums of a single row would
        wait for each other then.
        """
        vectors = range(width.vectors)
        for run in _rows_of_inputs(steps):
            uses: dict[int, list[tuple[int, Step]]] = {}
            for step, place in itertools.product(run, vectors):
                column = step.first[-1] + place * width.lanes
                uses.setdefault(column, []).append((place, step))
            alone = all(len(step.points) == 1 and not step.minus for step in run)
            if rows > 1 and alone and len(uses) < len(run) * width.vectors:
                for column in sorted(uses):
                    yield _Products(
                        [uses[column][0]],
                        [
                            (0, row, place, weight)
                            for place, step in uses[column]
                            for row, weight in step.weights
                        ],
                    )
            else:
                for step in run:
                    yield _Products(
                        [(place, step) for place in vectors],
                        [(v, row, v, w) for row, w in step.weights for v in vectors],
                    )

    def _added(
        self, number: float, value: ir.Value, total: ir.Value | None, width: Width
    ) -> ir.Value:
        weight = self._number(number, width)
        return arith.mulf(weight, value) if total is None else math.fma(weight, value, total)

    def _columns(self, base: ir.Value, width: Width) -> list[ir.Value]:
        """Where the vectors of a row begin."""
        return [shifted(self._constants, [base], [column])[0] for column in width.columns]

    def _start(self, at: list[ir.Value], output: Offset, width: Width) -> ir.Value | None:
        """The number that a sum starts from, or None for nothing."""
        total = self._number(self._constant, width) if self._constant else None
        if self._views.addend is not None:
            value = self.read(self._views.addend, at, output, width)
            total = value if total is None else arith.addf(value, total)
        return total

    def read(
        self, view: ir.Value, at: list[ir.Value], shift: Sequence[int], width: Width
    ) -> ir.Value:
        place = shifted(self._constants, at, shift)
        value = read_lanes(view, place, width, self._constants)
        return self._code.widen(value, width.lanes)

    def shifted(self, base: ir.Value, shift: int) -> ir.Value:
        return shifted(self._constants, [base], [shift])[0]

    def _write(self, total: ir.Value, place: list[ir.Value], width: Width) -> None:
        write_lanes(self._code.narrow(total, width.lanes), self._views.output, place, width)

    def _number(self, value: float, width: Width) -> ir.Value:
        return self._constants.get(
            ("number", value, width.lanes), lambda: self._code.constant(value, width.lanes)
        )


class _BlockInputs:
    """What a block needs of an input: indices, vectors and sums of them, each made once."""

    def __init__(
        self,
        block: RowBlock,
        view: ir.Value,
        places: list[list[ir.Value]],
        reach_lo: Offset,
        width: Width,
    ):
        self._block, self._view, self._places = block, view, places
        self._reach_lo, self._width = reach_lo, width
        self._sums: dict[tuple[tuple[Signed, ...], int], ir.Value] = {}
        self._indices: dict[tuple[ir.Value, int], ir.Value] = {}

    def value_of(self, step: Step, place: int) -> ir.Value:
        """What a step multiplies, from points on that are relative to one of the block's places."""
        value = self._sum(step.points, place)
        return arith.subf(value, self._sum(step.minus, place)) if step.minus else value

    def _sum(self, points: tuple[Signed, ...], place: int) -> ir.Value:
        if (points, place) not in self._sums:
            first, *others = (self._vector(point, place) for point, _ in points)
            for value, (_, sign) in zip(others, points[1:], strict=True):
                first = arith.addf(first, value) if sign > 0 else arith.subf(first, value)
            self._sums[points, place] = first
        return self._sums[points, place]

    def _vector(self, point: Offset, place: int) -> ir.Value:
        parts = zip(self._places[place], point, self._reach_lo, strict=True)
        at = [self._index(base, p + lo) for base, p, lo in parts]
        return self._block.read(self._view, at, (0,) * len(at), self._width)

    def _index(self, base: ir.Value, shift: int) -> ir.Value:
        if (base, shift) not in self._indices:
            self._indices[base, shift] = self._block.shifted(base, shift)
        return self._indices[base, shift]
