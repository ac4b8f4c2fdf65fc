# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""`stencil-select-cover`: coefficient lines over all weights (Stencil Matrixization, 3.3 to 3.5).

    %r = "stencil.scatter_sum"(%t) {scatter_offsets = [[-1, 0], [0, -1], [0, 0], [0, 1], [1, 0]],
      scatter_weights = array<f64: 1.0, 2.0, 3.0, 4.0, 5.0>, ...} : ...

becomes, with `option=orthogonal`, a line along the row axis and one along the vector axis,

    %r = "stencil.line_sum"(%t) {option = "orthogonal", lines = [
      {direction = [1, 0], start = [-1, 0], weights = array<f64: 1.0, 3.0, 5.0>},
      {direction = [0, 1], start = [0, -1], weights = array<f64: 2.0, 0.0, 4.0>}], ...} : ...

A line of m weights costs m - 1 + n outer products for a tile of n x n outputs.
"""

from dataclasses import dataclass
from typing import ClassVar, Literal

from twofour.dialects.stencil.outer_machine import (
    check_vector_bits,
    extents,
    matrix_registers,
    vector_length,
)
from twofour.dialects.stencil.outer_ops import LineSumOp, ScatterSumOp
from twofour.errors import TwofourError
from twofour.layout.coefficient_lines import Line, cover
from twofour.layout.outer_cost import best_cover
from twofour.mlir import ir
from twofour.mlir_support import error_at, nested_ops, replace_op
from twofour.passes import ModulePass


@dataclass(frozen=True)
class SelectCoverPass(ModulePass):
    """Cover the weights of scatter sums by coefficient lines; ranks 2 and 3.

    `option`, after Tables 1 and 2 of the paper: `parallel` has lines along the row axis (the last
    but one) alone; `orthogonal` along all axes, the fewest in rank 2 (Koenig's theorem), in rank 3
    by taking the fullest line each time; `hybrid` along the row and the vector axis, the fewest in
    each plane; `diagonal` along the diagonals of each plane, again the fewest. `auto` takes the one
    whose schedule needs the fewest instructions for vectors of `vector-bits` bits.
    """

    name: ClassVar[str] = "stencil-select-cover"
    option: Literal["auto", "parallel", "orthogonal", "hybrid", "diagonal"] = "auto"
    vector_bits: int = 512

    def __post_init__(self):
        check_vector_bits(self.vector_bits)

    def run(self, module: ir.Operation) -> None:
        for op in nested_ops(module, ScatterSumOp.OPERATION_NAME):
            option, lines = self._cover(op)
            with ir.InsertionPoint(op):
                covered = LineSumOp.build(op, lines, option, loc=op.location)
            replace_op(op, covered)

    def _cover(self, op: ScatterSumOp) -> tuple[str, tuple[Line, ...]]:
        n, limit = vector_length(op, self.vector_bits), matrix_registers(op)
        try:
            if self.option != "auto":
                return self.option, cover(op.terms(), self.option)
            return best_cover(op.terms(), limit, n, extents(op))
        except TwofourError as error:
            raise error_at(op, error.message) from None
