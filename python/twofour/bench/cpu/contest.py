# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Interleaved timing: every round times every contestant once, each round in another order."""

import math
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from statistics import median
from typing import Protocol

import numpy as np

from twofour.bench.turns import in_turn

ROUNDS = 9
SAMPLE_SECONDS = 2e-3  # of one sample, at least
# Sweeps of operators whose weights sum up to less than one shrink the values that they read.
MOST_SWEEPS = 64


class ContestantFailed(Exception):
    """A contestant that cannot be had or goes on no more; `str()` says why."""


class Contestant(Protocol):
    """Something whose sweeps are timed; a sweep makes `steps` time steps.

    `sample(n)` gives the seconds of n sweeps, after as many that warm up: what another one stored
    past the caches takes several to come back. It leaves no thread that spins while others are
    timed. `result()` is what one sweep of the initial values gives, None for
    a ceiling (a copy, the peak of multiply-adds), which has none.
    """

    name: str
    steps: int

    def sample(self, sweeps: int) -> float: ...

    def result(self) -> np.ndarray | None: ...


def _nothing() -> None:
    pass


@dataclass(frozen=True)
class Sweeper:
    """A contestant in this process: `run(n)` makes n sweeps and returns the array of their result.

    `begin` puts the initial values in place, `prepare` its threads, and `rest` ends those that
    would spin. With `fresh` every sample begins with the initial values, also after its warm-up.
    """

    name: str
    run: Callable[[int], np.ndarray | None]
    begin: Callable[[], None]
    prepare: Callable[[], None]
    rest: Callable[[], None] = _nothing
    steps: int = 1
    fresh: bool = False

    def sample(self, sweeps: int) -> float:
        """Seconds of `sweeps` sweeps."""
        if self.fresh:
            self.begin()
        self.prepare()
        try:
            self.run(sweeps)
            if self.fresh:
                self.begin()
                self.run(1)
            started = time.perf_counter()
            self.run(sweeps)
            return time.perf_counter() - started
        finally:
            self.rest()

    def result(self) -> np.ndarray | None:
        """A view of the array that one sweep of the initial values ends in."""
        self.begin()
        self.prepare()
        try:
            return self.run(1)
        finally:
            self.rest()


@dataclass(frozen=True)
class Samples:
    """Seconds of one sweep, a sample each round, each the mean of `sweeps`."""

    seconds: tuple[float, ...]
    sweeps: int

    @property
    def median(self) -> float:
        return median(self.seconds)


def compete(
    contestants: Sequence[Contestant], rounds: int
) -> tuple[dict[str, Samples], dict[str, str]]:
    """Samples of contestants by their names, and why those that failed have none."""
    sweeps: dict[str, int] = {}
    found: dict[str, list[float]] = {}
    failed: dict[str, str] = {}

    def attempt(one: Contestant, work: Callable[[], None]) -> None:
        try:
            if one.name not in failed:
                work()
        except ContestantFailed as failure:
            failed[one.name] = str(failure)
            found.pop(one.name, None)

    def calibrate(one: Contestant) -> None:
        seconds = max(min(one.sample(1) for _ in range(2)), 1e-9)
        sweeps[one.name] = max(1, min(MOST_SWEEPS, math.ceil(SAMPLE_SECONDS / seconds)))
        found[one.name] = []

    def measure(one: Contestant) -> None:
        found[one.name].append(one.sample(sweeps[one.name]) / sweeps[one.name])

    for one in contestants:
        attempt(one, lambda one=one: calibrate(one))
    for turn in range(rounds):
        for one in in_turn(contestants, turn):
            attempt(one, lambda one=one: measure(one))
    samples = {name: Samples(tuple(seconds), sweeps[name]) for name, seconds in found.items()}
    return samples, failed
