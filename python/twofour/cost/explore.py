# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The best of several layouts, by the model."""

import math
from collections.abc import Callable, Sequence
from functools import partial
from typing import TypeVar

from twofour.cost.chips import GPUS, GpuModel
from twofour.cost.costs import Costs
from twofour.cost.model import predict
from twofour.cost.rolling import rolling_costs
from twofour.cost.stream import stream_costs
from twofour.layout.march import March
from twofour.layout.rolling import RollingLayout
from twofour.layout.stream import StreamLayout

# The chip that stands for an architecture where none is named.
REFERENCE = {"sm_80": "A100", "sm_89": "RTX4090", "sm_90": "H200", "sm_100": "H200"}
# Domains to predict for, by rank: those of SparStencil, table 2.
DOMAINS = {1: (10_240_000,), 2: (10_240, 10_240), 3: (1024, 1024, 1024)}
# What is predicted or measured to differ by less is as good as each other.
TOLERANCE = 0.02

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
    """The fastest of some marches, and of equal ones the one of fewest registers.

    `costs` gives those of a march on an output of some shape, by `multiprocessors`.
    """
    shape = DOMAINS[layouts[0].rank]

    def rank(layout: March) -> tuple[float, int]:
        cost = costs(layout, shape, multiprocessors=gpu.multiprocessors)
        return predict(gpu, cost, math.prod(shape)).seconds_per_point, layout.registers

    return min(layouts, key=rank)
