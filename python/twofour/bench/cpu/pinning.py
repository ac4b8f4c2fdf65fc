# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Threads on cores of their own, where the system lets a process choose them."""

import os
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager

from twofour.targets.cpu.crew import native_crew

POOL = "twofour_crew"  # how the threads of twofour.runtime are called
CAN_PIN = hasattr(os, "sched_setaffinity")


def usable_cpus() -> list[int]:
    """The processors that this process may use."""
    if CAN_PIN:
        return sorted(os.sched_getaffinity(0))
    return list(range(os.cpu_count() or 1))


def pin_pool(cpus: Sequence[int]) -> None:
    """Put the calling thread and the threads of native code on `cpus`, a thread on each.

    New threads inherit where their maker runs, so they are placed one by one; as many are started
    as there are processors for.
    """
    crew = native_crew().start(len(cpus) - 1)
    if not CAN_PIN:
        return
    os.sched_setaffinity(0, {cpus[0]})
    for number, thread in enumerate(crew):
        places = cpus[1:] or cpus
        os.sched_setaffinity(thread.native_id, {places[number % len(places)]})


@contextmanager
def affinity_restored() -> Iterator[None]:
    """Let the calling thread and the pool run anywhere again afterwards."""
    if not CAN_PIN:
        yield
        return
    before = os.sched_getaffinity(0)
    try:
        yield
    finally:
        os.sched_setaffinity(0, before)
        for thread in threading.enumerate():
            if thread.name.startswith(POOL):
                os.sched_setaffinity(thread.native_id, before)
