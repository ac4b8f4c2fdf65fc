# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""What is made once, however many threads ask for it."""

import time
from concurrent.futures import ThreadPoolExecutor

import pytest

from twofour.runtime.once import made_once


def test_threads_get_the_one_that_was_made():
    made = []

    @made_once
    def make(number):
        time.sleep(0.01)
        made.append(number)
        return object()

    with ThreadPoolExecutor(4) as pool:
        found = list(pool.map(make, [1, 2] * 4))
    assert sorted(made) == [1, 2]
    assert found == found[:2] * 4 and found[0] is not found[1]


def test_nothing_is_kept_of_a_failure():
    outcomes = iter([ValueError, None])

    @made_once
    def make():
        outcome = next(outcomes)
        if outcome is not None:
            raise outcome
        return "made"

    with pytest.raises(ValueError):
        make()
    assert make() == make() == "made"
