# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""`nm-compress`: keep two of every four columns, with ordered metadata.

`nm.patch_matmul` with a 2:4 matrix of M x K becomes `nm.sparse_patch_matmul` with M x K/2 values
and M x K/16 words of metadata, in the layout that `mma.sp::ordered_metadata` reads. Offsets keep
all K columns.
"""

from dataclasses import dataclass
from typing import ClassVar

from twofour.dialects.nm.ops import PERMUTATION_ATTRIBUTE, PatchMatmulOp, SparsePatchMatmulOp
from twofour.layout.compress import check_2to4, compress
from twofour.mlir import ir
from twofour.mlir_support import error_at, nested_ops, replace_op
from twofour.passes import ModulePass


@dataclass(frozen=True)
class CompressPass(ModulePass):
    """Compress 2:4 patch operators into values and ordered metadata."""

    name: ClassVar[str] = "nm-compress"

    def run(self, module: ir.Operation) -> None:
        for op in nested_ops(module, PatchMatmulOp.OPERATION_NAME):
            operator = op.operator()
            columns = operator.matrix.shape[1]
            if columns % 16:
                raise error_at(op, f"expected a multiple of 16 columns, got {columns}")
            failure = check_2to4(operator.matrix)
            if failure is not None:
                raise error_at(op, f"{failure}; run nm-permute-2to4 first")
            values, metadata = compress(operator.matrix)
            with ir.InsertionPoint(op):
                compressed = SparsePatchMatmulOp.build(
                    op, operator, values, metadata, loc=op.location
                )
            if PERMUTATION_ATTRIBUTE in op.attributes:
                compressed.attributes[PERMUTATION_ATTRIBUTE] = op.attributes[PERMUTATION_ATTRIBUTE]
            replace_op(op, compressed)
