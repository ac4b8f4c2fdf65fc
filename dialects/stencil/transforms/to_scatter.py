# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""`stencil-to-scatter`: from gather to scatter form (Stencil Matrixization, equations 1 to 5).

    %r = "stencil.weighted_sum"(%t) {offsets = [[0, -1], [1, 0]], weights = array<f64: 1.0, 2.0>}

reads the neighbours of each output. It becomes

    %r = "stencil.scatter_sum"(%t) {scatter_offsets = [[-1, 0], [0, 1]],
      scatter_weights = array<f64: 2.0, 1.0>, offsets = ..., weights = ...} : ...

which says where each input goes: every offset is negated (C^s = J C^g J) and weights of 0 go.
"""

from dataclasses import dataclass
from typing import ClassVar

from twofour.dialects.stencil.linear_ops import WeightedSumOp, linear_terms
from twofour.dialects.stencil.outer_ops import ScatterSumOp
from twofour.layout.coefficient_lines import scatter
from twofour.mlir import ir
from twofour.mlir_support import nested_ops, replace_op
from twofour.passes import ModulePass


@dataclass(frozen=True)
class ToScatterPass(ModulePass):
    """Write every weighted sum in scatter form, by where an input goes."""

    name: ClassVar[str] = "stencil-to-scatter"

    def run(self, module: ir.Operation) -> None:
        for op in nested_ops(module, WeightedSumOp.OPERATION_NAME):
            offsets, weights, _ = linear_terms(op)
            with ir.InsertionPoint(op):
                scattered = ScatterSumOp.build(op, scatter(offsets, weights), loc=op.location)
            replace_op(op, scattered)
