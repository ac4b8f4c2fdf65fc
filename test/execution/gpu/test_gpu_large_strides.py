# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Indexing beyond 32 bits on GPUs: rows so far apart that only their addresses can be checked."""

import numpy as np
import pytest

import kernel_cases as cases
from twofour import sim
from twofour.options import CompileOptions
from twofour.runtime.devices.simulated import SimulatedDevice
from twofour.targets.gpu.build import compile_gpu

ROW_BYTES = 2**35 + 4096
ROWS, COLUMNS = 20, 64


def far_apart(array: np.ndarray) -> np.ndarray:
    """The first row of an array as ROWS rows; all but the first lie in no memory."""
    return np.lib.stride_tricks.as_strided(array, (ROWS, array.shape[1]), (ROW_BYTES, 2))


@pytest.mark.parametrize("far", ["input", "output"])
@pytest.mark.parametrize("schedule", ["sparse", "dense", "simt"])
def test_addresses_of_rows_far_apart(schedule, far):
    device = SimulatedDevice("sm_90")
    options = CompileOptions("sim:sm_90", schedule, "f16")
    bundle = compile_gpu(cases.KERNELS["heat2d_ftcs"], options).bundle
    kernel = device.load(bundle)[bundle.program.single]
    near_in, near_out = (device.zeros((ROWS + 2, COLUMNS + 64), np.float16) for _ in range(2))
    views = {"input": near_in[:, 31 : 33 + COLUMNS], "output": near_out[1:-1, 32 : 32 + COLUMNS]}
    base = views[far].__array_interface__["data"][0]
    views[far] = far_apart(views[far])
    if far == "input":
        views["output"] = views["output"][: ROWS - 2]
    launch = kernel.aligned_for(1).bind([views["input"]], [views["output"]])
    with pytest.raises(sim.Fault) as caught:
        launch.run(0, ROWS)
    row, place = divmod(caught.value.address - base + 64, ROW_BYTES)
    assert caught.value.kind == "out of bounds"
    assert 1 <= row < ROWS and place < 2 * COLUMNS + 128
