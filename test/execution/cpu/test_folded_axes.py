# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Arrays with short last axes that steps do not reach along."""

import itertools

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import reference
import twofour
from kernel_cases import MODES
from native_cases import skew_small_arrays
from twofour.runtime.tiles import stepping
from twofour.runtime.tiles.stepping import TiledStepper

DTYPES = {"f64": np.float64, "f32": np.float32}
TOLERANCE = {"f64": 1e-12, "f32": 2e-5}
ALONG = st.integers(-2, 2)
STEPS = st.sampled_from([1, 2, 9, 20])
BLUR = {(i, j, 0): 0.1 + 0.01 * i + 0.02 * j for i in (-1, 0, 1) for j in (-1, 0, 2)}
AFFINE = """
!field = !stencil.field<[-1,9]x[-2,12]x[0,3]xf64>
!temp = !stencil.temp<?x?x?xf64>
func.func @smooth(%u: !field, %v: !field) {{
  %t = stencil.load %u : !field -> !temp
  %r = stencil.apply(%a = %t : !temp) -> (!temp) {{
    %n = stencil.access %a[-1, 0, 0] : !temp
    %e = stencil.access %a[0, 2, 0] : !temp
    %w = stencil.access %a[0, -2, 0] : !temp
    %s = stencil.access %a[1, 0, 0] : !temp
    %0 = arith.addf %n, %e : f64
    %1 = arith.addf %0, %w : f64
    %2 = arith.addf %1, %s : f64
    %quarter = arith.constant 0.25 : f64
    %3 = arith.mulf %2, %quarter : f64
    %more = arith.constant {constant} : f64
    %4 = arith.addf %3, %more : f64
    stencil.return %4 : f64
  }}
  stencil.store %r to %v(<[0, 0, 0], [8, 10, 3]>) : !temp to !field
  return
}}
"""


@st.composite
def folded_cases(draw):
    """Weights, a boundary for each axis, and the shape of an array; one or two axes fold."""
    kept, folded = draw(st.integers(1, 2)), draw(st.integers(1, 2))
    points = draw(st.lists(st.tuples(*[ALONG] * kept), min_size=1, max_size=5, unique=True))
    weights = {(*point, *[0] * folded): 0.2 * (-1) ** n for n, point in enumerate(points)}
    long = st.integers(1, 40 if kept == 2 else 900)
    shape = draw(st.tuples(*[long] * kept, *[st.integers(1, 4)] * folded))
    boundary = draw(st.tuples(*[st.sampled_from(MODES)] * len(shape)))
    return weights, boundary, shape


def seen_as(stepper, shape):
    """The shape that kernels see."""
    return stepper.plan(shape).programs.shape


@settings(max_examples=10, deadline=None)
@given(folded_cases(), STEPS, st.sampled_from([*DTYPES]), st.integers(1, 2))
def test_values_are_those_of_the_reference_and_bits_those_of_single_steps(
    case, steps, dtype, threads
):
    weights, boundary, shape = case
    step = twofour.stencil(weights, boundary=boundary, dtype=dtype, threads=threads)
    u = np.random.default_rng(1).uniform(-1, 1, shape).astype(DTYPES[dtype])
    result = step(u, steps=steps)
    *_, expected = reference.run(u, list(weights), list(weights.values()), boundary, steps)
    scale = max(1, np.abs(expected).max())
    np.testing.assert_allclose(result, expected, rtol=0, atol=TOLERANCE[dtype] * scale)
    # The second call of a single sweep takes a way of its own.
    assert step(u, steps=steps).tobytes() == result.tobytes()
    for _ in range(steps):
        u = step(u)
    assert u.tobytes() == result.tobytes()


@pytest.mark.parametrize("channels", [1, 3, 4])
def test_channels_are_folded(channels):
    shape = 30, 40, channels
    stepper = twofour.stencil(BLUR, boundary="reflect", dtype="f32", threads=3)._stepper
    assert seen_as(stepper, shape) == (30, 40 * channels)
    assert stepper.plan(shape).programs._stepper.threads == 3


def test_given_tiles_are_of_the_axes_that_arrays_have():
    own, shape = twofour.stencil(BLUR, dtype="f32")._stepper, (30, 40, 3)
    for tiles in ({"tile": (2, (10, 40, 3))}, {"resident": (10, 40, 3)}):
        assert seen_as(TiledStepper(own.kernel, own.boundary, **tiles), shape) == shape


def test_folded_arrays_are_skewed(monkeypatch):
    skew_small_arrays(monkeypatch)
    monkeypatch.setattr(stepping, "WORTH_PLANNING", 0)
    monkeypatch.setattr(stepping, "is_skewing_faster", lambda *_: True)
    star = [offset for offset in itertools.product((-1, 0, 1), repeat=3) if 0 in offset]
    weights = {(*offset, 0): 0.05 for offset in star}
    step = twofour.stencil(weights, boundary="reflect", dtype="f64", threads=2)
    u = np.random.default_rng(8).random((64, 12, 14, 2))
    assert step._stepper.plan(u.shape).programs.skewed(8) is not None
    *_, expected = reference.run(u, list(weights), list(weights.values()), ("reflect",) * 4, 8)
    result = step(u, steps=8)
    np.testing.assert_allclose(result, expected, rtol=1e-12)
    assert result.shape == u.shape


def test_each_number_of_channels_has_its_kernel():
    step = twofour.stencil(BLUR, boundary="periodic", dtype="f64")
    for channels in (3, 2, 3):
        u = np.random.default_rng(channels).random((11, 12, channels))
        (*_, expected) = reference.run(u, list(BLUR), list(BLUR.values()), ("periodic",) * 3, 3)
        np.testing.assert_allclose(step(u, steps=3), expected, rtol=1e-12)


def test_arrays_in_other_orders_are_copied_before():
    step = twofour.stencil(BLUR, boundary="nearest", dtype="f64")
    planar = np.random.default_rng(5).random((3, 14, 15))
    last = np.ascontiguousarray(planar.transpose(1, 2, 0))
    np.testing.assert_array_equal(step(planar.transpose(1, 2, 0), steps=4), step(last, steps=4))


@pytest.mark.parametrize("shape", [(9, 10, 3), (7, 8, 9, 4)])
def test_term_by_term_bits_are_those_of_other_schedules(shape):
    rng = np.random.default_rng(6)
    offsets = [(*o, 0) for o in np.ndindex(*[3] * (len(shape) - 1))]
    weights = dict(zip(offsets, rng.uniform(-1, 1, len(offsets)), strict=True))
    u = rng.random(shape)
    one, other = (
        twofour.stencil(weights, boundary="zero", dtype="f64", schedule=s, reassociate=False)
        for s in ("direct", "sparse")
    )
    assert one(u, steps=2).tobytes() == other(u, steps=2).tobytes()


@pytest.mark.parametrize("schedule", ["sparse", "outer"])
def test_other_schedules_are_taken_as_asked_for(schedule):
    step = twofour.stencil(BLUR, dtype="f64", schedule=schedule)
    assert seen_as(step._stepper, (30, 40, 3)) == (30, 40, 3)


@pytest.mark.parametrize("constant", ["0.0", "1.5"])
@pytest.mark.parametrize("boundary", ["fixed", "periodic", "nearest,reflect,fixed"])
def test_fields_of_files(tmp_path, constant, boundary):
    path = tmp_path / "smooth.mlir"
    path.write_text(AFFINE.format(constant=constant))
    program = twofour.compile(path, boundary=boundary)
    u = np.random.default_rng(2).random((10, 14, 3))
    seen = (10, 42) if constant == "0.0" else u.shape
    assert seen_as(program._linear, u.shape) == seen
    result = program(u, steps=5)
    modes = boundary.split(",") * (3 if boundary.count(",") == 0 else 1)
    halos = [(1, 1), (2, 2), (0, 0)]
    inside = tuple(slice(lo, n - hi) for (lo, hi), n in zip(halos, u.shape, strict=True))
    expected = u.copy()
    for _ in range(5):
        expected = refilled(expected, halos, modes)
        near = sum(np.roll(expected, by, axis) for by, axis in ((1, 0), (-1, 0), (2, 1), (-2, 1)))
        expected[inside] = (near / 4 + float(constant))[inside]
    np.testing.assert_allclose(result, refilled(expected, halos, modes), rtol=1e-12)


def refilled(u, halos, modes):
    """An array whose halo is refilled, axis by axis."""
    for axis, ((below, above), mode) in enumerate(zip(halos, modes, strict=True)):
        if mode != "fixed" and below + above:
            within = u.take(range(below, u.shape[axis] - above), axis)
            u = reference.pad(within, axis, mode, below, above)
    return u.copy()
