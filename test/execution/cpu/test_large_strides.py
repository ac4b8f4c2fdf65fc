# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Indexing beyond 32 bits, on rows far apart in a sparse file."""

import mmap
import tempfile

import numpy as np
import pytest

from twofour.kernels import built_in_kernels
from twofour.runtime import NativeKernel
from twofour.targets.cpu.build import CompileOptions, compile_cpu
from twofour.targets.cpu.executable import CpuExecutable

ROWS, COLUMNS, ROW_BYTES = 6, 40, 2**33


def far_rows() -> np.ndarray:
    """A float64 array of ROWS x COLUMNS whose rows are 8 GiB apart; only touched pages exist."""
    file = tempfile.TemporaryFile()
    try:
        file.truncate(ROWS * ROW_BYTES)
        memory = mmap.mmap(file.fileno(), ROWS * ROW_BYTES)
    except OSError as failure:
        pytest.skip(f"no sparse file of {ROWS * ROW_BYTES} bytes: {failure}")
    return np.ndarray((ROWS, COLUMNS), np.float64, buffer=memory, strides=(ROW_BYTES, 8))


@pytest.mark.parametrize("schedule", ["direct", "sparse"])
def test_rows_more_than_four_gigabytes_apart(schedule):
    options = CompileOptions(dtype="f64", schedule=schedule)
    executable = CpuExecutable(compile_cpu(built_in_kernels()["heat2d_ftcs"], options))
    kernel: NativeKernel = executable.linear_stepper(()).single.native
    u, v = far_rows(), far_rows()
    u[:] = np.random.default_rng(0).random(u.shape)
    kernel.bind([u], [v[1:-1, 1:-1]]).run(0, ROWS - 2)
    near = np.array(u)
    around = near[:-2, 1:-1] + near[2:, 1:-1] + near[1:-1, :-2] + near[1:-1, 2:]
    expected = 0.5 * near[1:-1, 1:-1] + 0.125 * around
    np.testing.assert_allclose(np.array(v)[1:-1, 1:-1], expected, rtol=1e-14)
