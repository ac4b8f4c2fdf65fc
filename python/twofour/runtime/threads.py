# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Threads: how many, and one sweep split over them."""

import operator
import os
from collections.abc import Callable
from functools import partial
from queue import SimpleQueue
from threading import Lock

from twofour.errors import TwofourError
from twofour.runtime.workers import WorkerPool

ENVIRONMENT_VARIABLE = "TWOFOUR_NUM_THREADS"

# Handing a chunk to another thread and waiting for it costs 25 to 60 microseconds, the time in
# which one core sweeps some 100,000 points of a small stencil: smaller sweeps are faster without.
MINIMUM_CHUNK_POINTS = 65536

# Threads beside the callers', of all calls at a time.
MOST_WORKERS = 1024

_pool = WorkerPool(MOST_WORKERS)


def resolve_threads(threads: int | None = None) -> int:
    """Return the number of threads: `threads`, else TWOFOUR_NUM_THREADS, else the CPUs of this
    process.

    Raises TwofourError where the number given is not a positive integer.
    """
    if threads is not None:
        try:
            count = 0 if isinstance(threads, bool) else operator.index(threads)
        except TypeError:
            count = 0
        if count < 1:
            raise TwofourError(f"expected a positive number of threads, got {threads!r}")
        return count
    text = os.environ.get(ENVIRONMENT_VARIABLE)
    if text is not None:
        if not text.strip().isdecimal() or int(text) < 1:
            raise TwofourError(
                f"{ENVIRONMENT_VARIABLE}: expected a positive number of threads, got {text!r}"
            )
        return int(text)
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


def parallel_run(bound, extent: int, threads: int, points: int) -> None:
    """Run `bound` (see twofour.runtime.native) over [0, extent) on up to `threads` threads.

    The range is split into contiguous chunks; kernels compute a point in the same way whatever
    chunk it is in, so that the result has the same bits for any number of threads. `points` is
    the size of the whole sweep: small ones run on the calling thread alone. An exception of any
    chunk is raised after all of them have ended.
    """
    chunks = min(threads, extent, points // MINIMUM_CHUNK_POINTS)
    if chunks <= 1:
        bound.run(0, extent)
        return

    def work(number: int, count: int) -> None:
        bound.run(extent * number // count, extent * (number + 1) // count)

    run_together(work, chunks)


def run_together(work: Callable[[int, int], None], threads: int) -> None:
    """Run `work(number, count)` at the same time on `count` threads, number = 0 ... count - 1.

    `count` is `threads`, or less where other calls have MOST_WORKERS between them, or the system
    has no more threads to give. An exception of any of them is raised after all have ended.
    """
    if threads == 1:
        work(0, 1)
        return
    starting, ended = Lock(), SimpleQueue()
    joined = 1

    def join(number: int) -> None:
        # Those that wait for each other have to know how many they are, also after an interrupt.
        with starting:
            pass
        if number < joined:
            work(number, joined)

    try:
        with starting:
            for worker in _pool.take(threads - 1):
                worker.begin(partial(join, joined), ended)
                joined += 1
        work(0, joined)
    finally:
        errors = [ended.get() for _ in range(joined - 1)]
    for error in errors:
        if error is not None:
            raise error


def _forget_pool() -> None:
    global _pool
    _pool = WorkerPool(MOST_WORKERS)


if hasattr(os, "register_at_fork"):
    # Threads do not survive a fork: the child starts its own when it needs them.
    os.register_at_fork(after_in_child=_forget_pool)
