# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The sweeps of a run in order, and between which arrays each one goes."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

import numpy as np

from twofour.runtime.tiles.program import TileProgram
from twofour.runtime.tiles.runs import Leg


class Pair:
    """Two arrays that sweeps go back and forth between, each made when it is first written.

    `second` makes that array from the first one. New arrays are `empty`, or what sweeps leave alone
    is there.
    """

    def __init__(
        self,
        first: Callable[[], np.ndarray],
        second: Callable[[np.ndarray], np.ndarray],
        empty: bool = False,
    ):
        self._first, self._second, self._empty = first, second, empty
        self._arrays: list[np.ndarray] = []

    @classmethod
    def of(cls, first: np.ndarray, second: np.ndarray) -> "Pair":
        """A pair of arrays that are there."""
        return cls(lambda: first, lambda _: second)

    def has(self, array: np.ndarray) -> bool:
        """Whether it is one of the two."""
        return any(array is one for one in self._arrays)

    def lacks(self, array: np.ndarray) -> bool:
        """Whether the one beside an array is yet to be made, and will be empty."""
        needed = 1 + (bool(self._arrays) and array is self._arrays[0])
        return self._empty and len(self._arrays) < needed

    def beside(self, array: np.ndarray) -> np.ndarray:
        """The second one for the first one, the first one for any other."""
        if not self._arrays:
            self._arrays.append(self._first())
        if array is not self._arrays[0]:
            return self._arrays[0]
        if len(self._arrays) == 1:
            self._arrays.append(self._second(array))
        return self._arrays[1]


@dataclass(frozen=True)
class Stage:
    """Sweeps of a program that write the arrays of a pair in turn."""

    program: TileProgram
    sweeps: int
    pair: Pair


class Itinerary:
    """Stages one after the other, from an array that is not written."""

    def __init__(self, stages: Sequence[Stage], array: np.ndarray):
        self._stages = list(stages)
        self._sweeps = 0
        self.current = array

    @property
    def left(self) -> int:
        """Time steps that are to be done."""
        return sum(stage.program.steps * stage.sweeps for stage in self._stages)

    def legs(self, steps: int) -> list[Leg]:
        """The next sweeps: so many time steps, or one sweep where it has more."""
        legs: list[Leg] = []
        while self._stages:
            stage = self._stages[0]
            count = min(stage.sweeps, steps // stage.program.steps)
            if not legs:
                count = max(count, 1)
            if count <= 0:
                break
            whole = stage.pair.lacks(self.current)
            if whole or not stage.pair.has(self.current):
                count = 1
            target = stage.pair.beside(self.current)
            leg = Leg(stage.program, self.current, target, count, whole, self._sweeps)
            legs.append(leg)
            self._sweeps += count
            steps -= count * stage.program.steps
            if count % 2:
                self.current = leg.target
            if count == stage.sweeps:
                del self._stages[0]
            else:
                self._stages[0] = replace(stage, sweeps=stage.sweeps - count)
        return legs
