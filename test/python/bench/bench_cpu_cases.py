# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Small workloads of `twofour bench cpu`, and one step of theirs in NumPy."""

import shutil
from pathlib import Path

import numpy as np
import pytest

from twofour.bench.cpu.pinning import usable_cpus
from twofour.bench.cpu.setting import CpuSetting
from twofour.bench.cpu.workload import Workload, random_stencil
from twofour.kernels import Kernel

ROOT = Path(__file__).resolve().parents[3]
DATE = "2026-11-22"
CPUS = usable_cpus()
SMALL = CpuSetting((16, 24), (1,), 2, ("heat2d_ftcs",), (1,), ("f64",), 3, 4)
LOPSIDED = Kernel("k", ((-2, 0), (0, 1), (1, -1), (1, 3)), (0.125, 0.25, 0.5, 0.0625))
CASES = [
    Workload("1-D", Kernel("k", ((-1,), (2,)), (0.25, 0.5)), (37,), "f64", 1),
    Workload("one-sided", Kernel("k", ((1, 1), (2, 3)), (0.25, 0.5)), (9, 17), "f32", 1),
    Workload("2-D", LOPSIDED, (19, 21), "f64", min(2, len(CPUS))),
    Workload("3-D", random_stencil("star", 2, "f32", 3), (7, 6, 11), "f32", 1),
    Workload("channels", Kernel("k", ((-1, 2, 0), (0, -1, 0)), (0.25, 0.5)), (9, 8, 3), "f32", 1),
]

needs_gcc = pytest.mark.skipif(shutil.which("gcc") is None, reason="needs gcc")


def step(values, workload):
    """One step of arrays with a halo, by shifted slices in float64."""
    u = values.astype(np.float64)
    if workload.boundary == "periodic":
        pairs = zip(workload.below, workload.above, strict=True)
        u = np.pad(u[workload.interior.slices], list(pairs), mode="wrap")
    result = u.copy()
    total = 0.0
    for offset, weight in zip(workload.kernel.offsets, workload.kernel.weights, strict=True):
        shifted = (
            slice(lo + o, lo + o + n)
            for lo, o, n in zip(workload.below, offset, workload.extents, strict=True)
        )
        total = total + weight * u[tuple(shifted)]
    result[workload.interior.slices] = total
    return result
