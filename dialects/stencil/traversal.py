# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Walking over stencil programs: their functions, applies, accesses and linear ops."""

from twofour.dialects.stencil.ops import AccessOp, ApplyOp, WeightedSumOp
from twofour.mlir import ir
from twofour.mlir_support import is_inside

LINEAR_OPS = (WeightedSumOp.OPERATION_NAME, "nm.patch_matmul", "nm.sparse_patch_matmul")


def nested_ops(root, *names: str) -> list:
    """Every op inside `root` (of the given names, when there are any), outermost first."""
    found = []

    def visit(op):
        if not names or op.operation.name in names:
            found.append(op.operation.opview)
        return ir.WalkResult.ADVANCE

    root.operation.walk(visit, ir.WalkOrder.PRE_ORDER)
    return found


def functions(module) -> list:
    """The functions of a module that have a body, in order."""
    return [
        op
        for op in module.regions[0].blocks[0].operations
        if op.operation.name == "func.func" and len(op.regions[0].blocks) > 0
    ]


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
