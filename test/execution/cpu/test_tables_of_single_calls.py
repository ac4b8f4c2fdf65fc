# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Single calls again and again: tables are found by where arrays begin, numbers are set anew."""

import sys
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest

import twofour
from twofour.runtime.fields import single_call, single_calls
from twofour.runtime.rounds.step_tables import BoundTables, StepCode, StepTables

SCALED = """
!field = !stencil.field<[-1,41]xf64>
!temp = !stencil.temp<?xf64>
func.func @scaled(%u : !field, %k : f64, %v : !field) {
  %t = stencil.load %u : !field -> !temp
  %r = stencil.apply(%a = %t : !temp, %s = %k : f64) -> (!temp) {
    %w = stencil.access %a[-1] : !temp
    %e = stencil.access %a[1] : !temp
    %sum = arith.addf %w, %e : f64
    %0 = arith.mulf %sum, %s : f64
    stencil.return %0 : f64
  }
  stencil.store %r to %v(<[0], [40]>) : !temp to !field
  return
}
"""


@pytest.fixture
def scaled(tmp_path):
    path = tmp_path / "scaled.mlir"
    path.write_text(SCALED)
    return twofour.compile(path, threads=1)


def expected(u, k):
    """What the program makes of an array whose halo is zero."""
    return np.pad((u[:-2] + u[2:]) * k, 1)


def array(seed):
    return np.pad(np.random.default_rng(seed).random(40), 1)


def counted(monkeypatch, kind, name):
    """The list that calls of a method are added to."""
    method, calls = getattr(kind, name), []

    def call(self, *arguments):
        calls.append(arguments)
        return method(self, *arguments)

    monkeypatch.setattr(kind, name, call)
    return calls


def test_arrays_that_take_turns_have_tables_of_their_own(scaled, monkeypatch):
    placed = counted(monkeypatch, BoundTables, "place")
    u, v = array(0), array(1)
    for k in range(9):
        values = expected(u, k / 4)
        assert scaled(u, scalars=[k / 4], out=v) is v
        np.testing.assert_array_equal(v, values)
        u, v = v, u
        if k == 2:
            # The first call is made in another way, the next two are on either array.
            assert placed
            placed.clear()
    assert not placed


def test_arrays_that_come_once_take_the_tables_of_others(scaled, monkeypatch):
    monkeypatch.setattr(single_call, "MOST_BOUND", 3)
    monkeypatch.setattr(single_calls, "MOST_KNOWN", 3)
    bound = counted(monkeypatch, StepTables, "bind")
    pairs = [(array(seed), array(seed)) for seed in range(8)]
    for _ in range(2):
        for k, (u, v) in enumerate(pairs):
            np.testing.assert_array_equal(scaled(u, scalars=[k], out=v), expected(u, k))
    assert len(bound) == 3
    assert len(scaled._fields.single_calls._known) <= 3
    placed = counted(monkeypatch, BoundTables, "place")
    for u, v in pairs[-3:]:
        scaled(u, scalars=[1], out=v)
    assert not placed


def test_a_call_within_a_call_has_other_tables(scaled, monkeypatch):
    """As signal handlers make them, and threads."""
    u, v = array(0), array(1)
    for k in range(3):
        scaled(u, scalars=[k], out=v)
    run, tables = StepCode.run, []

    def spied(code, stretches, threads):
        tables.append(stretches)
        if len(tables) == 1:
            scaled(u, scalars=[2], out=v)
        run(code, stretches, threads)

    monkeypatch.setattr(StepCode, "run", spied)
    np.testing.assert_array_equal(scaled(u, scalars=[3], out=v), expected(u, 3))
    first, second = tables
    assert first is not second


def test_inputs_that_cannot_be_written_to(scaled):
    u = array(0)
    for _ in range(3):
        u.flags.writeable = False
        np.testing.assert_array_equal(scaled(u, scalars=[2]), expected(u, 2))


@pytest.fixture
def threads_change_often():
    interval = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    yield
    sys.setswitchinterval(interval)


def test_calls_on_one_array_at_the_same_time(scaled, threads_change_often):
    u = array(0)

    def calls(k):
        v = np.empty_like(u)
        return [np.array_equal(scaled(u, scalars=[k], out=v), expected(u, k)) for _ in range(500)]

    with ThreadPoolExecutor(4) as pool:
        assert all(all(found) for found in pool.map(calls, range(4)))
