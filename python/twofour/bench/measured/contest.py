# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Interleaved timing: every round times every contestant once, each time in another order."""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Protocol

from twofour.bench.turns import in_turn
from twofour.runtime.devices.device import Device

ROUNDS = 11
WARM_UP = 3  # sweeps of every set of inputs
SAMPLE_SECONDS = 2e-3  # of one sample, at least


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

    def __init__(self, cupy):
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
    turns = max(1, math.ceil(SAMPLE_SECONDS / max(clock.seconds(once), 1e-9)))

    def work() -> None:
        for _ in range(turns):
            once()

    recorded = device.record(work) if contestant.recordable else None
    if recorded is not None:
        recorded()  # the first start of a recording takes longer
    return recorded or work, turns * sets
