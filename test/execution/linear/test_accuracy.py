# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The documented error bound: it holds, and errors come near it."""

import numpy as np
import pytest

import kernel_cases as cases
import reference
from twofour.accuracy import error_bound, sweep_error
from twofour.errors import TwofourError
from twofour.kernels import Kernel

NAMES = ("heat2d_ftcs", "laplacian1d_o8", "gauss7x7_binomial", "lbm_d3q19_diffusion")
SHAPES = {1: (4096,), 2: (65, 64), 3: (15, 16, 17)}


def exact_step(u: np.ndarray, kernel: Kernel) -> np.ndarray:
    """One periodic step with 64 bits of mantissa or more, where the machine has them."""
    terms = zip(kernel.offsets, kernel.weights, strict=True)
    return sum(
        np.longdouble(weight)
        * np.roll(u.astype(np.longdouble), [-o for o in offset], range(kernel.rank))
        for offset, weight in terms
    )


@pytest.mark.skipif(np.finfo(np.longdouble).nmant < 63, reason="no arithmetic beyond float64 here")
@pytest.mark.parametrize("dtype", cases.DTYPES)
def test_one_step_holds_the_bound_and_comes_near(dtype):
    largest = 0.0
    for name in NAMES:
        kernel = cases.KERNELS[name]
        values = cases.random_values(5, SHAPES[kernel.rank], dtype)
        u = cases.stored(values, dtype)
        got = cases.stepper(kernel, dtype, "direct", ("periodic",) * kernel.rank).advance(u, 1)
        exact = exact_step(values, kernel)
        absolute = exact_step(np.abs(values), _absolute(kernel))
        pairs = cases.rows_in_pairs(kernel)
        bound = sweep_error(dtype, len(kernel.weights), exact, absolute, pairs=pairs)
        error = np.abs(cases.numbers(got) - exact)
        assert (error <= bound).all(), name
        largest = max(largest, float((error / bound).max()))
        most = error_bound(dtype, kernel.weights, np.abs(values).max(), pairs=pairs)
        assert bound.max() <= most <= 8 * bound.max()
    assert largest >= 1 / 16


def _absolute(kernel: Kernel) -> Kernel:
    return Kernel(kernel.name, kernel.offsets, tuple(map(abs, kernel.weights)))


def test_bound_of_rows_in_pairs():
    """Seven times as large in every term, and three roundings more."""
    e, n, size = 2.0**-24, 9, 3.5
    gamma = 7 * (n + 4) * e / (1 - (n + 4) * e)
    expected = gamma * size + 2 * n * 2.0**-150
    assert sweep_error("f32", n, 1.0, size, pairs=True) == pytest.approx(expected, rel=1e-12)
    weights = [1 / n] * n
    two = [error_bound("f32", weights, 1.0, steps=2, pairs=pairs) for pairs in (False, True)]
    assert two[1] / two[0] == pytest.approx(7 * (n + 4) / (n + 1), rel=1e-3)


@pytest.mark.parametrize("dtype", cases.DTYPES)
def test_bound_of_several_steps(dtype):
    kernel = cases.KERNELS["lbm_d2q9_advection_diffusion"]
    values = cases.random_values(6, (31, 32), dtype)
    boundary = ("reflect", "periodic")
    states = reference.run(values, kernel.offsets, kernel.weights, boundary, 10)
    got = cases.stepper(kernel, dtype, "direct", boundary).advance(cases.stored(values, dtype), 10)
    error = np.abs(cases.numbers(got) - states[10]).max()
    bound = error_bound(dtype, kernel.weights, 1.0, steps=10)
    by_offset = dict(zip(kernel.offsets, kernel.weights, strict=True))
    assert error_bound(dtype, by_offset, 1.0, steps=10) == bound
    assert bound / 256 <= error <= bound
    sums = cases.absolute_sums(states, kernel, boundary)
    pointwise = cases.error_bounds(states, sums, dtype, kernel, boundary)[10].max()
    assert pointwise <= bound * (2.001 if dtype == "f64" else 1.001)


@pytest.mark.parametrize(("dtype", "smallest"), [("f16", 2.0**-24), ("bf16", 2.0**-133)])
def test_results_below_the_normal_numbers(dtype, smallest):
    """Where the result is subnormal, the absolute part of the bound counts, and is needed."""
    kernel = Kernel("average", ((0,), (1,)), (0.3, 0.4))
    values = np.arange(64) * smallest
    u = cases.stored(values, dtype)
    got = cases.numbers(cases.stepper(kernel, dtype, "direct", ("nearest",)).advance(u, 1))
    states = reference.run(values, kernel.offsets, kernel.weights, ("nearest",), 1)
    error = np.abs(got - states[1])
    sums = cases.absolute_sums(states, kernel, ("nearest",))
    bound = cases.error_bounds(states, sums, dtype, kernel, ("nearest",))[1]
    assert (error <= bound).all()
    assert error.max() > smallest / 4
    assert got.max() > 0


def test_bounds_order_and_grow():
    weights = (0.25, 0.5, 0.25)
    bounds = [error_bound(dtype, weights, 1.0) for dtype in ("f64", "f32", "f16", "bf16")]
    assert bounds == sorted(bounds)
    assert bounds[2] == pytest.approx(2.0**-11, rel=1e-2)
    assert bounds[3] == pytest.approx(2.0**-8, rel=1e-3)
    assert error_bound("f32", weights, 1.0, steps=0) == 0
    assert error_bound("f32", weights, 1.0, steps=5) > 4 * error_bound("f32", weights, 1.0)
    with pytest.raises(TwofourError, match="expected a dtype out of f64, f32, f16, bf16, got 'f8'"):
        error_bound("f8", weights, 1.0)
