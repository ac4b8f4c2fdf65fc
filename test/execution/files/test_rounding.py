# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Numbers of 64 bits that a region rounds to 16: once, to nearest even."""

import numpy as np
import pytest

import twofour

BITS = {"f16": 11, "bf16": 8}
COLUMNS = 40
TEXT = """
!f = !stencil.field<[0,{rows}]x[0,{columns}]xf64>
!t = !stencil.temp<?x?xf64>
func.func @program(%a : !f, %b : !f) {{
  %t = stencil.load %a : !f -> !t
  %r = stencil.apply(%u = %t : !t) -> (!t) {{
    %x = stencil.access %u[0, 0] : !t
    %s = arith.truncf %x : f64 to {kind}
    %m = arith.maximumf %s, %s : {kind}
    %z = arith.extf %m : {kind} to f64
    stencil.return %z : f64
  }}
  stencil.store %r to %b(<[0, 0], [{rows}, {columns}]>) : !t to !f
  return
}}
"""


def values(bits):
    """Numbers near the middles of two of `bits` bits, and far from them, of either sign."""
    draws = np.random.default_rng(0)
    middles = draws.integers(1 << bits - 1, 1 << bits, (10, COLUMNS)) * 2.0 + 1
    middles *= 2.0 ** draws.integers(-bits - 10, 4 - bits, middles.shape)
    near = [middles, np.nextafter(middles, 0), np.nextafter(middles, np.inf)]
    some = draws.uniform(0.5, 1, (10, COLUMNS)) * 2.0 ** draws.integers(-12, 12, (10, COLUMNS))
    special = np.resize([0.0, -0.0, np.inf, -np.inf, np.nan], (1, COLUMNS))
    found = np.concatenate([*near, some, special])
    found[::2] *= -1
    return found


def rounded(numbers, bits):
    """The nearest numbers of so many bits, ties to even, where these are normal."""
    fraction, exponent = np.frexp(numbers)
    return np.ldexp(np.round(fraction * (1 << bits)), exponent - bits)


@pytest.mark.parametrize("kind", BITS)
def test_numbers_are_rounded_once(tmp_path, kind):
    numbers = values(BITS[kind])
    path = tmp_path / "program.mlir"
    path.write_text(TEXT.format(rows=len(numbers), columns=COLUMNS, kind=kind))
    got = twofour.compile(path)(numbers)
    expected = rounded(numbers, BITS[kind])
    if kind == "f16":
        assert np.array_equal(numbers.astype(np.float16).astype(np.float64), expected, equal_nan=1)
    assert np.array_equal(got, expected, equal_nan=True)
    assert np.array_equal(np.signbit(got[:-1]), np.signbit(expected[:-1]))


def test_numbers_beyond_normal_ones(tmp_path):
    """Of f16 NumPy knows them all: subnormal ones, those that vanish, and those that overflow."""
    draws = np.random.default_rng(1)
    numbers = draws.choice([-1.0, 1.0], (30, COLUMNS))
    numbers *= 2.0 ** draws.uniform(-27, -13, numbers.shape)
    numbers[::3] = draws.uniform(65500, 65540, (10, COLUMNS))
    path = tmp_path / "program.mlir"
    path.write_text(TEXT.format(rows=30, columns=COLUMNS, kind="f16"))
    with np.errstate(over="ignore"):
        expected = numbers.astype(np.float16).astype(np.float64)
    assert np.isinf(expected).any() and np.isfinite(expected[::3]).any()
    assert np.array_equal(twofour.compile(path)(numbers), expected)
