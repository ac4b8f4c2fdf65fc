# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Random stencils by every GPU schedule on the simulator, with all its checks on."""

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
# Two steps in one have up to the square of as many points.
MOST_FUSED = 8


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
    sampled = 6
    for seed in range(count):
        marks = () if seed < sampled else (pytest.mark.full,)
        yield pytest.param(seed, marks=marks)


def laid_out(rng, array: np.ndarray) -> np.ndarray:
    """The same values in another order in memory."""
    kind = rng.integers(4)
    if kind == 1:
        return np.asfortranarray(array)
    if kind == 2:
        return np.repeat(array, 2, axis=-1)[..., ::2]
    if kind == 3:
        return np.ascontiguousarray(array[::-1])[::-1]
    return array


def schedules_of(rng, arithmetic: str) -> list[str]:
    """Two of the schedules for this arithmetic, in random order."""
    fragments = ["dense"] if arithmetic == "f64" else ["sparse", "dense"]
    streams = ["stream"] if arithmetic in STREAMED else []
    return rng.permutation([*fragments, *streams, "simt"])[:2].tolist()


@pytest.mark.parametrize("seed", list(cases_of(500)))
def test_random_stencils(seed):
    rng = np.random.default_rng(seed)
    rank = int(rng.integers(1, 4))
    kernel = random_kernel(rng, rank)
    arithmetic = str(rng.choice(["f16", "bf16", "tf32", "f32", "f64"]))
    chip = str(rng.choice(["sm_80", "sm_90"]))
    extents = np.exp(rng.uniform(0, np.log(MOST_EXTENT[rank]), rank)).astype(int)
    shape = tuple(int(e) for e in np.maximum(extents, 1))
    boundary = tuple(str(rng.choice(cases.MODES)) for _ in range(rank))
    steps = int(rng.integers(1, 4))
    fuse_steps = int(rng.integers(1, 3)) if len(kernel.offsets) <= MOST_FUSED else 1
    if not cases.holds(kernel, arithmetic, steps):
        steps = fuse_steps = 1
    storage = "f32" if arithmetic == "tf32" else arithmetic
    values = cases.random_values(seed, shape, storage)
    states = reference.run(values, kernel.offsets, kernel.weights, boundary, steps)
    if fuse_steps > 1:
        bound = cases.fused_bound(states, arithmetic, kernel, fuse_steps, boundary, matrix=True)
    else:
        sums = cases.absolute_sums(states, kernel, boundary)
        bound = cases.error_bounds(states, sums, arithmetic, kernel, boundary, matrix=True)[-1]
    for schedule in schedules_of(rng, arithmetic):
        # Of three axes, two steps in one need more registers than there are when they stream.
        fused = 1 if (schedule, rank) == ("stream", 3) else fuse_steps
        options = CompileOptions(f"sim:{chip}", schedule, arithmetic, fused)
        bundle = compile_gpu(kernel, options).bundle
        assert bundle.manifest["schedule"] == schedule
        step = from_bundle(bundle, f"sim:{chip}")
        got = step(laid_out(rng, cases.stored(values, storage)), steps, boundary=boundary)
        worst = np.max(np.abs(cases.numbers(got) - states[-1]) / np.maximum(bound, 1e-300))
        what = f"{kernel.offsets} {shape} {boundary} {steps} {schedule} {fused}"
        assert worst <= 1, f"{what}: {worst:.3g} x the bound"
