# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Ops that may stand in the region of an apply on a GPU, and those that PTX has instructions for.

Functions such as `math.exp` need CUDA's libdevice. What neither knows is refused at the op, since
LLVM's code generator ends the process at some of it.
"""

from collections.abc import Iterable

from twofour.codegen.gpu import cuda_toolkit, libdevice
from twofour.dialects.stencil.types import ResultType, TempType
from twofour.mlir import arith, ir, llvm
from twofour.mlir_support import error_at, nested_ops

# Intrinsics of LLVM that become an instruction or a few, with the results that the CPU gets.
_INTRINSICS = {
    "arith.maxnumf": "maxnum",
    "arith.minnumf": "minnum",
    "math.absf": "fabs",
    "math.ceil": "ceil",
    "math.copysign": "copysign",
    "math.floor": "floor",
    "math.fma": "fma",
    "math.round": "round",
    "math.roundeven": "roundeven",
    "math.sqrt": "sqrt",
    "math.trunc": "trunc",
}
_RSQRT = "math.rsqrt"
_LOAD = "memref.load"
# What the conversion to NVVM handles by itself.
_OTHER_MATH = {
    "math.absi",
    "math.ctlz",
    "math.ctpop",
    "math.cttz",
    "math.isfinite",
    "math.isinf",
    "math.isnan",
    "math.isnormal",
}
_ROUNDING_DIVISIONS = ("arith.ceildivsi", "arith.ceildivui", "arith.floordivsi")
_WITHOUT_CODE = {
    "arith.scaling_extf",
    "arith.scaling_truncf",
    "scf.forall",
    "scf.in_parallel",
    "scf.parallel",
    "scf.reduce",
}
_DIALECTS = ("arith.", "scf.", "stencil.")
_FLOATS = (ir.F16Type, ir.BF16Type, ir.F32Type, ir.F64Type)
MAX_INTEGER_BITS = 64


def check_point_ops(apply, captured: Iterable[ir.Value]) -> None:
    """Raise TwofourError, located at the op, for what a GPU kernel of an apply cannot hold.

    `captured` are the values that become arguments of the kernel: numbers, and memrefs that the
    region loads from.
    """
    for value in captured:
        _check_type(apply, value.type)
    for op in nested_ops(apply):
        name = op.operation.name
        known = name in _INTRINSICS or name in _OTHER_MATH or name in (_RSQRT, _LOAD)
        if name in libdevice.FUNCTIONS:
            known = True
            if cuda_toolkit.find_libdevice() is None:
                raise error_at(op, "expected CUDA's libdevice (CUDA_HOME) for a GPU, got none")
        if not known and (name in _WITHOUT_CODE or not name.startswith(_DIALECTS)):
            raise error_at(op, "expected an op that the GPU targets have code for")
        for value in (*op.operands, *op.results):
            if not isinstance(value.type, TempType | ResultType):
                _check_type(op, value.type)
        for region in op.regions:
            for argument in (a for block in region.blocks for a in block.arguments):
                _check_type(op, argument.type)


def _check_type(op, kind: ir.Type) -> None:
    if isinstance(kind, ir.MemRefType) and kind.rank > 0:
        # A table: its elements count.
        kind = kind.element_type
    if isinstance(kind, ir.IntegerType) and kind.width <= MAX_INTEGER_BITS:
        return
    if not isinstance(kind, (*_FLOATS, ir.IndexType)):
        raise error_at(
            op,
            f"expected numbers of type f16, bf16, f32, f64, index or integers of at most "
            f"{MAX_INTEGER_BITS} bits on a GPU, got {kind}",
        )


def expand_divisions(kernel) -> None:
    """Replace divisions of integers that round up or down by those that round towards zero."""
    for op in nested_ops(kernel, *_ROUNDING_DIVISIONS):
        with ir.InsertionPoint(op), op.location:
            op.results[0].replace_all_uses_with(_rounded_quotient(op))
        op.operation.erase()


def _rounded_quotient(op) -> ir.Value:
    a, b = op.operands
    zero, one = (arith.ConstantOp(a.type, number).result for number in (0, 1))
    compare = arith.CmpIPredicate
    if op.operation.name == "arith.ceildivui":
        quotient, rest = arith.divui(a, b), arith.remui(a, b)
        apart = arith.cmpi(compare.ne, rest, zero)
        return arith.select(apart, arith.addi(quotient, one), quotient)
    quotient, rest = arith.divsi(a, b), arith.remsi(a, b)
    uneven = arith.cmpi(compare.ne, rest, zero)
    # The rest has the sign of a.
    signs = (arith.cmpi(compare.slt, number, zero) for number in (rest, b))
    if op.operation.name == "arith.floordivsi":
        moves, rounded = compare.ne, arith.subi(quotient, one)
    else:
        moves, rounded = compare.eq, arith.addi(quotient, one)
    apart = arith.andi(uneven, arith.cmpi(moves, *signs))
    return arith.select(apart, rounded, quotient)


def call_intrinsics(kernel) -> None:
    """Replace the functions in a kernel by intrinsics that LLVM has PTX for."""
    for op in nested_ops(kernel, *_INTRINSICS, _RSQRT):
        name, kind = op.operation.name, op.results[0].type
        with ir.InsertionPoint(op), op.location:
            if name == _RSQRT:
                one = arith.ConstantOp(kind, 1.0).result
                value = arith.divf(one, _call("sqrt", op.operands))
            else:
                value = _call(_INTRINSICS[name], op.operands)
            op.results[0].replace_all_uses_with(value)
        op.operation.erase()


def _call(name: str, operands: Iterable[ir.Value]) -> ir.Value:
    operands = list(operands)
    kind = operands[0].type
    return llvm.call_intrinsic(kind, f"llvm.{name}.{kind}", operands, [], [])
