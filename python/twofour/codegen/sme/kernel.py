# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Kernels of scheduled outer products: whole blocks in matrix tiles, what is left in vectors.

The calling convention is that of `twofour.codegen.cpu.kernel_abi`, on views of any extents. Sweeps
follow one another; where vectors are too short for the schedule, all of a sweep is what is left.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from twofour.codegen.cpu.kernel_abi import kernel_function, view_type
from twofour.codegen.sme.block import BlockCode, Fields
from twofour.codegen.sme.code import ScalableCode
from twofour.codegen.sme.rest import Range, RestCode
from twofour.layout.outer_schedule import Schedule, Sweep, smallest_length, splice_span
from twofour.mlir import arith, func, ir, memref

TABLE_ALIGNMENT = 64


@dataclass(frozen=True)
class OuterKernel:
    """What a kernel computes: `constant` plus the lines of a schedule.

    `halo` is how far the source's view reaches before the target's, one number an axis. With
    `has_addend` a second input view, of the target's extents, is added.
    """

    name: str
    plan: Schedule
    halo: Sequence[int]
    constant: float = 0.0
    has_addend: bool = False


def build_outer_kernel(kernel: OuterKernel, element: ir.Type) -> func.FuncOp:
    """Insert the kernel's function and its tables at the current insertion point, a module's."""
    tables = _insert_tables(kernel, element)
    inputs = 1 + kernel.has_addend
    views = [view_type(len(kernel.halo), element)] * (inputs + 1)
    function = kernel_function(kernel.name, views, inputs)
    with ir.InsertionPoint(function.entry_block):
        source, *addends, target, begin, end = function.entry_block.arguments
        code = ScalableCode(element, function.entry_block)
        found = [memref.get_global(kind, name) for name, kind in tables]
        addend, constant = (addends[0] if addends else None), kernel.constant
        for sweep in kernel.plan.sweeps:
            fields = Fields(source, target, addend, constant, kernel.halo, found)
            _SweepCode(code, kernel.plan, sweep, fields).emit((begin, end))
            # What one sweep stored is where the next one starts.
            addend, constant = target, 0.0
        func.ReturnOp([])
    return function


def padded_table(weights: Sequence[float], longest: int) -> np.ndarray:
    """Weights between longest - 1 zeros on either side: every window of `longest` is inside."""
    zeros = np.zeros(longest - 1)
    return np.concatenate([zeros, weights, zeros])


def least_length(plan: Schedule) -> int:
    """The least n at which a kernel runs a schedule."""
    least = smallest_length(plan)
    if plan.by == "load":
        return least
    # EXT by a whole vector gives the first one back, where a splice is the second.
    spans = [
        splice_span(segment, vector.plane)
        for sweep in plan.sweeps
        for segment in sweep.rows
        for vector in segment.vectors
    ]
    return max([least, *(1 + high - low for low, high in spans)])


def _insert_tables(kernel: OuterKernel, element: ir.Type) -> list[tuple[str, ir.MemRefType]]:
    number = np.float64 if isinstance(element, ir.F64Type) else np.float32
    bits = ir.IntegerType.get_signless(64)
    inserted = []
    for index, line in enumerate(kernel.plan.lines):
        table = padded_table(line.weights, ScalableCode.longest_of(element)).astype(number)
        kind = ir.MemRefType.get(table.shape, element)
        value = ir.DenseElementsAttr.get(table, type=ir.RankedTensorType.get(table.shape, element))
        name = f"{kernel.name}_line{index}"
        memref.GlobalOp(
            name,
            ir.TypeAttr.get(kind),
            sym_visibility=ir.StringAttr.get("private"),
            initial_value=value,
            constant=True,
            alignment=ir.IntegerAttr.get(bits, TABLE_ALIGNMENT),
        )
        inserted.append((name, kind))
    return inserted


class _SweepCode:
    """Emits one visit of all blocks, and of the outputs beside them."""

    def __init__(self, code: ScalableCode, plan: Schedule, sweep: Sweep, fields: Fields):
        self.code, self.plan, self.sweep, self.fields = code, plan, sweep, fields
        self.rank, self.block = len(fields.halo), sweep.block
        self.least = least_length(plan)

    def emit(self, rows: Range) -> None:
        code = self.code
        extents = [memref.dim(self.fields.target, code.index(a)) for a in range(self.rank)]
        ranges = [rows, *((code.index(0), extent) for extent in extents[1:])]
        sizes = [self._size(axis) for axis in range(self.rank)]
        whole = [self._whole(axis, *ranges[axis], sizes[axis]) for axis in range(self.rank)]
        if self.least <= code.longest:
            self._blocks(whole, sizes, [])
        rest = RestCode(code, self.fields, [self.plan.lines[k] for k in self.block.lines])
        for axis in range(self.rank - 1):
            left = (whole[axis][1], ranges[axis][1])
            outer = [*whole[:axis], left, *ranges[axis + 1 : -1]]
            rest.emit(outer, lambda _: [ranges[-1]])
        rest.emit(whole[:-1], lambda at: self._beside(at, whole, ranges[-1][1]))

    def _size(self, axis: int) -> ir.Value:
        """The extent of a block."""
        planes, vectors = self.block.unroll
        if axis == self.rank - 1:
            return self.code.vectors(vectors)
        return self.code.n if axis == self.block.row_axis else self.code.index(planes)

    def _whole(self, axis: int, begin: ir.Value, end: ir.Value, size: ir.Value) -> Range:
        """The part of an axis that blocks cover; of the columns, where a block's first row does."""
        code = self.code
        if axis == self.rank - 1 and self.block.skew:
            # The rows of a block start one column after, or before, the row above.
            slanted = arith.subi(code.n, code.index(1))
            end = arith.maxsi(arith.subi(end, slanted), begin)
            if self.block.skew < 0:
                left = arith.remsi(arith.subi(end, begin), size)
                return arith.addi(begin, slanted), arith.addi(arith.subi(end, left), slanted)
        stop = arith.subi(end, arith.remsi(arith.subi(end, begin), size))
        if axis == self.block.row_axis and self.least > code.shortest:
            fits = arith.cmpi(arith.CmpIPredicate.sge, code.n, code.index(self.least))
            stop = arith.select(fits, stop, begin)
        return begin, stop

    def _blocks(
        self, whole: Sequence[Range], sizes: Sequence[ir.Value], origin: list[ir.Value]
    ) -> None:
        axis = len(origin)
        if axis == self.rank:
            BlockCode(self.code, self.plan, self.sweep, self.fields, origin).emit()
            return
        self.code.loop(
            *whole[axis],
            lambda i, _: self._blocks(whole, sizes, [*origin, i]),
            step=sizes[axis],
        )

    def _beside(
        self, at: Sequence[ir.Value], whole: Sequence[Range], width: ir.Value
    ) -> list[Range]:
        """The columns that no block covers, in a row that blocks do."""
        code, (first, stop) = self.code, whole[-1]
        if not self.block.skew:
            return [(stop, width)]
        row_axis = self.block.row_axis
        row = arith.remsi(arith.subi(at[row_axis], whole[row_axis][0]), code.n)
        shift = arith.addi if self.block.skew > 0 else arith.subi
        # Where no block fits, a row may begin or end beyond the width.
        left = arith.minsi(shift(first, row), width)
        return [(code.index(0), left), (shift(stop, row), width)]
