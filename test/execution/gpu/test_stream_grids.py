# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Kernels that stream give the same bits however many blocks share the work."""

import numpy as np
import pytest

import kernel_cases as cases
from twofour.options import CompileOptions
from twofour.runtime.devices.simulated import SimulatedDevice
from twofour.runtime.programs import from_bundle
from twofour.targets.gpu.build import compile_gpu

SHAPES = {"laplacian1d_o8": (70001,), "wrf_advection5_2d": (61, 300), "heat3d_ftcs": (150, 9, 140)}


@pytest.mark.parametrize(
    "name", [*list(SHAPES)[:2], pytest.param("heat3d_ftcs", marks=pytest.mark.full)]
)
def test_any_number_of_blocks(name):
    kernel = cases.KERNELS[name]
    bundle = compile_gpu(kernel, CompileOptions("sim:sm_90", "stream", "f16")).bundle
    u = cases.stored(cases.random_values(1, SHAPES[name], "f16"), "f16")
    boundary = ("periodic",) * kernel.rank
    results, launches = [], set()
    for multiprocessors in (None, 1, 3, 50):
        device = SimulatedDevice("sm_90")
        device.multiprocessors = multiprocessors
        results.append(from_bundle(bundle, device)(u, 2, boundary=boundary))
        profile = device.profiles[bundle.program.single]
        launches.add(profile.counters.instructions)
    assert len(launches) > 1
    for result in results[1:]:
        np.testing.assert_array_equal(result, results[0])
