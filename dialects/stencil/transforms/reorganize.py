# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""`stencil-reorganize`: how vectors that overlap are made (Stencil Matrixization, section 4.3).

    %r = "stencil.outer_sum"(%t) {by = "load", smallest_length = 1, ...} : ...

becomes, with `by=splice`, for vectors of the shifts -1, 0 and 1,

    %r = "stencil.outer_sum"(%t) {by = "splice", smallest_length = 2, ...} : ...

With `load` each vector comes from memory. With `splice` only those of a row's least shift do, and
one more at the end; the others are made of two neighbours (EXT on Arm), so vectors have to be at
least as long as the shifts are apart.
"""

from dataclasses import dataclass, replace
from typing import ClassVar, Literal

from twofour.dialects.stencil.outer_ops import OuterSumOp
from twofour.mlir import ir
from twofour.mlir_support import nested_ops, replace_op
from twofour.passes import ModulePass


@dataclass(frozen=True)
class ReorganizePass(ModulePass):
    """Make overlapping input vectors by loads, or by splices of two loaded vectors."""

    name: ClassVar[str] = "stencil-reorganize"
    by: Literal["load", "splice"] = "load"

    def run(self, module: ir.Operation) -> None:
        for op in nested_ops(module, OuterSumOp.OPERATION_NAME):
            with ir.InsertionPoint(op):
                plan = replace(op.plan(), by=self.by)
                reorganized = OuterSumOp.build(op, plan, loc=op.location)
            replace_op(op, reorganized)
