# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""`twofour.stencil` and `twofour.compile` on kernels: the same bits by whatever way."""

import numpy as np
import pytest

import kernel_cases as cases
import twofour

NAME = "wrf_advection5_2d"
BOUNDARY = ("constant(0.75)", "periodic")


@pytest.mark.parametrize("dtype", cases.DTYPES)
@pytest.mark.parametrize("schedule", ["auto", *cases.SCHEDULES])
def test_weights_and_names(dtype, schedule):
    kernel = cases.KERNELS[NAME]
    u = cases.stored(cases.random_values(1, (31, 40), dtype), dtype)
    expected = cases.stepper(kernel, dtype, "direct", BOUNDARY).advance(u, 3)
    # In another order than the kernel's.
    weights = dict(reversed(list(zip(kernel.offsets, kernel.weights, strict=True))))
    options = {"dtype": dtype, "schedule": schedule, "threads": 1}
    from_weights = twofour.stencil(weights, boundary=BOUNDARY, **options)
    by_name = twofour.compile(NAME, boundary=",".join(BOUNDARY), **options)
    for step in (from_weights, by_name):
        cases.assert_same_bits(step(u, steps=3), expected)
        assert step.schedule == ("direct" if schedule == "auto" else schedule)


@pytest.mark.parametrize("name", ["shapiro_filter2d_n2", "kumar_isotropic27"])
def test_without_reassociation_terms_are_added_one_by_one(name):
    kernel = cases.KERNELS[name]
    u = cases.stored(cases.random_values(1, (23, 19, 24)[-kernel.rank :], "f32"), "f32")
    options = {"dtype": "f32", "boundary": "periodic"}
    sparse = twofour.compile(name, schedule="sparse", **options)(u, steps=2)
    one_by_one = twofour.compile(name, reassociate=False, **options)(u, steps=2)
    cases.assert_same_bits(one_by_one, sparse)
    together = twofour.compile(name, **options)(u, steps=2)
    assert together.tobytes() != sparse.tobytes()
    weights = dict(zip(kernel.offsets, kernel.weights, strict=True))
    for reassociate, expected in ((True, together), (False, sparse)):
        step = twofour.stencil(weights, reassociate=reassociate, **options)
        cases.assert_same_bits(step(u, steps=2), expected)


def test_any_layout_of_the_input():
    u = cases.random_values(1, (31, 40), "f64")
    step = twofour.compile(NAME, dtype="f64", boundary="reflect")
    expected = step(u)
    wide = np.repeat(np.repeat(u, 2, 0), 3, 1)
    frozen = u.copy()
    frozen.flags.writeable = False
    views = [np.asfortranarray(u), wide[::2, ::3], u[::-1, ::-1].copy()[::-1, ::-1], frozen]
    for view in views:
        cases.assert_same_bits(step(view), expected)
        np.testing.assert_array_equal(view, u)
    assert step(u).flags.c_contiguous
