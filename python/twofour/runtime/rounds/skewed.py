# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Rounds of a program that go over the rows together."""

from collections.abc import Sequence
from dataclasses import dataclass, replace

from twofour.runtime.rounds.actions import Action, Buffer, Round, footprint, pass_on_whole
from twofour.runtime.rounds.strips import Cutting, Strip, along_strips, can_be_cut, cut
from twofour.runtime.rounds.time_skewing import Chain, chain_of


@dataclass(frozen=True)
class SkewedRounds:
    """Rounds whose actions, one after the other, are a chain; `block` rows are done at a time.

    They are worth `threads` threads. The first `fewest` and more are faster as well. `cutting` is
    for planes that are cut; `strips` hold what is done, one where they are not. The data of a row
    take `near` cycles in each round, and `far` once for all of them.
    """

    rounds: tuple[tuple[Action, ...], ...]
    chain: Chain
    block: int
    threads: int
    fewest: int = 2
    cutting: Cutting | None = None
    near: float = 0.0
    far: float = 0.0
    strips: tuple[Strip, ...] = ()

    @property
    def depth(self) -> int:
        """How many rounds these are."""
        return len(self.rounds)

    def cycles(self, rounds: int) -> float:
        """Cycles that the data of all rows take in each of so many rounds, at most `depth`."""
        return self.near + self.far / rounds

    def with_strips(self, buffers: Sequence[Buffer]) -> "SkewedRounds":
        """These rounds with their strips."""
        if self.cutting is None:
            return replace(self, strips=(Strip(self.rounds, self.chain),))
        return replace(self, strips=cut(self.rounds, buffers, self.cutting))

    def after(
        self, earlier: Sequence[Round], less: int, buffers: Sequence[Buffer]
    ) -> "SkewedRounds | None":
        """Earlier rounds together with these but the last few, None where they cannot be."""
        rounds = tuple(map(actions_of, earlier)) + self.rounds[: max(0, self.depth - less)]
        return self.of(rounds, buffers)

    def of(
        self, rounds: Sequence[tuple[Action, ...]], buffers: Sequence[Buffer]
    ) -> "SkewedRounds | None":
        """Other rounds in the same blocks and strips, None where they cannot be."""
        actions = [action for one in rounds for action in one]
        if pass_on_whole(actions, buffers):
            return None
        cutting = self.cutting
        if cutting is not None:
            if not can_be_cut(actions, buffers):
                return None
            cutting = replace(cutting, along=along_strips(actions, buffers))
            if not cutting.along.has_parts(1):
                return None
        chain = chain_of([footprint(action, buffers) for action in actions])
        changed = replace(self, rounds=tuple(rounds), chain=chain, cutting=cutting)
        return changed.with_strips(buffers)

    def can_be_shared(self, threads: int) -> bool:
        """Whether so many threads have parts that are large enough."""
        return all(strip.chain.has_parts(threads) for strip in self.strips)


def actions_of(one: Round) -> tuple[Action, ...]:
    """The actions of a round, in order."""
    return tuple(action for phase in one for action in phase)
