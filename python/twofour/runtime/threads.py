# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""How many threads there are, and how many of them a piece of work is worth."""

import operator
import os

from twofour.errors import TwofourError

ENVIRONMENT_VARIABLE = "TWOFOUR_NUM_THREADS"

# Points times steps that are worth another thread: as fast where it has to be woken, twice as fast
# where it is awake.
WAKING_POINTS = 50_000
# More are a slip: they would all be started.
MOST_THREADS = 1024


def resolve_threads(threads: int | None = None) -> int:
    """Return the number of threads: `threads`, else TWOFOUR_NUM_THREADS, else the CPUs of this
    process.

    Raises TwofourError where the number given is not a positive integer up to MOST_THREADS.
    """
    if threads is not None:
        try:
            count = 0 if isinstance(threads, bool) else operator.index(threads)
        except TypeError:
            count = 0
        _check(count, threads)
        return count
    text = os.environ.get(ENVIRONMENT_VARIABLE)
    if text is not None:
        digits = text.strip()
        # Python reads no number of thousands of digits.
        count = int(digits[:99]) if digits.isdecimal() else 0
        _check(count, text, f"{ENVIRONMENT_VARIABLE}: ")
        return count
    if hasattr(os, "sched_getaffinity"):
        return min(MOST_THREADS, len(os.sched_getaffinity(0)))
    return min(MOST_THREADS, os.cpu_count() or 1)


def _check(count: int, given: object, where: str = "") -> None:
    if count < 1:
        raise TwofourError(f"{where}expected a positive number of threads, got {given!r}")
    if count > MOST_THREADS:
        raise TwofourError(f"{where}expected at most {MOST_THREADS} threads, got {given!r}")


def waking_threads(points: int, most: int) -> int:
    """How many of so many threads are worth waking for so many ordinary points times steps."""
    return min(most, max(1, points // WAKING_POINTS))
