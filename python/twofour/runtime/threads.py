# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""How many threads there are, and how many of them a piece of work is worth."""

import operator
import os

from twofour.errors import TwofourError

ENVIRONMENT_VARIABLE = "TWOFOUR_NUM_THREADS"

# Points times steps that are worth another thread: as fast where it has to be woken, twice as fast
# where it is awake.
WAKING_POINTS = 50_000


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


def waking_threads(points: int, most: int) -> int:
    """How many of so many threads are worth waking for so many ordinary points times steps."""
    return min(most, max(1, points // WAKING_POINTS))
