# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Launch plans with loops: which buffers each launch sees, and what is recorded."""

import itertools

import numpy as np
import pytest

from twofour.runtime import Bound, Carried, Launch, Loop, Plan, View
from twofour.runtime.memory import HOST
from twofour.runtime.repetition import RECORDED_LAUNCHES, Repetition


class Adding:
    """A kernel out = 2 * in + first number, on whole views."""

    def __init__(self):
        self.binds = 0

    def bind(self, inputs, outputs, numbers=(0,)):
        self.binds += 1
        return BoundAdding(inputs[0], outputs[0], numbers[0])


class BoundAdding:
    def __init__(self, source, target, number):
        self.source, self.target, self.number = source, target, number

    def run(self, begin, end):
        self.target[begin:end] = 2 * self.source[begin:end] + self.number


def whole(value):
    return View(value, ())


def run(steps, *arguments, workspaces=(), memory=HOST):
    Plan(tuple(steps), workspaces, memory).prepare()(arguments)


def test_parts_of_views():
    view = View(3, (slice(2, 9), slice(1, 5)))
    assert view.part((slice(1, 3), slice(0, 4))) == View(3, (slice(3, 5), slice(1, 5)))
    assert view.part(()) == view
    assert View(3, ()).part(view.slices) == view


@pytest.mark.parametrize("count", range(8))
def test_carried_fields_take_turns(count):
    """Three fields in a circle: values are numbers 0, 1, 2 of arguments, 3 the index."""
    kernel = Adding()
    carried = tuple(Carried(4 + n, whole(n), whole(4 + (n + 1) % 3)) for n in range(3))
    loop = Loop(3, 0, count, 1, carried, (Launch(kernel, (whole(4),), (whole(5),)),))
    after = Launch(kernel, (whole(4),), (whole(6),))
    fields = [np.full(2, float(n + 1)) for n in range(3)]
    expected = [field.copy() for field in fields]
    run([loop, after], *fields)
    a, b, c = expected
    for _ in range(count):
        b[:] = 2 * a
        a, b, c = b, c, a
    c[:] = 2 * a
    np.testing.assert_array_equal(fields, expected)
    assert kernel.binds == 1 + min(count, 3)


def test_a_loop_that_becomes_periodic_later():
    """First from a to b, then from b to c, and from then on in c."""
    kernel = Adding()
    carried = (Carried(4, whole(0), whole(5)), Carried(5, whole(1), whole(2)))
    loop = Loop(6, 0, 7, 1, carried, (Launch(kernel, (whole(4),), (whole(5),)),))
    a, b, c, d = np.ones(1), np.full(1, 5.0), np.full(1, 7.0), np.zeros(1)
    run([loop, Launch(kernel, (whole(4),), (whole(3),))], a, b, c, d)
    assert (a[0], b[0], c[0], d[0]) == (1, 2, 4 * 2**5, 4 * 2**6)


@pytest.mark.parametrize(("lower", "upper", "step"), [(0, 5, 1), (-3, 6, 4), (2, 2, 1), (3, -1, 2)])
def test_bounds_from_arguments_and_launches_that_take_the_index(lower, upper, step):
    kernel = Adding()
    inner = Loop(4, 0, 2, 1, (), (Launch(kernel, (whole(0),), (whole(0),), (3,)),))
    loop = Loop(3, Bound(1), Bound(2), step, (), (inner,))
    field = np.ones(3)
    run([loop], field, lower, upper)
    expected = 1
    for index in range(lower, upper, step):
        for _ in range(2):
            expected = 2 * expected + index
    np.testing.assert_array_equal(field, expected)


def test_fields_that_an_inner_loop_turns():
    """The inner loop swaps an odd number of times, so that the outer one does, too."""
    kernel = Adding()
    inner = Loop(
        5,
        0,
        3,
        1,
        (Carried(6, whole(3), whole(7)), Carried(7, whole(4), whole(6))),
        (Launch(kernel, (whole(6),), (whole(7),)),),
    )
    outer_carried = (Carried(3, whole(0), whole(6)), Carried(4, whole(1), whole(7)))
    outer = Loop(2, 0, 3, 1, outer_carried, (inner,))
    a, b = np.ones(1), np.ones(1)
    run([outer, Launch(kernel, (whole(3),), (whole(4),))], a, b)
    assert (a[0], b[0]) == (2**10, 2**9)


def test_views_of_carried_fields_and_workspaces():
    kernel = Adding()
    carried = (Carried(3, View(0, (slice(1, 5),)), whole(3)),)
    body = (
        Launch(kernel, (View(3, (slice(0, 3),)),), (whole(1),)),
        Launch(kernel, (whole(1),), (View(3, (slice(1, 4),)),)),
    )
    field = np.arange(6.0)
    run([Loop(2, 0, 2, 1, carried, body)], field, workspaces=(((3,), np.dtype(float)),))
    expected = np.arange(6.0)
    for _ in range(2):
        expected[2:5] = 4 * expected[1:4]
    np.testing.assert_array_equal(field, expected)


class Recorder:
    """A memory whose recordings are lists of the calls made while recording."""

    def __init__(self, able=True):
        self.able, self.log, self.recording, self.lengths = able, [], None, []

    def call(self, name):
        def call():
            (self.log if self.recording is None else self.recording).append(name)

        return call

    def record(self, calls):
        if not self.able:
            return None
        assert self.recording is None
        self.recording = names = []
        calls()
        self.recording = None
        self.lengths.append(len(names))
        return lambda: self.log.extend(names)


@pytest.mark.parametrize("able", [True, False])
@pytest.mark.parametrize("start", [0, 1, 2])
@pytest.mark.parametrize("count", [0, 2, 3, 50, 500, 1001])
def test_what_is_recorded_is_what_would_run(count, start, able):
    memory = Recorder(able)
    iterations = [[memory.call((n, k)) for k in range(2)] for n in range(3)][:count]
    repetition = Repetition(iterations, start, count, memory)
    rounds = itertools.chain([0, 1, 2], itertools.cycle(range(start, 3)))
    expected = [(n, k) for n in itertools.islice(rounds, count) for k in range(2)]
    for _ in range(2):
        memory.log.clear()
        repetition()
        assert memory.log == expected
    recorded = able and count > 200
    assert len(memory.lengths) == recorded
    if recorded:
        assert RECORDED_LAUNCHES <= memory.lengths[0] < RECORDED_LAUNCHES + 6


def test_loops_around_loops_are_not_recorded(monkeypatch):
    made = []
    monkeypatch.setattr(
        "twofour.runtime.plan.Repetition", lambda *arguments: made.append(arguments[-1]) or print
    )
    kernel = Adding()
    inner = Loop(2, 0, 2, 1, (), (Launch(kernel, (whole(0),), (whole(0),)),))
    run([Loop(1, 0, 2, 1, (), (inner,))], np.ones(1))
    assert made == [HOST, None]
