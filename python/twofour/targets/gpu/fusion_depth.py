# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""How many steps one sweep is to advance: `--fuse-steps auto`.

Depths from 1 to MAX_DEPTH are compared by the cost model, each as the compiler would execute it on
a large domain: a sweep, and before it one refresh of a halo on all axes, as deep as the sweep
reaches. Deeper sweeps move less, compute more, and share a refresh among more steps: the comparison
ends with the first depth that is slower than one before. What the rims of fused sweeps cost, and
steps that are left over, is not predicted; nor is it that `fixed` axes need no refresh, since a
boundary is chosen when a program runs.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from math import prod

from twofour.analysis import Analysis, analyse, load_program
from twofour.cost import GpuModel, Prediction
from twofour.cost.explore import DOMAINS, about_fastest, reference_gpu
from twofour.cost.refresh import refresh_seconds
from twofour.errors import TwofourError
from twofour.frontend.source import ProgramText
from twofour.kernels import Kernel
from twofour.options import CompileOptions
from twofour.reach import halo_reach
from twofour.runtime.dtypes import ELEMENT_TYPES
from twofour.targets.gpu.candidates import Candidate, arithmetic_of, candidates, fastest

MAX_DEPTH = 8


@dataclass(frozen=True)
class Depth:
    """A number of steps in one sweep, the schedule it would have, and how fast that will be.

    `prediction` is of the sweep alone, `refresh_seconds` is the time of the refresh before it, both
    on a domain of `points` points.
    """

    steps: int
    schedule: str
    prediction: Prediction
    refresh_seconds: float
    points: int

    @property
    def seconds_per_point(self) -> float:
        """Of a step, sweep and refresh together."""
        refresh = self.refresh_seconds / (self.points * self.steps)
        return self.prediction.seconds_per_point + refresh

    @property
    def gstencil_per_s(self) -> float:
        """The rate of steps, sweeps and refreshes together, in 1e9 points a second."""
        return 1e-9 / self.seconds_per_point


def fusion_depths(source: Kernel | ProgramText, options: CompileOptions) -> list[Depth]:
    """The depths that were compared, the smallest first; at least 1 for programs of linear steps.

    Empty for programs that cannot be fused or of whose rank nothing is known. Depths that the
    compiler refuses (too many terms, bounds too small) are left out. Raises TwofourError for a
    program that cannot be compiled at all.
    """
    depths: list[Depth] = []
    for steps in range(1, MAX_DEPTH + 1):
        try:
            found = _analysed(source, replace(options, fuse_steps=steps))
        except TwofourError:
            if steps == 1:
                raise
            break
        if not found.is_step or (steps > 1 and found.fused is None):
            break
        best = _best(found, options)
        if best is None:
            break
        depths.append(_depth(found, best, reference_gpu(options.chip)))
        if depths[-1] not in about_fastest(depths, _seconds):
            break
    return depths


def best_depth(depths: Sequence[Depth]) -> int:
    """The fastest depth, of those that are about as fast the smallest; 1 where there is none."""
    return about_fastest(depths, _seconds)[0].steps if depths else 1


def _seconds(depth: Depth) -> float:
    return depth.seconds_per_point


def _depth(found: Analysis, best: Candidate, gpu: GpuModel) -> Depth:
    sweep = found.fused or found.single
    below, above = halo_reach(sweep.reach_lo), halo_reach(sweep.reach_hi)
    shape = DOMAINS[len(below)]
    itemsize = ELEMENT_TYPES[found.element].itemsize
    refresh = refresh_seconds(gpu, shape, below, above, itemsize)
    return Depth(sweep.steps, best.schedule, best.prediction, refresh, prod(shape))


def _analysed(source: Kernel | ProgramText, options: CompileOptions) -> Analysis:
    module, filename = load_program(source, options)
    return analyse(module, filename, options, is_kernel=isinstance(source, Kernel))


def _best(found: Analysis, options: CompileOptions) -> Candidate | None:
    """What the compiler would take for a sweep; None where that is not predicted."""
    arithmetic = arithmetic_of(found.element, options)
    sweep = found.fused or found.single
    what = (sweep, found.element, arithmetic, reference_gpu(options.chip))
    if options.schedule == "auto":
        return fastest(*what, found.single)[0]
    asked = "dense" if found.element == "f64" and options.schedule == "sparse" else options.schedule
    ranked = candidates(*what, (asked,), found.single).candidates
    return ranked[0] if ranked else None
