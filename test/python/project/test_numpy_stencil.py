# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The NumPy evaluator of stencil programs against loops and formulas written here."""

import sys
from pathlib import Path

import numpy as np
import pytest

EXECUTION = Path(__file__).parents[2] / "execution"
sys.path.insert(0, str(EXECUTION))

from numpy_stencil import UnsupportedProgram, evaluate  # noqa: E402

RANDOM = np.random.default_rng(5)


def program(name):
    return (EXECUTION / "programs" / f"{name}.mlir").read_text()


def one_apply(body, result="f64"):
    """A program that applies `body`, with %a the f64 argument, over [0,4] of its field."""
    grid = f"[0,4]x{result}"
    return f"""func.func @f(%u: !stencil.field<[-1,5]xf64>, %out: !stencil.field<{grid}>) {{
      %t = stencil.load %u : !stencil.field<[-1,5]xf64> -> !stencil.temp<[-1,5]xf64>
      %r = stencil.apply(%a = %t : !stencil.temp<[-1,5]xf64>) -> (!stencil.temp<{grid}>) {{
        %x = stencil.access %a[0] : !stencil.temp<[-1,5]xf64>
        %y = stencil.access %a[1] : !stencil.temp<[-1,5]xf64>
        {body}
      }}
      stencil.store %r to %out(<[0], [4]>) : !stencil.temp<{grid}> to !stencil.field<{grid}>
      func.return
    }}"""


def apply_one(body, values, result="f64", dtype=np.float64):
    return evaluate(one_apply(body, result), "f", [values, np.zeros(4, dtype)]).arguments[1]


def test_two_results_partial_store_and_inferred_bounds():
    u, out = RANDOM.random((36, 36)), RANDOM.random((36, 36))
    sums = np.full((32, 32), 7.0)
    after = evaluate(program("laplace_two_results"), "laplace", [u, out, sums]).arguments
    expected_out, expected_sums = out.copy(), sums.copy()
    for i in range(32):
        for j in range(32):
            around = u[i + 1, j + 2] + u[i + 3, j + 2] + u[i + 2, j + 1] + u[i + 2, j + 3]
            expected_out[i + 2, j + 2] = around - 4 * u[i + 2, j + 2]
            if 4 <= i < 12:
                expected_sums[i, j] = around
    np.testing.assert_allclose(after[1], expected_out, rtol=1e-14, atol=1e-15)
    np.testing.assert_allclose(after[2], expected_sums, rtol=1e-14)
    np.testing.assert_array_equal(after[0], u)


@pytest.mark.parametrize("own_precision", [False, True])
def test_time_loop_swaps_fields(own_precision):
    a = RANDOM.random(66).astype(np.float32)
    b = np.full(66, 3, np.float32)
    outcome = evaluate(program("time_loop"), "heat", [a, b], own_precision)
    now, after = a.astype(np.float64), b.astype(np.float64)
    for _ in range(5):
        after[1:-1] = 0.5 * now[1:-1] + 0.25 * (now[:-2] + now[2:])
        now, after = after, now
    tolerance = 1e-5 if own_precision else 1e-14
    np.testing.assert_allclose(outcome.results[0], now, rtol=tolerance)
    np.testing.assert_allclose(outcome.arguments[0], after, rtol=tolerance)
    assert outcome.results[0].dtype == (np.float32 if own_precision else np.float64)
    np.testing.assert_array_equal(outcome.results[0], outcome.arguments[1])


def test_lower_rank_accesses_follow_their_axes():
    u, z, xy = RANDOM.random((10, 6, 5)), RANDOM.random(7), RANDOM.random((8, 7)) + 1
    out = evaluate(program("lower_rank"), "scale", [u, z, xy, 3.0, np.zeros((8, 6, 5))])
    expected = np.empty((8, 6, 5))
    for i, j, k in np.ndindex(expected.shape):
        expected[i, j, k] = 3 * (u[i + 2, j, k] - u[i, j, k]) * z[k + 2] / xy[i, j + 1]
    np.testing.assert_allclose(out.arguments[4], expected, rtol=1e-13)


def test_conditions_and_indices():
    u, c = RANDOM.random((18, 18)), RANDOM.random((16, 16)) - 0.5
    out = evaluate(program("upwind"), "upwind", [u, c, np.zeros((16, 16))]).arguments[2]
    for i, j in np.ndindex(out.shape):
        x, low, high = u[i + 1, j + 1], u[i + 1, j], u[i + 1, j + 2]
        flux = x - low if c[i, j] > 0 else high - x
        expected = x if i - 1 < 4 else x - c[i, j] * flux
        assert out[i, j] == pytest.approx(expected, rel=1e-14)


def test_mixed_element_types_and_buffer():
    u = RANDOM.random(20)
    arguments = [u, np.zeros(16, np.float32), np.zeros(16)]
    mean = 0.5 * (u[:-2] + u[2:])
    wide = evaluate(program("mixed_precision"), "mixed", arguments).arguments
    np.testing.assert_allclose(wide[1], mean[1:-1], rtol=1e-15)
    np.testing.assert_allclose(wide[2], mean[2:] - mean[:-2], rtol=1e-14, atol=1e-16)
    own = evaluate(program("mixed_precision"), "mixed", arguments, own_precision=True).arguments
    np.testing.assert_array_equal(own[1], mean[1:-1].astype(np.float32))


def test_fields_over_memrefs():
    values = RANDOM.random(20)
    after = evaluate(program("external_memory"), "shift", [values, np.zeros(16), np.zeros(16)])
    np.testing.assert_array_equal(after.arguments[1], values[4:])
    np.testing.assert_array_equal(after.arguments[2], values[4:])


def test_indices_over_negative_bounds():
    out = evaluate(program("external_memory"), "fill", [np.zeros((8, 7)), 0.5]).arguments[0]
    assert out[0, 0] == -3 + 2 + 2 + 0.5
    assert out[7, 6] == 4 + 8 + 2 + 0.5


def test_a_loaded_value_survives_a_later_store():
    text = """func.func @f(%u: !stencil.field<[0,4]xf64>, %out: !stencil.field<[0,4]xf64>) {
      %t = stencil.load %u : !stencil.field<[0,4]xf64> -> !stencil.temp<[0,4]xf64>
      %c = stencil.apply() -> (!stencil.temp<[0,4]xf64>) {
        %x = arith.constant 9.0 : f64
        stencil.return %x : f64
      }
      stencil.store %c to %u(<[0], [4]>) : !stencil.temp<[0,4]xf64> to !stencil.field<[0,4]xf64>
      stencil.store %t to %out(<[0], [4]>) : !stencil.temp<[0,4]xf64> to !stencil.field<[0,4]xf64>
      func.return
    }"""
    after = evaluate(text, "f", [np.arange(4.0), np.zeros(4)]).arguments
    assert after[0].tolist() == [9] * 4
    assert after[1].tolist() == [0, 1, 2, 3]


@pytest.mark.parametrize(
    "op, expected",
    [
        ("math.copysign %x, %y", np.copysign),
        ("arith.maximumf %x, %y", np.maximum),
        ("arith.minnumf %x, %y", np.fmin),
        ("math.absf %x", lambda x, y: np.abs(x)),
        (
            "math.erf %x",
            lambda x, y: [0.9953222650189527, 0.520499877813046, -0.998137153702018, 0],
        ),
    ],
)
def test_elementwise_arithmetic(op, expected):
    values = np.array([7.0, 2.0, 0.5, -2.2, 0.0, 3.0])
    got = apply_one(f"%v = {op} : f64\n stencil.return %v : f64", values)
    np.testing.assert_allclose(got, expected(values[1:5], values[2:6]))


@pytest.mark.parametrize(
    "predicate, expected",
    [
        ("olt", [0, 1, 0, 0]),
        ("uge", [1, 0, 1, 1]),
        ("one", [1, 1, 0, 0]),
        ("une", [1, 1, 1, 1]),
        ("ord", [1, 1, 0, 0]),
        ("uno", [0, 0, 1, 1]),
        ("true", [1, 1, 1, 1]),
    ],
)
def test_float_comparisons_with_nan(predicate, expected):
    values = np.array([0.0, 2.0, 1.0, 3.0, np.nan, 1.0])
    body = f"%v = arith.cmpf {predicate}, %x, %y : f64\n stencil.return %v : i1"
    assert apply_one(body, values, "i1", bool).tolist() == [bool(e) for e in expected]


def test_integer_arithmetic_truncates_as_mlir_does():
    body = """%xi = arith.fptosi %x : f64 to i32
      %yi = arith.fptosi %y : f64 to i32
      %q = arith.{op} %xi, %yi : i32
      stencil.return %q : i32"""
    values = np.array([0.0, -7.0, 2.0, -3.0, 5.0, -5.0])
    quotient = apply_one(body.replace("{op}", "divsi"), values, "i32", np.int32)
    remainder = apply_one(body.replace("{op}", "remsi"), values, "i32", np.int32)
    assert quotient.tolist() == [-3, 0, 0, -1]
    assert remainder.tolist() == [-1, 2, -3, 0]


def test_an_access_outside_its_grid_is_an_error():
    text = one_apply("stencil.return %y : f64").replace("%a[1]", "%a[2]")
    with pytest.raises(IndexError, match="leaves the grid"):
        evaluate(text, "f", [np.zeros(6), np.zeros(4)])


def test_what_is_not_supported_is_said():
    with pytest.raises(UnsupportedProgram, match="math.cbrt"):
        apply_one("%v = math.cbrt %x : f64\n stencil.return %v : f64", np.zeros(6))
    with pytest.raises(UnsupportedProgram, match="no function 'g'"):
        evaluate(one_apply("stencil.return %x : f64"), "g", [])
    with pytest.raises(ValueError, match="expected 2 arguments, got 1"):
        evaluate(one_apply("stencil.return %x : f64"), "f", [np.zeros(6)])
    with pytest.raises(ValueError, match="got shape"):
        evaluate(one_apply("stencil.return %x : f64"), "f", [np.zeros(7), np.zeros(4)])
