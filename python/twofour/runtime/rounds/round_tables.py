# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Rounds of a loop as tables: one after the other, or many of them skewed."""

from collections.abc import Sequence
from functools import cached_property

import numpy as np

from twofour.runtime.processor import caches
from twofour.runtime.rounds.actions import Buffer, Round, sweep_points
from twofour.runtime.rounds.choice import skew_rounds
from twofour.runtime.rounds.skewed import SkewedRounds
from twofour.runtime.rounds.step_tables import BoundTables, Index, StepCode, StepTables
from twofour.runtime.tiles.choice import worth_threads


class RoundTables:
    """The rounds of a loop that differ; after the last one, round `start` follows again.

    `index` is the one that launches read, if any. There are so many threads, and up to `most`
    rounds. `points` counts those of all sweeps of a round.
    """

    def __init__(
        self,
        code: StepCode,
        buffers: Sequence[Buffer],
        rounds: Sequence[Round],
        start: int,
        index: Index | None,
        threads: int,
        most: int,
    ):
        self._code, self._buffers, self._index = code, buffers, index
        self._rounds, self.start = rounds, start
        actions = (action for phase in rounds[0] for action in phase)
        self.points = sweep_points(actions, buffers)
        self._threads, self._most = threads, most

    @cached_property
    def plain(self) -> StepTables:
        """Tables of the rounds one after the other."""
        return StepTables.of_rounds(
            self._code, self._buffers, self._rounds, self.start, self._index
        )

    @cached_property
    def skewed_rounds(self) -> SkewedRounds | None:
        """Rounds from round `start` on that go over the rows together, where that is worthwhile."""
        # Rounds together would need several values of an index.
        if self._index is not None:
            return None
        return skew_rounds(
            self._rounds[self.start :],
            self._buffers,
            self._code.planes,
            self._threads,
            self._most,
            caches(),
        )

    @cached_property
    def first_rounds(self) -> SkewedRounds | None:
        """The rounds before round `start`, and as many after them as do not make a deeper chain."""
        if self.start == 0 or self.skewed_rounds is None:
            return None
        period = len(self._rounds) - self.start
        less = period * -(-self.start // period)
        return self.skewed_rounds.after(self._rounds[: self.start], less, self._buffers)

    @cached_property
    def skewed(self) -> StepTables | None:
        """Tables of 1, 2 and more of the skewed rounds."""
        return self._tables_of(self.skewed_rounds)

    @cached_property
    def first(self) -> StepTables | None:
        """Tables of 1, 2 and more of the first rounds."""
        return self._tables_of(self.first_rounds)

    def _tables_of(self, rounds: SkewedRounds | None) -> StepTables | None:
        return rounds and StepTables.of_skewed(self._code, self._buffers, rounds)

    @property
    def threads(self) -> int:
        """How many threads rounds are worth."""
        skewed = self.skewed_rounds.threads if self.skewed_rounds else 1
        return max(skewed, worth_threads(self.points, self._threads))

    def run_on(self, threads: int) -> None:
        """Rounds run on up to so many threads, of which other rounds may be worth more."""
        if self.skewed_rounds and not self.skewed_rounds.can_be_shared(threads):
            self.skewed_rounds = None
        if self.first_rounds and not self.first_rounds.can_be_shared(threads):
            self.first_rounds = None

    def get_ready(self) -> None:
        """Make the tables that most runs take."""
        _ = self.first, self.skewed or self.plain


class BoundRounds:
    """Tables of rounds on the buffers of one run."""

    def __init__(self, tables: RoundTables, arrays: Sequence[np.ndarray]):
        self._tables, self._arrays = tables, arrays

    @cached_property
    def _plain(self) -> BoundTables:
        return self._tables.plain.bind(self._arrays)

    @cached_property
    def _skewed(self) -> BoundTables:
        return self._tables.skewed.bind(self._arrays)

    @cached_property
    def _first(self) -> BoundTables:
        return self._tables.first.bind(self._arrays)

    def at_once(self, first: int, left: int, most: int) -> int:
        """How many of the `left` rounds from round `first` on to run at once: about `most`.

        Those that do not come again are run at once, and others in such numbers that what follows
        begins with round `start`, or nothing does.
        """
        skewed, begin = self._tables.skewed_rounds, self._tables.first_rounds
        if skewed is None:
            return min(left, most)
        if first < self._tables.start:
            return min(left, begin.depth if begin else self._tables.start)
        return min(left, max(1, most // skewed.depth) * skewed.depth)

    def stretches(self, first: int, count: int) -> tuple[int, ...]:
        """The words of so many rounds as `at_once` gives, from round `first` on."""
        skewed = self._tables.skewed_rounds
        if skewed is None:
            return self._plain.stretch(first, count)
        if first < self._tables.start:
            begin = self._tables.first_rounds
            if begin and count >= begin.fewest:
                return self._first.stretch(count - 1, 1)
            return self._plain.stretch(first, count)
        whole, rest = divmod(count, skewed.depth)
        words = self._skewed.stretch(skewed.depth - 1, whole) if whole else ()
        if rest >= skewed.fewest:
            words += self._skewed.stretch(rest - 1, 1)
        elif rest:
            words += self._plain.stretch(first + count - rest, rest)
        return words
