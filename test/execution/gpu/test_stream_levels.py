# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Fused steps level by level in one kernel: the bits of single steps, and the predicted costs."""

from unittest.mock import patch

import numpy as np
import pytest

import kernel_cases as cases
import reference
from spills import check_resources
from turns import in_turn
from twofour.cost.stream import stream_counts
from twofour.dialects.nm.transforms import to_gpu
from twofour.options import CompileOptions
from twofour.runtime.programs import from_bundle
from twofour.targets.gpu import build, report
from twofour.targets.gpu.build import compile_gpu, emit
from twofour.targets.gpu.candidates import Way

CASES = [
    ("heat1d_ftcs", 4, [(5,), (997,), (30001,)]),
    ("heat2d_ftcs", 2, [(3, 5), (61, 300)]),
    ("laplacian1d_o8", 3, [(2500,)]),
    ("wrf_advection5_2d", 3, [(40, 260)]),
    ("advect1d_beam_warming", 6, [(997,)]),
    ("heat2d_ftcs", 5, [(19, 700), (90, 131)]),
    ("paper_star2d13p", 4, [(50, 150)]),
]
# The last ones take longest.
QUICK = 4
BOUNDARIES = [("periodic",), ("fixed",), ("reflect",)]


def options(schedule="stream", steps=1):
    return CompileOptions("sim:sm_90", schedule, "f16", fuse_steps=steps)


def compiled(name, steps, levels=True):
    with patch.object(build, "best_way", lambda *_: Way(levels=levels)):
        return compile_gpu(cases.KERNELS[name], options(steps=steps)).bundle


@pytest.mark.parametrize(
    "name, steps, shapes, boundary", list(in_turn(CASES, BOUNDARIES, 3, QUICK))
)
def test_levels_give_the_bits_of_single_steps(name, steps, shapes, boundary):
    kernel = cases.KERNELS[name]
    fused = compiled(name, steps)
    assert "levels=true" in fused.manifest["pipeline"]
    single = compile_gpu(kernel, options()).bundle
    check_resources(fused.ptx, "sm_90")
    for shape in shapes:
        values = cases.random_values(2, shape, "f16") / 64
        u = cases.stored(values, "f16")
        # Rims are advanced by plain threads, which round in another order.
        rim = 2 * (steps + 1) * kernel.radius
        inner = tuple(slice(rim, max(rim, n - rim)) for n in shape)
        ours, theirs = (
            from_bundle(bundle, "sim:sm_90")(u, steps + 1, boundary=boundary)
            for bundle in (fused, single)
        )
        np.testing.assert_array_equal(ours[inner], theirs[inner])
        everywhere = (boundary,) * kernel.rank
        states = reference.run(
            u.astype(float), kernel.offsets, kernel.weights, everywhere, steps + 1
        )
        sums = cases.absolute_sums(states, kernel, everywhere)
        bounds = cases.error_bounds(states, sums, "f16", kernel, everywhere, matrix=True)
        assert cases.within(ours, states[-1], bounds[-1])


@pytest.mark.parametrize("name, steps", [("heat1d_ftcs", 3), ("heat2d_ftcs", 3)])
def test_costs_of_levels(name, steps):
    kernels = []
    make = to_gpu.build_stream_kernel
    with patch.object(to_gpu, "build_stream_kernel", lambda k: (kernels.append(k), make(k))[1]):
        bundle = compiled(name, steps)
    (layout,) = (k.layout for k in kernels if k.layout.levels == steps)
    found = report.gpu_report(bundle, options(steps=steps))["counters"]
    main = bundle.kernels[bundle.program.fused]
    counts = stream_counts(layout, report.domain(main))
    assert counts.instructions == pytest.approx(found["instructions"], rel=0.1)
    assert counts.mma == pytest.approx(found["mma"])
    assert counts.global_load_bytes == pytest.approx(found["global_load_bytes"], rel=0.05)


def test_levels_or_convolved_weights_as_predicted():
    few = emit(cases.KERNELS["paper_box2d49p"], options(steps=3), "gpu")
    assert "gpu.shuffle" in few
    # In three dimensions there is one level.
    one = emit(cases.KERNELS["heat3d_ftcs"], options(steps=2), "gpu")
    assert "gpu.shuffle" not in one
