# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Loops of launches: iterations that repeat, recorded on devices that can."""

from collections.abc import Callable, Sequence

from twofour.runtime.memory import Memory

Action = Callable[[], None]

# So many launches are recorded at once that starting them costs little beside running them.
RECORDED_LAUNCHES = 64


class Repetition:
    """A loop of `count` iterations, each a list of calls.

    `iterations` are the first ones; after the last of them it goes on at `start`, again and again.
    `memory` records some of them at once where it can, None: not to be recorded.
    """

    def __init__(
        self, iterations: Sequence[Sequence[Action]], start: int, count: int, memory: Memory | None
    ):
        self._first = iterations[:count]
        self._cycle = list(iterations[start:])
        self._left = count - len(self._first)
        self._memory = memory
        launches = sum(map(len, self._cycle))
        self._rounds = -(-RECORDED_LAUNCHES // launches) if memory and launches else 0
        self._recorded: Action | None = None

    def __call__(self) -> None:
        """Run all iterations."""
        _run(self._first)
        left = self._left
        length = self._rounds * len(self._cycle)
        # A recording takes kernels that have run before, and pays when it is used again.
        if length and left >= 2 * length:
            if self._recorded is None:
                self._recorded = self._memory.record(lambda: _run(self._cycle * self._rounds))
            if self._recorded is None:
                self._rounds = length = 0
        if self._recorded is not None:
            while left >= length:
                self._recorded()
                left -= length
        for number in range(left):
            _run([self._cycle[number % len(self._cycle)]])


def _run(iterations: Sequence[Sequence[Action]]) -> None:
    for calls in iterations:
        for call in calls:
            call()
