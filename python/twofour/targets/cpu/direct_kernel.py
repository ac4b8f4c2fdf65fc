# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""CPU kernels for weighted sums: blocks of rows times vectors along the innermost axis.

A block of rows is a patch operator whose tile has one point on the innermost axis: every input
vector of the block is loaded once and feeds all rows that use it. The terms of an output are added
from the lowest offset to the highest by fused multiply-adds, whatever the block, so that vectors,
remainders and the sparse route give the same bits.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from twofour.layout.crush import crush
from twofour.mlir import arith, func, ir, math, memref, scf, vector
from twofour.targets.cpu.elements import ElementCode
from twofour.targets.cpu.kernel_abi import (
    EntryConstants,
    kernel_function,
    shifted,
    strided_loop,
    view_type,
)

Offset = tuple[int, ...]

# Blocks are unrolled; beyond this many multiply-adds in one they only cost compile time.
MAX_BLOCK_TERMS = 256
MAX_ROWS = 4


@dataclass(frozen=True)
class Terms:
    """The terms of one input: out[x] += sum_i weights[i] * in[x + offsets[i]]."""

    offsets: Sequence[Offset]
    weights: Sequence[float]

    @property
    def reach_lo(self) -> Offset:
        return tuple(-min(column) for column in zip(*self.offsets, strict=True))


@dataclass(frozen=True)
class DirectKernel:
    """What a kernel computes: constant + addend + the terms of each input, in this order.

    With `has_addend` the last input is the addend, read at the output point.
    """

    name: str
    inputs: Sequence[Terms]
    constant: float = 0.0
    has_addend: bool = False

    @property
    def rank(self) -> int:
        return len(self.inputs[0].offsets[0])

    def rows(self) -> int:
        """Rows of a block: as many as fit the limits, a power of two."""
        if self.rank == 1:
            return 1
        terms = sum(len(t.weights) for t in self.inputs)
        rows = MAX_ROWS
        while rows > 1 and rows * terms > MAX_BLOCK_TERMS:
            rows //= 2
        return rows


def build_direct_kernel(kernel: DirectKernel, element: ir.Type) -> func.FuncOp:
    """Insert the kernel's function at the current insertion point."""
    inputs = len(kernel.inputs) + kernel.has_addend
    views = [view_type(kernel.rank, element)] * (inputs + 1)
    function = kernel_function(kernel.name, views, inputs)
    with ir.InsertionPoint(function.entry_block):
        _Emitter(kernel, ElementCode(element), function.entry_block).emit()
        func.ReturnOp([])
    return function


@dataclass(frozen=True)
class _Block:
    """Straight-line code for some rows: for every input, matrices over its input points."""

    outputs: list[Offset]
    inputs: list[tuple[np.ndarray, list[Offset]]]


class _Emitter:
    def __init__(self, kernel: DirectKernel, code: ElementCode, entry: ir.Block):
        self.kernel, self.code = kernel, code
        arguments = list(entry.arguments)
        count = len(kernel.inputs)
        self.inputs = arguments[:count]
        self.addend = arguments[count] if kernel.has_addend else None
        self.output, self.begin, self.end = arguments[-3:]
        self.constants = EntryConstants(entry)

    def emit(self) -> None:
        self._loops(0, 1, [])

    def _loops(self, axis: int, rows: int, bases: list[ir.Value]) -> None:
        begin, end = self.begin, self.end
        if axis > 0:
            begin = self.constants.index(0)
            end = memref.dim(self.output, self.constants.index(axis))
        rank = self.kernel.rank
        if axis == rank - 1:
            block = self._block_of(rows)
            rest = strided_loop(
                self.constants,
                begin,
                end,
                self.code.lanes,
                lambda base: self._emit_block(block, [*bases, base], None),
            )
            self._tail(block, [*bases, rest], end)
            return
        steps = [self.kernel.rows(), 1] if axis == rank - 2 else [1]
        for step in dict.fromkeys(steps):
            begin = strided_loop(
                self.constants,
                begin,
                end,
                step,
                lambda base, step=step: self._loops(axis + 1, step, [*bases, base]),
            )

    def _tail(self, block: _Block, bases: list[ir.Value], end: ir.Value) -> None:
        """The last points of a row, fewer than a vector, under a mask."""
        left = arith.subi(end, bases[-1])
        some = arith.cmpi(arith.CmpIPredicate.sgt, left, self.constants.index(0))
        with ir.InsertionPoint(scf.IfOp(some).then_block):
            kind = ir.VectorType.get([self.code.lanes], ir.IntegerType.get_signless(1))
            self._emit_block(block, bases, vector.create_mask(kind, [left]))
            scf.yield_([])

    def _block_of(self, rows: int) -> _Block:
        rank = self.kernel.rank
        tile = tuple(rows if axis == rank - 2 else 1 for axis in range(rank))
        operators = [crush(t.offsets, t.weights, tile) for t in self.kernel.inputs]
        return _Block(
            [tuple(row) for row in operators[0].output_offsets.tolist()],
            [(op.matrix, [tuple(p) for p in op.input_offsets.tolist()]) for op in operators],
        )

    def _emit_block(self, block: _Block, bases: list[ir.Value], mask: ir.Value | None) -> None:
        """One vector of every row, whole or under a mask."""
        sums = [self._start(bases, output, mask) for output in block.outputs]
        for view, terms, (matrix, points) in zip(
            self.inputs, self.kernel.inputs, block.inputs, strict=True
        ):
            for column, point in enumerate(points):
                shift = [p + lo for p, lo in zip(point, terms.reach_lo, strict=True)]
                value = self._read(view, shifted(self.constants, bases, shift), mask)
                for row in np.flatnonzero(matrix[:, column]).tolist():
                    weight = self._number(float(matrix[row, column]))
                    sums[row] = (
                        arith.mulf(weight, value)
                        if sums[row] is None
                        else math.fma(weight, value, sums[row])
                    )
        for output, total in zip(block.outputs, sums, strict=True):
            at = shifted(self.constants, bases, output)
            result = self.code.narrow(total, self.code.lanes)
            if mask is None:
                vector.store(result, self.output, at)
            else:
                vector.maskedstore(self.output, at, mask, result)

    def _start(self, bases, output: Offset, mask: ir.Value | None) -> ir.Value | None:
        """The number that a sum starts from, or None for nothing."""
        total = self._number(self.kernel.constant) if self.kernel.constant else None
        if self.addend is not None:
            value = self._read(self.addend, shifted(self.constants, bases, output), mask)
            total = value if total is None else arith.addf(value, total)
        return total

    def _read(self, view: ir.Value, at: list[ir.Value], mask: ir.Value | None) -> ir.Value:
        kind = ir.VectorType.get([self.code.lanes], self.code.storage)
        if mask is None:
            value = vector.load(kind, view, at)
        else:
            nothing = self.constants.get("nothing", lambda: self.code.zero(self.code.lanes))
            value = vector.maskedload(kind, view, at, mask, nothing)
        return self.code.widen(value, self.code.lanes)

    def _number(self, value: float) -> ir.Value:
        return self.constants.get(
            ("number", value), lambda: self.code.constant(value, self.code.lanes)
        )
