# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Operations on bf16, done in f32 and rounded in integers.

    %z = arith.mulf %x, %y : vector<16xbf16>

widens %x and %y, multiplies, and narrows the product. LLVM would do so too, with calls of a
function for each lane, or with instructions that make zeros of subnormal numbers; of some
comparisons it has no code for processors that have these. Integers it rounds twice, and loops that
widen it takes for slower than they are.
"""

from collections.abc import Iterable
from functools import partial

from twofour.codegen.cpu.bf16 import cut_bf16, fma_bf16, integer_to_bf16, narrow_bf16, widen_bf16
from twofour.mlir import ir, math
from twofour.mlir_support import error_at

_ARITHMETIC = """addf cmpf divf extf maximumf maxnumf minimumf minnumf mulf negf remf sitofp subf
    truncf uitofp"""
# What is LLVM's own already, and would be left to it.
_OF_LLVM = frozenset(f"llvm.{name}" for name in "fadd fcmp fdiv fmul fneg frem fsub".split())
# What computes with floats, or rounds to them.
ON_FLOATS = frozenset(
    (
        *(f"arith.{name}" for name in _ARITHMETIC.split()),
        "vector.fma",
        "vector.reduction",
        *_OF_LLVM,
        *(op.OPERATION_NAME for op in vars(math).values() if hasattr(op, "OPERATION_NAME")),
    )
)
# What is no operation on f32 that is rounded again.
_DIRECT = {
    "arith.sitofp": partial(integer_to_bf16, signed=True),
    "arith.truncf": narrow_bf16,
    "arith.uitofp": partial(integer_to_bf16, signed=False),
    "math.fma": fma_bf16,
    "vector.fma": fma_bf16,
}
# Whose results for numbers of bf16 are such numbers.
_EXACT = frozenset(
    (
        *(f"arith.{name}" for name in "maximumf maxnumf minimumf minnumf negf".split()),
        *(f"math.{name}" for name in "absf ceil copysign floor round roundeven trunc".split()),
    )
)


def widen_ops(ops: Iterable) -> list:
    """Replace those of the ops that are on bf16 by such on f32; returns the ops there are now.

    Raises TwofourError for one of LLVM's on bf16.
    """
    now = []
    for op in ops:
        if not _is_replaced(op):
            now.append(op)
            continue
        if op.operation.name in _OF_LLVM:
            raise error_at(op, "expected an op of arith or math on bf16")
        with ir.InsertionPoint(op), op.location:
            results = _narrowed(op, now)
        for old, new in zip(op.results, results, strict=True):
            old.replace_all_uses_with(new)
        op.operation.erase()
    return now


def _is_replaced(op) -> bool:
    value = op.results[0] if op.operation.name in _DIRECT else op.operands[0]
    return _is(value.type, ir.BF16Type)


def _narrowed(op, now: list) -> list[ir.Value]:
    """The results of an op on bf16 as one on f32 gives them, which is added to those of `now`."""
    if op.operation.name == "arith.extf":
        return [widen_bf16(op.operands[0], _element(op.results[0].type))]
    direct = _DIRECT.get(op.operation.name)
    if direct is not None:
        return [direct(*op.operands)]
    operands = [widen_bf16(x) if _is(x.type, ir.BF16Type) else x for x in op.operands]
    kinds = [_wide(result.type) for result in op.results]
    wide = ir.Operation.create(
        op.operation.name, results=kinds, operands=operands, attributes=dict(op.attributes.items())
    )
    now.append(wide.opview)
    narrow = cut_bf16 if op.operation.name in _EXACT else narrow_bf16
    pairs = zip(op.results, wide.results, strict=True)
    return [narrow(new) if _is(old.type, ir.BF16Type) else new for old, new in pairs]


def _is(kind: ir.Type, element: type) -> bool:
    return isinstance(_element(kind), element)


def _element(kind: ir.Type) -> ir.Type:
    return kind.element_type if isinstance(kind, ir.VectorType) else kind


def _wide(kind: ir.Type) -> ir.Type:
    if not _is(kind, ir.BF16Type):
        return kind
    f32 = ir.F32Type.get()
    return ir.VectorType.get(kind.shape, f32) if isinstance(kind, ir.VectorType) else f32
