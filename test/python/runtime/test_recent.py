# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""What was made for a few shapes is kept, and let go for others."""

import gc
import weakref
from concurrent.futures import ThreadPoolExecutor
from threading import Barrier, Thread

import numpy as np
import pytest

import twofour
from twofour.runtime import slices, stepping
from twofour.runtime.page_offset import page_offsets
from twofour.runtime.recent import MOST, Recent
from twofour.runtime.stepping import LinearStepper

WEIGHTS = {(0, 0): 0.5, (1, 0): 0.25, (0, -1): 0.125}


class Maker:
    def __init__(self):
        self.made = []

    def __call__(self, key):
        self.made.append(key)
        return [key]


def test_the_last_keys_are_kept():
    recent, make = Recent(most=3), Maker()
    for key in (1, 2, 3, 1, 1, 4, 3, 1, 4):
        assert recent.get(key, make) == [key]
    assert make.made == [1, 2, 3, 4]
    assert recent.get(2, make) == [2]
    assert recent.get(3, make) == [3]
    assert make.made == [1, 2, 3, 4, 2, 3]


def test_nothing_is_a_value():
    recent, asked = Recent(), []
    assert recent.get(1, asked.append) is None
    assert recent.get(1, asked.append) is None
    assert asked == [1]


def test_what_fails_is_made_again():
    recent = Recent()
    with pytest.raises(ZeroDivisionError):
        recent.get(0, lambda key: 1 / key)
    assert recent.get(0, lambda key: key) == 0


def test_threads_share_what_two_of_them_make():
    recent, barrier = Recent(), Barrier(2, timeout=20)

    def make(key):
        barrier.wait()
        return [key]

    with ThreadPoolExecutor(2) as pool:
        first, second = pool.map(lambda _: recent.get("key", make), range(2))
    assert first is second


class Asking(int):
    """A key that asks for others while it is looked for, as signal handlers may."""

    def __hash__(self):
        if self.others:
            self.recent.get(self.others.pop(), str)
        return hash(int(self))


@pytest.mark.parametrize("key", [1, 2])
def test_others_may_ask_at_any_time(key):
    recent = Recent(most=2)
    Asking.recent, Asking.others = recent, []
    recent.get(1, str)
    found = []

    def ask():
        # Each of them lets go what was kept.
        Asking.others = list(range(10, 30))
        found.append(recent.get(Asking(key), str))

    thread = Thread(target=ask, daemon=True)
    thread.start()
    thread.join(timeout=20)
    assert found == [str(key)]
    assert recent.get(9, str) == "9"


def test_what_ends_with_a_value_may_ask():
    recent = Recent(most=1)

    class Value:
        def __del__(self):
            recent.get("again", str)

    recent.get("key", lambda _: Value())
    assert recent.get("other", str) == "other"


def steppers():
    step = twofour.stencil(WEIGHTS, boundary="periodic", dtype="f64", threads=2)
    tiled = step._stepper
    return tiled, LinearStepper(tiled.single, tiled.element, tiled.boundary, threads=2)


@pytest.mark.parametrize("kind", [0, 1], ids=["tiled", "linear"])
def test_steppers_keep_plans_of_few_shapes(kind):
    stepper = steppers()[kind]
    plans = []
    for n in range(MOST + 5):
        u = np.ones((20 + n, 30))
        np.testing.assert_allclose(stepper.advance(u, 3), 0.875**3, rtol=1e-14)
        plans.append(weakref.ref(stepper.plan(u.shape)))
    gc.collect()
    assert [plan() is not None for plan in plans] == [False] * 5 + [True] * MOST


# Tiles take many steps between two reports.
@pytest.mark.parametrize(("kind", "steps"), [(0, 1000), (1, 100)], ids=["tiled", "linear"])
def test_plans_that_are_let_go_serve_their_calls(kind, steps, monkeypatch):
    """A call asks for other shapes while it runs, and goes on with its own plan."""
    for module in (slices, stepping):
        monkeypatch.setattr(module, "PROGRESS_INTERVAL", 0)
    stepper = steppers()[kind]
    others = iter(range(1000))

    def ask(done, total):
        for _ in range(MOST + 1):
            stepper.advance(np.ones((40 + next(others), 8)), 2)
        gc.collect()

    u = np.random.default_rng(0).random((64, 2048))
    expected, told = stepper.advance(u, steps), []

    def progress(done, total):
        told.append(done)
        if len(told) < 3:
            ask(done, total)

    plan = weakref.ref(stepper.plan(u.shape))
    np.testing.assert_array_equal(stepper.advance(u, steps, progress), expected)
    gc.collect()
    assert len(told) > 1 and plan() is None


def test_threads_advance_arrays_of_many_shapes():
    stepper = steppers()[0]
    inputs = [np.full((16 + n, 600), float(n)) for n in range(2 * MOST)]
    with ThreadPoolExecutor(4) as pool:
        results = list(pool.map(lambda u: stepper.advance(u, 9), inputs * 6))
    for u, result in zip(inputs * 6, results, strict=True):
        np.testing.assert_allclose(result, u * 0.875**9, rtol=1e-13)


def test_page_offsets_of_few_strides_are_kept():
    for n in range(1000):
        page_offsets((4096 + 8 * n,), 2)
    assert page_offsets.cache_info().currsize < 100
