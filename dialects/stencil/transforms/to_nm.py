# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""`convert-stencil-to-nm`: stencil flattening (SparStencil, section 3.1, figure 2).

    %r = "stencil.weighted_sum"(%t) {offsets = [[-1], [0]], weights = array<f64: 0.5, 0.25>} : ...

becomes the 1 x P patch operator

    %r = "nm.patch_matmul"(%t) {tile = array<i64: 1>, matrix = [array<f64: 0.5, 0.25>],
      output_offsets = [[0]], input_offsets = [[-1], [0]], offsets = ..., weights = ...} : ...
"""

from dataclasses import dataclass
from typing import ClassVar

from twofour.dialects.nm.ops import PatchMatmulOp
from twofour.dialects.stencil.linear_ops import WeightedSumOp, linear_terms
from twofour.layout.patch import flatten
from twofour.mlir import ir
from twofour.mlir_support import nested_ops, replace_op
from twofour.passes import ModulePass


@dataclass(frozen=True)
class ConvertStencilToNmPass(ModulePass):
    """Write every weighted sum as a 1 x P patch operator (stencil flattening)."""

    name: ClassVar[str] = "convert-stencil-to-nm"

    def run(self, module: ir.Operation) -> None:
        for op in nested_ops(module, WeightedSumOp.OPERATION_NAME):
            offsets, weights, _ = linear_terms(op)
            with ir.InsertionPoint(op):
                flat = PatchMatmulOp.build(op, flatten(offsets, weights), loc=op.location)
            replace_op(op, flat)
