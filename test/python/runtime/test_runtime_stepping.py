# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Time stepping against explicit index arithmetic: boundaries, rims, halos, fusion."""

import itertools

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import ndimage

from runtime_reference import linear_kernel, reference
from twofour.errors import TwofourError
from twofour.runtime import (
    AxisBoundary,
    LinearKernel,
    LinearStepper,
    bf16_to_float32,
    element_type,
    float32_to_bf16,
    parse_boundary,
)

F64 = element_type("f64")
BOUNDARIES = ("fixed", "zero", "constant(2.5)", "periodic", "reflect", "nearest")
STAR_1D = {(-1,): 0.25, (0,): 0.5, (1,): 0.25}
STAR_2D = {(0, 0): 0.5, (0, 1): 0.25, (0, -1): 0.125, (1, 0): -0.5, (-1, 0): 0.75}
ASYMMETRIC_1D = {(-2,): 0.5, (1,): 0.25, (0,): -0.125}
ASYMMETRIC_2D = {(-2, 1): 0.5, (0, 0): 0.25, (1, 0): -0.25, (0, 3): 0.125}
LOPSIDED_2D = {(1, -3): 0.5, (2, -1): 0.25}
ASYMMETRIC_3D = {(-1, 0, 1): 0.5, (0, 2, 0): 0.25, (1, 0, 0): -0.25, (0, 0, -1): 0.5}


@pytest.fixture(autouse=True)
def poisoned_buffers(monkeypatch):
    """Memory that no one has written to is NaN: any read of it shows in the result."""
    empty = np.empty

    def poisoned(*args, **kwargs):
        array = empty(*args, **kwargs)
        if array.dtype.kind == "f":
            array.fill(np.nan)
        return array

    monkeypatch.setattr(np, "empty", poisoned)


def integers(shape, seed=0):
    return np.random.default_rng(seed).integers(-8, 9, shape).astype(np.float64)


def check(weights, boundary, shape, steps, fused=None, interior=None):
    """All data are small integers and all weights dyadic: the results must be equal exactly."""
    entries = parse_boundary(boundary, len(shape))
    stepper = LinearStepper(
        linear_kernel(weights),
        F64,
        entries,
        fused=fused and linear_kernel(weights, fused),
        threads=1,
        interior=interior,
    )
    u = integers(shape)
    before = u.copy()
    result = stepper.advance(u, steps)
    np.testing.assert_array_equal(u, before)
    np.testing.assert_array_equal(result, reference(u, weights, entries, steps, interior))
    assert result.dtype == u.dtype and result.flags.c_contiguous
    assert not np.shares_memory(result, u)
    return stepper


@pytest.mark.parametrize("boundary", BOUNDARIES)
@pytest.mark.parametrize("weights", [STAR_1D, ASYMMETRIC_1D, {(3,): 0.5, (1,): 1.0}])
def test_one_axis(weights, boundary):
    for extent, steps, fused in itertools.product((1, 2, 7, 31), (1, 2, 10), (None, 2, 3)):
        check(weights, boundary, (extent,), steps, fused)


@pytest.mark.parametrize("boundary", list(itertools.product(BOUNDARIES, BOUNDARIES)))
@pytest.mark.parametrize("weights", [STAR_2D, ASYMMETRIC_2D, LOPSIDED_2D])
def test_two_axes(weights, boundary):
    for shape in itertools.product((1, 2, 7), (1, 7)):
        check(weights, boundary, shape, 2, fused=2)
    check(weights, boundary, (7, 31), 10)
    check(weights, boundary, (31, 31), 10, fused=2)
    check(weights, boundary, (31, 31), 4, fused=3)


@pytest.mark.parametrize("boundary", list(itertools.product(BOUNDARIES, repeat=3)))
def test_three_axes(boundary):
    check(ASYMMETRIC_3D, boundary, (7, 10, 12), 3, fused=2)
    check(ASYMMETRIC_3D, boundary, (2, 7, 1), 2)


def test_the_fused_kernel_does_the_deep_interior():
    stepper = check(STAR_2D, "fixed,periodic", (31, 31), 7, fused=3)
    assert len(stepper.fused.native.runs) == 2
    # 2 groups of 2 slabs and 3 levels, and one step that is left.
    assert len(stepper.single.native.runs) == 2 * 2 * 3 + 1


def test_a_domain_too_small_for_slabs_takes_single_steps():
    stepper = check(STAR_2D, "fixed,periodic", (9, 1), 4, fused=2)
    assert len(stepper.fused.native.runs) == 2
    stepper = check(STAR_2D, "fixed,periodic", (5, 31), 4, fused=2)
    assert not stepper.fused.native.runs and len(stepper.single.native.runs) == 4


@pytest.mark.parametrize("mode", ["reflect", "nearest", "periodic", "zero"])
def test_agreement_with_scipy(mode):
    weights = np.array([[0.5, 0.25, -1.0], [0.0, 2.0, 0.125], [1.0, -0.5, 0.75]])
    table = {(i - 1, j - 1): weights[i, j] for i in range(3) for j in range(3)}
    u = np.random.default_rng(1).standard_normal((6, 5))
    stepper = LinearStepper(linear_kernel(table), F64, parse_boundary(mode, 2))
    expected = u
    for _ in range(3):
        name = {"periodic": "wrap", "zero": "constant"}.get(mode, mode)
        expected = ndimage.correlate(expected, weights, mode=name, cval=0.0)
    np.testing.assert_allclose(stepper.advance(u, 3), expected, rtol=1e-13, atol=1e-13)


@pytest.mark.parametrize("boundary", list(itertools.product(BOUNDARIES, BOUNDARIES)))
def test_explicit_interior(boundary):
    for fused in (None, 2, 3):
        for steps in (1, 2, 10):
            check(ASYMMETRIC_2D, boundary, (20, 24), steps, fused, interior=((3, 1), (18, 20)))
    check(ASYMMETRIC_2D, boundary, (4, 5), 3, 2, interior=((2, 0), (3, 1)))


def test_explicit_interior_must_leave_the_reach():
    stepper = LinearStepper(
        linear_kernel(ASYMMETRIC_2D), F64, parse_boundary("fixed", 2), interior=((1, 1), (8, 8))
    )
    with pytest.raises(TwofourError, match="expected a halo of 2 and 1 cells on axis 0, got 1"):
        stepper.advance(np.zeros((12, 12)), 1)
    with pytest.raises(TwofourError, match=r"expected an interior within \[0, 6\) on axis 0"):
        stepper.advance(np.zeros((6, 12)), 1)


@st.composite
def problems(draw):
    rank = draw(st.integers(1, 3))
    radius = {1: 4, 2: 3, 3: 2}[rank]
    offset = st.tuples(*[st.integers(-radius, radius)] * rank)
    weight = st.integers(-4, 4).map(lambda k: k / 4)
    weights = draw(st.dictionaries(offset, weight, min_size=1, max_size=5))
    boundary = [draw(st.sampled_from(BOUNDARIES)) for _ in range(rank)]
    shape = tuple(draw(st.integers(1, {1: 60, 2: 26, 3: 14}[rank])) for _ in range(rank))
    return weights, boundary, shape, draw(st.integers(1, 7)), draw(st.sampled_from((None, 2, 3)))


@given(problems())
@settings(max_examples=300, deadline=None)
def test_random_stencils(problem):
    check(*problem)


@given(problems(), st.data())
@settings(max_examples=150, deadline=None)
def test_random_explicit_interiors(problem, data):
    weights, boundary, shape, steps, fused = problem
    lower, upper, full = [], [], []
    for axis, extent in enumerate(shape):
        spare = data.draw(st.tuples(st.integers(0, 2), st.integers(0, 2)))
        lower.append(max(0, -min(o[axis] for o in weights)) + spare[0])
        upper.append(lower[-1] + extent)
        full.append(upper[-1] + max(0, *(o[axis] for o in weights)) + spare[1])
    check(weights, boundary, tuple(full), steps, fused, (tuple(lower), tuple(upper)))


def test_values_of_the_caller_in_any_layout():
    entries = parse_boundary("fixed", 2)
    stepper = LinearStepper(linear_kernel(STAR_2D), F64, entries)
    u = integers((12, 16))
    u.flags.writeable = False
    wanted = stepper.advance(u, 3)
    strided = np.full((24, 32), np.nan)
    strided[::2, ::-2] = u
    misaligned = np.frombuffer(b"x" + u.tobytes(), np.uint8)[1:].view(np.float64).reshape(u.shape)
    assert not misaligned.flags.aligned
    for other in (np.asfortranarray(u), strided[::2, ::-2], misaligned):
        result = stepper.advance(other, 3)
        np.testing.assert_array_equal(result, wanted)
        assert result.flags.c_contiguous and result.flags.writeable


@pytest.mark.parametrize("boundary", BOUNDARIES)
def test_zero_steps_copy(boundary):
    stepper = LinearStepper(linear_kernel(STAR_1D), F64, parse_boundary(boundary, 1))
    u = integers((9,))
    result = stepper.advance(u, 0)
    np.testing.assert_array_equal(result, u)
    assert not np.shares_memory(result, u)


@pytest.mark.parametrize("steps", [-1, 1.0, "3", None, True])
def test_bad_steps(steps):
    stepper = LinearStepper(linear_kernel(STAR_1D), F64, parse_boundary("zero", 1))
    with pytest.raises(TwofourError, match="expected a number of steps >= 0, got"):
        stepper.advance(integers((9,)), steps)


def test_bad_arrays():
    stepper = LinearStepper(linear_kernel(STAR_1D), F64, parse_boundary("zero", 1))
    with pytest.raises(TwofourError, match=r"expected f64 \(float64\), got float32"):
        stepper.advance(np.zeros(4, np.float32), 1)
    with pytest.raises(TwofourError, match="expected an array of rank 1, got rank 2"):
        stepper.advance(np.zeros((4, 4)), 1)
    with pytest.raises(TwofourError, match="at least one element"):
        stepper.advance(np.zeros(0), 1)


class Bf16Kernel:
    """A stand-in that reads and writes bit patterns and averages two neighbours."""

    def bind(self, views_in, views_out):
        (source,), (target,) = views_in, views_out
        assert source.dtype == target.dtype == np.uint16

        class Bound:
            def run(self, begin, end):
                values = bf16_to_float32(source)
                target[...] = float32_to_bf16((values[:-2] + values[2:]) / 2)

        return Bound()


def test_bf16_constants_are_bit_patterns():
    stepper = LinearStepper(
        LinearKernel(Bf16Kernel(), (1,), (1,)),
        element_type("bf16"),
        [AxisBoundary("constant", 4.0)],
    )
    bits = float32_to_bf16(np.array([1, 2, 3], np.float32))
    result = stepper.advance(bits, 1)
    np.testing.assert_array_equal(bf16_to_float32(result), [3, 2, 3])


def test_progress_is_reported_at_the_end_and_not_often(monkeypatch):
    stepper = LinearStepper(linear_kernel(STAR_1D), F64, parse_boundary("zero", 1))
    ticks = itertools.count()
    monkeypatch.setattr("twofour.runtime.stepping.time.monotonic", lambda: next(ticks) * 0.03)
    calls = []
    stepper.advance(integers((9,)), 20, lambda done, total: calls.append((done, total)))
    assert calls[-1] == (20, 20) and 3 <= len(calls) <= 8
    assert calls == sorted(calls)


def test_buffers_are_bound_once_per_pair():
    stepper = LinearStepper(linear_kernel(STAR_2D), F64, parse_boundary("periodic", 2))
    stepper.advance(integers((9, 9)), 50)
    assert stepper.single.native.binds == 2
    stepper = LinearStepper(linear_kernel(STAR_2D), F64, parse_boundary("fixed", 2))
    stepper.advance(integers((9, 9)), 1)
    assert stepper.single.native.binds == 1


def test_kernels_of_other_step_counts_are_refused():
    with pytest.raises(ValueError, match="one step"):
        LinearStepper(linear_kernel(STAR_1D, 2), F64, parse_boundary("zero", 1))
    with pytest.raises(ValueError, match="at least two"):
        LinearStepper(
            linear_kernel(STAR_1D), F64, parse_boundary("zero", 1), fused=linear_kernel(STAR_1D)
        )
