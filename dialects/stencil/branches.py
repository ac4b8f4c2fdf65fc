# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Branches of a region as selects.

    %x = scf.if %p -> (f16) {
      %l = "stencil.access"(%t) ...
      %m = arith.mulf %a, %l : f16
      scf.yield %m : f16
    } else {
      scf.yield %b : f16
    }

becomes

    %l = "stencil.access"(%t) ...
    %m = arith.mulf %a, %l : f16
    %x = arith.select %p, %m, %b : f16

In this form both branches are computed at every point.
"""

from twofour.dialects.stencil.ops import AccessOp, ApplyOp
from twofour.dialects.stencil.types import ResultType
from twofour.dialects.stencil.vector_region import INSTRUCTIONS
from twofour.mlir import arith, ir
from twofour.mlir_support import is_inside, nested_ops

_IF = "scf.if"
# A region may read what its accesses name at every point.
_ANYWHERE = {*INSTRUCTIONS, "arith.constant", AccessOp.OPERATION_NAME, "stencil.index"}


def select_branches(apply: ApplyOp) -> None:
    """Replace branches of a region, in place, that have nothing but instructions and accesses.

    LLVM makes vectors of such loops, but not of loads in branches. Where the region does not decide
    which branch it is, LLVM makes a loop for each.
    """
    for branch in reversed(nested_ops(apply, _IF)):
        if is_inside(branch.operands[0], apply.operation) and _is_computed_anywhere(branch):
            _select(branch)


def _is_computed_anywhere(branch) -> bool:
    ops = [op for region in branch.regions for block in region.blocks for op in block.operations]
    return (
        len(branch.results) > 0
        and not any(isinstance(result.type, ResultType) for result in branch.results)
        and all(op.operation.name in (*_ANYWHERE, "scf.yield") for op in ops)
    )


def _select(branch) -> None:
    yielded = []
    for region in branch.regions:
        *ops, terminator = region.blocks[0].operations
        for op in ops:
            op.operation.move_before(branch.operation)
        yielded.append(list(terminator.operands))
    with ir.InsertionPoint(branch), branch.location:
        for result, chosen, other in zip(branch.results, *yielded, strict=True):
            result.replace_all_uses_with(arith.select(branch.operands[0], chosen, other))
    branch.operation.erase()
