# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Blocks of outputs of long sums: loops over their terms, whose weights are in tables."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from twofour.codegen.cpu.elements import ElementCode, global_table
from twofour.codegen.cpu.kernel_abi import EntryConstants, shifted
from twofour.codegen.cpu.lanes import Width
from twofour.codegen.cpu.row_block import KernelViews, RowBlock, Sums
from twofour.codegen.cpu.row_sums import Offset, Rows, Term
from twofour.codegen.cpu.term_loops import Loop, Nodes, Update, loops_over
from twofour.mlir import arith, ir, math, memref, scf, vector


@dataclass(frozen=True)
class WeightTable:
    """A global array of the weights of one input's terms, in their order."""

    name: str
    type: ir.MemRefType


def make_weight_tables(
    name: str, inputs: Sequence[Sequence[Term]], code: ElementCode
) -> list[WeightTable]:
    """Insert the tables of a kernel's inputs at the current insertion point."""
    tables = []
    for number, terms in enumerate(inputs):
        weights = np.array([term.weight for term in terms], code.accumulation_dtype)
        name_of_table = f"{name}_weights{number}"
        kind = global_table(name_of_table, weights, code.accumulation)
        tables.append(WeightTable(name_of_table, kind))
    return tables


class LoopedBlock(RowBlock):
    """Blocks whose terms, those of `inputs`, are added in loops."""

    def __init__(
        self,
        views: KernelViews,
        constant: float,
        code: ElementCode,
        constants: EntryConstants,
        inputs: Sequence[Sequence[Term]],
        tables: Sequence[WeightTable],
    ):
        super().__init__(views, constant, code, constants)
        self._inputs = inputs
        self._tables = [
            constants.get(table, lambda table=table: memref.get_global(table.type, table.name))
            for table in tables
        ]

    def _start(self, at: list[ir.Value], output: Offset, width: Width) -> ir.Value:
        total = super()._start(at, output, width)
        # -0.0 plus a product is that product, whatever its sign.
        return self._number(-0.0, width) if total is None else total

    def _add_terms(
        self, rows: Rows, places: list[list[ir.Value]], sums: Sums, width: Width
    ) -> Sums:
        flat = [total for row in sums for total in row]
        of_inputs = loops_over(rows, self._inputs)
        parts = zip(self._views.inputs, self._tables, of_inputs, strict=True)
        for (view, reach_lo), table, nodes in parts:
            corners = [shifted(self._constants, at, reach_lo) for at in places]
            code = _TermCode(self, view, corners, table, width, self._constants)
            numbers = [self._constants.index(n) for node in nodes for n in node.numbers]
            flat = code.emit(nodes, numbers, flat)
        vectors = width.vectors
        return [flat[n : n + vectors] for n in range(0, len(flat), vectors)]


@dataclass(frozen=True)
class _TermCode:
    """Code that adds the terms of one input to the sums of a block, which are in one list.

    Points are relative to `corners`: places in the view, one for each vector of a row.
    """

    block: RowBlock
    view: ir.Value
    corners: Sequence[Sequence[ir.Value]]
    table: ir.Value
    width: Width
    constants: EntryConstants

    def emit(
        self, nodes: Nodes, numbers: Sequence[ir.Value], sums: list[ir.Value]
    ) -> list[ir.Value]:
        """The sums after some nodes, whose numbers are given as they are at this turn."""
        begin = 0
        for node in nodes:
            end = begin + len(node.numbers)
            add = self._loop if isinstance(node, Loop) else self._update
            sums = add(node, numbers[begin:end], sums)
            begin = end
        return sums

    def _loop(self, loop: Loop, first: Sequence[ir.Value], sums: list[ir.Value]) -> list[ir.Value]:
        index = self.constants.index
        op = scf.ForOp(index(0), index(loop.count), index(1), sums)
        with ir.InsertionPoint(op.body):
            turn = op.induction_variable
            numbers = [
                self._further(number, turn, stride)
                for number, stride in zip(first, loop.strides, strict=True)
            ]
            scf.yield_(self.emit(loop.body, numbers, list(op.inner_iter_args)))
        return list(op.results)

    def _further(self, number: ir.Value, turn: ir.Value, stride: int) -> ir.Value:
        if stride == 0:
            return number
        by = turn if stride == 1 else arith.muli(turn, self.constants.index(stride))
        return arith.addi(number, by)

    def _update(
        self, update: Update, numbers: Sequence[ir.Value], sums: list[ir.Value]
    ) -> list[ir.Value]:
        coordinates, places = numbers[: -len(update.sums)], numbers[-len(update.sums) :]
        values = [self._sum(update.signs, coordinates, corner) for corner in self.corners]
        sums = list(sums)
        for number, place in zip(update.sums, places, strict=True):
            weight = self._weight(place)
            for at, value in enumerate(values, number * self.width.vectors):
                sums[at] = math.fma(weight, value, sums[at])
        return sums

    def _sum(
        self,
        signs: Sequence[int],
        coordinates: Sequence[ir.Value],
        corner: Sequence[ir.Value],
    ) -> ir.Value:
        """The sum of the vectors from some points on."""
        rank = len(corner)
        total = None
        for number, sign in enumerate(signs):
            point = coordinates[number * rank : (number + 1) * rank]
            place = [arith.addi(base, at) for base, at in zip(corner, point, strict=True)]
            value = self.block.read(self.view, place, (0,) * rank, self.width)
            if total is None:
                total = value
            else:
                total = arith.addf(total, value) if sign > 0 else arith.subf(total, value)
        return total

    def _weight(self, place: ir.Value) -> ir.Value:
        weight = memref.load(self.table, [place])
        if self.width.lanes == 1:
            return weight
        return vector.broadcast(ir.VectorType.get([self.width.lanes], weight.type), weight)
