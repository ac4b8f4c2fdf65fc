# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""cvt between all types: integers by Python's, floats by searching the nearest number."""

import math
from dataclasses import dataclass
from fractions import Fraction

import numpy as np
import pytest

from formats import FORMATS, fraction, is_infinite, is_nan, negative, rounded, samples
from integers import decoded, encoded, limits, tuples, width
from snippet import Snippet, check_assembles

COUNT = 256
INTEGERS = ["u8", "s8", "u16", "s16", "u32", "s32", "u64", "s64"]
FLOATS = ["f16", "bf16", "f32", "f64"]


def register(kind: str) -> str:
    return FORMATS[kind].register if kind in FORMATS else f"b{width(kind)}"


def stored(kind: str) -> str:
    """The register of a result: conversions to 8 bits fill one of 16."""
    return "b16" if register(kind) == "b8" else register(kind)


@dataclass(frozen=True)
class Case:
    """`cvt.modifiers.to.source`."""

    to: str
    source: str
    modifiers: str = ""
    target: str = "sm_80"

    @property
    def opcode(self) -> str:
        return f"cvt{self.modifiers}.{self.to}.{self.source}"

    @property
    def snippet(self) -> Snippet:
        return Snippet(
            f"{self.opcode} %o0, %i0;", (register(self.source),), (stored(self.to),), self.target
        )

    def has(self, modifier: str) -> bool:
        return f".{modifier}" in self.modifiers

    @property
    def mode(self) -> str:
        """rn, rz, rm, rp or rna, also of the forms for integers."""
        for mode in ("rna", "rn", "rz", "rm", "rp"):
            if self.has(mode) or self.has(f"{mode}i"):
                return mode
        return "rn"


def newest(*kinds: str) -> str:
    """bf16 converts from f32 alone on sm_80."""
    return "sm_90" if "bf16" in kinds else "sm_80"


def convertible(kind: str, integer: str) -> bool:
    """Ptxas knows no conversion between bf16 and 8 bits."""
    return kind != "bf16" or width(integer) > 8


def fits(source: str, to: str) -> bool:
    """Whether a type holds every integer of another one: ptxas refuses .sat where it does."""
    return limits(to)[0] <= limits(source)[0] and limits(source)[1] <= limits(to)[1]


INTEGER_CASES = [
    Case(to, source, sat)
    for to in INTEGERS
    for source in INTEGERS
    for sat in ("", ".sat")
    if to != source and not (sat and fits(source, to))
]
TO_INTEGER = [
    *[
        Case(to, source, f".{mode}", newest(source))
        for to in INTEGERS
        for source in FLOATS
        for mode in ("rni", "rzi")
        if convertible(source, to)
    ],
    *[
        Case(to, source, f".{m}")
        for to in ("s32", "u64")
        for source in ("f32", "f64")
        for m in ("rmi", "rpi")
    ],
    *[Case(to, "f32", ".rzi.ftz") for to in ("s32", "u8")],
    Case("u8", "f32", ".rni.sat"),
]
FROM_INTEGER = [
    *[
        Case(to, source, ".rn", newest(to))
        for to in FLOATS
        for source in INTEGERS
        if convertible(to, source)
    ],
    *[
        Case(to, source, f".{m}")
        for to in ("f16", "f32", "f64")
        for source in ("s64", "u64")
        for m in ("rz", "rm", "rp")
    ],
    Case("f32", "s32", ".rn.sat"),
]
NARROWING = [
    *[Case("f16", source, f".{m}") for source in ("f32", "f64") for m in ("rn", "rz", "rm", "rp")],
    *[Case("f32", "f64", f".{m}") for m in ("rn", "rz", "rm", "rp")],
    *[Case("bf16", "f32", f".{m}") for m in ("rn", "rz")],
    *[Case("bf16", source, ".rn", "sm_90") for source in ("f64", "f16")],
    Case("f16", "bf16", ".rn", "sm_90"),
    Case("f32", "f64", ".rn.ftz"),
    Case("f32", "f64", ".rn.sat"),
    Case("f16", "f32", ".rn.ftz"),
    Case("f16", "f32", ".rn.sat"),
    Case("f16", "f32", ".rn.relu"),
    Case("bf16", "f32", ".rn.relu"),
    Case("bf16", "f32", ".rz.relu"),
    Case("tf32", "f32", ".rna"),
    Case("tf32", "f32", ".rn", "sm_90"),
    Case("tf32", "f32", ".rz", "sm_90"),
    Case("tf32", "f32", ".rn.relu", "sm_90"),
]
WIDENING = [
    Case("f32", "f16"),
    Case("f64", "f16"),
    Case("f64", "f32"),
    Case("f32", "bf16", "", "sm_90"),
    Case("f64", "bf16", "", "sm_90"),
    Case("f32", "f16", ".ftz"),
    Case("f64", "f32", ".ftz"),
    Case("f32", "f32", ".ftz"),
    Case("f32", "f32", ".sat"),
    Case("f64", "f64", ".sat"),
    *[
        Case(kind, kind, f".{m}")
        for kind in ("f16", "f32", "f64")
        for m in ("rni", "rzi", "rmi", "rpi")
    ],
    Case("f32", "f32", ".rzi.ftz"),
]
FLOAT_CASES = [*NARROWING, *WIDENING]


@pytest.mark.parametrize("case", INTEGER_CASES, ids=lambda case: case.opcode)
def test_integers(case):
    (column,) = tuples((case.source,), 1, 256)
    (found,) = case.snippet(column)
    low, high = limits(case.to)
    for bits, d in zip(column.tolist(), found.tolist(), strict=True):
        number = decoded(bits, case.source)
        number = min(max(number, low), high) if case.has("sat") else number
        # The register may be wider: it holds the number that its type makes of the bits.
        number = decoded(encoded(number, case.to), case.to)
        assert d == encoded(number, stored(case.to)), hex(bits)


def halves_and_limits(kind: str, to: str) -> np.ndarray:
    """Bits of numbers around those where the result of rounding changes, and samples."""
    values = [0.0, -0.0, 0.5, -0.5, 1.5, 2.5, -1.5, -2.5, 0.75, -0.25]
    for limit in limits(to):
        values += [float(limit) + d for d in (-1.5, -1, -0.5, 0, 0.5, 1, 1.5)]
    bits = []
    for value in values:
        nearest = rounded(Fraction(value), kind)
        bits += [nearest, nearest ^ 1]
    chosen = [b for b in bits if not is_nan(b, kind)]
    mixed = [*chosen, *samples(kind, COUNT - len(chosen), 2).tolist()]
    return np.array(mixed, dtype=FORMATS[kind].dtype)


def whole(value: Fraction, mode: str) -> int:
    return {"rn": round, "rz": math.trunc, "rm": math.floor, "rp": math.ceil}[mode](value)


def flushed(bits: int, kind: str) -> int:
    return bits & FORMATS[kind].sign if bits & FORMATS[kind].infinity == 0 else bits


@pytest.mark.parametrize("case", TO_INTEGER, ids=lambda case: case.opcode)
def test_float_to_integer(case):
    column = halves_and_limits(case.source, case.to)
    (found,) = case.snippet(column)
    low, high = limits(case.to)
    for bits, d in zip(column.tolist(), found.tolist(), strict=True):
        if case.has("ftz"):
            bits = flushed(bits, case.source)
        if is_nan(bits, case.source):
            wide = case.source == "f64" or width(case.to) == 64
            number = 1 << width(case.to) - 1 if wide else 0
            number = decoded(number, case.to)
        elif is_infinite(bits, case.source):
            number = low if negative(bits, case.source) else high
        else:
            number = min(max(whole(fraction(bits, case.source), case.mode), low), high)
        assert d == encoded(number, stored(case.to)), hex(bits)


@pytest.mark.parametrize("case", FROM_INTEGER, ids=lambda case: case.opcode)
def test_integer_to_float(case):
    (column,) = tuples((case.source,), 3, 256)
    ties = [
        (1 << p) + (1 << max(p - m, 0)) + d
        for p in range(width(case.source) - 1)
        for m in (8, 11, 24, 53)
        for d in (-1, 0, 1)
    ]
    chosen = np.random.default_rng(4).permutation(np.array(ties, dtype=np.uint64))[:128]
    column[-len(chosen) :] = chosen.astype(column.dtype)
    (found,) = case.snippet(column)
    one = rounded(Fraction(1), case.to)
    for bits, d in zip(column.tolist(), found.tolist(), strict=True):
        expected = rounded(Fraction(decoded(bits, case.source)), case.to, case.mode)
        if case.has("sat"):
            expected = 0 if negative(expected, case.to) else min(expected, one)
        assert d == expected, hex(bits)


def between_numbers(source: str, to: str) -> np.ndarray:
    """Bits of a wide kind near numbers of the narrow one and near the middles between those."""
    form = FORMATS[to]
    bits = []
    for pattern in samples(to, 48, 5).tolist():
        if is_nan(pattern, to) or is_infinite(pattern, to):
            continue
        low = fraction(pattern, to)
        beside = pattern + (1 << form.padding)
        last = is_nan(beside, to) or is_infinite(beside, to)
        middle = low if last else (low + fraction(beside, to)) / 2
        for value in (low, middle):
            nearest = rounded(value, source)
            bits += [nearest, max(nearest - 1, 0), nearest + 1]
    bits = [b for b in bits if not is_nan(b, source)][: COUNT - 96]
    mixed = [*bits, *samples(source, COUNT - len(bits), 6).tolist()]
    return np.array(mixed, dtype=FORMATS[source].dtype)


def converted(case: Case, bits: int) -> int:
    """The definition of a conversion between floats."""
    form, source = FORMATS[case.to], case.source
    if case.has("ftz"):
        bits = flushed(bits, source) if source == "f32" else bits
    sign = form.sign if negative(bits, source) else 0
    if is_nan(bits, source):
        found = form.nan
    elif is_infinite(bits, source):
        found = sign | form.infinity
    elif any(case.has(m) for m in ("rni", "rzi", "rmi", "rpi")):
        found = rounded(
            Fraction(whole(fraction(bits, source), case.mode)), case.to, "rn", bool(sign)
        )
    else:
        found = rounded(fraction(bits, source), case.to, case.mode, bool(sign))
    if case.has("ftz") and case.to == "f32":
        found = flushed(found, case.to)
    if case.has("sat"):
        one = rounded(Fraction(1), case.to)
        found = 0 if is_nan(found, case.to) or negative(found, case.to) else min(found, one)
    if case.has("relu") and negative(found, case.to) and not is_nan(found, case.to):
        found = 0
    return found


@pytest.mark.parametrize("case", FLOAT_CASES, ids=lambda case: case.opcode)
def test_floats(case):
    narrower = FORMATS[case.to].mantissa < FORMATS[case.source].mantissa
    if narrower:
        column = between_numbers(case.source, case.to)
    else:
        column = halves_and_limits(case.source, "s8")
    (found,) = case.snippet(column)
    for bits, d in zip(column.tolist(), found.tolist(), strict=True):
        expected = converted(case, bits)
        if case.to == "f64" and is_nan(expected, "f64"):
            assert is_nan(d, "f64")
        elif case.to == "tf32":
            # The low bits of the register are not part of the result.
            assert d >> 13 == expected >> 13, hex(bits)
        else:
            assert d == expected, (hex(bits), hex(d), hex(expected))


# Two f32 into one register, the first operand in its upper half.
PAIRS = {
    "cvt.rn.f16x2.f32": ("f16", "rn", False),
    "cvt.rz.f16x2.f32": ("f16", "rz", False),
    "cvt.rn.bf16x2.f32": ("bf16", "rn", False),
    "cvt.rz.bf16x2.f32": ("bf16", "rz", False),
    "cvt.rn.relu.f16x2.f32": ("f16", "rn", True),
    "cvt.rn.relu.bf16x2.f32": ("bf16", "rn", True),
}


@pytest.mark.parametrize("opcode", PAIRS)
def test_pairs(opcode):
    kind, mode, relu = PAIRS[opcode]
    case = Case(kind, "f32", f".{mode}" + (".relu" if relu else ""))
    upper = between_numbers("f32", kind)
    lower = upper[::-1].copy()
    (found,) = pair_snippet(opcode)(upper, lower)
    for a, b, d in zip(upper.tolist(), lower.tolist(), found.tolist(), strict=True):
        assert d == converted(case, a) << 16 | converted(case, b), (hex(a), hex(b))


def pair_snippet(opcode: str) -> Snippet:
    return Snippet(f"{opcode} %o0, %i0, %i1;")


def packing(kind: str) -> Snippet:
    if kind in ("s16", "u16"):
        return Snippet(f"cvt.pack.sat.{kind}.s32 %o0, %i0, %i1;")
    return Snippet(f"cvt.pack.sat.{kind}.s32.b32 %o0, %i0, %i1, %i2;", ("b32",) * 3)


PACKED_KINDS = ("s8", "u8", "s16", "u16")


@pytest.mark.parametrize("kind", PACKED_KINDS)
def test_packing(kind):
    snippet = packing(kind)
    columns = tuples(("s32",) * len(snippet.inputs), 7)
    (found,) = snippet(*columns)
    low, high = limits(kind)
    for *operands, d in zip(*(column.tolist() for column in (*columns, found)), strict=True):
        first, second = (
            encoded(min(max(decoded(bits, "s32"), low), high), kind) for bits in operands[:2]
        )
        above = operands[2] << 2 * width(kind) if len(operands) == 3 else 0
        assert d == encoded(above | first << width(kind) | second, "u32")


BYTE_KINDS = ("e4m3", "e5m2")


def to_bytes(kind: str) -> Snippet:
    return Snippet(
        f"cvt.rn.satfinite.{kind}x2.f32 %o0, %i0, %i1;", outputs=("b16",), target="sm_90"
    )


def from_bytes(kind: str) -> Snippet:
    return Snippet(f"cvt.rn.f16x2.{kind}x2 %o0, %i0;", ("b16",), target="sm_90")


@pytest.mark.parametrize("kind", BYTE_KINDS)
def test_floats_to_bytes(kind):
    upper = between_numbers("f32", kind)
    lower = upper[::-1].copy()
    (found,) = to_bytes(kind)(upper, lower)

    def byte(bits: int) -> int:
        form = FORMATS[kind]
        if is_nan(bits, "f32"):
            return form.nan
        sign = form.sign if negative(bits, "f32") else 0
        if is_infinite(bits, "f32"):
            return sign | form.largest
        return min(rounded(fraction(bits, "f32"), kind, "rn", bool(sign)), sign | form.largest)

    for a, b, d in zip(upper.tolist(), lower.tolist(), found.tolist(), strict=True):
        assert d == byte(a) << 8 | byte(b), (hex(a), hex(b))


@pytest.mark.parametrize("kind", BYTE_KINDS)
def test_bytes_to_halves(kind):
    column = np.arange(1 << 16, dtype=np.uint16)[::41][:1568]
    (found,) = from_bytes(kind)(column)
    for pair, d in zip(column.tolist(), found.tolist(), strict=True):
        for byte, half in ((pair & 0xFF, d & 0xFFFF), (pair >> 8, d >> 16)):
            if is_nan(byte, kind):
                assert is_nan(half, "f16")
            elif is_infinite(byte, kind):
                assert half == FORMATS["f16"].infinity | byte >> 7 << 15
            else:
                assert half == rounded(fraction(byte, kind), "f16", "rn", bool(byte >> 7))


def all_snippets() -> list[Snippet]:
    cases = [*INTEGER_CASES, *TO_INTEGER, *FROM_INTEGER, *FLOAT_CASES]
    snippets = [case.snippet for case in cases]
    snippets += [pair_snippet(opcode) for opcode in PAIRS]
    snippets += [packing(kind) for kind in PACKED_KINDS]
    snippets += [make(kind) for make in (to_bytes, from_bytes) for kind in BYTE_KINDS]
    return snippets


def test_snippets_assemble(tmp_path):
    check_assembles(all_snippets(), tmp_path)
