# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The ways to execute a linear step on a GPU, and how fast the model predicts each to be."""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

from twofour.analysis import LinearSweep
from twofour.cost import Costs, GpuModel, Prediction, predict
from twofour.cost.explore import DOMAINS, TOLERANCE, best_stream
from twofour.cost.simt import simt_costs
from twofour.cost.stream import stream_costs
from twofour.cost.tile import tile_costs
from twofour.errors import Unsuitable
from twofour.layout.block import lay_out_block
from twofour.layout.chunks import chunk_operator
from twofour.layout.crush import crush
from twofour.layout.fragments import fragment_for
from twofour.layout.matching import apply_permutation, permute_2to4
from twofour.layout.search import best_tile
from twofour.layout.stream import StreamLayout, stream_layouts
from twofour.options import STREAMED
from twofour.runtime.dtypes import ELEMENT_TYPES
from twofour.sim import chips
from twofour.targets.cpu.direct_kernel import DirectKernel, Terms
from twofour.targets.gpu.matrix_ops import operands_of
from twofour.targets.gpu.simt_kernel import point_grid


@dataclass(frozen=True)
class Candidate:
    """A schedule, what a launch of its kernel costs, and how fast that will be: a prediction."""

    schedule: str
    costs: Costs
    prediction: Prediction


@dataclass(frozen=True)
class Ranking:
    """Candidates, the fastest first, and by schedule why others cannot execute the step."""

    candidates: list[Candidate]
    refused: dict[str, str]


@dataclass(frozen=True)
class _Sweep:
    """What is to be executed: a stencil of fields of `element`, by `arithmetic`, on a chip.

    `single` is the step of which `sweep` fuses several.
    """

    sweep: LinearSweep
    element: str
    arithmetic: str
    gpu: GpuModel
    single: LinearSweep | None = None

    @property
    def itemsize(self) -> int:
        return ELEMENT_TYPES[self.element].itemsize

    @property
    def shape(self) -> tuple[int, ...]:
        return DOMAINS[len(self.sweep.reach_lo)]

    @property
    def reach(self) -> tuple[tuple[int, ...], tuple[int, ...]]:
        return self.sweep.reach_lo, self.sweep.reach_hi


def candidates(
    sweep: LinearSweep,
    element: str,
    arithmetic: str,
    gpu: GpuModel,
    schedules: Sequence[str] = ("stream", "sparse", "dense", "simt"),
    single: LinearSweep | None = None,
) -> Ranking:
    """Rank schedules, of those given, that can execute a sweep on a large domain.

    Domains are those of twofour.cost.explore.DOMAINS; for other ranks nothing is known. `single` is
    the step of which a sweep fuses several.
    """
    wanted, found, refused = _Sweep(sweep, element, arithmetic, gpu, single), [], {}
    if len(sweep.reach_lo) not in DOMAINS:
        return Ranking([], {})
    for schedule in schedules:
        try:
            costs = _COSTS[schedule](wanted)
        except Unsuitable as error:
            refused[schedule] = error.message
            continue
        costs = replace(costs, steps=sweep.steps)
        found.append(Candidate(schedule, costs, predict(gpu, costs, math.prod(wanted.shape))))
    found.sort(key=lambda candidate: candidate.prediction.seconds_per_point)
    return Ranking(found, refused)


def in_levels(fused: LinearSweep, single: LinearSweep, element: str, gpu: GpuModel) -> bool:
    """Whether fused steps stream faster level by level than with the weights of all.

    Levels round as single steps do: where both ways are about as fast, they are to be taken.
    """
    wanted = _Sweep(fused, element, element, gpu, single)
    steps = fused.steps
    reach = [tuple(steps * x for x in side) for side in (single.reach_lo, single.reach_hi)]
    if reach != list(wanted.reach):
        # Weights that are too small vanished when they were convolved.
        return False
    seconds = []
    for way in (_stream_once, _stream_levels):
        try:
            prediction = predict(gpu, way(wanted), math.prod(wanted.shape))
        except Unsuitable:
            seconds.append(math.inf)
        else:
            seconds.append(prediction.seconds_per_point)
    once, levels = seconds
    return levels < math.inf and levels <= once * (1 + TOLERANCE)


def _stream(wanted: _Sweep) -> Costs:
    if wanted.element not in STREAMED:
        raise Unsuitable(f"expected fields of {' or '.join(STREAMED)}, got {wanted.element}")
    fused = wanted.sweep.steps > 1 and wanted.single is not None
    if fused and in_levels(wanted.sweep, wanted.single, wanted.element, wanted.gpu):
        return _stream_levels(wanted)
    return _stream_once(wanted)


def _stream_once(wanted: _Sweep) -> Costs:
    """All steps at once, by the weights of all."""
    operator = chunk_operator(wanted.sweep.offsets, wanted.sweep.weights)
    costs = _stream_costs(stream_layouts(operator, wanted.reach), wanted)
    return replace(costs, steps=wanted.sweep.steps)


def _stream_levels(wanted: _Sweep) -> Costs:
    """A single step for each level."""
    single = wanted.single
    operator = chunk_operator(single.offsets, single.weights)
    reach = (single.reach_lo, single.reach_hi)
    return _stream_costs(stream_layouts(operator, reach, levels=wanted.sweep.steps), wanted)


def _stream_costs(layouts: list[StreamLayout], wanted: _Sweep) -> Costs:
    layout = best_stream(layouts, wanted.element, wanted.gpu)
    return stream_costs(layout, wanted.shape, wanted.element, wanted.gpu.multiprocessors)


def _sparse(wanted: _Sweep) -> Costs:
    operands, _ = operands_of(wanted.arithmetic)
    if operands == "f64":
        raise Unsuitable("expected a sparse instruction, got none for f64")
    offsets, weights = wanted.sweep.offsets, wanted.sweep.weights
    if operands == "tf32":
        operator = crush(offsets, weights, best_tile(offsets, weights)[0])
        permutation = permute_2to4(operator, "blossom", 16)
    else:
        tile, permutation, _ = best_tile(offsets, weights)
        operator = crush(offsets, weights, tile)
    return _tile(wanted, apply_permutation(operator, permutation), sparse=True)


def _dense(wanted: _Sweep) -> Costs:
    offsets, weights = wanted.sweep.offsets, wanted.sweep.weights
    return _tile(wanted, crush(offsets, weights, best_tile(offsets, weights)[0]), sparse=False)


def _tile(wanted: _Sweep, operator, sparse: bool) -> Costs:
    operands, parts = operands_of(wanted.arithmetic)
    fragment = fragment_for(operands, sparse)
    layout = lay_out_block(operator, fragment, wanted.itemsize, wanted.reach)
    chip = chips.find(wanted.gpu.architecture)
    return tile_costs(layout, wanted.shape, operands, chip, parts=parts)


def _simt(wanted: _Sweep) -> Costs:
    sweep = wanted.sweep
    kernel = DirectKernel(sweep.kernel, [Terms(sweep.offsets, sweep.weights)])
    grid = point_grid(kernel, wanted.itemsize)
    chip = chips.find(wanted.gpu.architecture)
    return simt_costs(kernel, grid, wanted.shape, wanted.element, chip)


_COSTS: dict[str, Callable[[_Sweep], Costs]] = {
    "stream": _stream,
    "sparse": _sparse,
    "dense": _dense,
    "simt": _simt,
}
