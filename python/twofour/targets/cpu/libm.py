# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Functions that LLVM has no intrinsic for, called from C's library of mathematical functions.

    %y = math.expm1 %x : vector<8xf32>

becomes a call of `expm1f` for each lane. Upstream's conversion to LLVM leaves most of them. Of
`math.log1p` and `math.expm1` it makes `log(1 + x)` and `exp(x) - 1`, which have no digit right
where x is small. Upstream's `convert-math-to-libm` would call the library for square roots as well.
"""

from twofour.mlir import arith, func, ir, vector
from twofour.mlir_support import error_at, nested_ops

FUNCTIONS = {
    f"math.{name}": name
    for name in ("acosh", "asinh", "atanh", "cbrt", "erf", "erfc", "expm1", "log1p")
}


def call_libm(module: ir.Module) -> None:
    """Replace these functions of numbers and of vectors of one axis in a module.

    Raises TwofourError, located at the op, for other types, and at a function of the module that
    has the name of one which is called.
    """
    library = _Library(module)
    for op in nested_ops(module, *FUNCTIONS):
        with ir.InsertionPoint(op), op.location:
            value = _result(op, op.operands[0], library)
        op.results[0].replace_all_uses_with(value)
        op.operation.erase()


def _result(op, operand: ir.Value, library: "_Library") -> ir.Value:
    kind = operand.type
    if not isinstance(kind, ir.VectorType):
        return library.call(op, operand)
    if kind.rank != 1 or kind.scalable:
        raise error_at(
            op, f"expected a number or a vector of one axis and a fixed length, got {kind}"
        )
    result = operand
    for lane in range(kind.shape[0]):
        number = vector.extract(operand, [], [lane])
        result = vector.insert(library.call(op, number), result, [], [lane])
    return result


class _Library:
    """Declarations, in a module, of the functions that are called."""

    def __init__(self, module: ir.Module):
        self._module = module
        self._symbols = ir.SymbolTable(module.operation)

    def call(self, op, number: ir.Value) -> ir.Value:
        """A function of one number; those of 16 bits are computed in f32."""
        kind = number.type
        if isinstance(kind, ir.F16Type | ir.BF16Type):
            wide = arith.extf(ir.F32Type.get(), number)
            return arith.truncf(kind, self.call(op, wide))
        if not isinstance(kind, ir.F32Type | ir.F64Type):
            raise error_at(op, f"expected a number of f16, bf16, f32 or f64, got {kind}")
        name = FUNCTIONS[op.operation.name] + ("f" if kind.width == 32 else "")
        self._declare(name, ir.FunctionType.get([kind], [kind]))
        return func.call([kind], name, [number])

    def _declare(self, name: str, kind: ir.FunctionType) -> None:
        if name in self._symbols:
            known = self._symbols[name]
            if known.regions[0].blocks or known.type != kind:
                raise error_at(known, f"expected another name than @{name}, which C's library has")
            return
        with ir.InsertionPoint.at_block_begin(self._module.body):
            self._symbols.insert(func.FuncOp(name, kind, visibility="private"))
