# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Float64 arithmetic that knows what its results lack, and rounding of that to odd or as directed.

Sums and products are split into the rounded result and its exact error by the well-known sequences
of float64 operations; where those could overflow or underflow, rational numbers take their place.
"""

from collections.abc import Callable
from fractions import Fraction

import numpy as np


def to_odd(rounded: np.ndarray, error: np.ndarray) -> np.ndarray:
    """Sums rounded to nearest and what they lack (exactly), as sums rounded to odd."""
    bits = rounded.view(np.int64)
    move = (error != 0) & (bits & 1 == 0) & np.isfinite(rounded)
    outward = (error > 0) == (rounded > 0)
    return (bits + np.where(move, np.where(outward, 1, -1), 0)).view(np.float64)


def sum_error(x: np.ndarray, y: np.ndarray, total: np.ndarray) -> np.ndarray:
    """What the float64 sum `total` of x and y lacks, exactly (Knuth); 0 where it is not finite."""
    part = total - x
    error = (x - (total - part)) + (y - part)
    return np.where(np.isfinite(error), error, 0.0)


def odd_sum(x: np.ndarray, y: np.ndarray) -> np.ndarray:
    total = x + y
    return to_odd(total, sum_error(x, y, total))


def signed_zero(total: np.ndarray, x: np.ndarray, y: np.ndarray, mode: str) -> np.ndarray:
    """Sums with -0 where mode rm wants it: for terms that cancel, or zeros of both signs."""
    if mode != "rm":
        return total
    return np.where((total == 0) & (np.signbit(x) | np.signbit(y)), -0.0, total)


def nudged(
    total: np.ndarray, error: np.ndarray, terms: tuple[np.ndarray, ...], mode: str
) -> np.ndarray:
    """Float64 sums to nearest, and what they lack, as sums in a directed mode."""
    finite = np.logical_and.reduce([np.isfinite(term) for term in terms])
    # A sum that overflowed is too large in any case.
    error = np.where(np.isinf(total) & finite, -total, error)
    up = (error > 0) & ((mode == "rp") | (mode == "rz") & (total < 0))
    down = (error < 0) & ((mode == "rm") | (mode == "rz") & (total > 0))
    total = np.where(up, np.nextafter(total, np.inf), total)
    return np.where(down, np.nextafter(total, -np.inf), total)


def _exact_product(x: np.ndarray, y: np.ndarray, product: np.ndarray) -> np.ndarray:
    """What the float64 product of x and y lacks, exactly (Dekker, by Veltkamp's splitting)."""
    x_high, x_low = _split(x)
    y_high, y_low = _split(y)
    return ((x_high * y_high - product) + x_high * y_low + x_low * y_high) + x_low * y_low


def _split(x: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    scaled = x * 134217729.0
    high = scaled - (scaled - x)
    return high, x - high


def fma(x: np.ndarray, y: np.ndarray, z: np.ndarray, product: np.ndarray, mode: str) -> np.ndarray:
    """The float64 value of x * y + z with one rounding.

    Boldo and Melquiond's emulation ("Emulation of a FMA and correctly rounded sums", 2008) where no
    step of it can overflow or underflow; exact rational arithmetic for the rest.
    """
    plain = signed_zero(product + z, product, z, mode)
    # A product that only overflows does not cancel an infinite addend.
    plain = np.where(np.isinf(z) & np.isfinite(x) & np.isfinite(y), z, plain)
    if mode != "rn":
        return exactly(_fraction_fma, mode, plain, x, y, z)

    low = _exact_product(x, y, product)
    middle = z + low
    middle_error = sum_error(z, low, middle)
    high = product + middle
    high_error = sum_error(product, middle, high)
    total = high + odd_sum(middle_error, high_error)
    # A sum of zero has the sign of its terms, which the correction above would lose.
    total = np.where((high == 0) & (total == 0), plain, total)

    size = np.abs(product)
    safe = (np.maximum(np.abs(x), np.abs(y)) < 2.0**990) & (size < 2.0**1000)
    safe &= (np.abs(z) < 2.0**1000) & ((size > 2.0**-900) | (x == 0) | (y == 0))
    if not safe.all():
        x, y, z = (np.broadcast_to(term, total.shape)[~safe] for term in (x, y, z))
        total[~safe] = exactly(_fraction_fma, mode, plain[~safe], x, y, z)
    return total


def _fraction_fma(x: Fraction, y: Fraction, z: Fraction) -> Fraction:
    return x * y + z


def exactly(
    operation: Callable[..., Fraction | None],
    mode: str,
    plain: np.ndarray,
    *operands: np.ndarray,
) -> np.ndarray:
    """Float64 results of a rational operation, one element at a time.

    `plain` is the result of float64 arithmetic: its value stands where an operand is not finite or
    the operation gives None, and its sign where the exact result is zero.
    """
    results = np.array(plain)
    flat = results.reshape(-1)
    table = np.stack([np.broadcast_to(operand, plain.shape).ravel() for operand in operands], 1)
    for index in np.flatnonzero(np.isfinite(table).all(axis=1)):
        values = table[index]
        exact = operation(*(Fraction(float(value)) for value in values))
        if exact:
            flat[index] = _round_fraction(exact, mode)
    return results


def _round_fraction(value: Fraction, mode: str) -> float:
    """A non-zero rational number rounded to float64."""
    magnitude = abs(value)
    exponent = magnitude.numerator.bit_length() - magnitude.denominator.bit_length()
    # The estimate is exact or one too large.
    if magnitude < Fraction(2) ** exponent:
        exponent -= 1
    quantum = Fraction(2) ** (max(exponent, -1022) - 52)
    steps, rest = divmod(magnitude, quantum)
    if mode == "rn":
        up = 2 * rest > quantum or 2 * rest == quantum and steps % 2
    else:
        up = rest and mode == ("rm" if value < 0 else "rp")
    steps = int(steps) + bool(up)
    try:
        rounded = float(steps * quantum)
    except OverflowError:
        outward = mode == "rn" or mode == ("rm" if value < 0 else "rp")
        rounded = float("inf") if outward else float(np.finfo(np.float64).max)
    return -rounded if value < 0 else rounded


def directed_root(x: np.ndarray, root: np.ndarray, mode: str) -> np.ndarray:
    """Square roots in a directed mode: whether the nearest one is too large shows in its square."""
    results = np.array(root)
    flat = results.reshape(-1)
    for index in np.flatnonzero(np.isfinite(root) & (root > 0)):
        value, nearest = x.ravel()[index], flat[index]
        square, exact = Fraction(float(nearest)) ** 2, Fraction(float(value))
        if square < exact and mode == "rp":
            flat[index] = np.nextafter(nearest, np.inf)
        elif square > exact and mode in ("rm", "rz"):
            flat[index] = np.nextafter(nearest, 0.0)
    return results
