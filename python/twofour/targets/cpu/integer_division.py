# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Quotients and rests of integers that have no value: processors end the process at these."""

from twofour.mlir import arith, ir
from twofour.mlir_support import integer_constant, nested_ops

_UNSIGNED = ("arith.ceildivui", "arith.divui", "arith.remui")
_SIGNED = ("arith.ceildivsi", "arith.divsi", "arith.floordivsi", "arith.remsi")


def guard_divisions(module: ir.Module) -> None:
    """Divide by 1 where a divisor is 0, or -1 and the quotient too large for its type.

    MLIR leaves open what there is then; it is some number, as on GPUs.
    """
    for op in nested_ops(module, *_UNSIGNED, *_SIGNED):
        kind, divisor = op.operands[1].type, op.operands[1]
        if isinstance(kind, ir.VectorType) or integer_constant(divisor) not in (None, 0, -1):
            continue
        with ir.InsertionPoint(op), op.location:
            is_bad = _is(divisor, 0)
            if op.operation.name in _SIGNED:
                bits = 64 if isinstance(kind, ir.IndexType) else kind.width
                overflows = arith.andi(_is(divisor, -1), _is(op.operands[0], -(2 ** (bits - 1))))
                is_bad = arith.ori(is_bad, overflows)
            one = arith.ConstantOp(kind, 1).result
            op.operation.operands[1] = arith.select(is_bad, one, divisor)


def _is(value: ir.Value, number: int) -> ir.Value:
    constant = arith.ConstantOp(value.type, number).result
    return arith.cmpi(arith.CmpIPredicate.eq, value, constant)
