# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The reference itself, against SciPy, FFTs, np.roll and cases worked out by hand."""

import numpy as np
import pytest
from scipy import ndimage

import reference

OFFSETS = ((-2, 0), (-1, 3), (0, 0), (0, -1), (1, 1), (2, -3))
WEIGHTS = (0.5, -1.25, 0.75, 2.0, 0.1, -0.3)


@pytest.fixture(params=[(1, 1), (2, 7), (5, 1), (9, 8)], ids=str)
def u(request):
    return np.random.default_rng(3).uniform(-1, 1, request.param)


@pytest.mark.parametrize(
    ("boundary", "mode"),
    [
        ("zero", "grid-constant"),
        ("constant(0.75)", "grid-constant"),
        ("periodic", "grid-wrap"),
        ("reflect", "reflect"),
        ("nearest", "nearest"),
    ],
)
def test_modes_of_scipy(u, boundary, mode):
    stencil = np.zeros((5, 7))
    for (i, j), weight in zip(OFFSETS, WEIGHTS, strict=True):
        stencil[2 + i, 3 + j] = weight
    value = 0.75 if boundary.startswith("constant") else 0.0
    expected = ndimage.correlate(u, stencil, mode=mode, cval=value)
    got = reference.step(u, OFFSETS, WEIGHTS, (boundary, boundary))
    np.testing.assert_allclose(got, expected, rtol=0, atol=1e-14)


def test_periodic_is_a_roll_and_a_product_of_transforms(u):
    got = reference.step(u, OFFSETS, WEIGHTS, ("periodic", "periodic"))
    rolled = sum(
        weight * np.roll(u, (-i, -j), (0, 1))
        for (i, j), weight in zip(OFFSETS, WEIGHTS, strict=True)
    )
    np.testing.assert_allclose(got, rolled, rtol=0, atol=1e-14)
    grid = np.zeros_like(u)
    for (i, j), weight in zip(OFFSETS, WEIGHTS, strict=True):
        grid[-i % u.shape[0], -j % u.shape[1]] += weight
    product = np.fft.ifft2(np.fft.fft2(u) * np.fft.fft2(grid)).real
    np.testing.assert_allclose(got, product, rtol=0, atol=1e-13)


def test_fixed_rim_of_a_lopsided_stencil():
    u = np.arange(6.0) ** 2
    got = reference.step(u, ((-1,), (2,)), (1.0, 10.0), ("fixed",))
    np.testing.assert_array_equal(got, [0, 90, 161, 254, 16, 25])


def test_later_axis_decides_in_corners():
    u = np.array([[1.0]])
    corner = ((1, 1),)
    for boundary, expected in (
        (("constant(3)", "constant(5)"), 5.0),
        (("constant(3)", "nearest"), 3.0),
        (("nearest", "constant(5)"), 5.0),
        (("zero", "periodic"), 0.0),
    ):
        assert reference.step(u, corner, (1.0,), boundary)[0, 0] == expected


def test_halo_beside_a_fixed_rim_repeats_the_rim():
    u = np.array([[1.0, 2.0], [3.0, 4.0], [5.0, 6.0]])
    got = reference.step(u, ((1, 1),), (1.0,), ("fixed", "periodic"))
    np.testing.assert_array_equal(got, [[4, 3], [6, 5], [5, 6]])


def test_symbol_is_the_growth_of_the_fastest_mode():
    assert reference.symbol(((-1,), (0,), (1,)), (1.0, -2.0, 1.0)) == pytest.approx(4.0)
