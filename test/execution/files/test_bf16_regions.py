# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Operations on bf16 as they are written in regions: subnormal numbers, and comparisons."""

import ml_dtypes
import numpy as np
import pytest

import twofour

TEXT = """
!b = !stencil.field<[0,{n}]xbf16>
!bt = !stencil.temp<?xbf16>
!f = !stencil.field<[0,{n}]x{kind}>
!t = !stencil.temp<?x{kind}>
func.func @program(%a : !b, %b : !b, %c : !f) {{
  %s = stencil.load %a : !b -> !bt
  %t = stencil.load %b : !b -> !bt
  %r = stencil.apply(%u = %s : !bt, %v = %t : !bt) -> (!t) {{
    %x = stencil.access %u[0] : !bt
    %y = stencil.access %v[0] : !bt
    {code}
    stencil.return %z : {kind}
  }}
  stencil.store %r to %c(<[0], [{n}]>) : !t to !f
  return
}}
"""
# Ops, and the same in NumPy, whose numbers of bf16 ml_dtypes rounds.
OPS = {
    "arith.mulf %x, %y : bf16": np.multiply,
    "arith.divf %x, %y : bf16": np.divide,
    "arith.minimumf %x, %y : bf16": np.minimum,
    "arith.maximumf %x, %y : bf16": np.maximum,
    "arith.maxnumf %x, %y : bf16": np.fmax,
    "arith.negf %x : bf16": lambda x, y: -x,
    "math.absf %x : bf16": lambda x, y: abs(x),
    "math.sqrt %x : bf16": lambda x, y: np.sqrt(x),
    "math.copysign %x, %y : bf16": np.copysign,
    "arith.minnumf %x, %y : bf16": np.fmin,
    "math.trunc %x : bf16": lambda x, y: np.trunc(x),
    "math.floor %x : bf16": lambda x, y: np.floor(x),
    "math.ceil %x : bf16": lambda x, y: np.ceil(x),
    "math.roundeven %x : bf16": lambda x, y: np.rint(x),
    "math.round %x : bf16": lambda x, y: np.copysign(
        np.floor(abs(x).astype(np.float64) + 0.5).astype(x.dtype), x
    ),
}
PRODUCTS = {
    "f32": """%p = arith.extf %x : bf16 to f32
    %q = arith.extf %y : bf16 to f32
    %w = arith.mulf %p, %q : f32
    %z = arith.truncf %w : f32 to bf16""",
    "f64": """%p = arith.extf %x : bf16 to f64
    %q = arith.extf %y : bf16 to f64
    %w = arith.mulf %p, %q : f64
    %z = arith.truncf %w : f64 to bf16""",
    "f80": """%p = arith.extf %x : bf16 to f80
    %q = arith.extf %y : bf16 to f80
    %w = arith.mulf %p, %q : f80
    %z = arith.truncf %w : f80 to bf16""",
    "a vector": """%p = vector.broadcast %x : bf16 to vector<2x3xbf16>
    %q = vector.broadcast %y : bf16 to vector<2x3xbf16>
    %w = arith.mulf %p, %q : vector<2x3xbf16>
    %z = vector.extract %w[1, 2] : bf16 from vector<2x3xbf16>""",
    "a vector's fma": """%p = vector.broadcast %x : bf16 to vector<3xbf16>
    %q = vector.broadcast %y : bf16 to vector<3xbf16>
    %k = arith.constant dense<-0.0> : vector<3xbf16>
    %w = vector.fma %p, %q, %k : vector<3xbf16>
    %z = vector.extract %w[2] : bf16 from vector<3xbf16>""",
}
# 1 + 2^-8 + 2^-8 is a number, 1 + 2^-8 none.
ALL_LANES = """%w = vector.broadcast %y : bf16 to vector<2xbf16>
    %z = "vector.reduction"(%w, %x) <{kind = #vector.kind<add>}> : (vector<2xbf16>, bf16) -> bf16"""
OF_ONE = """
!f = !stencil.field<[0,{n}]x{kind}>
!t = !stencil.temp<?x{kind}>
!b = !stencil.field<[0,{n}]xbf16>
!bt = !stencil.temp<?xbf16>
func.func @program(%a : !f, %b : !b) {{
  %s = stencil.load %a : !f -> !t
  %r = stencil.apply(%u = %s : !t) -> (!bt) {{
    %x = stencil.access %u[0] : !t
    {code}
    stencil.return %z : bf16
  }}
  stencil.store %r to %b(<[0], [{n}]>) : !bt to !b
  return
}}
"""
# No weighted sum of its input: that would be rounded by a kernel of another kind.
NARROWED = """%y = math.absf %x : f32
    %p = math.copysign %y, %x : f32
    %z = arith.truncf %p : f32 to bf16"""
# A comparison's result in another type, and the word for that in NumPy.
COMPARED = {
    "arith.extsi %o : i1 to i8": np.int8,
    "arith.extsi %o : i1 to i16": np.int16,
    "arith.extui %o : i1 to i16": np.uint16,
    "arith.extsi %o : i1 to i64": np.int64,
    "arith.sitofp %o : i1 to f16": np.float16,
    "arith.uitofp %o : i1 to f16": np.float16,
    "arith.uitofp %o : i1 to f64": np.float64,
}


def numbers() -> tuple[np.ndarray, np.ndarray]:
    """All numbers of bf16 once, beside numbers of any size whose products may be subnormal."""
    bits = np.arange(1 << 16, dtype=np.uint16)
    others = np.random.default_rng(0).permutation(bits)
    others[::4] = 0x3F80  # one
    return bits.view(ml_dtypes.bfloat16), others.view(ml_dtypes.bfloat16)


def program(path, text: str):
    path.write_text(text)
    return twofour.compile(path)


def of_two(path, code: str, kind: str):
    """A program that computes %z, of a type, from %x and %y."""
    return program(path, TEXT.format(n=1 << 16, code=code, kind=kind))


def assert_same(got, expected):
    """Bit by bit, but for NaN."""
    got, expected = np.asarray(got).view(np.uint16), expected.view(np.uint16)
    nan = (expected & 0x7FFF) > 0x7F80
    assert np.array_equal((got & 0x7FFF) > 0x7F80, nan)
    assert np.array_equal(got[~nan], expected[~nan])


@pytest.mark.parametrize("op", OPS)
def test_every_number(tmp_path, op):
    x, y = numbers()
    with np.errstate(all="ignore"):
        expected = OPS[op](x, y)
    if any(name in op for name in ("minimum", "maximum", "minnum", "maxnum")):
        # NumPy takes zeros of either sign for the same.
        zeros = (x.astype(np.float32) == 0) & (y.astype(np.float32) == 0)
        x, y, expected = (np.where(zeros, x[1], v) for v in (x, y, expected))
    assert_same(of_two(tmp_path / "p.mlir", f"%z = {op}", "bf16")(x, y), expected)


@pytest.mark.parametrize("way", PRODUCTS)
def test_products(tmp_path, way):
    x, y = numbers()
    with np.errstate(all="ignore"):
        expected = x * y
    assert ((abs(expected) < 2.0**-126) & (expected != 0)).sum() > 500
    assert_same(of_two(tmp_path / "p.mlir", PRODUCTS[way], "bf16")(x, y), expected)


def test_nan_stays_nan(tmp_path):
    """Also where its upper half alone is an infinity, or rounding it would be a number."""
    bits = np.array([0x7F800001, 0xFF800001, 0x7FFFFFFF, 0xFFFFFFFF, 0x7FC00000], np.uint32)
    text = OF_ONE.format(n=len(bits), kind="f32", code=NARROWED)
    got = np.asarray(program(tmp_path / "p.mlir", text)(bits.view(np.float32))).view(np.uint16)
    assert ((got & 0x7FFF) > 0x7F80).all()
    assert np.array_equal(got >> 15, bits >> 31)


def test_lanes_are_added_before_they_are_rounded(tmp_path):
    """Subnormal numbers as well, and halves of what a number of bf16 tells apart."""
    x, y = np.array([[2e-39, 1, -3], [1e-39, 2**-8, 7]]).astype(ml_dtypes.bfloat16)
    text = TEXT.format(n=len(x), code=ALL_LANES, kind="bf16")
    expected = (x.astype(np.float32) + 2 * y.astype(np.float32)).astype(ml_dtypes.bfloat16)
    assert_same(program(tmp_path / "p.mlir", text)(x, y), expected)


@pytest.mark.parametrize("sign", [1, -1])
def test_fused_multiply_adds_are_rounded_once(tmp_path, sign):
    """Middles of two numbers, which a number far below lies above or under."""
    draws = np.random.default_rng(3)
    x, y = draws.integers(128, 256, (2, 1 << 16)) * draws.choice([-1, 1], (2, 1 << 16))
    expected = [nearest((int(a * b) << 100) + sign) * 2.0**-100 for a, b in zip(x, y, strict=True)]
    twice = (x * y).astype(np.float32).astype(ml_dtypes.bfloat16).astype(np.float64)
    assert (expected != twice).sum() > 50
    code = f"%k = arith.constant {sign * 2.0**-100} : bf16\n    %z = math.fma %x, %y, %k : bf16"
    inputs = (v.astype(ml_dtypes.bfloat16) for v in (x, y))
    got = np.asarray(of_two(tmp_path / "p.mlir", code, "bf16")(*inputs)).view(ml_dtypes.bfloat16)
    assert np.array_equal(got.astype(np.float64), expected)


@pytest.mark.parametrize("op", COMPARED)
def test_comparisons_in_other_types(tmp_path, op):
    x, y = numbers()
    code = f"%o = arith.cmpf ogt, %x, %y : bf16\n    %z = {op}"
    got = of_two(tmp_path / "p.mlir", code, op.split()[-1])(x, y)
    dtype = COMPARED[op]
    with np.errstate(invalid="ignore"):
        truth = (x > y).astype(np.int8)
    expected = (-truth if "extsi" in op or "sitofp" in op else truth).astype(dtype)
    assert np.array_equal(np.asarray(got).view(dtype), expected)


def nearest(number: int) -> float:
    """The number of eight bits that is nearest, ties to even."""
    size = abs(number)
    step = 1 << max(size.bit_length() - 8, 0)
    quotient, rest = divmod(size, step)
    quotient += 2 * rest > step or (2 * rest == step and quotient % 2)
    return float(quotient * step) * (-1 if number < 0 else 1)


@pytest.mark.parametrize("target", ["cpu", "sim:sm_90"])
@pytest.mark.parametrize("op", ["sitofp", "uitofp"])
@pytest.mark.parametrize("width", [8, 16, 32, 64])
def test_integers_are_rounded_once(tmp_path, width, op, target):
    low, high = (-1 << width - 1, 1 << width - 1) if op == "sitofp" else (0, 1 << width)
    # Numbers about the middle of two of eight bits, and about powers of two.
    some = {
        (1 << p) + odd * (1 << max(p - 8, 0)) + d
        for p in range(width)
        for odd in (0, 1, 3, 255)
        for d in (-1, 0, 1, 1 << 10, -(1 << 10))
    }
    numbers = sorted(x for n in {0, low, high - 1, *some} for x in (n, -n) if low <= x < high)
    path = tmp_path / "p.mlir"
    code = f"%z = arith.{op} %x : i{width} to bf16"
    path.write_text(OF_ONE.format(n=len(numbers), kind=f"i{width}", code=code))
    stored = np.array(numbers, f"{'i' if op == 'sitofp' else 'u'}{width // 8}").view(
        f"i{width // 8}"
    )
    got = np.asarray(twofour.compile(path, target=target)(stored)).view(ml_dtypes.bfloat16)
    assert np.array_equal(got.astype(np.float64), [nearest(n) for n in numbers])
