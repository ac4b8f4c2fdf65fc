# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Programs whose loops, numbers and tables native code runs: the bits of calls one by one."""

import signal

import numpy as np
import pytest

from file_cases import LINE_TYPES, average
from native_cases import (
    assert_same_bits,
    executable_of,
    fill_new_buffers,
    inputs_of,
    one_by_one,
    share_small_work,
)
from twofour.runtime import HostFieldStepper, NativeFieldStepper, StepCode, parse_boundary, slices
from twofour.runtime.rounds import program as rounds


@pytest.fixture
def small_work_is_shared(monkeypatch):
    share_small_work(monkeypatch)


def test_programs_that_do_more_than_sweep_are_called_as_they_are(tmp_path):
    """Here: a loop whose index is no value of type index."""
    text = LOOP_OF_INTEGERS.replace("KIND", "i32")
    stepper = executable_of(text, tmp_path).field_stepper(parse_boundary("fixed", 1), 1)
    assert type(stepper) is HostFieldStepper
    text = text.replace("i32", "index")
    other = executable_of(text, tmp_path).field_stepper(parse_boundary("fixed", 1), 1)
    assert isinstance(other, NativeFieldStepper)
    inputs = inputs_of(stepper)
    assert_same_bits(stepper.advance(inputs, 1), other.advance(inputs, 1))


LOOP_OF_INTEGERS = f"""{LINE_TYPES}
func.func @march(%u: !field, %v: !field) {{
  %zero = arith.constant 0 : KIND
  %one = arith.constant 1 : KIND
  %end = arith.constant 3 : KIND
  scf.for %i = %zero to %end step %one : KIND {{
    {average("0", "%u", "%v")}
    {average("1", "%v", "%u")}
  }}
  return
}}
"""


ROTATING = f"""{LINE_TYPES}
func.func @rotating(%a: !field, %b: !field, %c: !field, %d: !field, %count: i32)
    attributes {{stencil.rotation = array<i64: 3, 1, 2, 0, 4>}} {{
  %zero = arith.constant 0 : index
  %end = arith.index_cast %count : i32 to index
  %one = arith.constant 1 : index
  {average("0", "%a", "%d")}
  %p, %q, %r = scf.for %i = %zero to %end step %one
      iter_args(%x = %a, %y = %b, %z = %c) -> (!field, !field, !field) {{
    {average("1", "%x", "%y")}
    {average("2", "%y", "%z", "0.125")}
    scf.yield %y, %z, %x : !field, !field, !field
  }}
  {average("3", "%q", "%d")}
  return
}}
"""
# The inner loop leaves its fields where they were or changes them, as often as it runs.
AROUND = f"""{LINE_TYPES}
func.func @around(%a: !field, %b: !field, %c: !field, %often: index, %count: i64) {{
  %zero = arith.constant 0 : index
  %one = arith.constant 1 : index
  %two = arith.constant 2 : index
  %end = arith.index_cast %count : i64 to index
  %p, %q = scf.for %i = %one to %end step %two
      iter_args(%x = %a, %y = %b) -> (!field, !field) {{
    %u, %v = scf.for %j = %zero to %often step %one
        iter_args(%s = %x, %t = %y) -> (!field, !field) {{
      {average("0", "%s", "%t")}
      scf.yield %t, %s : !field, !field
    }}
    {average("1", "%v", "%c", "-0.5")}
    scf.yield %v, %u : !field, !field
  }}
  {average("2", "%q", "%c", "0.75")}
  return
}}
"""
# The first iteration reads a field that no other one reads.
ONCE = f"""{LINE_TYPES}
func.func @once(%a: !field, %b: !field, %c: !field, %count: index) {{
  %zero = arith.constant 0 : index
  %one = arith.constant 1 : index
  %p = scf.for %i = %zero to %count step %one iter_args(%x = %a) -> (!field) {{
    {average("0", "%x", "%b")}
    {average("1", "%b", "%c")}
    scf.yield %c : !field
  }}
  {average("2", "%p", "%b")}
  return
}}
"""
# The same of a loop around another one.
ONCE_AROUND = f"""{LINE_TYPES}
func.func @once(%a: !field, %b: !field, %c: !field, %count: index) {{
  %zero = arith.constant 0 : index
  %one = arith.constant 1 : index
  %p = scf.for %i = %zero to %count step %one iter_args(%x = %a) -> (!field) {{
    scf.for %j = %zero to %count step %one {{
      {average("0", "%x", "%b")}
      {average("1", "%b", "%c")}
    }}
    scf.yield %c : !field
  }}
  {average("2", "%p", "%b")}
  return
}}
"""
# Only a loop stores to the second field, where it runs at all.
FILLING = f"""{LINE_TYPES}
func.func @filling(%a: !field, %b: !field, %count: index)
    attributes {{stencil.rotation = array<i64: 1, 0, 2>}} {{
  %zero = arith.constant 0 : index
  %one = arith.constant 1 : index
  scf.for %i = %zero to %count step %one {{
    {average("0", "%a", "%b")}
  }}
  return
}}
"""


@pytest.mark.parametrize(
    ("text", "numbers"),
    [
        *((FILLING, [count]) for count in (0, 1, 2)),
        *((ROTATING, [count]) for count in (-1, 0, 1, 2, 3, 10)),
        *((AROUND, [often, count]) for often in (0, 1, 2, 5) for count in (1, 2, 3, 12, 21)),
        *((ONCE, [count]) for count in (0, 1, 2, 7)),
        *((ONCE_AROUND, [count]) for count in (0, 1, 2, 7)),
    ],
)
def test_loops_have_the_bits_of_calls_one_by_one(
    text, numbers, tmp_path, small_work_is_shared, monkeypatch
):
    fill_new_buffers(monkeypatch)
    boundary = parse_boundary("fixed", 1)
    stepper = executable_of(text, tmp_path).field_stepper(boundary, 3)
    assert isinstance(stepper, NativeFieldStepper)
    inputs = inputs_of(stepper)
    for steps in (1, 2, 5) if stepper._feeds_back() else (1,):
        expected = one_by_one(stepper, boundary).advance(inputs, steps, numbers)
        assert_same_bits(stepper.advance(inputs, steps, numbers), expected)


def test_slices_of_loops_and_progress(tmp_path, monkeypatch):
    """Slices end in the middle of loops, and progress counts calls."""
    boundary = parse_boundary("fixed", 1)
    stepper = executable_of(AROUND, tmp_path).field_stepper(boundary, 2)
    inputs, told = inputs_of(stepper), []
    expected = one_by_one(stepper, boundary).advance(inputs, 4, [3, 9])
    monkeypatch.setattr(slices, "CALL_SECONDS", slices.POINT_SECONDS * 40 * 5)
    monkeypatch.setattr(slices, "PROGRESS_INTERVAL", 0)
    results = stepper.advance(inputs, 4, [3, 9], lambda *now: told.append(now))
    assert_same_bits(results, expected)
    # A call makes 4 iterations of 3 rounds and one each, and a last one.
    rounds = 4 * (4 * (3 + 1) + 1)
    assert told[0] == (5 * 4 // rounds, 4) and told[-1] == (4, 4)
    assert len(told) > 4 and told == sorted(told)


def test_few_stretches_at_once(tmp_path, small_work_is_shared, monkeypatch):
    slices_run, run = [], StepCode.run

    def counted(code, stretches, threads):
        slices_run.append(threads)
        run(code, stretches, threads)

    monkeypatch.setattr(rounds, "MOST_STRETCHES", 3)
    monkeypatch.setattr(StepCode, "run", counted)
    boundary = parse_boundary("fixed", 1)
    stepper = executable_of(AROUND, tmp_path).field_stepper(boundary, 2)
    inputs = inputs_of(stepper)
    expected = one_by_one(stepper, boundary).advance(inputs, 3, [4, 12])
    assert_same_bits(stepper.advance(inputs, 3, [4, 12]), expected)
    # A call makes 6 iterations of 2 stretches, and a last one; the first call copies its inputs.
    assert len(slices_run) == -(-(1 + 3 * (6 * 2 + 1)) // 3)


@pytest.mark.parametrize("often", [1, 1 << 40])
def test_interrupted_loops(tmp_path, small_work_is_shared, often):
    """No thread is left waiting for another one, in short stretches and in one long one."""

    def interrupt(*_):
        raise KeyboardInterrupt

    stepper = executable_of(AROUND, tmp_path).field_stepper(parse_boundary("fixed", 1), 2)
    inputs = inputs_of(stepper)
    before = signal.signal(signal.SIGALRM, interrupt)
    try:
        signal.setitimer(signal.ITIMER_REAL, 0.3)
        with pytest.raises(KeyboardInterrupt):
            stepper.advance(inputs, 1, [often, 1 << 40])
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)
    expected = stepper.advance(inputs, 2, [2, 5])
    assert_same_bits(stepper.advance(inputs, 2, [2, 5]), expected)


def test_loops_take_the_numbers_of_each_run(tmp_path):
    boundary = parse_boundary("fixed", 1)
    stepper = executable_of(AROUND, tmp_path).field_stepper(boundary, 1)
    inputs = inputs_of(stepper)
    for numbers in ([2, 5], [3, 5], [3, 12], [2, 5]):
        expected = one_by_one(stepper, boundary).advance(inputs, 1, numbers)
        assert_same_bits(stepper.advance(inputs, 1, numbers), expected)


# Both loops count, and a number is computed of their indices and an argument.
DRIVEN = f"""{LINE_TYPES}
func.func @driven(%u: !field, %v: !field, %dt: f64, %count: index) {{
  %zero = arith.constant 0 : index
  %one = arith.constant 1 : index
  %two = arith.constant 2 : index
  %ten = arith.constant 10 : index
  %p, %q = scf.for %i = %one to %count step %two
      iter_args(%x = %u, %y = %v) -> (!field, !field) {{
    %r, %s = scf.for %j = %zero to %ten step %two
        iter_args(%now = %x, %next = %y) -> (!field, !field) {{
      %t = stencil.load %now : !field -> !temp
      %tens = arith.muli %i, %ten : index
      %k = arith.addi %tens, %j : index
      %n = arith.index_cast %k : index to i64
      %f = arith.sitofp %n : i64 to f64
      %time = arith.mulf %f, %dt : f64
      %a = stencil.apply(%c = %t : !temp, %g = %time : f64) -> (!temp) {{
        %0 = stencil.access %c[-1] : !temp
        %half = arith.constant 0.5 : f64
        %1 = arith.mulf %0, %half : f64
        %2 = arith.subf %g, %1 : f64
        stencil.return %2 : f64
      }}
      stencil.store %a to %next(<[0], [40]>) : !temp to !field
      scf.yield %next, %now : !field, !field
    }}
    scf.yield %s, %r : !field, !field
  }}
  return
}}
"""


@pytest.mark.parametrize("in_slices", [False, True])
@pytest.mark.parametrize("threads", [1, 3])
def test_numbers_computed_of_indices(
    tmp_path, small_work_is_shared, monkeypatch, threads, in_slices
):
    if in_slices:
        monkeypatch.setattr(slices, "CALL_SECONDS", slices.POINT_SECONDS * 40 * 3)
    stepper = executable_of(DRIVEN, tmp_path).field_stepper(parse_boundary("fixed", 1), threads)
    assert isinstance(stepper, NativeFieldStepper)
    u, v = inputs_of(stepper)
    for dt, count in ((0.5, 0), (0.5, 6), (0.25, 9)):
        results = stepper.advance([u, v], 1, [dt, count])
        x, y = u.copy(), v.copy()
        places = [x, y]
        for i in range(1, count, 2):
            for j in range(0, 10, 2):
                y[1:-1] = (i * 10 + j) * dt - x[:-2] * 0.5
                x, y = y, x
            x, y = y, x
        assert_same_bits(results, places)


TABLE = """
!field = !stencil.field<[-1,41]xf64>
!temp = !stencil.temp<?xf64>
func.func @profile(%u: !field, %speeds: memref<40xf64>, %v: !field) {
  %t = stencil.load %u : !field -> !temp
  %r = stencil.apply(%c = %t : !temp, %m = %speeds : memref<40xf64>) -> (!temp) {
    %0 = stencil.access %c[1] : !temp
    %i = stencil.index 0 <[0]>
    %s = memref.load %m[%i] : memref<40xf64>
    %1 = arith.mulf %0, %s : f64
    stencil.return %1 : f64
  }
  stencil.store %r to %v(<[0], [40]>) : !temp to !field
  return
}
"""


def test_tables_that_a_sweep_reads(tmp_path, small_work_is_shared):
    stepper = executable_of(TABLE, tmp_path).field_stepper(parse_boundary("fixed", 1), 2)
    assert isinstance(stepper, NativeFieldStepper)
    u, speeds = inputs_of(stepper)
    (result,) = stepper.advance([u, speeds], 1)
    np.testing.assert_array_equal(result[1:-1], u[2:] * speeds)
