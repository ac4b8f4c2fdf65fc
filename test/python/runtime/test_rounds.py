# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Calls of a program as rounds: those that differ, with what is copied before each of them."""

from types import SimpleNamespace

import numpy as np
import pytest

from twofour.runtime import Carried, Loop, View
from twofour.runtime.loops import Recurring, round_of
from twofour.runtime.rounds.actions import Buffer, Copy
from twofour.runtime.rounds.program import Program

ROW = (slice(0, 1),)


def whole(value):
    return View(value, ())


@pytest.mark.parametrize("start, period", [(0, 1), (0, 3), (1, 3), (2, 2)])
@pytest.mark.parametrize("count", [1, 2, 1 << 40])
def test_copies_and_buffers_of_different_periods(start, period, count):
    """Two buffers change places from call to call, and other copies come before each."""
    carried = tuple(Carried(n, whole(n), whole(1 - n)) for n in range(2))
    calls = Loop(-1, 0, count, 1, carried, ())
    items = [
        ((Copy(0, ROW, 1, (slice(n, n + 1),)),), (Copy(1, ROW, None, value=n),))
        for n in range(start + period)
    ]
    copies = Recurring(tuple(items), start)
    buffers = [Buffer((8,), np.dtype(np.float64))] * 2
    program = Program(SimpleNamespace(planes=1), calls, copies, {}, {}, {}, buffers, 1)
    ((stretch,),) = [program._nodes]
    rounds, again = stretch.tables._rounds, stretch.tables.start
    assert len(rounds) <= min(count, start + 2 * period)
    for number in range(min(count, 20)):
        one, other = items[round_of(number, start, start + period)]
        expected = [
            [Copy(number % 2, ROW, 1 - number % 2, one[0].source)],
            [Copy(1 - number % 2, ROW, None, value=other[0].value)],
        ]
        assert rounds[round_of(number, again, len(rounds))] == expected


@pytest.mark.parametrize("start, period", [(0, 1), (0, 3), (1, 3), (2, 2)])
def test_another_first_item(start, period):
    items = Recurring(tuple(range(start + period)), start)
    other = items.beginning("first")
    assert [other.at(n) for n in range(12)] == ["first", *(items.at(n) for n in range(1, 12))]


def test_first_copies_of_what_is_no_argument():
    """A value of another number than its buffer is copied once, to an argument that moves on."""
    carried = tuple(Carried(n, whole(n), whole(1 - n)) for n in range(2))
    calls = Loop(-1, 0, 9, 1, carried, ())
    again = Copy(0, ROW, None, value=np.float64(1))
    copies = Recurring((((again,),),)).beginning(((Copy(1, ROW, -5, ROW),), (again,)))
    buffers = [Buffer((8,), np.dtype(np.float64))] * 3
    program = Program(SimpleNamespace(planes=1), calls, copies, {}, {}, {-5: 2}, buffers, 1)
    ((stretch,),) = [program._nodes]
    first, *others = stretch.tables._rounds
    assert first == [[Copy(1, ROW, 2, ROW)], [again]] and stretch.tables.start == 1
    assert [one[0][0].written for one in others] == [1, 0]
