# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Random stencils through sparse tensor cores on the simulator, with all its checks on."""

import numpy as np
import pytest

import kernel_cases as cases
import reference
from twofour.kernels import Kernel
from twofour.options import STREAMED, CompileOptions
from twofour.runtime.programs import from_bundle
from twofour.targets.gpu.build import compile_gpu

MOST_REACH = {1: 9, 2: 4, 3: 3}
MOST_POINTS = {1: 12, 2: 24, 3: 24}
MOST_EXTENT = {1: 20000, 2: 160, 3: 24}


def random_kernel(rng, rank: int) -> Kernel:
    """Points anywhere in a box that need not hold the origin; weights that f16 holds or not."""
    low = -rng.integers(0, MOST_REACH[rank] + 1, rank)
    high = low + rng.integers(0, 2 * MOST_REACH[rank] + 1, rank)
    box = np.stack(
        np.meshgrid(*(np.arange(a, b + 1) for a, b in zip(low, high, strict=True)), indexing="ij"),
        axis=-1,
    ).reshape(-1, rank)
    count = rng.integers(1, min(len(box), MOST_POINTS[rank]) + 1)
    points = box[np.sort(rng.choice(len(box), count, replace=False))]
    weights = rng.standard_normal(count)
    weights[weights == 0] = 1.0
    if rng.random() < 0.3:
        weights *= 2.0 ** rng.integers(-18, 6)
    return Kernel("random", tuple(map(tuple, points.tolist())), tuple(weights.tolist()))


def cases_of(count: int):
    sampled = 12
    for seed in range(count):
        marks = () if seed < sampled else (pytest.mark.full,)
        yield pytest.param(seed, marks=marks)


@pytest.mark.parametrize("seed", list(cases_of(500)))
def test_random_stencils(seed):
    rng = np.random.default_rng(seed)
    rank = int(rng.integers(1, 4))
    kernel = random_kernel(rng, rank)
    arithmetic = str(rng.choice(["f16", "bf16", "tf32", "f32"]))
    chip = str(rng.choice(["sm_80", "sm_90"]))
    extents = np.exp(rng.uniform(0, np.log(MOST_EXTENT[rank]), rank)).astype(int)
    shape = tuple(int(e) for e in np.maximum(extents, 1))
    boundary = tuple(str(rng.choice(cases.MODES)) for _ in range(rank))
    steps = int(rng.integers(1, 4))
    if not cases.holds(kernel, arithmetic, steps):
        steps = 1
    storage = "f32" if arithmetic == "tf32" else arithmetic
    values = cases.random_values(seed, shape, storage)
    states = reference.run(values, kernel.offsets, kernel.weights, boundary, steps)
    sums = cases.absolute_sums(states, kernel, boundary)
    bounds = cases.error_bounds(states, sums, arithmetic, kernel, boundary, matrix=True)
    for schedule in ("sparse", "stream")[: 1 + (arithmetic in STREAMED)]:
        bundle = compile_gpu(kernel, CompileOptions(f"sim:{chip}", schedule, arithmetic)).bundle
        assert bundle.manifest["schedule"] == schedule
        step = from_bundle(bundle, f"sim:{chip}")
        got = step(cases.stored(values, storage), steps, boundary=boundary)
        worst = np.max(np.abs(cases.numbers(got) - states[-1]) / np.maximum(bounds[-1], 1e-300))
        assert worst <= 1, f"{kernel.offsets} {shape} {boundary} {steps}: {worst:.3g} x the bound"
