# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Floating-point formats of PTX: bits to values, and values rounded to bits.

A *kind* is f16, bf16, tf32, f32, f64, e4m3 or e5m2. Its bits are kept in uint16 (f16, bf16), uint32
(tf32, whose low 13 bits are zero in a result and ignored in an operand, and f32), uint64 (f64) or
uint8 (e4m3, e5m2); its values, all of them exactly, in float64. A *mode* is rn (to nearest, ties to
even), rna (ties away from zero), rz (towards zero), rm (down) or rp (up).

NaN results are the canonical NaN of the kind, as PTX states it, except in f64, where the payload of
an operand goes through as it does on the hardware. Subnormal numbers are kept unless `ftz` is set,
which flushes operands and results to zeros of the same sign.
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from twofour.errors import TwofourError
from twofour.sim import exact

MODES = ("rn", "rna", "rz", "rm", "rp")


@dataclass(frozen=True)
class Kind:
    """A format: `mantissa` counts the stored bits, `minimum` is the least normal exponent.

    `largest` is the greatest finite value, `nan` the canonical NaN, `dtype` that of the bits.
    """

    name: str
    mantissa: int
    minimum: int
    largest: float
    nan: int
    dtype: type

    @property
    def smallest_normal(self) -> float:
        return 2.0**self.minimum


KINDS = {
    kind.name: kind
    for kind in (
        Kind("f16", 10, -14, 65504.0, 0x7FFF, np.uint16),
        Kind("bf16", 7, -126, (2 - 2**-7) * 2.0**127, 0x7FFF, np.uint16),
        Kind("tf32", 10, -126, (2 - 2**-10) * 2.0**127, 0x7FFFFFFF, np.uint32),
        Kind("f32", 23, -126, (2 - 2**-23) * 2.0**127, 0x7FFFFFFF, np.uint32),
        Kind("f64", 52, -1022, float(np.finfo(np.float64).max), 0xFFF8000000000000, np.uint64),
        Kind("e4m3", 3, -6, 448.0, 0x7F, np.uint8),
        Kind("e5m2", 2, -14, 57344.0, 0x7F, np.uint8),
    )
}

INTEGERS = {
    "s8": np.int8,
    "s16": np.int16,
    "s32": np.int32,
    "s64": np.int64,
    "u8": np.uint8,
    "u16": np.uint16,
    "u32": np.uint32,
    "u64": np.uint64,
}

_SIGN = np.uint64(1 << 63)
_ONE = np.uint64(1)


def find_kind(name: str) -> Kind:
    """The format of that name. Raises TwofourError for others."""
    if name not in KINDS:
        raise TwofourError(f"expected a floating-point type of {', '.join(KINDS)}, got {name!r}")
    return KINDS[name]


def _check_mode(mode: str) -> None:
    if mode not in MODES:
        raise TwofourError(f"expected a rounding mode of {', '.join(MODES)}, got {mode!r}")


def widen(bits: ArrayLike, kind: str) -> np.ndarray:
    """Values in float64 of the bits of a kind, exactly; any shape."""
    form = find_kind(kind)
    bits = np.ascontiguousarray(bits, dtype=form.dtype)
    if kind == "f64":
        return bits.view(np.float64)
    if kind in _WIDE:
        return _WIDE[kind][bits]
    if kind == "bf16":
        bits = bits.astype(np.uint32) << np.uint32(16)
    elif kind == "tf32":
        bits = bits & np.uint32(0xFFFFE000)
    # A signalling NaN is no reason to warn.
    with np.errstate(invalid="ignore"):
        return bits.view(np.float32).astype(np.float64)


def _widened_bytes(mantissa: int, exponent_bits: int) -> np.ndarray:
    """Values of the 256 bytes of an 8-bit format, infinities and NaN by the rule of IEEE 754."""
    byte = np.arange(256)
    exponent = byte >> mantissa & (1 << exponent_bits) - 1
    fraction = (byte & (1 << mantissa) - 1) / 2.0**mantissa
    bias = (1 << exponent_bits - 1) - 1
    value = np.where(
        exponent == 0,
        np.ldexp(fraction, 1 - bias),
        np.ldexp(1 + fraction, exponent - bias),
    )
    return np.where(byte & 0x80, -value, value)


def _wide_tables() -> dict[str, np.ndarray]:
    e4m3, e5m2 = _widened_bytes(3, 4), _widened_bytes(2, 5)
    # e4m3 has no infinities: only the last pattern of either sign is not a number.
    e4m3[[0x7F, 0xFF]] = np.nan
    e5m2[[0x7C, 0xFC]] = np.inf, -np.inf
    e5m2[[0x7D, 0x7E, 0x7F, 0xFD, 0xFE, 0xFF]] = np.nan
    f16 = np.arange(1 << 16, dtype=np.uint16).view(np.float16).astype(np.float64)
    return {"e4m3": e4m3, "e5m2": e5m2, "f16": f16}


_WIDE = _wide_tables()


def round_to(
    values: ArrayLike,
    kind: str,
    mode: str = "rn",
    ftz: bool = False,
    sat: bool = False,
    relu: bool = False,
    satfinite: bool = False,
) -> np.ndarray:
    """Bits of float64 values rounded once to a kind; any shape.

    `sat` clamps to [0, 1] (NaN gives +0), `relu` turns negative results into +0, `satfinite` clamps
    to the largest finite value. e4m3 and e5m2 always saturate: PTX has no other conversion to them.
    """
    form = find_kind(kind)
    _check_mode(mode)
    values = np.ascontiguousarray(values, dtype=np.float64)
    satfinite = satfinite or kind in ("e4m3", "e5m2")
    if kind == "f64":
        rounded = values
    elif mode == "rn" and kind == "f32" and not satfinite:
        # The conversion of NumPy is this very rounding.
        with np.errstate(all="ignore"):
            rounded = values.astype(np.float32)
    else:
        rounded = _overflowed(_on_grid(values, form, mode), values, form, mode, satfinite)
    if ftz:
        rounded = flushed(rounded, form)
    if sat:
        # The order of the arguments makes NaN fail the comparison: it gives +0.
        rounded = np.where(rounded > 0, np.minimum(rounded, 1), rounded.dtype.type(0))
    if relu:
        rounded = np.where((rounded > 0) | np.isnan(rounded), rounded, rounded.dtype.type(0))
    return _encoded(rounded, form)


def flushed(values: np.ndarray, form: Kind) -> np.ndarray:
    """Values with the subnormal ones of the kind made zeros of the same sign."""
    small = np.abs(values) < form.smallest_normal
    return np.where(small, np.copysign(values.dtype.type(0), values), values)


def _on_grid(values: np.ndarray, form: Kind, mode: str) -> np.ndarray:
    """Float64 values rounded to the precision of a narrower kind, its exponents unbounded above."""
    drop = 52 - form.mantissa
    bits = values.view(np.uint64)
    half, rest = np.uint64(1 << drop - 1), np.uint64((1 << drop) - 1)
    if mode == "rn":
        odd = (bits >> np.uint64(drop)) & _ONE
        bits = bits + (half - _ONE) + odd
    elif mode == "rna":
        bits = bits + half
    elif mode != "rz":
        away = np.signbit(values) == (mode == "rm")
        bits = bits + np.where(away, rest, np.uint64(0))
    rounded = (bits & ~rest).view(np.float64)
    magnitude = np.abs(values)
    # The carry above would turn infinities into NaN and some NaN into zero.
    special = ~np.isfinite(values)
    if special.any():
        rounded[special] = values[special]
    tiny = magnitude < form.smallest_normal
    if tiny.any():
        quantum = 2.0 ** (form.minimum - form.mantissa)
        steps = _whole(values[tiny] / quantum, mode)
        rounded[tiny] = np.copysign(steps * quantum, values[tiny])
    return rounded


def _whole(values: np.ndarray, mode: str) -> np.ndarray:
    """Float64 values rounded to whole numbers."""
    if mode == "rn":
        return np.rint(values)
    if mode == "rz":
        return np.trunc(values)
    if mode == "rm":
        return np.floor(values)
    if mode == "rp":
        return np.ceil(values)
    below = np.floor(np.abs(values))
    return np.copysign(below + (np.abs(values) - below >= 0.5), values)


def _overflowed(
    rounded: np.ndarray, values: np.ndarray, form: Kind, mode: str, satfinite: bool
) -> np.ndarray:
    """Rounded values with those beyond the largest one replaced as the mode wants it."""
    beyond = np.abs(rounded) > form.largest
    if not beyond.any():
        return rounded
    over = rounded[beyond]
    limit = np.where(np.isinf(values[beyond]), np.inf, form.largest)
    if mode in ("rn", "rna"):
        limit = np.full_like(limit, np.inf)
    elif mode != "rz":
        limit = np.where(np.signbit(over) == (mode == "rm"), np.inf, limit)
    if satfinite:
        limit = np.full_like(limit, form.largest)
    rounded[beyond] = np.copysign(limit, over)
    return rounded


def _encoded(values: np.ndarray, form: Kind) -> np.ndarray:
    """Bits of values that the kind holds exactly, NaN canonical (f64: as they are)."""
    if form.name == "f64":
        return values.view(np.uint64)
    if form.name in ("f32", "tf32"):
        bits = values.astype(np.float32, copy=False).view(np.uint32)
    elif form.name == "bf16":
        bits = (values.astype(np.float32).view(np.uint32) >> np.uint32(16)).astype(np.uint16)
    elif form.name == "f16":
        bits = values.astype(np.float16).view(np.uint16)
    else:
        bits = _encoded_bytes(values, form)
    nan = np.isnan(values)
    if nan.any():
        bits = np.where(nan, form.dtype(form.nan), bits)
    return bits


def _encoded_bytes(values: np.ndarray, form: Kind) -> np.ndarray:
    positive = _WIDE[form.name][: _LAST_FINITE[form.name] + 1]
    index = np.searchsorted(positive, np.abs(np.nan_to_num(values)))
    return (index | np.where(np.signbit(values), 0x80, 0)).astype(np.uint8)


_LAST_FINITE = {"e4m3": 0x7E, "e5m2": 0x7B}


def round_to_whole(values: ArrayLike, mode: str) -> np.ndarray:
    """Float64 values rounded to whole numbers by rni, rzi, rmi or rpi; signs of zeros are kept."""
    if mode not in ("rni", "rzi", "rmi", "rpi"):
        raise TwofourError(f"expected a rounding mode of rni, rzi, rmi, rpi, got {mode!r}")
    return _whole(np.asarray(values, dtype=np.float64), mode[:2])


def float_to_int(
    values: ArrayLike, kind: str, mode: str = "rzi", source: str = "f32"
) -> np.ndarray:
    """Float64 values rounded to the integers of a kind (s8 ... u64), clamped to its range.

    NaN gives zero, or, when the source kind is f64 or the result has 64 bits, only the top bit.
    """
    if kind not in INTEGERS:
        raise TwofourError(f"expected an integer type of {', '.join(INTEGERS)}, got {kind!r}")
    dtype = np.dtype(INTEGERS[kind])
    limits = np.iinfo(dtype)
    whole = np.atleast_1d(round_to_whole(values, mode))
    # Both limits are powers of two, so that they are exact where the largest integer is not.
    above, below = whole >= float(limits.max + 1), whole < float(limits.min)
    nan = np.isnan(whole)
    results = np.where(above | below | nan, 0.0, whole).astype(dtype)
    results[above], results[below] = limits.max, limits.min
    if nan.any() and (source == "f64" or dtype.itemsize == 8):
        results[nan] = limits.min if dtype.kind == "i" else (limits.max + 1) >> 1
    return results


def int_to_float(values: ArrayLike, kind: str, mode: str = "rn") -> np.ndarray:
    """Bits of integers (any NumPy integer type) rounded once to a kind."""
    values = np.asarray(values)
    if values.dtype.itemsize < 8:
        return round_to(values.astype(np.float64), kind, mode)
    high = (values >> values.dtype.type(32)).astype(np.float64) * 2.0**32
    low = (values & values.dtype.type(0xFFFFFFFF)).astype(np.float64)
    total = high + low
    error = exact.sum_error(high, low, total)
    if kind != "f64":
        total = exact.to_odd(total, error)
    elif mode != "rn":
        total = exact.nudged(total, error, (), mode)
    return round_to(total, kind, mode)
