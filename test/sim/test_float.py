# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Floating-point instructions against exact fractions, and approximations against `math`."""

import math
from dataclasses import dataclass

import numpy as np
import pytest

from definitions import result
from formats import FORMATS, fraction, is_nan, negative, packed, samples
from snippet import Snippet, check_assembles

COUNT = 256
ARITY = {"fma": 3, "mad": 3, "sqrt": 1, "rcp": 1}


@dataclass(frozen=True)
class Case:
    """`operation.modifiers.kind`, where kind may be packed (f16x2)."""

    operation: str
    kind: str
    mode: str = ""
    flags: tuple[str, ...] = ()
    target: str = "sm_80"

    @property
    def opcode(self) -> str:
        modifiers = [self.mode] if self.mode else []
        return ".".join([self.operation, *modifiers, *self.flags, self.kind])

    @property
    def element(self) -> str:
        return self.kind.removesuffix("x2")

    @property
    def arity(self) -> int:
        return ARITY.get(self.operation, 2)

    @property
    def snippet(self) -> Snippet:
        register = "b32" if self.kind.endswith("x2") else FORMATS[self.kind].register
        operands = ", ".join(["%o0", *(f"%i{i}" for i in range(self.arity))])
        return Snippet(
            f"{self.opcode} {operands};", (register,) * self.arity, (register,), self.target
        )


CASES = [
    *[
        Case(operation, kind, mode)
        for operation in ("add", "sub", "mul", "fma", "div", "sqrt", "rcp")
        for kind in ("f32", "f64")
        for mode in ("rn", "rz", "rm", "rp")
    ],
    *[Case(operation, kind) for operation in ("add", "sub", "mul") for kind in ("f32", "f64")],
    *[Case("mad", kind, "rn") for kind in ("f32", "f64")],
    *[Case(o, "f32", "rn", ("ftz",)) for o in ("add", "sub", "mul", "fma", "div", "sqrt", "rcp")],
    *[Case(o, "f32", "rn", ("sat",)) for o in ("add", "sub", "mul", "fma")],
    *[Case(o, "f32", "rz", ("ftz", "sat")) for o in ("add", "mul", "fma")],
    *[Case(o, k) for o in ("add", "sub", "mul") for k in ("f16", "f16x2")],
    *[Case(o, k, "rn") for o in ("add", "sub", "mul", "fma") for k in ("f16", "f16x2")],
    *[Case(o, "f16", "rn", (flag,)) for o in ("add", "mul", "fma") for flag in ("ftz", "sat")],
    *[Case("fma", k, "rn", ("relu",)) for k in ("f16", "f16x2", "bf16", "bf16x2")],
    *[Case("fma", k, "rn") for k in ("bf16", "bf16x2")],
    *[Case(o, k, target="sm_90") for o in ("add", "sub", "mul") for k in ("bf16", "bf16x2")],
]


def flushed(bits: int, kind: str) -> int:
    form = FORMATS[kind]
    return bits & form.sign if bits & form.infinity == 0 else bits


def expected_bits(case: Case, operands: tuple[int, ...]) -> int:
    kind = case.element
    form = FORMATS[kind]
    operation = {"mad": "fma", "rcp": "div"}.get(case.operation, case.operation)
    if case.operation == "rcp":
        one = ((1 << form.exponent - 1) - 1) << form.mantissa
        operands = (one, *operands)
    if "ftz" in case.flags:
        operands = tuple(flushed(bits, kind) for bits in operands)
    bits = result(operation, operands, kind, case.mode or "rn")
    if "ftz" in case.flags:
        bits = flushed(bits, kind)
    if "sat" in case.flags:
        one = ((1 << form.exponent - 1) - 1) << form.mantissa
        bits = 0 if is_nan(bits, kind) or negative(bits, kind) else min(bits, one)
    if "relu" in case.flags and negative(bits, kind) and not is_nan(bits, kind):
        bits = 0
    return bits


def same(found: int, expected: int, kind: str) -> bool:
    """Equal bits; any NaN for a NaN of f64, whose payload PTX leaves open."""
    if kind == "f64" and is_nan(expected, kind):
        return is_nan(found, kind)
    return found == expected


def close_operands(kind: str, arity: int) -> list[np.ndarray]:
    """Samples, some of them such that sums cancel or lie close to a tie."""
    columns = [samples(kind, COUNT, 20 + i) for i in range(arity)]
    if arity > 1:
        form = FORMATS[kind]
        steps = np.random.default_rng(23).integers(-1, 2, COUNT // 4).astype(form.dtype)
        columns[1][::4] = (columns[0][::4] ^ form.dtype(form.sign)) + steps
    return columns


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.opcode)
def test_arithmetic(case):
    columns = close_operands(case.element, case.arity)
    if case.kind.endswith("x2"):
        (words,) = case.snippet(*packed(columns))
        found = np.concatenate([words & 0xFFFF, words >> 16])
    else:
        (found,) = case.snippet(*columns)
    for row in zip(*(column.tolist() for column in columns), found.tolist(), strict=True):
        expected = expected_bits(case, row[:-1])
        assert same(row[-1], expected, case.element), [hex(bits) for bits in (*row, expected)]


MIXED = [(root, kind) for root in ("add", "sub", "fma") for kind in ("f16", "bf16")]


def mixed_snippet(root: str, kind: str) -> Snippet:
    count = ARITY.get(root, 2)
    operands = ", ".join(["%o0", *(f"%i{i}" for i in range(count))])
    inputs = (*("b16",) * (count - 1), "b32")
    return Snippet(f"{root}.rn.f32.{kind} {operands};", inputs, target="sm_100")


@pytest.mark.parametrize(("root", "kind"), MIXED)
def test_operands_of_16_bits_of_sums_in_f32(root, kind):
    snippet = mixed_snippet(root, kind)
    *narrow, last = (
        samples("f32" if width == "b32" else kind, COUNT, 30 + i)
        for i, width in enumerate(snippet.inputs)
    )
    (found,) = snippet(*narrow, last)
    wide = [
        bits.view(np.float16).astype(np.float32).view(np.uint32)
        if kind == "f16"
        else bits.astype(np.uint32) << np.uint32(16)
        for bits in narrow
    ]
    case = Case(root, "f32", "rn")
    columns = (column.tolist() for column in (*wide, last, found))
    for *operands, bits in zip(*columns, strict=True):
        expected = expected_bits(case, tuple(operands))
        assert same(bits, expected, "f32"), [hex(b) for b in (*operands, bits, expected)]


def order_key(bits: int, kind: str) -> tuple:
    """Sorts numbers, -0 before +0."""
    magnitude = bits & FORMATS[kind].sign - 1
    return (0, -magnitude) if negative(bits, kind) else (1, magnitude)


def extreme(operation: str, a: int, b: int, kind: str, flags: tuple[str, ...]) -> int:
    if "ftz" in flags:
        a, b = flushed(a, kind), flushed(b, kind)
    numbers = [bits for bits in (a, b) if not is_nan(bits, kind)]
    if not numbers or "NaN" in flags and len(numbers) < 2:
        return FORMATS[kind].nan
    choose = min if operation == "min" else max
    if "xorsign" not in flags:
        return choose(numbers, key=lambda bits: order_key(bits, kind))
    sign = FORMATS[kind].sign
    return choose(bits & sign - 1 for bits in numbers) | (a ^ b) & sign


EXTREMES = [
    *[Case(o, k) for o in ("min", "max") for k in ("f16", "bf16", "f32", "f64", "f16x2", "bf16x2")],
    *[Case(o, k, "", ("NaN",)) for o in ("min", "max") for k in ("f16", "bf16", "f32", "f16x2")],
    *[Case(o, "f32", "", ("ftz",)) for o in ("min", "max")],
    *[Case(o, k, "", ("xorsign", "abs"), "sm_90") for o in ("min", "max") for k in ("f32", "bf16")],
]


@pytest.mark.parametrize("case", EXTREMES, ids=lambda case: case.opcode)
def test_minimum_and_maximum(case):
    columns = close_operands(case.element, 2)
    if case.kind.endswith("x2"):
        (words,) = case.snippet(*packed(columns))
        found = np.concatenate([words & 0xFFFF, words >> 16])
    else:
        (found,) = case.snippet(*columns)
    for a, b, d in zip(*(column.tolist() for column in columns), found.tolist(), strict=True):
        expected = extreme(case.operation, a, b, case.element, case.flags)
        assert same(d, expected, case.element), [hex(bits) for bits in (a, b, d, expected)]


SIGNS = [
    *[(f"neg.{k}", k, 1) for k in ("f16", "bf16", "f32", "f64", "f16x2", "bf16x2")],
    *[(f"abs.{k}", k, 1) for k in ("f16", "bf16", "f32", "f64", "f16x2", "bf16x2")],
    *[(f"{o}.ftz.f32", "f32", 1) for o in ("neg", "abs")],
    *[(f"copysign.{k}", k, 2) for k in ("f32", "f64")],
]


def sign_snippet(opcode: str, kind: str, arity: int) -> Snippet:
    register = "b32" if kind.endswith("x2") else FORMATS[kind].register
    operands = ", ".join(["%o0", *(f"%i{i}" for i in range(arity))])
    return Snippet(f"{opcode} {operands};", (register,) * arity, (register,))


@pytest.mark.parametrize(("opcode", "kind", "arity"), SIGNS)
def test_signs(opcode, kind, arity):
    element = kind.removesuffix("x2")
    sign = FORMATS[element].sign
    columns = [samples(element, COUNT, 30 + i) for i in range(arity)]
    snippet = sign_snippet(opcode, kind, arity)
    if kind.endswith("x2"):
        (words,) = snippet(*packed(columns))
        found = np.concatenate([words & 0xFFFF, words >> 16])
    else:
        (found,) = snippet(*columns)
    for row in zip(*(column.tolist() for column in columns), found.tolist(), strict=True):
        if is_nan(row[-2], element):
            assert is_nan(row[-1], element)
            continue
        number = flushed(row[0], element) if ".ftz" in opcode else row[0]
        if opcode.startswith("neg"):
            assert row[-1] == number ^ sign
        elif opcode.startswith("abs"):
            assert row[-1] == number & ~sign
        else:
            # copysign takes the sign of its first operand.
            assert row[-1] == row[1] & ~sign | row[0] & sign


# Functions, errors in units of the last place and absolute ones (those that PTX documents, or a
# little more), and the range of operands.
APPROXIMATIONS = {
    "rcp.approx.f32": (lambda x: 1 / x, 1, 0, (-1e30, 1e30)),
    "rcp.approx.ftz.f32": (lambda x: 1 / x, 1, 0, (-1e30, 1e30)),
    "sqrt.approx.f32": (math.sqrt, 2, 0, (0.0, 1e30)),
    "rsqrt.approx.f32": (lambda x: 1 / math.sqrt(x), 4, 0, (1e-30, 1e30)),
    "ex2.approx.f32": (lambda x: 2.0**x, 4, 0, (-120.0, 120.0)),
    "ex2.approx.ftz.f32": (lambda x: 2.0**x, 4, 0, (-120.0, 120.0)),
    "lg2.approx.f32": (math.log2, 1, 2.0**-22, (1e-30, 1e30)),
    "sin.approx.f32": (math.sin, 0, 2.0**-20, (-3.14, 3.14)),
    "cos.approx.f32": (math.cos, 0, 2.0**-20, (-3.14, 3.14)),
    "tanh.approx.f32": (math.tanh, 2**13, 0, (-9.0, 9.0)),
}


@pytest.mark.parametrize("opcode", APPROXIMATIONS)
def test_approximations(opcode):
    function, units, absolute, (low, top) = APPROXIMATIONS[opcode]
    generator = np.random.default_rng(50)
    if top > 1e3:
        x = np.exp2(generator.uniform(-90, 90, COUNT)) * (1 if low >= 0 else -1)
    else:
        x = generator.uniform(low, top, COUNT)
    x = x.astype(np.float32)
    (found,) = Snippet(f"{opcode} %o0, %i0;", ("b32",))(x.view(np.uint32))
    exact = np.array([function(float(value)) for value in x])
    error = np.abs(found.view(np.float32) - exact)
    assert (error <= units * np.spacing(np.abs(exact).astype(np.float32)) + absolute).all()


@pytest.mark.parametrize("root, function", [("rcp", lambda x: 1 / x), ("rsqrt", lambda x: x**-0.5)])
def test_gross_approximations_of_f64(root, function):
    """Those that PTX forms from, and as, the upper half of a double."""
    snippet = Snippet(f"{root}.approx.ftz.f64 %o0, %i0;", ("b64",), ("b64",))
    x = np.exp2(np.random.default_rng(53).uniform(-300, 300, COUNT))
    (found,) = snippet(x.view(np.uint64))
    assert not (found & 0xFFFFFFFF).any()
    assert np.abs(found.view(np.float64) / function(x) - 1).max() < 2.0**-19
    subnormal, huge = 2.0**-1030, 2.0**1023.5
    special = np.array([0.0, -0.0, subnormal, np.inf, np.nan, -1.0, huge])
    (found,) = snippet(np.resize(special, COUNT).view(np.uint64))
    expected = {
        "rcp": [np.inf, -np.inf, np.inf, 0.0, np.nan, -1.0, 0.0],
        "rsqrt": [np.inf, -np.inf, np.inf, 0.0, np.nan, np.nan, 2.0**-511.75],
    }[root]
    np.testing.assert_allclose(found.view(np.float64)[: len(special)], expected, rtol=2.0**-19)


# Approximations in half precision, with relative errors that PTX documents (and a half unit more).
HALF_APPROXIMATIONS = {
    "ex2.approx.f16": ("f16", lambda x: 2.0**x, 2.0**-9),
    "ex2.approx.f16x2": ("f16x2", lambda x: 2.0**x, 2.0**-9),
    "ex2.approx.ftz.bf16": ("bf16", lambda x: 2.0**x, 2.0**-7),
    "tanh.approx.f16": ("f16", math.tanh, 2.0**-9),
    "tanh.approx.f16x2": ("f16x2", math.tanh, 2.0**-9),
    "tanh.approx.bf16": ("bf16", math.tanh, 2.0**-7),
}


def half_approximation(opcode: str) -> Snippet:
    register = "b32" if opcode.endswith("x2") else "b16"
    return Snippet(f"{opcode} %o0, %i0;", (register,), (register,), "sm_90")


@pytest.mark.parametrize("opcode", HALF_APPROXIMATIONS)
def test_approximations_of_halves(opcode):
    kind, function, bound = HALF_APPROXIMATIONS[opcode]
    values = np.random.default_rng(52).uniform(-8, 8, COUNT).astype(np.float16)
    bits = values.view(np.uint16)
    if kind == "bf16":
        bits = (values.astype(np.float32).view(np.uint32) >> 16).astype(np.uint16)
    exact = np.array([function(float(fraction(b, kind.removesuffix("x2")))) for b in bits.tolist()])
    if kind == "f16x2":
        (words,) = half_approximation(opcode)(*packed([bits]))
        found = np.concatenate([words & 0xFFFF, words >> 16])
    else:
        (found,) = half_approximation(opcode)(bits)
    results = [float(fraction(b, kind.removesuffix("x2"))) for b in found.tolist()]
    assert (np.abs(np.array(results) - exact) <= bound * np.abs(exact)).all()


# Operands and what PTX documents for them.
LARGEST_SUBNORMAL = 2.0**-126 - 2.0**-149
SPECIAL_VALUES = {
    "rcp.approx.f32": ((0.0, math.inf), (-0.0, -math.inf), (math.inf, 0.0), (-math.inf, -0.0)),
    "sqrt.approx.f32": ((0.0, 0.0), (-0.0, -0.0), (math.inf, math.inf), (-1.0, math.nan)),
    "rsqrt.approx.f32": ((0.0, math.inf), (-0.0, -math.inf), (math.inf, 0.0), (-1.0, math.nan)),
    "ex2.approx.f32": ((0.0, 1.0), (math.inf, math.inf), (-math.inf, 0.0), (200.0, math.inf)),
    "lg2.approx.f32": ((0.0, -math.inf), (math.inf, math.inf), (1.0, 0.0), (-1.0, math.nan)),
    "sin.approx.f32": ((0.0, 0.0), (-0.0, -0.0), (math.inf, math.nan)),
    "cos.approx.f32": ((0.0, 1.0), (-math.inf, math.nan)),
    # Subnormal operands count as zeros, and such results become zeros.
    "rcp.approx.ftz.f32": ((-LARGEST_SUBNORMAL, -math.inf), (2.0**-126, 2.0**126), (2.0**127, 0.0)),
    "sqrt.approx.ftz.f32": ((LARGEST_SUBNORMAL, 0.0), (2.0**-126, 2.0**-63)),
    "rsqrt.approx.ftz.f32": ((LARGEST_SUBNORMAL, math.inf), (2.0**-126, 2.0**63)),
    "ex2.approx.ftz.f32": ((-127.0, 0.0), (-126.0, 2.0**-126), (LARGEST_SUBNORMAL, 1.0)),
    "lg2.approx.ftz.f32": ((LARGEST_SUBNORMAL, -math.inf), (2.0**-126, -126.0)),
    "sin.approx.ftz.f32": ((LARGEST_SUBNORMAL, 0.0), (-LARGEST_SUBNORMAL, -0.0)),
}


@pytest.mark.parametrize("opcode", SPECIAL_VALUES)
def test_special_values_of_approximations(opcode):
    pairs = np.array([*SPECIAL_VALUES[opcode], (math.nan, math.nan)], dtype=np.float32)
    values, expected = np.resize(pairs, (32, 2)).T
    (found,) = Snippet(f"{opcode} %o0, %i0;", ("b32",))(values.copy().view(np.uint32))
    np.testing.assert_array_equal(found.view(np.float32), expected)
    numbers = ~np.isnan(expected)
    np.testing.assert_array_equal(found[numbers] >> 31, np.signbit(expected[numbers]))
    assert (found[~numbers] == FORMATS["f32"].nan).all()


@pytest.mark.parametrize("opcode", ["div.full.f32", "div.approx.f32", "div.approx.ftz.f32"])
def test_approximate_division(opcode):
    generator = np.random.default_rng(51)
    a, b = np.exp2(generator.uniform(-40, 40, (2, COUNT))).astype(np.float32)
    (found,) = Snippet(f"{opcode} %o0, %i0, %i1;")(a.view(np.uint32), b.view(np.uint32))
    exact = a.astype(np.float64) / b
    assert (
        np.abs(found.view(np.float32) - exact) <= 2 * np.spacing(exact.astype(np.float32))
    ).all()


def all_snippets() -> list[Snippet]:
    snippets = [case.snippet for case in (*CASES, *EXTREMES)]
    snippets += [sign_snippet(*signature) for signature in SIGNS]
    snippets += [mixed_snippet(*signature) for signature in MIXED]
    snippets += [
        Snippet(f"{opcode} %o0, %i0;", ("b32",)) for opcode in {**APPROXIMATIONS, **SPECIAL_VALUES}
    ]
    snippets += [half_approximation(opcode) for opcode in HALF_APPROXIMATIONS]
    snippets += [Snippet(f"div.{form}.f32 %o0, %i0, %i1;") for form in ("full", "approx")]
    return snippets


def test_snippets_assemble(tmp_path):
    check_assembles(all_snippets(), tmp_path)
