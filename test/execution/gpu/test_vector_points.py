# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Plain GPU kernels of a vector a thread: the bits of the CPU's, whatever the rows end with."""

import numpy as np
import pytest

import kernel_cases as cases
from spills import check_resources
from twofour.codegen.gpu.simt_kernel import MAX_TERMS
from twofour.kernels import Kernel
from twofour.options import CompileOptions
from twofour.runtime.programs import from_bundle
from twofour.targets.gpu import build
from twofour.tuned.choice import Choice

# Rows of whole vectors, of less than one, and all that a row may leave of one.
SHAPES = {
    1: ((5,), (1024,), (2053,)),
    2: ((3, 5), (11, 130), (9, 131), (17, 264)),
    3: ((2, 3, 7), (3, 11, 66), (2, 9, 129)),
}
BOUNDARY = ("periodic", "nearest", "zero")
SAMPLE = [
    ("heat1d_ftcs", "f16"),
    ("advect1d_beam_warming", "f64"),  # reaches to one side only
    ("laplacian1d_o8", "f32"),
    ("acoustic_iso2d_o16", "f32"),  # reaches two vectors further
    ("arakawa_c_average4", "bf16"),
    ("paper_box2d49p", "f16"),
    ("fdtd24_dx_3d", "f32"),
    ("heat3d_ftcs", "f64"),
]


def compiled(name, dtype, steps=1, chip="sm_90"):
    options = CompileOptions(f"sim:{chip}", "simt", dtype, fuse_steps=steps)
    return build.compile_gpu(
        cases.KERNELS[name], options, choice=Choice("simt", rolling=False)
    ).bundle


def check(name, dtype, chip="sm_90"):
    kernel, bundle = cases.KERNELS[name], compiled(name, dtype, chip=chip)
    assert bundle.kernels[bundle.program.single].alignment == 16
    assert "ld.global.v2.b64" in bundle.ptx if dtype == "f64" else "ld.global.v4.b32" in bundle.ptx
    boundary = BOUNDARY[: kernel.rank]
    for shape in SHAPES[kernel.rank]:
        cases.check_on_simulator(bundle, name, dtype, shape, boundary, 2)
    check_resources(bundle.ptx, chip, name, dtype, "simt")


@pytest.mark.parametrize("name, dtype", SAMPLE)
def test_kernels(name, dtype):
    check(name, dtype)


@pytest.mark.full
@pytest.mark.parametrize("dtype", cases.DTYPES)
@pytest.mark.parametrize("name", cases.KERNELS)
def test_every_kernel(name, dtype):
    check(name, dtype, "sm_80")


@pytest.mark.parametrize("boundary", cases.boundaries(2))
def test_every_boundary(boundary):
    name = "wrf_advection5_2d"
    cases.check_on_simulator(compiled(name, "f32"), name, "f32", (17, 71), boundary, 3, seed=2)


def test_fused_steps_with_rims():
    kernel, u = cases.KERNELS["heat2d_ftcs"], cases.random_values(4, (21, 75), "f64")
    got = from_bundle(compiled("heat2d_ftcs", "f64", steps=2), "sim:sm_90")(
        u, 5, boundary="nearest"
    )
    expected = cases.stepper(kernel, "f64", cases.TERM_BY_TERM, ("nearest",) * 2).advance(u, 5)
    np.testing.assert_allclose(got, expected, rtol=1e-13, atol=1e-15)


def test_what_no_output_reads_is_not_added():
    u = np.full((24, 136), np.nan, np.float32)
    u[4:20, 4:132] = 1
    got = from_bundle(compiled("heat2d_ftcs", "f32"), "sim:sm_90")(u, 1, boundary="periodic")
    np.testing.assert_array_equal(got[5:19, 5:131], 1)


def test_sums_of_more_terms_than_are_unrolled_are_of_elements():
    offsets = tuple((y, x) for y in range(-9, 10) for x in range(-14, 14))
    assert 4 * len(offsets) > MAX_TERMS
    kernel = Kernel("wide", offsets, (1 / len(offsets),) * len(offsets))
    options = CompileOptions("sim:sm_90", "simt", "f32")
    bundle = build.compile_gpu(kernel, options, choice=Choice("simt", rolling=False)).bundle
    assert bundle.kernels[bundle.program.single].alignment == 4
