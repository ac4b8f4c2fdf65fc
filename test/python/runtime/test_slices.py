# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""How long slices of runs last, by a clock that runs as steps are done."""

import numpy as np
import pytest

import twofour
from twofour.runtime import slices
from twofour.runtime.slices import CALL_SECONDS, is_one_slice, ordinary_points, run_in_slices
from twofour.runtime.tiles import stepping


class Run:
    """Steps that take `seconds(step)` each, by a clock of their own."""

    def __init__(self, monkeypatch, seconds):
        self.now, self.done, self.taken, self.told = 0.0, 0, [], []
        self._seconds = seconds
        monkeypatch.setattr(slices.time, "monotonic", lambda: self.now)

    def _advance(self, count):
        before = self.now
        for step in range(self.done, self.done + count):
            self.now += self._seconds(step)
        self.done += count
        self.taken.append(self.now - before)
        return count

    def run(self, steps, points):
        run_in_slices(self._advance, steps, points, lambda done, of: self.told.append(done))
        assert self.done == steps


def test_slices_of_quick_steps_grow(monkeypatch):
    run = Run(monkeypatch, lambda step: 1e-5)
    run.run(100_000, 1_000_000)
    assert len(run.taken) < 60
    assert max(run.taken) <= CALL_SECONDS
    # The end is told by others.
    assert len(run.told) > 5 and run.told[-1] < 100_000


def test_slices_of_slow_steps_shrink(monkeypatch):
    """Numbers that become denormal take a hundred times as long."""
    run = Run(monkeypatch, lambda step: 1e-5 if step < 50_000 else 1e-3)
    run.run(100_000, 1000)
    too_long = [seconds for seconds in run.taken if seconds > 2 * CALL_SECONDS]
    assert len(too_long) <= 2
    assert max(run.taken[-100:]) <= 2 * CALL_SECONDS


@pytest.mark.parametrize("points", [1, 100])
def test_steps_of_few_points_take_time_as_well(monkeypatch, points):
    run = Run(monkeypatch, lambda step: 1.5e-7 + 2e-9 * points)
    run.run(1_000_000, points)
    assert max(run.taken) <= 2 * CALL_SECONDS


def test_a_step_that_takes_long_is_a_slice(monkeypatch):
    run = Run(monkeypatch, lambda step: 3.0)
    run.run(5, 1 << 40)
    assert run.taken == [3.0] * 5
    assert run.told == [1, 2, 3, 4]


def test_points_of_long_sums_count_more():
    assert [ordinary_points(1000, work) for work in (5, 64, 128, 1000)] == [1000, 1000, 2000, 15625]


@pytest.mark.parametrize("points", [10, 1000, 1 << 20, 1 << 40])
def test_runs_that_are_one_slice(points):
    asked = []
    run_in_slices(lambda count: asked.append(count) or 1 << 20, 1 << 20, points, None)
    assert is_one_slice(asked[0], points)
    assert not is_one_slice(asked[0] + 1, points)


def test_runs_know_the_work_of_a_point(monkeypatch):
    asked = []
    # Nothing is made at once.
    monkeypatch.setattr(slices, "CALL_SECONDS", 1e-6)
    run = stepping.run_in_slices
    monkeypatch.setattr(
        stepping,
        "run_in_slices",
        lambda advance, steps, points, progress: (
            asked.append(points) or run(advance, steps, points, progress)
        ),
    )
    for length in (5, 320):
        line = twofour.stencil({(n,): 0.5 / length for n in range(length)}, dtype="f64")
        line(np.ones(1000), steps=100)
    short, long = asked
    assert short == 1000 - 4 and long > 4 * (1000 - 319)


def test_progress_ends_once():
    told = []
    step = twofour.stencil({(0,): 0.5, (1,): 0.25}, dtype="f64")
    step(np.ones(1000), steps=500, progress=lambda *of: told.append(of))
    assert told.count((500, 500)) == 1 and told[-1] == (500, 500)
