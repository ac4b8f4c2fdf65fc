# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Threads on cores of their own, where the system lets a process choose them."""

import os
from collections.abc import Callable, Collection, Iterator, Sequence
from contextlib import contextmanager

from twofour.runtime.crew import JOB
from twofour.targets.cpu.crew import native_crew

CAN_PIN = hasattr(os, "sched_setaffinity")


def usable_cpus() -> list[int]:
    """The processors that this process may use."""
    if CAN_PIN:
        return sorted(os.sched_getaffinity(0))
    return list(range(os.cpu_count() or 1))


def pin_pool(cpus: Sequence[int]) -> None:
    """Put the calling thread and as many of native code on `cpus`, a thread on each."""
    if CAN_PIN:
        _let_run_on(lambda number: {cpus[number]}, len(cpus))


@contextmanager
def affinity_restored() -> Iterator[None]:
    """Let the calling thread and those of native code run anywhere again afterwards."""
    if not CAN_PIN:
        yield
        return
    before = os.sched_getaffinity(0)
    try:
        yield
    finally:
        _let_run_on(lambda number: before, native_crew().size + 1)


def _let_run_on(processors: Callable[[int], Collection[int]], threads: int) -> None:
    """Let so many threads, the calling one first, run on the processors of their numbers."""

    def choose(context: int | None, number: int, count: int) -> None:
        os.sched_setaffinity(0, processors(number))

    native_crew().run(JOB(choose), None, threads)
