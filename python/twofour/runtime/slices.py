# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Runs of native code in slices: between them progress is told and interrupts are heard."""

import time
from collections.abc import Callable

from twofour.runtime.stepping import PROGRESS_INTERVAL

# Slices last about so long.
CALL_SECONDS = 0.05
# What a point and step takes at most, to begin with.
POINT_SECONDS = 2e-9
# Points and steps of a slice that are worth waking a thread for.
WAKING_POINTS = 1 << 17


def run_in_slices(
    advance: Callable[[int], int],
    steps: int,
    points: int,
    progress: Callable[[int, int], None] | None,
) -> None:
    """Call `advance` until it has done `steps` time steps, each of so many points.

    It is asked for some, and returns how many it did.
    """
    together = max(1, int(CALL_SECONDS / POINT_SECONDS / points))
    done, reported = 0, time.monotonic()
    while done < steps:
        begun = time.monotonic()
        done += advance(min(together, steps - done))
        now = time.monotonic()
        if now - begun < CALL_SECONDS / 2:
            together *= 2
        if progress is not None and now - reported >= PROGRESS_INTERVAL:
            progress(done, steps)
            reported = now


def waking_threads(points: int, most: int) -> int:
    """How many of so many threads a slice of so many points times steps is worth waking."""
    return min(most, max(1, points // WAKING_POINTS))
