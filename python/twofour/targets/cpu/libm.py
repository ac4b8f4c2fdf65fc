# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Functions that LLVM has no intrinsic for, called from C's library of mathematical functions.

    %y = math.expm1 %x : vector<8xf32>

becomes a call of `expm1f` for each lane. Upstream's conversion to LLVM leaves most of them. Of
`math.log1p` and `math.expm1` it makes `log(1 + x)` and `exp(x) - 1`, which have no digit right
where x is small. Upstream's `convert-math-to-libm` would call the library for square roots as well.
"""

from collections.abc import Iterable

from twofour.mlir import arith, func, ir, vector
from twofour.mlir_support import error_at

FUNCTIONS = {
    f"math.{name}": name
    for name in ("acosh", "asinh", "atanh", "cbrt", "erf", "erfc", "expm1", "log1p")
}


def call_libm(module: ir.Module, ops: Iterable) -> None:
    """Replace these functions, `ops` of a module on numbers and on vectors of one axis.

    No function of the module has the name of one in C's library. Raises TwofourError, located at
    the op, for other types.
    """
    declared: dict[str, ir.Type] = {}
    for op in ops:
        with ir.InsertionPoint(op), op.location:
            value = _result(op, op.operands[0], declared)
        op.results[0].replace_all_uses_with(value)
        op.operation.erase()
    with ir.InsertionPoint.at_block_begin(module.body), ir.Location.unknown():
        for name, kind in declared.items():
            func.FuncOp(name, ir.FunctionType.get([kind], [kind]), visibility="private")


def _result(op, operand: ir.Value, declared: dict[str, ir.Type]) -> ir.Value:
    kind = operand.type
    if not isinstance(kind, ir.VectorType):
        return _call(op, operand, declared)
    if kind.rank != 1 or kind.scalable:
        raise error_at(
            op, f"expected a number or a vector of one axis and a fixed length, got {kind}"
        )
    result = operand
    for lane in range(kind.shape[0]):
        number = vector.extract(operand, [], [lane])
        result = vector.insert(_call(op, number, declared), result, [], [lane])
    return result


def _call(op, number: ir.Value, declared: dict[str, ir.Type]) -> ir.Value:
    """A function of one number, `declared` with its type; those of f16 are computed in f32."""
    kind = number.type
    if isinstance(kind, ir.F16Type):
        wide = arith.extf(ir.F32Type.get(), number)
        return arith.truncf(kind, _call(op, wide, declared))
    if not isinstance(kind, ir.F32Type | ir.F64Type):
        raise error_at(op, f"expected a number of f16, bf16, f32 or f64, got {kind}")
    name = FUNCTIONS[op.operation.name] + ("f" if kind.width == 32 else "")
    declared[name] = kind
    return func.call([kind], name, [number])
