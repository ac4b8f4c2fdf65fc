# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""`convert-nm-to-stencil`: patch operators as the stencils that they compute.

    %r = "nm.patch_matmul"(%t) {tile = array<i64: 2>, matrix = [array<f64: 0.5, 0.25, 0.0>,
      array<f64: 0.0, 0.5, 0.25>], output_offsets = [[0], [1]], input_offsets = [[-1], [0], [1]],
      offsets = [[-1], [0]], weights = array<f64: 0.5, 0.25>} : ...

becomes

    %r = "stencil.weighted_sum"(%t) {offsets = [[-1], [0]], weights = array<f64: 0.5, 0.25>} : ...

Every patch operator carries its stencil, and its verifier has proved that it computes that.
"""

from dataclasses import dataclass
from typing import ClassVar

from twofour.dialects.nm.ops import PATCH_OPERATORS
from twofour.dialects.stencil.linear_ops import WeightedSumOp, linear_terms
from twofour.mlir import ir
from twofour.mlir_support import nested_ops, replace_op
from twofour.passes import ModulePass


@dataclass(frozen=True)
class ConvertNmToStencilPass(ModulePass):
    """Write every patch operator, dense or 2:4, as the weighted sum that it computes.

    Compilation begins with it where a file holds operators, which are so compiled for any target
    and schedule. Schedule `sparse` on the CPU keeps them, and executes those that are 2:4 as they
    are laid out.
    """

    name: ClassVar[str] = "convert-nm-to-stencil"

    def run(self, module: ir.Operation) -> None:
        for op in nested_ops(module, *PATCH_OPERATORS):
            offsets, weights, constant = linear_terms(op)
            source, *addends = op.operands
            with ir.InsertionPoint(op):
                plain = WeightedSumOp.build(
                    op.results[0].type,
                    source,
                    offsets,
                    weights,
                    addend=addends[0] if addends else None,
                    constant=constant,
                    loc=op.location,
                )
            replace_op(op, plain)
