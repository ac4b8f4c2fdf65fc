# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""What a refresh of a halo is predicted to cost, against the simulated launch."""

import numpy as np
import pytest

import twofour
from twofour.cost import find
from twofour.cost.refresh import refresh_costs, refresh_seconds

H200 = find("H200")
ITEMSIZE = {"f16": 2, "f64": 8}


@pytest.mark.parametrize("dtype", ITEMSIZE)
@pytest.mark.parametrize(
    "shape, reach", [((8192,), (320,)), ((64, 512), (2, 3)), ((24, 20, 64), (1, 2, 2))]
)
def test_counts_are_those_of_the_simulator(dtype, shape, reach):
    rank = len(shape)
    ends = [
        tuple(sign * r if axis == own else 0 for axis in range(rank))
        for own, r in enumerate(reach)
        for sign in (-1, 1)
    ]
    step = twofour.stencil(
        dict.fromkeys(ends, 0.125), boundary="periodic", dtype=dtype, target="sim:sm_90"
    )
    step(np.zeros(shape, np.float16 if dtype == "f16" else np.float64))
    profile = step.device.profiles[f"refresh_halo_{8 * ITEMSIZE[dtype]}_{rank}d"]
    costs, cells = refresh_costs(shape, reach, reach, ITEMSIZE[dtype], H200)
    assert cells == profile.points
    per_cell = {name: n / cells for name, n in profile.counters.as_dict().items()}
    assert per_cell["instructions"] == pytest.approx(costs.instructions, rel=0.3)
    moved = per_cell["global_load_bytes"] + per_cell["global_store_bytes"]
    # Halos above the interior begin within sectors, and several warps meet a sector.
    assert costs.dram_bytes == pytest.approx(moved, rel=0.3)


def test_seconds():
    assert refresh_seconds(H200, (64, 64), (0, 0), (0, 0), 4) == 0
    one = refresh_seconds(H200, (10_240, 10_240), (1, 1), (1, 1), 2)
    deep = refresh_seconds(H200, (10_240, 10_240), (8, 8), (8, 8), 2)
    assert H200.launch_seconds < one < deep < 3 * one
