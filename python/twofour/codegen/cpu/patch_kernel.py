# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""CPU kernels for patch operators: out[n*tile + o_m] = sum_k A[m,k] * in[n*tile + p_k].

The lanes of a vector are neighbouring tiles along the innermost axis, as the columns of the B
fragment are for `mma.sp`. The non-zeros of A and the offsets stand in constant tables, so the code
has one size for every operator. The terms of a row are added from the lowest input offset to the
highest, whatever the order of the columns, so the result has the bits of the direct route
without reassociation.
"""

from dataclasses import dataclass

import numpy as np

from twofour.codegen.cpu.elements import ElementCode, global_table
from twofour.codegen.cpu.kernel_abi import EntryConstants, kernel_function, view_type
from twofour.layout.patch import PatchOperator
from twofour.mlir import arith, func, ir, math, memref, scf, vector


@dataclass(frozen=True)
class PatchKernel:
    """constant + addend + the patch operator.

    `reach_lo` is how far the input view reaches below the outputs on each axis. `addend` is the
    element type of a second input, read at the output, or None; input, addend and output are
    summed in one type.
    """

    name: str
    operator: PatchOperator
    reach_lo: tuple[int, ...]
    input: ir.Type
    output: ir.Type
    addend: ir.Type | None = None
    constant: float = 0.0

    @property
    def rank(self) -> int:
        return len(self.operator.tile)


def build_patch_kernel(kernel: PatchKernel) -> func.FuncOp:
    """Insert the kernel's function, and before it its tables, at the current insertion point."""
    tables = _make_tables(kernel, ElementCode(kernel.input))
    elements = [kernel.input] if kernel.addend is None else [kernel.input, kernel.addend]
    views = [view_type(kernel.rank, element) for element in (*elements, kernel.output)]
    function = kernel_function(kernel.name, views, len(elements))
    with ir.InsertionPoint(function.entry_block):
        _Emitter(kernel, function.entry_block, tables).emit()
        func.ReturnOp([])
    return function


def _make_tables(kernel: PatchKernel, code: ElementCode) -> dict[str, ir.Type]:
    """Globals of the non-zeros of A in the order of summation; returns their types by name.

    `first` (M + 1) is where each row begins; `weight` and `point` (rank columns) belong to the
    non-zeros, `output` (rank columns) to the rows.
    """
    operator = kernel.operator
    first, weights, points = [0], [], []
    order = np.lexsort(operator.input_offsets.T[::-1])
    for row in operator.matrix[:, order]:
        used = np.flatnonzero(row)
        weights.append(row[used])
        points.append(operator.input_offsets[order][used] + np.array(kernel.reach_lo))
        first.append(first[-1] + len(used))
    index = ir.IndexType.get()
    contents = {
        "first": (np.array(first, dtype=np.int64), index),
        "weight": (np.concatenate(weights).astype(code.accumulation_dtype), code.accumulation),
        "point": (np.concatenate(points), index),
        "output": (operator.output_offsets, index),
    }
    return {
        name: global_table(f"{kernel.name}_{name}", data, element)
        for name, (data, element) in contents.items()
    }


class _Emitter:
    def __init__(self, kernel: PatchKernel, entry: ir.Block, tables: dict[str, ir.Type]):
        self.kernel, self.code = kernel, ElementCode(kernel.input)
        arguments = list(entry.arguments)
        self.input = arguments[0]
        self.addend = None if kernel.addend is None else arguments[1]
        self.output, self.begin, self.end = arguments[-3:]
        self.constants = EntryConstants(entry)
        self.tables = {
            name: memref.GetGlobalOp(kind, f"{kernel.name}_{name}").result
            for name, kind in tables.items()
        }

    def emit(self) -> None:
        """Loops over tiles; a cut tile has its rows checked one by one."""
        self.ends = [self.end] + [
            memref.dim(self.output, self._index(axis)) for axis in range(1, self.kernel.rank)
        ]
        self._loops(0, [], None)

    def _loops(self, axis: int, bases: list[ir.Value], whole: ir.Value | None) -> None:
        """Loop over the tiles on `axis`; `whole` says whether the tile is whole so far."""
        begin = self.begin if axis == 0 else self._index(0)
        end, tile = self.ends[axis], self.kernel.operator.tile[axis]
        if axis == self.kernel.rank - 1:
            width = tile * self.code.lanes
            for base in scf.for_(begin, end, self._index(width)):
                fits = arith.cmpi(
                    arith.CmpIPredicate.sle, arith.addi(base, self._index(width)), end
                )
                fits = fits if whole is None else arith.andi(whole, fits)
                choice = scf.IfOp(fits, has_else=True)
                with ir.InsertionPoint(choice.then_block):
                    self._rows([*bases, base], self.code.lanes)
                    scf.yield_([])
                with ir.InsertionPoint(choice.else_block):
                    self._cut_tiles(bases, base)
                    scf.yield_([])
                scf.yield_([])
            return
        for base in scf.for_(begin, end, self._index(tile)):
            fits = arith.cmpi(arith.CmpIPredicate.sle, arith.addi(base, self._index(tile)), end)
            self._loops(
                axis + 1, [*bases, base], fits if whole is None else arith.andi(whole, fits)
            )
            scf.yield_([])

    def _cut_tiles(self, bases: list[ir.Value], base: ir.Value) -> None:
        """The tiles of one vector one after another, those of their outputs that exist."""
        tile, end = self.kernel.operator.tile[-1], self.ends[-1]
        stop = arith.minsi(arith.addi(base, self._index(tile * self.code.lanes)), end)
        for single in scf.for_(base, stop, self._index(tile)):
            self._rows([*bases, single], 1)
            scf.yield_([])

    def _rows(self, bases: list[ir.Value], lanes: int) -> None:
        """Every row of A for one tile (one lane) or for `lanes` whole tiles."""
        count = len(self.kernel.operator.matrix)
        for row in scf.for_(self._index(0), self._index(count), self._index(1)):
            at = self._at(bases, "output", row)
            if lanes > 1:
                self._row(row, bases, at, lanes)
            else:
                exists = [
                    arith.cmpi(arith.CmpIPredicate.slt, i, end)
                    for i, end in zip(at, self.ends, strict=True)
                ]
                both = exists[0]
                for other in exists[1:]:
                    both = arith.andi(both, other)
                with ir.InsertionPoint(scf.IfOp(both).then_block):
                    self._row(row, bases, at, lanes)
                    scf.yield_([])
            scf.yield_([])

    def _row(self, row: ir.Value, bases: list[ir.Value], at: list[ir.Value], lanes: int) -> None:
        first = memref.load(self.tables["first"], [row])
        last = memref.load(self.tables["first"], [arith.addi(row, self._index(1))])
        start, first = self._start(first, bases, at, lanes)
        loop = scf.ForOp(first, last, self._index(1), [start])
        with ir.InsertionPoint(loop.body):
            weight, value = self._term(loop.induction_variable, bases, lanes)
            scf.yield_([math.fma(weight, value, loop.inner_iter_args[0])])
        self._write(at, ElementCode(self.kernel.output).narrow(loop.results[0], lanes), lanes)

    def _start(
        self, first: ir.Value, bases: list[ir.Value], at: list[ir.Value], lanes: int
    ) -> tuple[ir.Value, ir.Value]:
        """The number that a row's sum starts from, and the first term that is left to add."""
        constant = self.kernel.constant
        if self.addend is not None:
            value = self._read(self.addend, at, lanes)
            return (arith.addf(value, self._number(constant, lanes)) if constant else value), first
        if constant:
            return self._number(constant, lanes), first
        weight, value = self._term(first, bases, lanes)
        return arith.mulf(weight, value), arith.addi(first, self._index(1))

    def _term(self, term: ir.Value, bases: list[ir.Value], lanes: int) -> tuple[ir.Value, ir.Value]:
        """Weight and input value of one non-zero."""
        weight = memref.load(self.tables["weight"], [term])
        if lanes > 1:
            weight = vector.broadcast(self.code.shaped(self.code.accumulation, lanes), weight)
        return weight, self._read(self.input, self._at(bases, "point", term), lanes)

    def _at(self, bases: list[ir.Value], table: str, entry: ir.Value) -> list[ir.Value]:
        return [
            arith.addi(base, memref.load(self.tables[table], [entry, self._index(axis)]))
            for axis, base in enumerate(bases)
        ]

    def _read(self, view: ir.Value, at: list[ir.Value], lanes: int) -> ir.Value:
        code = ElementCode(view.type.element_type)
        if lanes == 1:
            return code.widen(memref.load(view, at), 1)
        kind = code.shaped(code.storage, lanes)
        if self.kernel.operator.tile[-1] == 1:
            return code.widen(vector.load(kind, view, at), lanes)
        passed = self.constants.get(("zero", code.storage), lambda: code.zero(lanes))
        mask, steps = self._lane_steps(lanes)
        return code.widen(vector.gather(kind, view, at, steps, mask, passed), lanes)

    def _write(self, at: list[ir.Value], value: ir.Value, lanes: int) -> None:
        if lanes == 1:
            memref.store(value, self.output, at)
        elif self.kernel.operator.tile[-1] == 1:
            vector.store(value, self.output, at)
        else:
            mask, steps = self._lane_steps(lanes)
            vector.ScatterOp(None, self.output, at, steps, mask, value)

    def _lane_steps(self, lanes: int) -> tuple[ir.Value, ir.Value]:
        """A mask of all lanes, and the distance of each lane's tile from the first."""
        bit, word = ir.IntegerType.get_signless(1), ir.IntegerType.get_signless(64)
        mask_type, step_type = ir.VectorType.get([lanes], bit), ir.VectorType.get([lanes], word)
        ones = ir.DenseElementsAttr.get_splat(mask_type, ir.IntegerAttr.get(bit, 1))
        steps = np.arange(lanes, dtype=np.int64) * self.kernel.operator.tile[-1]
        dense = ir.DenseElementsAttr.get(steps, type=step_type)
        return (
            self.constants.get("mask", lambda: arith.ConstantOp(mask_type, ones).result),
            self.constants.get("steps", lambda: arith.ConstantOp(step_type, dense).result),
        )

    def _index(self, value: int) -> ir.Value:
        return self.constants.index(value)

    def _number(self, value: float, lanes: int) -> ir.Value:
        return self.constants.get(
            ("number", value, lanes), lambda: self.code.constant(value, lanes)
        )
