# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""A round on its own, whose copies and sweeps go over the rows together.

Ends of rows are copied while these are in the near caches, and what one action writes is there for
the next one. Sweeps past the caches are an exception: what they write is not.
"""

from collections.abc import Sequence

from twofour.runtime.processor import caches
from twofour.runtime.rounds.actions import Buffer, Round, footprint, sweep_points
from twofour.runtime.rounds.choice import skew_rounds
from twofour.runtime.rounds.skewed import SkewedRounds, actions_of
from twofour.runtime.rounds.step_tables import StepCode, StepTables
from twofour.runtime.rounds.time_skewing import chain_of
from twofour.runtime.tiles.choice import LONG_ROW, worth_threads
from twofour.runtime.tiles.parts import ROWS

# Part of the second-level cache for the rows of a block.
BLOCK_SHARE = 0.5


def tables_of_round(
    code: StepCode, buffers: Sequence[Buffer], one: Round, sweeps: Round, threads: int
) -> tuple[StepTables, int]:
    """The tables of a round, and how many of so many threads it is worth.

    `sweeps` are those of the round, whole and without copies.
    """
    points = sweep_points((sweep for phase in sweeps for sweep in phase), buffers)
    worth = worth_threads(points, threads)
    # The model of many rounds knows what it saves to have one sweep behind the other.
    skewed = skew_rounds([sweeps], buffers, code.planes, threads, 1, caches())
    if skewed is None and not _goes_past_caches(sweeps, buffers):
        skewed = _in_blocks(one, buffers, code.planes, worth)
    skewed = skewed and skewed.of([actions_of(one)], buffers)
    worth = max(worth, skewed.threads) if skewed else worth
    if skewed and skewed.can_be_shared(worth):
        return StepTables.of_skewed(code, buffers, skewed), worth
    return StepTables.of_rounds(code, buffers, [one], 0), worth


def _goes_past_caches(sweeps: Round, buffers: Sequence[Buffer]) -> bool:
    """Whether a sweep over long rows, whose ends are few, has a kernel for large arrays."""
    for launch in actions_of(sweeps):
        buffer = buffers[launch.outputs[0].buffer]
        is_long = buffer.shape[-1] * buffer.dtype.itemsize >= LONG_ROW
        if launch.kernel.past_caches is not None and (is_long or len(buffer.shape) == 1):
            return True
    return False


def _in_blocks(one: Round, buffers: Sequence[Buffer], planes: int, threads: int) -> SkewedRounds:
    """Blocks of rows that the second-level cache holds."""
    actions = actions_of(one)
    prints = [footprint(action, buffers) for action in actions]
    used = {touch.buffer for one in prints for touch in one.touches}
    row = sum(buffers[number].strides[0] for number in used)
    # No fewer than kernels compute at once.
    least = ROWS if max(len(buffer.shape) for buffer in buffers) < 3 else planes
    block = max(least, int(BLOCK_SHARE * caches().second / row) // least * least)
    return SkewedRounds((actions,), chain_of(prints), block, threads, fewest=1)
