# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Parts of stencil programs: linear ops, accesses, and what applies use from outside."""

from twofour.dialects.stencil.linear_ops import WeightedSumOp
from twofour.dialects.stencil.ops import AccessOp, ApplyOp
from twofour.mlir import ir
from twofour.mlir_support import is_inside, nested_ops

LINEAR_OPS = (WeightedSumOp.OPERATION_NAME, "nm.patch_matmul", "nm.sparse_patch_matmul")


def is_linear_op(op) -> bool:
    """Whether an op is one of the forms that a linear stencil takes."""
    return op.operation.name in LINEAR_OPS


def accesses(apply: ApplyOp) -> list[AccessOp]:
    """The accesses in an apply, in order."""
    return nested_ops(apply, AccessOp.OPERATION_NAME)


def captured_values(apply: ApplyOp) -> list[ir.Value]:
    """Values from outside that an apply uses, each once, in the order of first use."""
    captured: dict[ir.Value, None] = {}
    for op in nested_ops(apply):
        for operand in op.operands:
            if not is_inside(operand, apply.operation):
                captured.setdefault(operand)
    return list(captured)


def erase_unused(root: ir.Operation) -> None:
    """Erase what computes temps that nothing reads."""
    names = (ApplyOp.OPERATION_NAME, *LINEAR_OPS, "stencil.buffer")
    for op in reversed(nested_ops(root, *names)):
        if not any(list(result.uses) for result in op.results):
            op.operation.erase()
