# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The number of threads."""

import os

import numpy as np
import pytest

from twofour.errors import TwofourError
from twofour.runtime import resolve_threads
from twofour.runtime.threads import MOST_THREADS, WAKING_POINTS, waking_threads


def test_the_argument_goes_before_the_environment(monkeypatch):
    monkeypatch.setenv("TWOFOUR_NUM_THREADS", "3")
    assert resolve_threads() == 3
    assert resolve_threads(5) == 5
    assert resolve_threads(np.int64(2)) == 2
    monkeypatch.setenv("TWOFOUR_NUM_THREADS", " " * 200 + "3 ")
    assert resolve_threads() == 3
    monkeypatch.delenv("TWOFOUR_NUM_THREADS")
    assert resolve_threads() >= 1
    if hasattr(os, "sched_getaffinity"):
        assert resolve_threads() == len(os.sched_getaffinity(0))


@pytest.mark.parametrize("text", ["0", "-1", "two", "", "1.5"])
def test_bad_environment(text, monkeypatch):
    monkeypatch.setenv("TWOFOUR_NUM_THREADS", text)
    with pytest.raises(TwofourError, match="TWOFOUR_NUM_THREADS: expected a positive number"):
        resolve_threads()


@pytest.mark.parametrize("threads", [0, -2, 1.5, "4", True])
def test_bad_argument(threads):
    with pytest.raises(TwofourError, match="expected a positive number of threads, got"):
        resolve_threads(threads)


@pytest.mark.parametrize("count", [MOST_THREADS + 1, 2**64, 10**99])
def test_too_many(count, monkeypatch):
    monkeypatch.setenv("TWOFOUR_NUM_THREADS", "9" * 5000)
    assert resolve_threads(MOST_THREADS) == MOST_THREADS
    with pytest.raises(
        TwofourError, match=f"^error: expected at most {MOST_THREADS} threads, got "
    ):
        resolve_threads(count)
    with pytest.raises(TwofourError, match="^error: TWOFOUR_NUM_THREADS: expected at most 1024"):
        resolve_threads()


def test_threads_are_woken_for_as_many_points_as_they_are_worth():
    for points, threads in ((0, 1), (WAKING_POINTS, 1), (2 * WAKING_POINTS, 2), (10**12, 8)):
        assert waking_threads(points, 8) == threads
