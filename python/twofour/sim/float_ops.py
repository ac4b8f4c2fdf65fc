# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Arithmetic of PTX on bits of floating-point numbers, rounded exactly once.

Kinds, modes and NaN are those of `numerics`. Where float64 is wide enough an operation is done in
it and *rounded to odd* (an inexact result gets an odd last bit), which makes a second rounding to a
narrower kind the only one that counts: 53 bits are at least two more than any of those has.
"""

import numpy as np
from numpy.typing import ArrayLike

from twofour.sim import exact
from twofour.sim.numerics import find_kind, flushed, round_to, widen


def _operands(kind: str, ftz: bool, *bits: ArrayLike) -> list[np.ndarray]:
    form = find_kind(kind)
    wide = [widen(operand, kind) for operand in bits]
    return [flushed(value, form) for value in wide] if ftz else wide


def add(
    a: ArrayLike,
    b: ArrayLike,
    kind: str,
    mode: str = "rn",
    ftz: bool = False,
    sat: bool = False,
    relu: bool = False,
) -> np.ndarray:
    """Bits of a + b, rounded once."""
    finish = {"ftz": ftz, "sat": sat, "relu": relu}
    with np.errstate(all="ignore"):
        if kind == "f32" and mode == "rn" and not any(finish.values()):
            return _canonical_f32(_f32(a) + _f32(b))
        x, y = _operands(kind, ftz, a, b)
        if kind == "f64":
            total = x + y
            if mode != "rn":
                total = exact.nudged(total, exact.sum_error(x, y, total), (x, y), mode)
        else:
            total = exact.odd_sum(x, y)
        return round_to(exact.signed_zero(total, x, y, mode), kind, mode, **finish)


def sub(
    a: ArrayLike,
    b: ArrayLike,
    kind: str,
    mode: str = "rn",
    ftz: bool = False,
    sat: bool = False,
    relu: bool = False,
) -> np.ndarray:
    """Bits of a - b, rounded once."""
    form = find_kind(kind)
    b = np.asarray(b, dtype=form.dtype)
    return add(a, b ^ form.dtype(1 << 8 * b.itemsize - 1), kind, mode, ftz, sat, relu)


def mul(
    a: ArrayLike,
    b: ArrayLike,
    kind: str,
    mode: str = "rn",
    ftz: bool = False,
    sat: bool = False,
    relu: bool = False,
) -> np.ndarray:
    """Bits of a * b, rounded once."""
    finish = {"ftz": ftz, "sat": sat, "relu": relu}
    with np.errstate(all="ignore"):
        if kind == "f32" and mode == "rn" and not any(finish.values()):
            return _canonical_f32(_f32(a) * _f32(b))
        x, y = _operands(kind, ftz, a, b)
        product = x * y
        if kind == "f64" and mode != "rn":
            product = exact.exactly(lambda p, q: p * q, mode, product, x, y)
        return round_to(product, kind, mode, **finish)


def div(
    a: ArrayLike, b: ArrayLike, kind: str, mode: str = "rn", ftz: bool = False, sat: bool = False
) -> np.ndarray:
    """Bits of a / b, rounded once.

    The quotient of two p-bit numbers has at most p + 1 bits (a number or half way between two), or
    differs from all such by at least 2^-(2p + 2) of its size: float64 keeps them apart for every
    narrower kind, so that rounding its result again is rounding the quotient.
    """
    with np.errstate(all="ignore"):
        x, y = _operands(kind, ftz, a, b)
        quotient = x / y
        if kind == "f64" and mode != "rn":
            quotient = exact.exactly(lambda p, q: p / q if q else None, mode, quotient, x, y)
        return round_to(quotient, kind, mode, ftz, sat)


def sqrt(a: ArrayLike, kind: str, mode: str = "rn", ftz: bool = False) -> np.ndarray:
    """Bits of the square root of a, rounded once, by the argument given at `div`."""
    with np.errstate(all="ignore"):
        (x,) = _operands(kind, ftz, a)
        root = np.sqrt(x)
        if kind == "f64" and mode != "rn":
            root = exact.directed_root(x, root, mode)
        return round_to(root, kind, mode, ftz)


def fma(
    a: ArrayLike,
    b: ArrayLike,
    c: ArrayLike,
    kind: str,
    mode: str = "rn",
    ftz: bool = False,
    sat: bool = False,
    relu: bool = False,
) -> np.ndarray:
    """Bits of a * b + c, rounded once."""
    with np.errstate(all="ignore"):
        x, y, z = _operands(kind, ftz, a, b, c)
        product = x * y
        if kind == "f64":
            total = exact.fma(x, y, z, product, mode)
        else:
            # Products of these kinds are exact in float64, and far from its limits.
            total = product + z
            if mode != "rn" or _near_tie(total):
                total = exact.to_odd(total, exact.sum_error(product, z, total))
            total = exact.signed_zero(total, product, z, mode)
        return round_to(total, kind, mode, ftz, sat, relu)


def _near_tie(total: np.ndarray) -> bool:
    """Whether some float64 value could be halfway between two values of a narrower kind.

    f32 drops 29 bits of it: its ties, and those of every coarser grid, have 28 zeros at the end.
    """
    return bool((total.view(np.uint64) & np.uint64((1 << 28) - 1) == 0).any())


def _f32(bits: ArrayLike) -> np.ndarray:
    return np.ascontiguousarray(bits, dtype=np.uint32).view(np.float32)


def _canonical_f32(values: np.ndarray) -> np.ndarray:
    nan = np.isnan(values)
    bits = values.view(np.uint32)
    return np.where(nan, np.uint32(0x7FFFFFFF), bits) if nan.any() else bits
