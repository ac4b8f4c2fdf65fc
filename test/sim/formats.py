# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Floating-point formats by their definition: exact fractions of bits, and rounding by search."""

from dataclasses import dataclass
from fractions import Fraction
from functools import cache

import numpy as np


@dataclass(frozen=True)
class Format:
    """A format of `width` bits; `padding` low bits of a register mean nothing (tf32)."""

    exponent: int
    mantissa: int
    nan: int
    padding: int = 0
    infinite: bool = True

    @property
    def width(self) -> int:
        return 1 + self.exponent + self.mantissa + self.padding

    @property
    def dtype(self) -> type:
        return {8: np.uint8, 16: np.uint16, 32: np.uint32, 64: np.uint64}[self.width]

    @property
    def register(self) -> str:
        return f"b{self.width}"

    @property
    def sign(self) -> int:
        return 1 << self.width - 1

    @property
    def infinity(self) -> int:
        return ((1 << self.exponent) - 1) << self.mantissa + self.padding

    @property
    def largest(self) -> int:
        """The greatest finite pattern."""
        return self.infinity - (1 << self.padding) if self.infinite else 0x7E


FORMATS = {
    "f16": Format(5, 10, 0x7FFF),
    "bf16": Format(8, 7, 0x7FFF),
    "tf32": Format(8, 10, 0x7FFFFFFF, padding=13),
    "f32": Format(8, 23, 0x7FFFFFFF),
    "f64": Format(11, 52, 0xFFF8000000000000),
    "e4m3": Format(4, 3, 0x7F, infinite=False),
    "e5m2": Format(5, 2, 0x7F),
}


def is_nan(bits: int, kind: str) -> bool:
    form = FORMATS[kind]
    magnitude = bits & form.sign - 1
    return magnitude > form.infinity if form.infinite else magnitude == 0x7F


def is_infinite(bits: int, kind: str) -> bool:
    form = FORMATS[kind]
    return form.infinite and bits & form.sign - 1 == form.infinity


def negative(bits: int, kind: str) -> bool:
    return bool(bits & FORMATS[kind].sign)


@cache
def fraction(bits: int, kind: str) -> Fraction:
    """The value of the bits of a finite number."""
    form = FORMATS[kind]
    magnitude = (bits & form.sign - 1) >> form.padding
    exponent, mantissa = divmod(magnitude, 1 << form.mantissa)
    if exponent:
        mantissa += 1 << form.mantissa
    bias = (1 << form.exponent - 1) - 1
    value = mantissa * Fraction(2) ** (max(exponent, 1) - bias - form.mantissa)
    return -value if negative(bits, kind) else value


def rounded(value: Fraction, kind: str, mode: str = "rn", below_zero: bool = False) -> int:
    """Bits that a mode makes of an exact value; `below_zero` is the sign of a zero."""
    form = FORMATS[kind]
    if value == 0:
        return form.sign if below_zero else 0
    sign = form.sign if value < 0 else 0
    magnitude = abs(value)
    # The last number that is not above the value: patterns are ordered like their values.
    first, last = 0, form.largest >> form.padding
    while first < last:
        middle = (first + last + 1) // 2
        if fraction(middle << form.padding, kind) <= magnitude:
            first = middle
        else:
            last = middle - 1
    below = first << form.padding
    rest = magnitude - fraction(below, kind)
    if below == form.largest:
        # Beyond it the next number would be one step away, were the exponents not at their end.
        step = fraction(below, kind) - fraction(below - (1 << form.padding), kind)
    else:
        step = fraction(below + (1 << form.padding), kind) - fraction(below, kind)
    if mode == "rn":
        up = rest * 2 > step or rest * 2 == step and first % 2 == 1
    elif mode == "rna":
        up = rest * 2 >= step
    else:
        up = rest > 0 and mode == ("rm" if sign else "rp")
    return sign | below + (int(up) << form.padding)


def samples(kind: str, count: int, seed: int) -> np.ndarray:
    """Bits of `count` numbers of a kind: edges, random bits, and numbers of moderate size."""
    form = FORMATS[kind]
    generator = np.random.default_rng(seed)
    one = ((1 << form.exponent - 1) - 1) << form.mantissa + form.padding
    last = 1 << form.padding
    normal = 1 << form.mantissa + form.padding
    edges = [0, last, 3 * last, normal - last, normal, normal + last, one, one + last, one - last]
    edges += [one + normal, one - normal, form.largest, form.largest - last, form.nan]
    if form.infinite:
        edges.append(form.infinity)
    edges = [edge | sign for edge in edges for sign in (0, form.sign)]
    anything = generator.integers(0, 1 << form.width, count, dtype=np.uint64)
    spread = 6 << form.mantissa + form.padding
    near = generator.integers(max(one - spread, 0), one + spread, count, dtype=np.uint64)
    near |= np.uint64(form.sign) * generator.integers(0, 2, count, dtype=np.uint64)
    choice = generator.integers(0, 3, count)
    edge = np.array(edges, dtype=np.uint64)[generator.integers(0, len(edges), count)]
    bits = np.select([choice == 0, choice == 1], [anything, near], edge)
    bits[: len(edges)] = np.array(edges, dtype=np.uint64)[:count]
    return (bits & ~np.uint64(last - 1)).astype(form.dtype)


def packed(arrays: list[np.ndarray]) -> list[np.ndarray]:
    """Two 16-bit elements a register, the first half of each array in the low bits."""
    half = len(arrays[0]) // 2
    return [
        array[:half].astype(np.uint32) | array[half:].astype(np.uint32) << 16 for array in arrays
    ]
