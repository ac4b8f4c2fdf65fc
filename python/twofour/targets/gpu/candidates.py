# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The ways to execute a linear step on a GPU, and how fast the model predicts each to be."""

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np

from twofour.analysis import LinearSweep
from twofour.codegen.cpu.direct_kernel import DirectKernel, Terms
from twofour.codegen.gpu.matrix_ops import operands_of
from twofour.codegen.gpu.simt_kernel import point_grid
from twofour.cost import Costs, GpuModel, Prediction, predict
from twofour.cost.explore import DOMAINS, about_fastest, best_rolling, best_stream
from twofour.cost.rolling import rolling_costs
from twofour.cost.simt import simt_costs
from twofour.cost.stream import stream_costs
from twofour.cost.tile import tile_costs
from twofour.errors import Unsuitable
from twofour.layout.block import lay_out_block, takes_boxes
from twofour.layout.chunks import chunk_operator
from twofour.layout.crush import crush
from twofour.layout.fragments import fragment_for
from twofour.layout.matching import apply_permutation, permute_2to4
from twofour.layout.patch import PatchOperator
from twofour.layout.rolling import rolling_layouts
from twofour.layout.search import best_tile
from twofour.layout.stream import StreamLayout, stream_layouts
from twofour.layout.weight_range import f16_scale
from twofour.options import STREAMED, TF32, CompileOptions
from twofour.runtime.dtypes import ELEMENT_TYPES
from twofour.sim import chips


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

    `single` is the step of which `sweep` fuses several, `domain` its outputs where they are not
    those of DOMAINS.
    """

    sweep: LinearSweep
    element: str
    arithmetic: str
    gpu: GpuModel
    single: LinearSweep | None = None
    domain: tuple[int, ...] | None = None

    @property
    def itemsize(self) -> int:
        return ELEMENT_TYPES[self.element].itemsize

    @property
    def shape(self) -> tuple[int, ...]:
        return self.domain or DOMAINS[len(self.sweep.reach_lo)]

    def step_of_levels(self) -> LinearSweep:
        """The single step; raises Unsuitable where steps cannot be executed level by level."""
        single, steps = self.single, self.sweep.steps
        if single is None or steps == 1:
            raise Unsuitable("expected fused steps for levels, got a single one")
        if not self.sweep.has_levels_of(single):
            raise Unsuitable(
                f"expected {steps} times the reach {single.reach} for levels, got "
                f"{self.sweep.reach}"
            )
        return single


def candidates(
    sweep: LinearSweep,
    element: str,
    arithmetic: str,
    gpu: GpuModel,
    schedules: Sequence[str] = ("stream", "sparse", "dense", "simt"),
    single: LinearSweep | None = None,
    domain: tuple[int, ...] | None = None,
) -> Ranking:
    """Rank schedules, of those given, that can execute a sweep on a large domain.

    Domains are those of twofour.cost.explore.DOMAINS where no other is given; for other ranks
    nothing is known. `single` is the step of which a sweep fuses several.
    """
    wanted, found, refused = _Sweep(sweep, element, arithmetic, gpu, single, domain), [], {}
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
    found.sort(key=_seconds)
    return Ranking(found, refused)


def fastest(
    sweep: LinearSweep,
    element: str,
    arithmetic: str,
    gpu: GpuModel,
    single: LinearSweep | None = None,
) -> tuple[Candidate | None, str | None]:
    """What schedule auto takes for a sweep, and why it is not tensor cores where it is not.

    None where nothing is known of arrays of its rank. Other arguments are as for `candidates`.
    """
    refusal = ranking = None
    if element in STREAMED:
        # Other ways for tensor cores take long to lay out; where rows stream, they are slower.
        tried = ("stream", "simt")
        ranking = candidates(sweep, element, arithmetic, gpu, tried, single)
        refusal = ranking.refused.get("stream")
    if ranking is None or refusal is not None:
        tried = ("simt", "sparse", "dense")
        ranking = candidates(sweep, element, arithmetic, gpu, tried, single)
    if not ranking.candidates:
        return None, None
    preferred = sorted(ranking.candidates, key=lambda candidate: tried.index(candidate.schedule))
    return about_fastest(preferred, _seconds)[0], refusal


def _seconds(candidate: Candidate) -> float:
    return candidate.prediction.seconds_per_point


def arithmetic_of(element: str, options: CompileOptions) -> str:
    """How fields of a type are multiplied: as tf32, or as they are."""
    return TF32 if options.dtype == TF32 else element


@dataclass(frozen=True)
class Way:
    """How fused steps are executed: once with the weights of all, or level by level in one kernel.

    Plain threads march (`rolling`), or have points of their own.
    """

    levels: bool = False
    rolling: bool = False


def best_way(
    schedule: str, fused: LinearSweep, single: LinearSweep, element: str, gpu: GpuModel
) -> Way:
    """The way of `stream` or `simt` that is predicted to be the fastest.

    `fused` may be `single` itself. Levels round as single steps do: where they are about as fast as
    another way, they are to be taken.
    """
    if len(single.reach_lo) not in DOMAINS:
        return Way()
    return _best_way(_WAYS[schedule], _Sweep(fused, element, element, gpu, single))[0]


def _best_way(ways: Mapping[Way, Callable], wanted: _Sweep) -> tuple[Way, Costs]:
    """The best way and its costs; raises Unsuitable where there is none."""
    found, refusal = [], None
    for way, costs in ways.items():
        try:
            cost = costs(wanted)
        except Unsuitable as error:
            refusal = error
            continue
        seconds = predict(wanted.gpu, cost, math.prod(wanted.shape)).seconds_per_point
        found.append((way, cost, seconds))
    if not found:
        raise refusal
    fastest_ways = about_fastest(found, _seconds_of_way)
    levels = (each for each in fastest_ways if each[0].levels)
    way, cost, _ = next(levels, min(fastest_ways, key=_seconds_of_way))
    return way, cost


def _seconds_of_way(found: tuple[Way, Costs, float]) -> float:
    return found[2]


def _stream(wanted: _Sweep) -> Costs:
    if wanted.element not in STREAMED:
        raise Unsuitable(f"expected fields of {' or '.join(STREAMED)}, got {wanted.element}")
    return _best_way(_WAYS["stream"], wanted)[1]


def _stream_once(wanted: _Sweep) -> Costs:
    """All steps at once, by the weights of all."""
    _check_range(wanted, wanted.sweep)
    operator = chunk_operator(wanted.sweep.offsets, wanted.sweep.weights)
    return _stream_costs(stream_layouts(operator, wanted.sweep.reach), wanted)


def _stream_levels(wanted: _Sweep) -> Costs:
    """A single step for each level."""
    single = wanted.step_of_levels()
    _check_range(wanted, single)
    operator = chunk_operator(single.offsets, single.weights)
    layouts = stream_layouts(operator, single.reach, levels=wanted.sweep.steps)
    return _stream_costs(layouts, wanted)


def _stream_costs(layouts: list[StreamLayout], wanted: _Sweep) -> Costs:
    layout = best_stream(layouts, wanted.element, wanted.gpu)
    costs = stream_costs(layout, wanted.shape, wanted.element, wanted.gpu.multiprocessors)
    return replace(costs, steps=wanted.sweep.steps)


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


def _tile(wanted: _Sweep, operator: PatchOperator, sparse: bool) -> Costs:
    _check_range(wanted, wanted.sweep)
    operands, parts = operands_of(wanted.arithmetic)
    fragment = fragment_for(operands, sparse)
    chip = chips.find(wanted.gpu.architecture)
    bulk = chip.copy_engine and takes_boxes(fragment, wanted.itemsize)
    layout = lay_out_block(operator, fragment, wanted.itemsize, wanted.sweep.reach, bulk=bulk)
    return tile_costs(layout, wanted.shape, operands, chip, parts=parts)


def _check_range(wanted: _Sweep, multiplied: LinearSweep) -> None:
    """Raise Unsuitable for weights that operands cannot hold."""
    if wanted.arithmetic == "f16":
        f16_scale(np.array(multiplied.weights))


def _simt(wanted: _Sweep) -> Costs:
    return _best_way(_WAYS["simt"], wanted)[1]


def _points(wanted: _Sweep) -> Costs:
    costs = point_costs(wanted.sweep, wanted.element, wanted.gpu, wanted.shape)
    return replace(costs, steps=wanted.sweep.steps)


def point_costs(sweep: LinearSweep, element: str, gpu: GpuModel, shape: tuple[int, ...]) -> Costs:
    """What plain threads with points of their own cost for a sweep of outputs of `shape`."""
    kernel = DirectKernel(sweep.kernel, [Terms(sweep.offsets, sweep.weights)])
    grid = point_grid(kernel, ELEMENT_TYPES[element].itemsize, aligned=True)
    return simt_costs(kernel, grid, shape, element, chips.find(gpu.architecture))


def _rolling_once(wanted: _Sweep) -> Costs:
    return _rolling(wanted, wanted.sweep, 1)


def _rolling_levels(wanted: _Sweep) -> Costs:
    return _rolling(wanted, wanted.step_of_levels(), wanted.sweep.steps)


def _rolling(wanted: _Sweep, sweep: LinearSweep, levels: int) -> Costs:
    terms = (sweep.offsets, sweep.weights)
    layouts = rolling_layouts(*terms, wanted.itemsize, sweep.reach, levels=levels)
    layout = best_rolling(layouts, wanted.element, wanted.gpu)
    costs = rolling_costs(layout, wanted.shape, wanted.element, wanted.gpu.multiprocessors)
    return replace(costs, steps=wanted.sweep.steps)


_WAYS: dict[str, dict[Way, Callable[[_Sweep], Costs]]] = {
    "stream": {Way(levels=True): _stream_levels, Way(): _stream_once},
    "simt": {
        Way(levels=True, rolling=True): _rolling_levels,
        Way(): _points,
        Way(rolling=True): _rolling_once,
    },
}
_COSTS: dict[str, Callable[[_Sweep], Costs]] = {
    "stream": _stream,
    "sparse": _sparse,
    "dense": _dense,
    "simt": _simt,
}
