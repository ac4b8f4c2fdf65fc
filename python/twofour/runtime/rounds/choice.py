# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""How many rounds of a program go over the rows together, in blocks and strips of how many rows.

A model of bytes: rounds one after the other read and write all arrays where these are, skewed ones
do once for all of them, and in between where the rows in use are. Where arrays stay in the nearer
caches anyway threads meet less often, and more of them may be worth waiting for.
"""

import math
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace

from twofour.runtime.loops import Launch
from twofour.runtime.processor import Caches
from twofour.runtime.rounds.actions import Buffer, Round, footprint, pass_on_whole, sweep_points
from twofour.runtime.rounds.skewed import SkewedRounds, actions_of
from twofour.runtime.rounds.strips import AXIS, Cutting, can_be_cut
from twofour.runtime.rounds.time_skewing import Chain, Footprint, chain_of
from twofour.runtime.tiles.choice import worth_threads
from twofour.runtime.tiles.costs import MEMORY, NEAR
from twofour.runtime.tiles.extents import WINDOW_SHARE

# Arrays of up to this part of the second-level caches of all threads stay there.
STAYS = 0.75
# The rows in use may be more than the second-level cache holds: what is read again from the last
# one is little at first.
NEAR_SHARE = 1.5
# Rounds that are skewed at most: more save little.
MOST_ROUNDS = 16
# Rows of a block: of two axes at least twice what kernels compute at once, and no more than keep
# near what the next action reads; of short ones so many bytes, beside which calls take little time.
LEAST_ROWS, MOST_ROWS, LEAST_BYTES = 4, 16, 1 << 16
# Parts of threads have so many times the rows that they must have: seams are small beside them.
LEAST_PARTS = 2
# How often threads meet in skewed rounds, and how many of these spare enough meetings where the
# same threads would do.
MEETINGS, WORTH_FEWER_MEETINGS = 2, 8
# Rows of strips, where planes are cut: fewer would be computed one by one.
WIDTHS = (8, 12, 16, 24, 32, 48, 64, 96, 128, 192, 256)
# Part of the time for data from which on skewing is worthwhile: arithmetic takes as long as before.
WORTHWHILE = 0.8
# Part of its rate at which the last-level cache serves rows in use.
SERVED = 0.75


@dataclass(frozen=True)
class _Sweep:
    """The bytes of a row that a sweep moves.

    Of each array that it reads those of a row, the rows around one that it reads as well, and those
    along the axis that strips are cut on; and what it writes.
    """

    reads: tuple[tuple[int, int, int], ...]
    written: int

    def held(self, rows: int) -> int:
        """The bytes that so many rows touch."""
        return sum(row * (rows + span) for row, span, _ in self.reads) + rows * self.written // 2


class _Cycle:
    """Rounds that repeat, and what memory they need."""

    def __init__(self, rounds: Sequence[Round], buffers: Sequence[Buffer]):
        self.rounds = tuple(map(actions_of, rounds))
        self._buffers = buffers
        self.actions = [action for one in self.rounds for action in one]
        self.points = sweep_points(self.actions, buffers) / len(self.rounds)
        self.prints = [footprint(action, buffers) for action in self.actions]
        touches = [touch for one in self.prints for touch in one.touches]
        self.used = {touch.buffer for touch in touches}
        self._written = {touch.buffer for touch in touches if touch.written}
        self._sweeps = [
            self._sweep(action, one)
            for action, one in zip(self.actions, self.prints, strict=True)
            if isinstance(action, Launch)
        ]

    def _sweep(self, action: Launch, along_rows: Footprint) -> "_Sweep":
        touches = along_rows.touches
        across = touches
        if can_be_cut([action], self._buffers):
            across = footprint(action, self._buffers, AXIS).touches
        read = {touch.buffer for touch in touches if not touch.written}
        reads, written = [], 0
        for one, other in zip(touches, across, strict=True):
            row = self.bytes_of({one.buffer})
            if one.written:
                # A line is read before it is written to.
                written += row if one.buffer in read else 2 * row
            else:
                reads.append((row, one.last - one.first, other.last - other.first))
        return _Sweep(tuple(reads), written)

    def bytes_of(self, buffers: set[int]) -> int:
        """The bytes of a row in these buffers."""
        return sum(self._buffers[number].strides[0] for number in buffers)

    @property
    def size(self) -> int:
        """The bytes of all that is used."""
        return sum(self._buffers[number].model().nbytes for number in self.used)

    def moved(self, block: float, width: float = math.inf) -> float:
        """The bytes of a row that sweeps of a round read and write.

        They are in blocks of so many rows, and planes in strips of `width` rows.
        """
        total = 0.0
        for sweep in self._sweeps:
            for row, span, across in sweep.reads:
                total += row * (1 + span / block) * (1 + across / width)
            total += sweep.written
        return total / len(self.rounds)

    def read_again(self, rows: int, block: float, share: float, near: float) -> float:
        """The bytes of a row that sweeps of a round read again within their blocks.

        Kernels compute so many rows at once. What these and the rows around them hold, in a `share`
        of a row each, stays in a cache of `near` bytes, or comes again for the next ones.
        """
        total = 0.0
        for sweep in self._sweeps:
            if sweep.held(rows) * share > near:
                total += sum(
                    row * max(0, span / rows - span / block) for row, span, _ in sweep.reads
                )
        return total / len(self.rounds)

    def moved_once(self) -> int:
        """The bytes of a row that are read and written where rounds are skewed, in all of them."""
        return self.bytes_of(self.used) + self.bytes_of(self._written)

    def skewed(self, planes: int, threads: int, most: int) -> Iterator[SkewedRounds]:
        """All that may be chosen on so many threads, for runs of up to `most` rounds.

        The deepest ones come first.
        """
        step = LEAST_ROWS if max(len(buffer.shape) for buffer in self._buffers) < 3 else planes
        least = max(step, LEAST_BYTES // self.bytes_of(self.used) // step * step)
        for repeats in range(-(-min(most, MOST_ROUNDS) // len(self.rounds)), 0, -1):
            chain, rounds = chain_of(self.prints * repeats), self.rounds * repeats
            between = self.points * max(1, len(rounds) / MEETINGS)
            worth = worth_threads(int(between), threads)
            if chain.has_parts(LEAST_PARTS * worth):
                for block in range(max(least, MOST_ROWS // step * step), least - 1, -step):
                    yield SkewedRounds(rounds, chain, block, worth)

    def in_strips(self, whole: Iterable[SkewedRounds]) -> Iterator[SkewedRounds]:
        """These with planes cut as they may be chosen to be, if at all."""
        if not can_be_cut(self.actions, self._buffers):
            return
        prints = [footprint(action, self._buffers, AXIS) for action in self.actions]
        chains: dict[int, Chain] = {}
        for one in whole:
            repeats = one.depth // len(self.rounds)
            if repeats not in chains:
                chains[repeats] = chain_of(prints * repeats)
            along = chains[repeats]
            if along.has_parts(1):
                for width in WIDTHS:
                    if width < along.end - along.begin:
                        yield replace(one, cutting=Cutting(width, along))


def skew_rounds(
    cycle: Sequence[Round],
    buffers: Sequence[Buffer],
    planes: int,
    threads: int,
    most: int,
    machine: Caches,
) -> SkewedRounds | None:
    """The rounds of a cycle that repeats, as often as is worthwhile, None where it is not at all.

    There are up to `most` rounds, and so many threads. Kernels compute `planes` planes at once, of
    three axes and more.
    """
    rounds = _Cycle(cycle, buffers)
    if not rounds.points or pass_on_whole(rounds.actions, buffers):
        return None
    found = list(rounds.skewed(planes, threads, most))
    few = worth_threads(int(rounds.points), threads)
    if rounds.size <= STAYS * few * machine.second:
        found = [
            one
            for one in found
            if one.threads > few or (few > 1 and one.depth >= WORTH_FEWER_MEETINGS)
        ]
        best = max(found, key=lambda one: one.threads, default=None)
    else:
        best = _of_far_arrays(rounds, [*found, *rounds.in_strips(found)], planes, machine)
    return best and best.with_strips(buffers)


def _cycles(size: float, machine: Caches) -> float:
    """Cycles of a byte of so many that are used again and again."""
    missed = machine.missed(size)
    return missed / MEMORY + (1 - missed) / machine.last_rate


def _of_far_arrays(
    rounds: _Cycle, found: Sequence[SkewedRounds], planes: int, machine: Caches
) -> SkewedRounds | None:
    """What takes the least time to move data, if that is much less than rounds one by one take."""
    row, near = rounds.bytes_of(rounds.used), NEAR_SHARE * machine.second
    far, once = _cycles(rounds.size, machine), rounds.moved_once()
    plain = rounds.moved(math.inf) * far
    plain += rounds.read_again(planes, math.inf, 1, near) / machine.last_rate

    def times(one: SkewedRounds) -> tuple[float, float]:
        """Cycles of a row in each round, and those that the first pass takes more."""
        share, width = 1, math.inf
        if one.cutting is not None:
            share, width = one.cutting.share, one.cutting.width
        window = (one.chain.window + one.block) * row * share
        if window > near and window * one.threads > WINDOW_SHARE * machine.last:
            return math.inf, 0
        # What an action reads was written by the one before, if not by those before that.
        sweep = (2 * one.chain.reach + one.block) * row * share
        parts = (1, 0) if window <= near else (0.5, 0.5) if sweep <= near else (0, 1)
        cycles = parts[0] / NEAR + parts[1] / (SERVED * machine.last_rate)
        between = rounds.moved(one.block, width) * cycles
        between += rounds.read_again(planes, one.block, share, near) / machine.last_rate
        first = once * max(0, far - cycles)
        if one.cutting is not None:
            # Rows at its ends were in the strip before this one.
            again = _cycles(rounds.size * share, machine)
            first += (one.cutting.passes - 1) * once * max(0, again - cycles)
        return between, first

    def time(one: SkewedRounds) -> float:
        between, first = times(one)
        return between + first / one.depth

    best = min(found, key=time, default=None)
    if best is None or time(best) >= WORTHWHILE * plain:
        return None
    between, first = times(best)
    # The first number of rounds that take less, not as much.
    fewest = math.floor(round(first / (plain - between), 6)) + 1
    return replace(best, fewest=fewest, near=between, far=first)
