# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Parts of stencil programs: linear ops, accesses, what applies use from outside, uses of temps."""

from twofour.dialects.stencil.linear_ops import WeightedSumOp
from twofour.dialects.stencil.ops import AccessOp, ApplyOp
from twofour.dialects.stencil.types import TempType
from twofour.mlir import ir
from twofour.mlir_support import error_at, is_inside, nested_ops

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


def check_blocks(root: ir.Operation) -> None:
    """Raise TwofourError where a temp is used in another block than the one that computes it.

    Blocks inside that one are no others.
    """
    for op in nested_ops(root):
        for region in op.regions:
            if len(region.blocks) > 1:
                _check_region(list(region.blocks))


def _check_region(blocks: list[ir.Block]) -> None:
    for block in blocks:
        temps = (r for op in block.operations for r in op.results if isinstance(r.type, TempType))
        for use in (use for temp in temps for use in temp.uses):
            user = use.owner.operation
            while user.block not in blocks:
                user = user.parent.operation
            if user.block != block:
                what = "expected temps to be used in the block that computes them"
                raise error_at(use.owner, what)
