# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Outer products on the CPU: all kernels of two and three axes, against the direct route."""

import numpy as np
import pytest

import kernel_cases as cases
import twofour
from twofour.codegen.cpu import outer_kernel
from twofour.errors import TwofourError

SHAPES = {2: (37, 61), 3: (7, 18, 43)}
BOUNDARY = {2: ("reflect", "periodic"), 3: ("periodic", "fixed", "nearest")}
PLANAR = [name for name, kernel in cases.KERNELS.items() if kernel.rank > 1]


def worst(name: str, dtype: str) -> float:
    """The largest difference from the direct route after two steps, over the largest value."""
    kernel = cases.KERNELS[name]
    boundary = BOUNDARY[kernel.rank]
    shape = SHAPES[kernel.rank]
    u = cases.stored(cases.random_values(5, shape, dtype), dtype)
    outer = cases.stepper(kernel, dtype, "outer", boundary).advance(u, 2)
    direct = cases.stepper(kernel, dtype, "direct", boundary).advance(u, 2)
    return np.abs(outer - direct).max() / np.abs(direct).max()


# One kernel in ten; all in the full tests.
@pytest.mark.parametrize(
    "name",
    [pytest.param(name, marks=[pytest.mark.full] * (n % 10 > 0)) for n, name in enumerate(PLANAR)],
)
def test_all_kernels(name):
    assert worst(name, "f64") <= 5e-15
    assert worst(name, "f32") <= 3e-6


@pytest.mark.parametrize("threads", [1, 3])
def test_bits_do_not_depend_on_tiles_or_threads(threads):
    kernel = cases.KERNELS["advect_diffuse3d_upwind"]
    u = cases.stored(cases.random_values(5, SHAPES[3], "f64"), "f64")
    executable = cases.compiled(kernel, "f64", "outer")
    boundary = twofour.runtime.parse_boundary(BOUNDARY[3], 3)
    whole = executable.linear_stepper(boundary, 1, tile=(1, SHAPES[3])).advance(u, 3)
    tiled = executable.linear_stepper(boundary, threads, tile=(2, (3, 5, 20))).advance(u, 3)
    np.testing.assert_array_equal(tiled, whole)


def test_a_wrong_product_is_seen(monkeypatch):
    window = outer_kernel._window
    monkeypatch.setattr(
        outer_kernel, "_window", lambda *args: [(row, 1.01 * w) for row, w in window(*args)]
    )
    cases.compiled.cache_clear()
    try:
        assert worst("tti2d_gzz_o4", "f64") > 1e-3
    finally:
        cases.compiled.cache_clear()


@pytest.mark.parametrize(
    ("name", "dtype", "message"),
    [("heat1d_ftcs", "f64", "rank 2 or 3"), ("heat2d_ftcs", "f16", "f64 or f32 elements")],
)
def test_what_has_no_outer_products(name, dtype, message):
    with pytest.raises(TwofourError, match=message):
        twofour.compile(name, dtype=dtype, schedule="outer")
