# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Interleaved timing: every round times every contestant once, each time in another order."""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from types import ModuleType
from typing import Protocol

from twofour.bench.turns import in_turn
from twofour.runtime.devices.device import Device

ROUNDS = 11
WARM_UP = 3  # sweeps of every set of inputs
SAMPLE_SECONDS = 2e-3  # of one sample, at least
RESERVE = 1.25
MOST_TURNS = 10_000  # that a first guess may take


@dataclass(frozen=True)
class Contestant:
    """Something that executes a stencil.

    `sweep(n)` starts `steps` time steps from input set n into output n. `recordable` tells whether
    a device may record it and start several at once, without work of the host between them;
    `checked` whether the outputs are those of the stencil.
    """

    name: str
    steps: int
    sweep: Callable[[int], None]
    recordable: bool = True
    checked: bool = True


class Clock(Protocol):
    """Times work on a device."""

    def seconds(self, work: Callable[[], None]) -> float: ...


class EventClock:
    """Times by CUDA events on the current stream."""

    def __init__(self, cupy: ModuleType):
        self._cuda = cupy.cuda

    def seconds(self, work: Callable[[], None]) -> float:
        """Seconds on the device from the first to the last of what `work` starts."""
        begin, end = self._cuda.Event(), self._cuda.Event()
        begin.record()
        work()
        end.record()
        end.synchronize()
        return self._cuda.get_elapsed_time(begin, end) / 1e3


@dataclass(frozen=True)
class Samples:
    """Seconds of one sweep of a contestant, one sample a round, each the mean of `sweeps`."""

    seconds: tuple[float, ...]
    sweeps: int


def compete(
    contestants: Sequence[Contestant],
    device: Device,
    clock: Clock,
    sets: int,
    rounds: int = ROUNDS,
) -> dict[str, Samples]:
    """Time all contestants, by their names, over `sets` sets of inputs."""
    works = {c.name: _repeated(c, device, clock, sets) for c in contestants}
    found: dict[str, list[float]] = {name: [] for name in works}
    names = list(works)
    for turn in range(rounds):
        for name in in_turn(names, turn):
            work, sweeps = works[name]
            found[name].append(clock.seconds(work) / sweeps)
    return {name: Samples(tuple(found[name]), works[name][1]) for name in names}


def _repeated(
    contestant: Contestant, device: Device, clock: Clock, sets: int
) -> tuple[Callable[[], None], int]:
    """What runs a contestant long enough to be timed, after a warm-up, and its sweeps."""

    def once() -> None:
        for number in range(sets):
            contestant.sweep(number)

    for _ in range(WARM_UP):
        once()
    # Recorded sweeps follow each other faster: how many fill a sample is only known from a sample.
    turns = _turns(clock.seconds(once))
    while True:
        work = _started(partial(_call, once, turns), contestant, device)
        seconds = clock.seconds(work)
        if seconds >= SAMPLE_SECONDS:
            return work, turns * sets
        turns = max(turns + 1, _turns(seconds / turns))


def _turns(seconds: float) -> int:
    """How many turns of so many seconds fill a sample, with a reserve for faster ones."""
    return max(1, math.ceil(RESERVE * SAMPLE_SECONDS / max(seconds, SAMPLE_SECONDS / MOST_TURNS)))


def _started(
    work: Callable[[], None], contestant: Contestant, device: Device
) -> Callable[[], None]:
    """What runs `work` as samples do, recorded where that is possible, after its first start."""
    recorded = device.record(work) if contestant.recordable else None
    if recorded is not None:
        # The first start of a recording takes longer.
        recorded()
    return recorded or work


def _call(function: Callable[[], None], times: int) -> None:
    for _ in range(times):
        function()
