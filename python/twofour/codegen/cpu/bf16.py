# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""bf16 to f32, and other types to bf16, in integers; of numbers and of vectors.

The hardware's rounding makes zeros of subnormal numbers, and libraries with such a function may
lack. What f32 does not hold is *rounded to odd* (an inexact result gets an odd last bit) before,
since rounding twice would be wrong near the middle of two numbers.
"""

from twofour.mlir import arith, ir, math


def widen_bf16(value: ir.Value, element: ir.Type | None = None) -> ir.Value:
    """Numbers of bf16 in f32, or a wider type, exactly."""
    word = arith.extui(_like(value, _integer(32)), _bitcast(value, _integer(16)))
    wide = _bitcast(arith.shli(word, _number(word, 16)), ir.F32Type.get())
    if element is None or isinstance(element, ir.F32Type):
        return wide
    return arith.extf(_like(value, element), wide)


def narrow_bf16(value: ir.Value) -> ir.Value:
    """Numbers of f32 or a wider type in bf16, rounded to nearest even; NaN stay NaN."""
    if not isinstance(_element(value), ir.F32Type):
        value = _to_odd_f32(value)
    bits = _bitcast(value, _integer(32))
    upper = arith.shrui(bits, _number(bits, 16))
    tie = arith.andi(upper, _number(bits, 1))
    more = arith.addi(arith.addi(bits, _number(bits, 0x7FFF)), tie)
    is_nan = arith.cmpf(arith.CmpFPredicate.UNO, value, value)
    quiet = arith.ori(upper, _number(bits, 0x40))
    chosen = arith.select(is_nan, quiet, arith.shrui(more, _number(bits, 16)))
    return _bitcast(arith.trunci(_like(value, _integer(16)), chosen), ir.BF16Type.get())


def cut_bf16(value: ir.Value) -> ir.Value:
    """Numbers of f32 that bf16 has as well, in bf16; NaN are such ones."""
    bits = _bitcast(value, _integer(32))
    upper = arith.shrui(bits, _number(bits, 16))
    return _bitcast(arith.trunci(_like(value, _integer(16)), upper), ir.BF16Type.get())


def integer_to_bf16(value: ir.Value, signed: bool) -> ir.Value:
    """Integers in bf16, rounded to nearest even (those of more than 64 bits to f64 before)."""
    convert = arith.sitofp if signed else arith.uitofp
    width = _element(value).width
    if width <= 24:
        return narrow_bf16(convert(_like(value, ir.F32Type.get()), value))
    kind = _like(value, ir.F64Type.get())
    exact = convert(kind, value)
    if 53 < width <= 64:
        # 53 bits of those that f64 does not hold, the last of them odd where others were not zero.
        shift = arith.shrsi if signed else arith.shrui
        some = arith.cmpi(
            arith.CmpIPredicate.ne, arith.andi(value, _number(value, 0x7FF)), _number(value, 0)
        )
        odd = arith.ori(shift(value, _number(value, 11)), arith.extui(value.type, some))
        scale = _splat(kind, ir.FloatAttr.get(ir.F64Type.get(), 2.0**11))
        large = arith.mulf(convert(kind, odd), scale)
        limit = _splat(kind, ir.FloatAttr.get(ir.F64Type.get(), 2.0**53))
        size = math.absf(exact)
        exact = arith.select(arith.cmpf(arith.CmpFPredicate.OLT, size, limit), exact, large)
    return narrow_bf16(exact)


def fma_bf16(factor: ir.Value, other: ir.Value, added: ir.Value) -> ir.Value:
    """Products of numbers of bf16, and a third one added, in bf16, rounded to nearest even."""
    kind = _like(factor, ir.F64Type.get())
    x, y, z = (widen_bf16(value, ir.F64Type.get()) for value in (factor, other, added))
    product = arith.mulf(x, y)  # exact
    total = arith.addf(product, z)
    # What the sum lacks, exactly (Knuth's two-sum).
    part = arith.subf(total, product)
    error = arith.addf(arith.subf(product, arith.subf(total, part)), arith.subf(z, part))
    zero = _splat(kind, ir.FloatAttr.get(ir.F64Type.get(), 0.0))
    is_inexact = arith.cmpf(arith.CmpFPredicate.ONE, error, zero)
    signs = arith.xori(_bitcast(total, _integer(64)), _bitcast(error, _integer(64)))
    is_above = arith.cmpi(arith.CmpIPredicate.slt, signs, _number(signs, 0))
    return narrow_bf16(_odd(total, is_inexact, is_above))


def _to_odd_f32(value: ir.Value) -> ir.Value:
    """Numbers of a wider type in f32, rounded to odd."""
    near = arith.truncf(_like(value, ir.F32Type.get()), value)
    back = arith.extf(value.type, near)
    is_inexact = arith.cmpf(arith.CmpFPredicate.ONE, back, value)
    is_above = arith.cmpf(arith.CmpFPredicate.OGT, math.absf(back), math.absf(value))
    return _odd(near, is_inexact, is_above)


def _odd(near: ir.Value, is_inexact: ir.Value, is_above: ir.Value) -> ir.Value:
    """Numbers beside the exact ones, perhaps of larger size, as rounding to odd gives them."""
    element = _element(near)
    bits = _bitcast(near, _integer(element.width))
    lower = arith.subi(bits, arith.extui(bits.type, is_above))
    odd = arith.ori(lower, _number(bits, 1))
    return _bitcast(arith.select(is_inexact, odd, bits), element)


def _integer(width: int) -> ir.Type:
    return ir.IntegerType.get_signless(width)


def _element(value: ir.Value) -> ir.Type:
    kind = value.type
    return kind.element_type if isinstance(kind, ir.VectorType) else kind


def _like(value: ir.Value, element: ir.Type) -> ir.Type:
    """The type of so many of these elements as `value` has."""
    kind = value.type
    return ir.VectorType.get(kind.shape, element) if isinstance(kind, ir.VectorType) else element


def _bitcast(value: ir.Value, element: ir.Type) -> ir.Value:
    return arith.bitcast(_like(value, element), value)


def _number(like: ir.Value, number: int) -> ir.Value:
    """An integer in the type of another value."""
    return _splat(like.type, ir.IntegerAttr.get(_element(like), number))


def _splat(kind: ir.Type, number: ir.Attribute) -> ir.Value:
    if isinstance(kind, ir.VectorType):
        number = ir.DenseElementsAttr.get_splat(kind, number)
    return arith.ConstantOp(kind, number).result
