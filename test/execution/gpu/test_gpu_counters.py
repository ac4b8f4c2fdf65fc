# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""What kernels cost: the limits on counters, registers and time that the project keeps."""

import math
import re
import time

import numpy as np
import pytest

from turns import in_turn
from twofour.codegen.gpu.cuda_toolkit import find_ptxas
from twofour.explain import explain
from twofour.kernels import TABLE_2, built_in_kernels
from twofour.options import CompileOptions
from twofour.runtime.programs import from_bundle
from twofour.targets.gpu import ptx
from twofour.targets.gpu.build import compile_gpu
from twofour.tune.launches import main_kernel

needs_ptxas = pytest.mark.skipif(find_ptxas() is None, reason="ptxas is not installed")


def halo_bytes_per_point(kernel, tile) -> float:
    """Bytes of a block tile with its halo, per output of the tile (f16)."""
    columns = list(zip(*kernel.offsets, strict=True))
    extents = [t + max(c) - min(c) for t, c in zip(tile, columns, strict=True)]
    return 2 * math.prod(extents) / math.prod(tile)


KERNELS_AND_CHIPS = in_turn([(name,) for name in TABLE_2.values()], [("sm_80",), ("sm_90",)], 2)


@pytest.mark.parametrize(("name", "chip"), list(KERNELS_AND_CHIPS))
def test_sparse_kernels_of_table_2(name, chip):
    kernel = built_in_kernels()[name]
    options = CompileOptions(chip, "sparse", "f16")
    report = explain(kernel, options)
    counters = report["counters"]
    assert counters["mma"] == report["mma_per_128_outputs"] / 128
    spec = main_kernel(compile_gpu(kernel, options).bundle)
    assert counters["global_load_bytes"] <= 1.15 * halo_bytes_per_point(kernel, spec.tile)
    assert counters["global_store_bytes"] == 2
    assert counters["shared_conflicts"] <= 0.05 * counters["shared_wavefronts"]
    assert report["shared_bytes"] == spec.shared_bytes


@pytest.mark.parametrize("name", [name for name in TABLE_2.values() if "1d" not in name])
def test_boxes_of_the_copy_engine(name):
    kernel = built_in_kernels()[name]
    options = CompileOptions("sm_90", "dense", "f16")
    counters = explain(kernel, options)["counters"]
    spec = main_kernel(compile_gpu(kernel, options).bundle)
    assert spec.maps
    # Boxes are narrower than rows that threads copy, what spaces their rows out is copied, too, and
    # their results cannot be spaced out.
    assert counters["global_load_bytes"] <= 1.45 * halo_bytes_per_point(kernel, spec.tile)
    assert counters["global_store_bytes"] == 2
    assert counters["shared_conflicts"] <= 0.1 * counters["shared_wavefronts"]


@needs_ptxas
@pytest.mark.parametrize("chip", ["sm_80", "sm_90"])
@pytest.mark.parametrize("name", TABLE_2.values())
def test_sparse_kernels_of_table_2_stay_in_registers(name, chip):
    bundle = compile_gpu(built_in_kernels()[name], CompileOptions(chip, "sparse", "f16")).bundle
    kernel = main_kernel(bundle)
    assert kernel.resources["spill_bytes"] == kernel.resources["local_bytes"] == 0
    assert ".local" not in bundle.ptx


@needs_ptxas
def test_operators_too_large_for_registers_are_read_step_by_step():
    options = CompileOptions("sm_80", "dense", "f64")
    bundle = compile_gpu(built_in_kernels()["an5d_box3d2r"], options).bundle
    kernel = main_kernel(bundle)
    assert '.pragma "nounroll"' in bundle.ptx
    assert kernel.resources["spill_bytes"] == 0 and kernel.resources["registers"] < 200


@pytest.mark.parametrize("schedule", ["sparse", "dense"])
@pytest.mark.parametrize("name", ["heat1d_ftcs", "heat2d_ftcs", "heat3d_ftcs", "yask_3plane_r3"])
def test_divisions_stand_before_the_march(name, schedule):
    options = CompileOptions("sim:sm_80", schedule, "f16")
    ptx = compile_gpu(built_in_kernels()[name], options).bundle.ptx
    ptx, _, _ = ptx.partition(".entry refresh_halo")
    before, copies, march = ptx.partition("cp.async.cg")
    assert copies
    assert re.search(r"\b(div|rem)\.u", before) or name == "heat1d_ftcs"
    assert not re.search(r"\b(div|rem)\.[us]", march)


def test_a_step_of_heat_2d_is_simulated_in_seconds():
    kernel = built_in_kernels()["heat2d_ftcs"]
    bundle = compile_gpu(kernel, CompileOptions("sim:sm_90", "sparse", "f16")).bundle
    started = time.perf_counter()
    from_bundle(bundle, "sim:sm_90")(np.zeros((256, 256), np.float16))
    assert time.perf_counter() - started < 5


@pytest.mark.parametrize("schedule", ["sparse", "dense", "simt"])
def test_bundles_have_the_same_bytes_when_built_twice(schedule):
    kernel = built_in_kernels()["heat2d_ftcs"]
    options = CompileOptions("sm_90", schedule, "f16", fuse_steps=2)
    first = compile_gpu(kernel, options).bundle.to_bytes()
    ptx._optimised.cache_clear()
    ptx._assembled.cache_clear()
    assert compile_gpu(kernel, options).bundle.to_bytes() == first


@pytest.mark.parametrize("name, used", [("heat1d_ftcs", 9), ("lbm_d2q9_diffusion", 20)])
def test_parts_of_a_that_are_zero_are_not_multiplied(name, used):
    kernel = built_in_kernels()[name]
    counters = explain(kernel, CompileOptions("sm_90", "dense", "f64"))["counters"]
    assert counters["mma"] == used / 128
