# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Every layout that tuning may measure, and how fast the model predicts each to be.

Those that march are all of them (twofour.tune.marches). Sparse and dense kernels go
through shared memory, where most of their many layouts are far off: the tiles that need the fewest
instructions, each with the block and stages that the compiler would take and those that differ from
these in one extent or in the stages, and with shorter and longer marches.
"""

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial

from twofour.analysis import LinearSweep
from twofour.codegen.gpu.matrix_ops import operands_of
from twofour.cost import Costs, Prediction, predict
from twofour.cost.tile import tile_costs
from twofour.errors import TwofourError, Unsuitable
from twofour.layout.block import MAX_MARCH, MIN_MARCH, BlockLayout, lay_out_block, takes_boxes
from twofour.layout.crush import crush
from twofour.layout.fragments import Fragment, fragment_for
from twofour.layout.matching import apply_permutation, lower_bound, permute_2to4
from twofour.layout.patch import PatchOperator
from twofour.layout.search import best_tile, tiles
from twofour.runtime.dtypes import ELEMENT_TYPES
from twofour.sim import chips
from twofour.targets.gpu.candidates import point_costs
from twofour.tune.marches import Found, rolling, streams, taken_way
from twofour.tune.step import Step
from twofour.tuned.choice import Choice

TILES = 3  # of a sparse or dense operator
STAGES = (1, 2, 3, 4)  # halo tiles in shared memory
MARCHES = (MIN_MARCH, 2 * MIN_MARCH, MAX_MARCH, 2 * MAX_MARCH)


@dataclass(frozen=True)
class Layout:
    """A choice, what a launch of its kernel costs, and how fast that will be: a prediction.

    `usual` tells what the compiler takes for the schedule where nothing was measured.
    """

    choice: Choice
    costs: Costs
    prediction: Prediction
    usual: bool


def ranked_layouts(step: Step, schedules: Sequence[str]) -> list[Layout]:
    """The layouts of some schedules, the fastest first; equal ones as their resources are busy.

    Schedules that cannot execute the step have none.
    """
    found = []
    for schedule in schedules:
        for choice, costs, usual in _LAYOUTS[schedule](step):
            costs = replace(costs, steps=step.sweep.steps)
            prediction = predict(step.gpu, costs, math.prod(step.shape))
            found.append(Layout(choice, costs, prediction, usual))
    return sorted(found, key=lambda layout: (layout.prediction.seconds_per_point, _busy(layout)))


def shortlist(layouts: Sequence[Layout], schedule: str, count: int) -> list[Layout]:
    """Some of the ranked layouts: what the compiler takes, then the best of each schedule, then
    the best of all.

    `schedule` is the one that the compiler takes.
    """
    usual = [x for x in layouts if x.usual and x.choice.schedule == schedule]
    best = {x.choice.schedule: x for x in reversed(layouts)}
    leading = sorted(best.values(), key=layouts.index)
    return list({x.choice: x for x in [*usual, *leading, *layouts]}.values())[:count]


def _busy(layout: Layout) -> float:
    busy = layout.prediction.busy
    return max(busy[resource] for resource in busy if resource not in ("dram", "launch"))


def _sparse(step: Step) -> Found:
    operands, _ = operands_of(step.arithmetic)
    if operands == "f64":
        return iter(())

    def permuted(tile: tuple[int, ...]) -> PatchOperator:
        operator = crush(step.sweep.offsets, step.sweep.weights, tile)
        pairs = ("blossom", 16) if operands == "tf32" else ()
        return apply_permutation(operator, permute_2to4(operator, *pairs))

    return _tiled(step, "sparse", permuted)


def _dense(step: Step) -> Found:
    sweep = step.sweep
    return _tiled(step, "dense", lambda tile: crush(sweep.offsets, sweep.weights, tile))


def _tiled(step: Step, schedule: str, make: Callable[[tuple], PatchOperator]) -> Found:
    operands, parts = operands_of(step.arithmetic)
    fragment = fragment_for(operands, schedule == "sparse")
    chip = chips.find(step.gpu.architecture)
    usual_tile = best_tile(step.sweep.offsets, step.sweep.weights)[0]
    for tile in _few_tiles(step.sweep, usual_tile, fragment):
        operator = make(tile)
        for layout, is_first in _blocks(operator, fragment, step):
            for march in dict.fromkeys((layout.march, *MARCHES)):
                usual = is_first and tile == usual_tile and march == layout.march
                costs = tile_costs(
                    replace(layout, march=march), step.shape, operands, chip, parts=parts
                )
                yield Choice(schedule, tile, layout.tile, layout.stages, march), costs, usual


def _few_tiles(sweep: LinearSweep, first: tuple, fragment: Fragment) -> list[tuple]:
    """The tile that the compiler takes, then those of the fewest columns for an output."""
    columns = {}
    for tile in tiles(len(first)):
        matrix = crush(sweep.offsets, sweep.weights, tile).matrix
        columns[tile] = lower_bound(matrix, fragment.k) / len(matrix)
    ordered = sorted(columns, key=columns.__getitem__)
    return [first, *(tile for tile in ordered if tile != first)][:TILES]


def _blocks(
    operator: PatchOperator, fragment: Fragment, step: Step
) -> Iterator[tuple[BlockLayout, bool]]:
    """Layouts of an operator, and whether one is what the compiler takes."""
    itemsize, chip = ELEMENT_TYPES[step.element].itemsize, chips.find(step.gpu.architecture)
    bulk = chip.copy_engine and takes_boxes(fragment, itemsize)
    lay_out = partial(lay_out_block, operator, fragment, itemsize, step.sweep.reach, bulk=bulk)
    try:
        usual = lay_out()
    except Unsuitable:
        return
    yield usual, True
    block = usual.tile
    others = [(block, stages) for stages in STAGES if stages != usual.stages]
    for axis, extent in enumerate(block):
        for changed in (2 * extent, extent // 2):
            others.append(((*block[:axis], changed, *block[axis + 1 :]), usual.stages))
    for extents, stages in others:
        try:
            yield lay_out(tile=extents, stages=stages), False
        except TwofourError:
            # It does not fit into shared memory, or holds no whole tiles.
            continue


def _simt(step: Step) -> Found:
    yield from rolling(step)
    costs = point_costs(step.sweep, step.element, step.gpu, step.shape)
    yield Choice("simt", rolling=False), costs, not taken_way(step, "simt").rolling


_LAYOUTS = {"stream": streams, "sparse": _sparse, "dense": _dense, "simt": _simt}
