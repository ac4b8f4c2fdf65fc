# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Rounding of every format and mode against exact fractions."""

import math
from fractions import Fraction

import numpy as np
import pytest

from formats import FORMATS, fraction, is_infinite, is_nan, rounded, samples
from twofour.errors import TwofourError
from twofour.sim import numerics

MODES = ("rn", "rna", "rz", "rm", "rp")


def exact_bits(values: np.ndarray, kind: str, mode: str, satfinite: bool = False) -> list[int]:
    """What rounding should give, by searching the numbers of the kind."""
    form = FORMATS[kind]
    expected = []
    for value in values:
        sign = form.sign if math.copysign(1, value) < 0 else 0
        if math.isnan(value):
            expected.append(form.nan)
        elif math.isinf(value):
            expected.append(sign | (form.largest if satfinite else form.infinity))
        else:
            bits = rounded(Fraction(float(value)), kind, mode, below_zero=bool(sign))
            limit = form.largest | sign
            expected.append(min(bits, limit) if satfinite else bits)
    return expected


def interesting_doubles(kind: str, seed: int) -> np.ndarray:
    """Numbers of the kind, halfway points between neighbours, and values just beside those."""
    bits = samples(kind, 200, seed)
    plain = [int(b) for b in bits if not is_nan(int(b), kind) and not is_infinite(int(b), kind)]
    values = []
    step = 1 << FORMATS[kind].padding
    for pattern in plain:
        low = fraction(pattern, kind)
        beside = pattern + step
        if pattern & FORMATS[kind].sign - 1 < FORMATS[kind].largest:
            middle = float((low + fraction(beside, kind)) / 2)
        else:
            middle = float(low) * (1 + 2.0 ** -(FORMATS[kind].mantissa + 2))
        values += [float(low), middle, np.nextafter(middle, 9e99), np.nextafter(middle, -9e99)]
    special = [0.0, -0.0, 5e-324, -5e-324, 1e300, -1e300, np.inf, -np.inf, np.nan]
    return np.array(values + special)


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("kind", [kind for kind in FORMATS if kind != "f64"])
def test_round_to(kind, mode):
    values = interesting_doubles(kind, 1)
    saturating = kind in ("e4m3", "e5m2")
    np.testing.assert_array_equal(
        numerics.round_to(values, kind, mode), exact_bits(values, kind, mode, satfinite=saturating)
    )


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("kind", ["f16", "bf16", "tf32", "f32"])
def test_round_to_saturates_at_the_largest(kind, mode):
    values = np.array([1e39, -1e39, np.inf, -np.inf, 1.0, -0.0])
    np.testing.assert_array_equal(
        numerics.round_to(values, kind, mode, satfinite=True),
        exact_bits(values, kind, mode, satfinite=True),
    )


def test_round_to_clamps():
    values = np.array([-1.0, -0.0, 0.5, 1.0, 1.5, np.inf, -np.inf, np.nan])
    clamped = numerics.widen(numerics.round_to(values, "f32", sat=True), "f32")
    np.testing.assert_array_equal(clamped, [0, 0, 0.5, 1, 1, 1, 0, 0])
    assert not np.signbit(clamped).any()
    positive = numerics.widen(numerics.round_to(values, "f16", relu=True), "f16")
    np.testing.assert_array_equal(positive, [0, 0, 0.5, 1, 1.5, np.inf, 0, np.nan])
    assert not np.signbit(positive[:3]).any()


@pytest.mark.parametrize("kind", FORMATS)
def test_widen(kind):
    form = FORMATS[kind]
    if form.width <= 16:
        # An odd step meets every exponent, and mantissas of all kinds.
        bits = np.arange(0, 1 << form.width, 1 if form.width == 8 else 13, dtype=form.dtype)
    else:
        bits = samples(kind, 500, 3)
    for pattern, value in zip(bits.tolist(), numerics.widen(bits, kind).tolist(), strict=True):
        if is_nan(pattern, kind):
            assert math.isnan(value)
        elif is_infinite(pattern, kind):
            assert value == (-math.inf if pattern & form.sign else math.inf)
        else:
            assert Fraction(value) == fraction(pattern, kind)
            assert (math.copysign(1, value) < 0) == bool(pattern & form.sign)


def test_widen_ignores_low_bits_of_tf32():
    assert numerics.widen(np.array([0x3F801FFF], dtype=np.uint32), "tf32") == 1.0


INTEGER_KINDS = ["s8", "u8", "s16", "u16", "s32", "u32", "s64", "u64"]


@pytest.mark.parametrize("mode", ["rni", "rzi", "rmi", "rpi"])
@pytest.mark.parametrize("kind", INTEGER_KINDS)
def test_float_to_int(kind, mode):
    width = int(kind[1:])
    low, high = (
        (-(1 << width - 1), (1 << width - 1) - 1) if kind[0] == "s" else (0, (1 << width) - 1)
    )
    values = [0.0, -0.0, 0.5, -0.5, 1.5, 2.5, -1.5, -2.5, 0.49999999999999994, 1e300, -1e300]
    for limit in (low, high):
        values += [float(limit) + d for d in (-1.0, -0.5, -0.25, 0.0, 0.25, 0.5, 1.0)]
        values += [np.nextafter(float(limit), s) for s in (np.inf, -np.inf)]
    rounding = {"rni": round, "rzi": math.trunc, "rmi": math.floor, "rpi": math.ceil}[mode]
    expected = [min(max(rounding(Fraction(value)), low), high) for value in values]
    found = numerics.float_to_int(np.array(values), kind, mode)
    assert [int(number) for number in found] == expected
    np.testing.assert_array_equal(
        numerics.float_to_int(np.array([np.inf, -np.inf]), kind, mode), [high, low]
    )


@pytest.mark.parametrize(
    ("kind", "source", "expected"),
    [
        ("s32", "f32", 0),
        ("u16", "f16", 0),
        ("s64", "f32", -(2**63)),
        ("u64", "f16", 2**63),
        ("s32", "f64", -(2**31)),
        ("u32", "f64", 2**31),
    ],
)
def test_float_to_int_of_nan(kind, source, expected):
    assert numerics.float_to_int(np.array([np.nan]), kind, "rzi", source)[0] == expected


@pytest.mark.parametrize("mode", ["rn", "rz", "rm", "rp"])
@pytest.mark.parametrize("kind", ["f16", "bf16", "f32", "f64"])
@pytest.mark.parametrize("dtype", [np.int32, np.uint32, np.int64, np.uint64])
def test_int_to_float(dtype, kind, mode):
    limits = np.iinfo(dtype)
    generator = np.random.default_rng(5)
    values = generator.integers(limits.min, limits.max, 100, dtype=dtype, endpoint=True)
    values >>= generator.integers(0, limits.bits - 1, 100).astype(dtype)
    ties = [(1 << p) + d for p in range(8, limits.bits - 1) for d in (-1, 0, 1)]
    # One bit, half a unit of a 53-bit, 24-bit and 11-bit significand, and a sticky bit.
    ties += [(1 << 62) + (1 << 62 - p) + d for p in (53, 24, 11, 8) for d in (-1, 0, 1)]
    ties = [t for t in ties if t <= limits.max] + [limits.min, limits.max, 0]
    values = np.concatenate([values, np.array(ties, dtype=dtype)])
    expected = [rounded(Fraction(value), kind, mode) for value in values.tolist()]
    np.testing.assert_array_equal(numerics.int_to_float(values, kind, mode), expected)


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: numerics.round_to([1.0], "f8"), "expected a floating-point type of .* got 'f8'"),
        (lambda: numerics.round_to([1.0], "f32", "rx"), "expected a rounding mode .* got 'rx'"),
        (lambda: numerics.round_to_whole([1.0], "rn"), "expected a rounding mode .* got 'rn'"),
        (lambda: numerics.float_to_int([1.0], "s7"), "expected an integer type .* got 's7'"),
    ],
)
def test_unknown_names(call, message):
    with pytest.raises(TwofourError, match=message):
        call()
