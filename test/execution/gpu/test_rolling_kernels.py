# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Plain GPU kernels that march: the bits of the CPU's kernels, whatever the boundary and extent."""

from unittest.mock import patch

import numpy as np
import pytest

import kernel_cases as cases
from spills import check_resources
from turns import in_turn
from twofour.options import CompileOptions
from twofour.runtime.devices.simulated import SimulatedDevice
from twofour.runtime.programs import from_bundle
from twofour.targets.gpu import build
from twofour.targets.gpu.candidates import Way
from twofour.tuned.choice import Choice

SHAPES = {
    1: ((5,), (66001,)),
    2: ((3, 5), (37, 531), (70, 64)),
    3: ((2, 3, 7), (9, 13, 67), (33, 5, 130)),
}
BOUNDARY = ("periodic", "nearest", "zero")
SAMPLE = [
    ("heat1d_ftcs", "f64"),
    ("advect1d_beam_warming", "f32"),  # reaches to one side only
    ("laplacian1d_o8", "bf16"),
    ("paper_box2d49p", "f32"),
    ("wrf_advection5_2d", "f64"),
    ("advect2d_ctu", "f16"),
    ("heat3d_ftcs", "f64"),
    ("curlcurl_diag3d", "f32"),
    # So many terms that all steps are one loop, some of which write nothing.
    pytest.param("acoustic_iso3d_o16", "f16", marks=pytest.mark.full),
]
LEVELS = [
    ("heat1d_ftcs", "f64", 4, (997,)),
    ("advect1d_beam_warming", "f32", 6, (2500,)),
    ("heat2d_ftcs", "f32", 3, (61, 300)),
    ("paper_star2d13p", "f16", 2, (50, 550)),
    ("heat2d_ftcs", "f64", 5, (40, 200)),
    ("paper_box2d49p", "f64", 2, (33, 140)),
]
# The last ones take longest.
QUICK = 4
BOUNDARIES = [("periodic",), ("fixed",), ("reflect",)]


def compiled(name, dtype, chip="sm_90", steps=1, levels=False):
    options = CompileOptions(f"sim:{chip}", "simt", dtype, fuse_steps=steps)
    with patch.object(build, "best_way", lambda *_: Way(rolling=True, levels=levels)):
        bundle = build.compile_gpu(cases.KERNELS[name], options).bundle
    assert "rolling=true" in bundle.manifest["pipeline"]
    assert "v2.b64" in bundle.ptx if dtype == "f64" else "v4.b32" in bundle.ptx
    check_resources(bundle.ptx, chip)
    return bundle


def check(name, dtype, chip):
    kernel, bundle = cases.KERNELS[name], compiled(name, dtype, chip)
    boundary = BOUNDARY[: kernel.rank]
    for shape in SHAPES[kernel.rank]:
        cases.check_on_simulator(bundle, name, dtype, shape, boundary)


@pytest.mark.parametrize("name, dtype", SAMPLE)
def test_kernels(name, dtype):
    check(name, dtype, "sm_90")


@pytest.mark.parametrize("name", ["acoustic_iso2d_o16", "log9x9"])
def test_many_terms_in_registers_do_not_spill(name):
    options = CompileOptions("sim:sm_80", "simt", "f32")
    choice = Choice("simt", rolling=True, ring=False)
    bundle = build.compile_gpu(cases.KERNELS[name], options, choice=choice).bundle
    assert "cp.async" not in bundle.ptx
    check_resources(bundle.ptx, "sm_80")


@pytest.mark.full
@pytest.mark.parametrize("dtype", cases.DTYPES)
@pytest.mark.parametrize("name", cases.KERNELS)
def test_every_kernel(name, dtype):
    check(name, dtype, "sm_80")


@pytest.mark.parametrize("boundary", cases.boundaries(2))
def test_every_boundary(boundary):
    name = "wrf_advection5_2d"
    cases.check_on_simulator(compiled(name, "f32"), name, "f32", (17, 70), boundary, 3, seed=2)


@pytest.mark.parametrize(
    "name, dtype, steps, shape, boundary", list(in_turn(LEVELS, BOUNDARIES, 3, QUICK))
)
def test_levels_give_the_bits_of_single_steps(name, dtype, steps, shape, boundary):
    kernel, bundle = cases.KERNELS[name], compiled(name, dtype, steps=steps, levels=True)
    u = cases.stored(cases.random_values(3, shape, dtype) / 64, dtype)
    boundary = (boundary,) * kernel.rank
    got = from_bundle(bundle, "sim:sm_90")(u, steps + 1, boundary=boundary)
    # Rims are advanced by plain threads, in the same order.
    stepper = cases.stepper(kernel, dtype, cases.TERM_BY_TERM, boundary)
    cases.assert_same_bits(got, stepper.advance(u, steps + 1))


@pytest.mark.parametrize(
    "name, shape",
    [("laplacian1d_o8", (70001,)), ("heat2d_ftcs", (61, 300)), ("heat3d_ftcs", (150, 9, 70))],
)
def test_any_number_of_blocks(name, shape):
    bundle = compiled(name, "f32")
    u = cases.stored(cases.random_values(4, shape, "f32"), "f32")
    results = []
    for multiprocessors in (None, 1, 3, 50):
        device = SimulatedDevice("sm_90")
        device.multiprocessors = multiprocessors
        results.append(from_bundle(bundle, device)(u, 2, boundary=("periodic",) * u.ndim))
    for result in results[1:]:
        np.testing.assert_array_equal(result, results[0])


def test_infinities_stay_where_the_stencil_reaches():
    u = np.zeros((40, 300), np.float32)
    u[20, 150] = np.inf
    got = from_bundle(compiled("heat2d_ftcs", "f32"), "sim:sm_90")(u, 1, boundary="periodic")
    assert {tuple(at) for at in np.argwhere(got != 0)} == {
        (20, 150),
        (19, 150),
        (21, 150),
        (20, 149),
        (20, 151),
    }
    assert not np.isnan(got).any()
