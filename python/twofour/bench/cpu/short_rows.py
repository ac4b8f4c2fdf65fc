# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Single sweeps over arrays with a short last axis: channels of images, layers of a domain."""

import math
from collections.abc import Iterator, Sequence
from dataclasses import replace

from twofour.bench.cpu.comparison import Comparison
from twofour.bench.cpu.experiment import Bench
from twofour.bench.cpu.setting import CpuSetting
from twofour.bench.cpu.sweeps import compare_with_loops, sweep_section
from twofour.bench.cpu.workload import Workload, random_stencil
from twofour.bench.section import Section
from twofour.kernels import Kernel

CHANNELS, LAYERS = 3, 30
TEXT = f"""\
One step a sweep as in *single sweeps*, over arrays with a short last axis: images of {CHANNELS}
channels, along which boxes read nothing, and as many points as a square has in {LAYERS} layers,
along which stars do."""


def workloads(setting: CpuSetting) -> list[Workload]:
    """Every size and type: an image of the size, and layers with as many points as a square."""
    return [
        Workload(label, kernel, extents, dtype, threads)
        for size, threads in setting.pairs
        for dtype in setting.dtypes
        for label, kernel, extents in _kinds(size, dtype, setting.radii[:2])
    ]


def _kinds(
    size: int, dtype: str, radii: Sequence[int]
) -> Iterator[tuple[str, Kernel, tuple[int, ...]]]:
    """Labels, stencils and extents of one size."""
    for radius in radii:
        box = random_stencil("box", radius, dtype)
        offsets = tuple((*offset, 0) for offset in box.offsets)
        yield f"box r={radius}", replace(box, offsets=offsets), (size, size, CHANNELS)
    edge = round(size / math.sqrt(LAYERS))
    yield "star r=1", random_stencil("star", 1, dtype, 3), (edge, edge, LAYERS)


def count(setting: CpuSetting) -> int:
    """The number of comparisons."""
    return len(workloads(setting))


def compare_all(bench: Bench) -> Iterator[Comparison]:
    """Time every workload."""
    return compare_with_loops(bench, workloads(bench.setting))


def section(made: Sequence[Comparison]) -> Section:
    """A table and a plot for each domain."""
    return sweep_section("short-rows", "Short rows", TEXT, made)
