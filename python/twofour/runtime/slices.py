# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Runs of native code in slices: between them progress is told and interrupts are heard."""

import time
from collections.abc import Callable

from twofour.runtime.stepping import PROGRESS_INTERVAL

# Slices last about so long, no more than twice.
CALL_SECONDS = 0.05
# What an ordinary point takes at most in a step, to begin with, and a step besides.
POINT_SECONDS, STEP_SECONDS = 2e-9, 1e-7
# Multiply-adds of a point from which on it takes longer.
ORDINARY_WORK = 64


def ordinary_points(points: int, work: float) -> int:
    """How many ordinary points take as long as points of so many multiply-adds each."""
    return int(points * max(1, work / ORDINARY_WORK))


def _steps_together(points: int) -> int:
    """Steps of so many ordinary points that a first slice has."""
    return max(1, int(CALL_SECONDS / (POINT_SECONDS * points + STEP_SECONDS)))


def is_one_slice(steps: int, points: int) -> bool:
    """Whether so many steps, each of so many ordinary points, are made at once."""
    return steps <= _steps_together(points)


def run_in_slices(
    advance: Callable[[int], int],
    steps: int,
    points: int,
    progress: Callable[[int, int], None] | None,
) -> None:
    """Call `advance` until it has done `steps` time steps, each of so many ordinary points.

    It is asked for some, and returns how many it did.
    """
    together = _steps_together(points)
    done, reported = 0, time.monotonic()
    while done < steps:
        begun = time.monotonic()
        advanced = advance(min(together, steps - done))
        done += advanced
        now = time.monotonic()
        taken = now - begun
        if taken < CALL_SECONDS / 2:
            together *= 2
        elif taken > 2 * CALL_SECONDS:
            together = max(1, int(advanced * CALL_SECONDS / taken))
        if progress is not None and done < steps and now - reported >= PROGRESS_INTERVAL:
            progress(done, steps)
            reported = now
