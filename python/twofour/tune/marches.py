# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Every layout of kernels that march, on tensor cores (stream) and by plain threads (simt).

These are all blocks, stages and ways to fuse.
"""

from collections import defaultdict
from collections.abc import Callable, Iterator, Sequence
from functools import partial

from twofour.analysis import LinearSweep
from twofour.cost import Costs
from twofour.cost.explore import best_march
from twofour.cost.rolling import rolling_costs
from twofour.cost.stream import stream_costs
from twofour.errors import Unsuitable
from twofour.layout.chunks import chunk_operator
from twofour.layout.march import March
from twofour.layout.rolling import rolling_layouts
from twofour.layout.stream import stream_layouts
from twofour.options import STREAMED
from twofour.runtime.dtypes import ELEMENT_TYPES
from twofour.targets.gpu.candidates import Way, best_way
from twofour.tune.step import Step
from twofour.tuned.choice import Choice

# A choice, the costs of its kernel, and whether the compiler takes it for the schedule.
Found = Iterator[tuple[Choice, Costs, bool]]


def streams(step: Step) -> Found:
    """All streams of a step; none where its fields do not stream."""
    if step.element not in STREAMED:
        return

    def layouts(sweep: LinearSweep, levels: int) -> Sequence[March]:
        operator = chunk_operator(sweep.offsets, sweep.weights)
        return stream_layouts(operator, sweep.reach, levels=levels)

    costs = partial(stream_costs, operand=step.element)
    yield from _marches(step, "stream", layouts, costs)


def rolling(step: Step) -> Found:
    """All marches of plain threads."""
    itemsize = ELEMENT_TYPES[step.element].itemsize

    def layouts(sweep: LinearSweep, levels: int) -> Sequence[March]:
        terms = (sweep.offsets, sweep.weights)
        return rolling_layouts(*terms, itemsize, sweep.reach, levels=levels)

    costs = partial(rolling_costs, element=step.element)
    yield from _marches(step, "simt", layouts, costs)


def taken_way(step: Step, schedule: str) -> Way:
    """The way of a schedule that the compiler takes where nothing was measured."""
    return best_way(schedule, step.sweep, step.single, step.element, step.reference)


def _marches(
    step: Step,
    schedule: str,
    layouts: Callable[[LinearSweep, int], Sequence[March]],
    costs: Callable[..., Costs],
) -> Found:
    sweep, single, steps = step.sweep, step.single, step.sweep.steps
    ways = [(sweep, 1)]
    if steps > 1 and sweep.has_levels_of(single):
        ways.append((single, steps))
    for applied, count in ways:
        try:
            found = layouts(applied, count)
        except Unsuitable:
            continue
        is_taken = taken_way(step, schedule) == Way(count > 1, schedule == "simt")
        usual = _choice(schedule, best_march(found, costs, step.reference), steps)
        alike = defaultdict(list)
        for layout in found:
            alike[_choice(schedule, layout, steps)].append(layout)
        for choice, same in alike.items():
            # Blocks of as many outputs may have more warps or more rows to each.
            layout = best_march(same, costs, step.reference)
            cost = costs(layout, step.shape, multiprocessors=step.gpu.multiprocessors)
            yield choice, cost, is_taken and choice == usual


def _choice(schedule: str, layout: March, steps: int) -> Choice:
    return Choice(
        schedule,
        block=layout.tile if layout.rank == 3 else None,
        stages=layout.stages,
        march=layout.march,
        levels=layout.levels > 1 if steps > 1 else None,
        rolling=True if schedule == "simt" else None,
        ring=layout.ring,
    )
