# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The best of several layouts, by the model."""

import math
from collections.abc import Callable, Sequence
from functools import partial
from typing import TypeVar

from twofour.cost.chips import GPUS, GpuModel
from twofour.cost.costs import Costs
from twofour.cost.model import Prediction, predict
from twofour.cost.rolling import rolling_costs
from twofour.cost.stream import stream_costs
from twofour.layout.march import March
from twofour.layout.rolling import RollingLayout
from twofour.layout.stream import StreamLayout

# The chip that stands for an architecture where none is named.
REFERENCE = {"sm_80": "A100", "sm_89": "RTX4090", "sm_90": "H200", "sm_100": "H200"}
# Domains to predict for, by rank: those of SparStencil, table 2.
DOMAINS = {1: (10_240_000,), 2: (10_240, 10_240), 3: (1024, 1024, 1024)}
# Layouts that are predicted to differ by less are as good as each other.
TOLERANCE = 0.01
# Rings were not measured yet: they are taken where they promise so much more.
RING_GAIN = 0.03
# Resources that are less busy count the same.
AT_EASE = 0.6

T = TypeVar("T")


def reference_gpu(chip: str) -> GpuModel:
    """The chip that stands for an architecture such as sm_90."""
    return GPUS[REFERENCE[chip]]


def about_fastest(found: Sequence[T], seconds: Callable[[T], float]) -> list[T]:
    """The fastest of some, and those that are about as fast, in the order given; at least one."""
    limit = min(map(seconds, found)) * (1 + TOLERANCE)
    return [each for each in found if seconds(each) <= limit]


def best_stream(layouts: Sequence[StreamLayout], operand: str, gpu: GpuModel) -> StreamLayout:
    """The best of some streams of operands f16 or bf16, on a large domain; see `best_march`."""
    return best_march(layouts, partial(stream_costs, operand=operand), gpu)


def best_rolling(layouts: Sequence[RollingLayout], element: str, gpu: GpuModel) -> RollingLayout:
    """The best of some marches of plain threads, on a large domain; see `best_march`."""
    return best_march(layouts, partial(rolling_costs, element=element), gpu)


def best_march(layouts: Sequence[March], costs: Callable[..., Costs], gpu: GpuModel) -> March:
    """The fastest of some marches; of those about as fast, the one that leaves most unused.

    Rings have to be faster by RING_GAIN than all without. `costs` gives those of a march on an
    output of some shape, by `multiprocessors`.
    """
    shape = DOMAINS[layouts[0].rank]
    found = []
    for layout in layouts:
        cost = costs(layout, shape, multiprocessors=gpu.multiprocessors)
        found.append((layout, predict(gpu, cost, math.prod(shape))))

    def seconds(pair: tuple[March, Prediction]) -> float:
        return pair[1].seconds_per_point

    def busiest(pair: tuple[March, Prediction]) -> tuple[float, int]:
        layout, prediction = pair
        busy = {**prediction.busy, "dram": 0.0}
        return max(AT_EASE, *busy.values()), layout.registers

    without = [pair for pair in found if not pair[0].ring]
    if without and min(map(seconds, without)) * (1 - RING_GAIN) <= min(map(seconds, found)):
        found = without
    return min(about_fastest(found, seconds), key=busiest)[0]
