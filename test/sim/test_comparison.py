# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Comparisons of floating-point numbers, NaN and zeros among them, and what is made of them."""

import math

import numpy as np
import pytest

from formats import FORMATS, fraction, is_infinite, is_nan, negative, packed, samples
from snippet import Snippet, check_assembles

COUNT = 384


def number(bits: int, kind: str) -> float:
    if is_nan(bits, kind):
        return math.nan
    if is_infinite(bits, kind):
        return -math.inf if negative(bits, kind) else math.inf
    value = float(fraction(bits, kind))
    return -value if negative(bits, kind) and value == 0 else value


COMPARISONS = {
    "eq": lambda a, b: a == b,
    # Of ordered comparisons this is the one where Python differs: it is false for NaN.
    "ne": lambda a, b: a < b or a > b,
    "lt": lambda a, b: a < b,
    "le": lambda a, b: a <= b,
    "gt": lambda a, b: a > b,
    "ge": lambda a, b: a >= b,
    "equ": lambda a, b: not (a < b or a > b),
    "neu": lambda a, b: a != b,
    "ltu": lambda a, b: not a >= b,
    "leu": lambda a, b: not a > b,
    "gtu": lambda a, b: not a <= b,
    "geu": lambda a, b: not a < b,
    "num": lambda a, b: not (math.isnan(a) or math.isnan(b)),
    "nan": lambda a, b: math.isnan(a) or math.isnan(b),
}
KINDS = {"f32": "sm_80", "f64": "sm_80", "f16": "sm_80", "bf16": "sm_90"}


def comparison_snippet(order: str, kind: str) -> Snippet:
    return Snippet(
        f"setp.{order}.{kind} %p0, %i0, %i1;\nselp.u32 %o0, 1, 0, %p0;",
        (FORMATS[kind].register,) * 2,
        target=KINDS[kind],
    )


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("order", COMPARISONS)
def test_comparisons(order, kind):
    a, b = (samples(kind, COUNT, seed) for seed in (40, 41))
    b[::3] = a[::3]
    (found,) = comparison_snippet(order, kind)(a, b)
    for x, y, d in zip(a.tolist(), b.tolist(), found.tolist(), strict=True):
        expected = COMPARISONS[order](number(x, kind), number(y, kind))
        assert d == expected, (hex(x), hex(y))


COMBINED = {
    "setp.lt.ftz.f32 %p0, %i0, %i1;": lambda a, b: (flush(a) < flush(b), False),
    "setp.eq.f32 %p0|%p1, %i0, %i1;": lambda a, b: (a == b, a != b),
    "setp.gt.and.f32 %p0|%p1, %i0, %i1, %p2;": (
        lambda a, b: (a > b and a > 0, not a > b and a > 0)
    ),
    "setp.geu.or.f32 %p0, %i0, 0f3F800000, %p2;": lambda a, b: (not a < 1 or a > 0, False),
}


def flush(value: float) -> float:
    return math.copysign(0, value) if abs(value) < 2.0**-126 else value


def combined_snippet(body: str) -> Snippet:
    return Snippet(
        f"setp.gt.f32 %p2, %i0, 0f00000000;\nsetp.nan.f32 %p1, 0f00000000, 0f00000000;\n{body}\n"
        "selp.u32 %o0, 1, 0, %p0;\nselp.u32 %o1, 1, 0, %p1;",
        ("b32",) * 2,
        ("b32",) * 2,
    )


@pytest.mark.parametrize("body", COMBINED)
def test_combined_comparisons(body):
    a, b = (samples("f32", COUNT, seed) for seed in (42, 43))
    b[::3] = a[::3]
    first, second = combined_snippet(body)(a, b)
    for x, y, *found in zip(*map(np.ndarray.tolist, (a, b, first, second)), strict=True):
        expected = COMBINED[body](number(x, "f32"), number(y, "f32"))
        assert found == list(map(int, expected)), (hex(x), hex(y))


SETS = {
    "set.lt.u32.f32 %o0, %i0, %i1;": ("f32", lambda a, b: 0xFFFFFFFF if a < b else 0),
    "set.geu.s32.f32 %o0, %i0, %i1;": ("f32", lambda a, b: 0 if a < b else 0xFFFFFFFF),
    "set.gt.f32.f32 %o0, %i0, %i1;": ("f32", lambda a, b: 0x3F800000 if a > b else 0),
    "set.eq.u32.f64 %o0, %i0, %i1;": ("f64", lambda a, b: 0xFFFFFFFF if a == b else 0),
    "set.neu.f32.f64 %o0, %i0, %i1;": ("f64", lambda a, b: 0x3F800000 if a != b else 0),
    "setp.gt.f32 %p0, %i0, %i1;\nselp.f32 %o0, %i0, 0f40000000, %p0;": (
        "f32",
        lambda a, b: float_bits(a) if a > b else 0x40000000,
    ),
    "set.lt.f16.f16 %h0, %i0, %i1;\ncvt.u32.u16 %o0, %h0;": (
        "f16",
        lambda a, b: 0x3C00 if a < b else 0,
    ),
    "slct.f32.f32 %o0, 0f40000000, %i1, %i0;": (
        "f32",
        lambda a, b: 0x40000000 if a >= 0 else float_bits(b),
    ),
}


PROPERTIES = {
    "finite": math.isfinite,
    "infinite": math.isinf,
    "number": lambda a: not math.isnan(a),
    "notanumber": math.isnan,
    "normal": lambda a: math.isfinite(a) and abs(a) >= 2.0**-126,
    "subnormal": lambda a: 0 < abs(a) < 2.0**-126,
}


def property_snippet(name: str) -> Snippet:
    return Snippet(f"testp.{name}.f32 %p0, %i0;\nselp.u32 %o0, 1, 0, %p0;", ("b32",))


@pytest.mark.parametrize("name", PROPERTIES)
def test_properties(name):
    a = samples("f32", COUNT, 48)
    (found,) = property_snippet(name)(a)
    for x, d in zip(a.tolist(), found.tolist(), strict=True):
        assert d == PROPERTIES[name](number(x, "f32")), hex(x)


def float_bits(value: float) -> int:
    return int(np.float32(value).view(np.uint32))


def set_snippet(body: str) -> Snippet:
    return Snippet(body, (FORMATS[SETS[body][0]].register,) * 2)


@pytest.mark.parametrize("body", SETS)
def test_results_of_comparisons(body):
    kind, function = SETS[body]
    a, b = (samples(kind, COUNT, seed) for seed in (44, 45))
    b[::3] = a[::3]
    (found,) = set_snippet(body)(a, b)
    for x, y, d in zip(a.tolist(), b.tolist(), found.tolist(), strict=True):
        expected = function(number(x, kind), number(y, kind))
        assert d == expected or is_nan(d, "f32") and is_nan(expected, "f32"), (hex(x), hex(y))


HALF_PAIRS = {
    "setp.lt.f16x2 %p0|%p1, %i0, %i1;": "f16",
    "setp.lt.bf16x2 %p0|%p1, %i0, %i1;": "bf16",
}


def pair_snippet(body: str) -> Snippet:
    return Snippet(
        f"{body}\nselp.u32 %o0, 1, 0, %p0;\nselp.u32 %o1, 1, 0, %p1;",
        outputs=("b32",) * 2,
        target="sm_90" if ".bf16" in body else "sm_80",
    )


@pytest.mark.parametrize("body", HALF_PAIRS)
def test_comparisons_of_pairs(body):
    kind = HALF_PAIRS[body]
    columns = [samples(kind, COUNT, seed) for seed in (46, 47)]
    found = np.concatenate(pair_snippet(body)(*packed(columns)))
    for x, y, d in zip(*(column.tolist() for column in columns), found.tolist(), strict=True):
        assert d == (number(x, kind) < number(y, kind))


def all_snippets() -> list[Snippet]:
    snippets = [comparison_snippet(order, kind) for order in COMPARISONS for kind in KINDS]
    snippets += [combined_snippet(body) for body in COMBINED]
    snippets += [set_snippet(body) for body in SETS]
    snippets += [property_snippet(name) for name in PROPERTIES]
    snippets += [pair_snippet(body) for body in HALF_PAIRS]
    return snippets


def test_snippets_assemble(tmp_path):
    check_assembles(all_snippets(), tmp_path)
