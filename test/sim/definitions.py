# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Arithmetic by its definition: exact fractions of the operands, rounded by search."""

import math
from collections.abc import Sequence
from fractions import Fraction

from formats import FORMATS, fraction, is_infinite, is_nan, negative, rounded

OPERATIONS = ("add", "sub", "mul", "div", "fma", "sqrt")


def result(operation: str, operands: Sequence[int], kind: str, mode: str = "rn") -> int:
    """Bits of the result for operands given by theirs; the canonical NaN for NaN."""
    form = FORMATS[kind]
    if any(is_nan(bits, kind) for bits in operands):
        return form.nan
    if operation == "sub":
        return result("add", (operands[0], operands[1] ^ form.sign), kind, mode)
    if operation == "sqrt":
        return _root(operands[0], kind, mode)
    signs = [negative(bits, kind) for bits in operands]
    if any(is_infinite(bits, kind) for bits in operands) or (
        operation == "div" and fraction(operands[1], kind) == 0
    ):
        return _special(operation, operands, signs, kind)
    numbers = [fraction(bits, kind) for bits in operands]
    if operation in ("add", "fma"):
        terms = [(numbers[-1], signs[-1])]
        if operation == "add":
            terms.append((numbers[0], signs[0]))
        else:
            terms.append((numbers[0] * numbers[1], signs[0] != signs[1]))
        exact = terms[0][0] + terms[1][0]
        # Zero of terms with both signs is +0, but -0 when rounding down.
        zero_sign = terms[0][1] if terms[0][1] == terms[1][1] else mode == "rm"
    else:
        exact = numbers[0] * numbers[1] if operation == "mul" else numbers[0] / numbers[1]
        zero_sign = signs[0] != signs[1]
    return rounded(exact, kind, mode, zero_sign)


def _special(operation: str, operands: Sequence[int], signs: Sequence[bool], kind: str) -> int:
    """Results with an infinite operand, or of a division by zero."""
    form = FORMATS[kind]
    infinite = [is_infinite(bits, kind) for bits in operands]
    zero = [
        not inf and fraction(bits, kind) == 0 for bits, inf in zip(operands, infinite, strict=True)
    ]
    sign = signs[0] != signs[1]
    if operation == "div":
        if infinite[0] and infinite[1] or zero[0] and zero[1]:
            return form.nan
        size = 0 if infinite[1] else form.infinity
        return size | (form.sign if sign else 0)
    if operation == "add":
        if all(infinite) and sign:
            return form.nan
        return form.infinity | (form.sign if signs[infinite.index(True)] else 0)
    product_infinite = infinite[0] or infinite[1]
    if product_infinite and (zero[0] or zero[1]):
        return form.nan
    if operation == "fma" and infinite[2]:
        if product_infinite and sign != signs[2]:
            return form.nan
        return form.infinity | (form.sign if signs[2] else 0)
    return form.infinity | (form.sign if sign else 0)


def _root(bits: int, kind: str, mode: str) -> int:
    form = FORMATS[kind]
    if bits in (0, form.sign):
        return bits
    if negative(bits, kind):
        return form.nan
    if is_infinite(bits, kind):
        return bits
    number = fraction(bits, kind)
    # A root with 200 bits more than needed, the last of them set unless it is exact.
    shift = 2 * (200 + number.denominator.bit_length())
    scaled = (number.numerator << shift) // number.denominator
    whole = math.isqrt(scaled)
    sticky = 0 if Fraction(whole, 1 << shift // 2) ** 2 == number else 1
    return rounded(Fraction(2 * whole + sticky, 2 << shift // 2), kind, mode)
