# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The 79 kernels on simulated GPUs: every arithmetic and schedule, against float64.

Extents are no multiples of any tile; boundaries take turns, so that every one meets every rank.
Where ptxas is installed it has to take every kernel, without warnings, and spill what is known.
"""

from functools import lru_cache

import numpy as np
import pytest

import kernel_cases as cases
from spills import check_resources
from turns import in_turn
from twofour.errors import TwofourError
from twofour.options import CompileOptions
from twofour.runtime.programs import from_bundle
from twofour.targets.gpu.build import compile_gpu

ARITHMETIC = ("f16", "bf16", "tf32", "f32", "f64")
SCHEDULES = ("stream", "sparse", "dense", "simt")
# More code than compiles in seconds.
NOT_STREAMED = "acoustic_iso3d_o16"
SHAPES = {
    1: ((1,), (7,), (517,), (66001,)),
    2: ((1, 1), (3, 5), (19, 517), (131, 31), (2, 1030)),
    3: ((1, 2, 3), (5, 9, 259), (34, 3, 18), (7, 17, 65)),
}
# Few kernels of every rank and reach, for every change; the whole matrix is marked full.
SAMPLE = {
    "heat1d_ftcs",
    "advect1d_beam_warming",
    "heat2d_ftcs",
    "advect2d_ctu",
    "curlcurl_diag3d",
}


def streams(name, arithmetic):
    return arithmetic in ("f16", "bf16") and name != NOT_STREAMED


def combinations():
    for number, (name, kernel) in enumerate(cases.KERNELS.items()):
        for arithmetic in ARITHMETIC:
            for schedule in SCHEDULES:
                if schedule == "stream" and not streams(name, arithmetic):
                    continue
                turn = number + len(arithmetic) + SCHEDULES.index(schedule)
                sampled = name in SAMPLE and turn % 5 == 0
                marks = () if sampled else (pytest.mark.full,)
                label = f"{name}-{arithmetic}-{schedule}"
                yield pytest.param(kernel, arithmetic, schedule, id=label, marks=marks)


@lru_cache(maxsize=8)
def program(kernel, arithmetic, schedule, chip):
    if schedule == "simt" and arithmetic == "tf32":
        arithmetic = "f32"
    options = CompileOptions(f"sim:{chip}", schedule, arithmetic)
    bundle = compile_gpu(kernel, options).bundle
    check_resources(bundle.ptx, chip, kernel.name, arithmetic, schedule)
    return from_bundle(bundle, f"sim:{chip}")


@pytest.mark.parametrize("kernel, arithmetic, schedule", list(combinations()))
def test_kernels_are_within_the_bound(kernel, arithmetic, schedule):
    number = list(cases.KERNELS).index(kernel.name)
    turn = number + 5 * ARITHMETIC.index(arithmetic) + 7 * SCHEDULES.index(schedule)
    boundaries, shapes = cases.boundaries(kernel.rank), SHAPES[kernel.rank]
    for run, (chip, steps) in enumerate((("sm_80", 1), ("sm_90", 3))):
        shape = shapes[(turn + run) % len(shapes)]
        boundary = boundaries[(turn // 2 + 5 * run) % len(boundaries)]
        if not cases.holds(kernel, arithmetic, steps):
            steps = 1
        check(kernel, arithmetic, schedule, chip, shape, boundary, steps)


# Two kernels with all boundaries; every change, each boundary with one of them.
BOUNDARIES = [(boundary,) for boundary in [*cases.boundaries(2), ("zero", "constant(0.75)")]]
PLANAR = [("wrf_advection5_2d",), ("lbm_d2q9_diffusion",)]


@pytest.mark.parametrize("schedule", SCHEDULES)
@pytest.mark.parametrize("boundary, name", list(in_turn(BOUNDARIES, PLANAR, 2)))
def test_every_boundary(boundary, name, schedule):
    kernel = cases.KERNELS[name]
    check(kernel, "f16", schedule, "sm_90", (5, 37), boundary, 3)


EXTENTS = [(shape,) for shapes in SHAPES.values() for shape in shapes]


@pytest.mark.parametrize("shape, schedule", list(in_turn(EXTENTS, [("stream",), ("sparse",)], 2)))
def test_every_extent(shape, schedule):
    kernel = cases.KERNELS[{1: "laplacian1d_o8", 2: "log9x9", 3: "laplacian3d_o6"}[len(shape)]]
    boundary = ("periodic", "reflect", "nearest")[: len(shape)]
    check(kernel, "bf16", schedule, "sm_90", shape, boundary, 1)


def test_what_does_not_stream_says_so():
    options = CompileOptions("sim:sm_90", "stream", "f16")
    with pytest.raises(TwofourError, match="expected at most 1024 matrix instructions"):
        compile_gpu(cases.KERNELS[NOT_STREAMED], options)
    options = CompileOptions("sim:sm_90", "stream", "f32")
    with pytest.raises(TwofourError, match="expected fields of f16 or bf16 for schedule 'stream'"):
        compile_gpu(cases.KERNELS["heat2d_ftcs"], options)


def check(kernel, arithmetic, schedule, chip, shape, boundary, steps):
    storage = "f32" if arithmetic == "tf32" else arithmetic
    values_of = "f16" if storage in ("f16", "bf16") else storage
    states, sums = cases.exact_run(kernel, values_of, shape, boundary, steps, 1)
    step = program(kernel, arithmetic, schedule, chip)
    got = step(cases.stored(states[0], storage), steps, boundary=boundary)
    plain = schedule == "simt"
    dtype = storage if plain else arithmetic
    bounds = cases.error_bounds(states, sums, dtype, kernel, boundary, matrix=not plain)
    error = np.abs(cases.numbers(got) - states[-1])
    worst = np.max(error / np.maximum(bounds[-1], np.finfo(float).tiny))
    assert worst <= 1, f"{boundary} {shape} {chip}: {worst:.3g} times the bound"
