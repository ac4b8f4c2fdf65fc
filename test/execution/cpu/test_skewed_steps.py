# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Steps of programs over several fields that go over the rows together: bits of single steps."""

import itertools

import pytest

from field_programs import LEVELS_1D
from kernel_cases import MODES
from native_cases import (
    assert_same_bits,
    cut_planes,
    executable_of,
    inputs_of,
    one_by_one,
    share_small_work,
    skew_small_arrays,
)
from turns import in_turn
from twofour.bench.plane_programs import PLANE_EXAMPLES
from twofour.runtime import parse_boundary, slices
from twofour.runtime.rounds import round_tables

# Two fields of three axes that depend on each other, the second updated in place.
PLANES = """
!field = !stencil.field<[-1,81]x[-1,8]x[-2,11]xf64>
!temp = !stencil.temp<?x?x?xf64>
func.func @planes(%u : !field, %k : !field, %v : !field)
    attributes {stencil.rotation = array<i64: 2, 1, 0>} {
  %ut = stencil.load %u : !field -> !temp
  %kt = stencil.load %k : !field -> !temp
  %r = stencil.apply(%a = %ut : !temp, %b = %kt : !temp) -> (!temp) {
    %t = stencil.access %a[-1, 0, 0] : !temp
    %s = stencil.access %a[1, 1, 0] : !temp
    %w = stencil.access %a[0, 0, -2] : !temp
    %d = stencil.access %b[0, 0, 1] : !temp
    %0 = arith.addf %t, %s : f64
    %1 = arith.mulf %w, %d : f64
    %2 = arith.subf %0, %1 : f64
    %third = arith.constant 0.3 : f64
    %3 = arith.mulf %2, %third : f64
    stencil.return %3 : f64
  }
  stencil.store %r to %v(<[0, 0, 0], [80, 7, 9]>) : !temp to !field
  %vt = stencil.load %v : !field -> !temp
  %q = stencil.apply(%a = %vt : !temp, %b = %kt : !temp) -> (!temp) {
    %c = stencil.access %b[0, 0, 0] : !temp
    %t = stencil.access %a[-1, 0, 0] : !temp
    %s = stencil.access %a[0, 0, 0] : !temp
    %0 = arith.subf %t, %s : f64
    %1 = arith.addf %c, %0 : f64
    %half = arith.constant 0.5 : f64
    %2 = arith.mulf %1, %half : f64
    stencil.return %2 : f64
  }
  stencil.store %q to %k(<[0, 0, 0], [80, 7, 9]>) : !temp to !field
  return
}
"""
# A memref that is written, then read at one of its points for all others.
TABLE = """
!field = !stencil.field<[0,90]x[0,20]xf64>
!temp = !stencil.temp<?x?xf64>
func.func @table(%w : !field, %m : memref<90x20xf64>, %z : !field)
    attributes {stencil.rotation = array<i64: 2, 1, 0>} {
  %fm = stencil.external_load %m : memref<90x20xf64> -> !field
  %t = stencil.load %w : !field -> !temp
  %x = stencil.apply(%a = %t : !temp) -> (!temp) {
    %0 = stencil.access %a[-1, 0] : !temp
    %1 = stencil.access %a[1, 0] : !temp
    %2 = arith.mulf %0, %1 : f64
    stencil.return %2 : f64
  }
  stencil.store %x to %fm(<[1, 0], [89, 20]>) : !temp to !field
  %c = arith.constant 77 : index
  %d = arith.constant 7 : index
  %y = stencil.apply(%a = %t : !temp, %k = %m : memref<90x20xf64>, %i = %c : index,
                     %j = %d : index) -> (!temp) {
    %0 = stencil.access %a[0, 0] : !temp
    %v = memref.load %k[%i, %j] : memref<90x20xf64>
    %half = arith.constant 0.5 : f64
    %1 = arith.mulf %0, %half : f64
    %2 = arith.addf %1, %v : f64
    stencil.return %2 : f64
  }
  stencil.store %y to %z(<[0, 0], [90, 20]>) : !temp to !field
  return
}
"""
# A loop whose first iteration reads another field than those that follow.
LOOP = """
!field = !stencil.field<[-1,91]x[-1,21]xf64>
!temp = !stencil.temp<?x?xf64>
func.func @loop(%x : !field, %y : !field, %z : !field) {
  %from = arith.constant 0 : index
  %to = arith.constant 11 : index
  %step = arith.constant 1 : index
  %last = scf.for %i = %from to %to step %step iter_args(%c = %x) -> (!field) {
    %n = arith.index_cast %i : index to i64
    %s = arith.sitofp %n : i64 to f64
    %ct = stencil.load %c : !field -> !temp
    %r = stencil.apply(%a = %ct : !temp, INPUTS) -> (!temp) {
      %k = arith.constant 0.3 : f64
      %n_ = stencil.access %a[-1, 0] : !temp
      %e_ = stencil.access %a[1, 1] : !temp
      %0 = arith.addf %n_, %e_ : f64
      %1 = arith.mulf %0, FACTOR : f64
      stencil.return %1 : f64
    }
    stencil.store %r to %z(<[0, 0], [90, 20]>) : !temp to !field
    %zt = stencil.load %z : !field -> !temp
    %q = stencil.apply(%a = %zt : !temp) -> (!temp) {
      %k = arith.constant 0.4 : f64
      %w = stencil.access %a[0, -1] : !temp
      %s_ = stencil.access %a[1, 0] : !temp
      %0 = arith.subf %w, %s_ : f64
      %1 = arith.mulf %0, %k : f64
      stencil.return %1 : f64
    }
    stencil.store %q to %y(<[0, 0], [90, 20]>) : !temp to !field
    scf.yield %y : !field
  }
  return
}
"""
# A field that is updated in place soon after it was mirrored, from rows that do not wait for its
# halo.
MIRRORED = """
!field = !stencil.field<[-3,93]x[-1,9]xf64>
!temp = !stencil.temp<?x?xf64>
func.func @mirrored(%u : !field, %w : !field) {
  %t = stencil.load %u : !field -> !temp
  %r = stencil.apply(%a = %t : !temp) -> (!temp) {
    %k = arith.constant 0.4 : f64
    %x = stencil.access %a[FROM, 0] : !temp
    %0 = arith.mulf %x, %k : f64
    stencil.return %0 : f64
  }
  stencil.store %r to %w(<[0, 0], [90, 8]>) : !temp to !field
  %v = stencil.load %w : !field -> !temp
  %s = stencil.load %u : !field -> !temp
  %q = stencil.apply(%a = %v : !temp, %b = %s : !temp) -> (!temp) {
    %k = arith.constant 0.3 : f64
    %x = stencil.access %a[TO, 0] : !temp
    %y = stencil.access %b[0, 0] : !temp
    %0 = arith.addf %x, %y : f64
    %1 = arith.mulf %0, %k : f64
    stencil.return %1 : f64
  }
  stencil.store %q to %u(<[0, 0], [90, 8]>) : !temp to !field
  return
}
"""
LINE = LEVELS_1D.replace(",40]", ",1202]").replace("[37]", "[1200]")
TEXTS = {one.name: one.mlir(90) for one in PLANE_EXAMPLES} | {
    "line": LINE,
    "planes": PLANES,
    "mirrored below": MIRRORED.replace("FROM", "-3").replace("TO", "3"),
    "mirrored above": MIRRORED.replace("FROM", "3").replace("TO", "-3"),
}
STEPS = (1, 2, 3, 7, 12, 25)


def assert_bits_of_calls_one_by_one(text, folder, threads):
    """At many boundaries; gives way after each run to so many steps."""
    executable = executable_of(text, folder)
    rank = executable.compiled.program.fields[0].box.rank
    for modes in itertools.islice(itertools.product(MODES, repeat=rank), 0, None, 5 ** (rank - 1)):
        boundary = parse_boundary(",".join(modes), rank)
        stepper = executable.field_stepper(boundary, 1)
        inputs = inputs_of(stepper)
        expected = {steps: one_by_one(stepper, boundary).advance(inputs, steps) for steps in STEPS}
        for count in threads:
            stepper = executable.field_stepper(boundary, count)
            for steps, states in expected.items():
                assert_same_bits(stepper.advance(inputs, steps), states)
            yield stepper


@pytest.mark.parametrize("name", TEXTS)
def test_bits_of_calls_one_by_one(name, tmp_path, monkeypatch):
    share_small_work(monkeypatch)
    depths = skew_small_arrays(monkeypatch)
    for _ in assert_bits_of_calls_one_by_one(TEXTS[name], tmp_path, (1, 2, 3)):
        assert depths[-1] > 1


# Planes of more rows, which are cut: two fields, and three levels.
LARGER = PLANES.replace("[-1,8]", "[-1,41]").replace("80, 7, 9", "80, 40, 9")
LEVELS = """
!field = !stencil.field<[-2,82]x[-2,42]x[-1,9]xf64>
!temp = !stencil.temp<?x?x?xf64>
func.func @levels(%old : !field, %now : !field, %new : !field)
    attributes {stencil.rotation = array<i64: 1, 2, 0>} {
  %ot = stencil.load %old : !field -> !temp
  %nt = stencil.load %now : !field -> !temp
  %r = stencil.apply(%a = %nt : !temp, %b = %ot : !temp) -> (!temp) {
    %t = stencil.access %a[-2, 0, 1] : !temp
    %s = stencil.access %a[1, -1, 0] : !temp
    %w = stencil.access %a[0, 2, -1] : !temp
    %d = stencil.access %b[0, 0, 0] : !temp
    %0 = arith.addf %t, %s : f64
    %1 = arith.mulf %w, %d : f64
    %2 = arith.subf %0, %1 : f64
    %third = arith.constant 0.3 : f64
    %3 = arith.mulf %2, %third : f64
    stencil.return %3 : f64
  }
  stencil.store %r to %new(<[0, 0, 0], [80, 40, 8]>) : !temp to !field
  return
}
"""


CUT = {"three levels": LEVELS, "two fields": LARGER}


@pytest.mark.parametrize("program, width", list(in_turn(zip(CUT, strict=True), [(4,), (16,)], 2)))
def test_bits_where_planes_are_cut(program, width, tmp_path, monkeypatch):
    share_small_work(monkeypatch)
    depths, strips = skew_small_arrays(monkeypatch), cut_planes(monkeypatch, width)
    for stepper in assert_bits_of_calls_one_by_one(CUT[program], tmp_path, (1, 2)):
        tables = stepper._program_for((), stepper._taken(50))._tables[0]
        assert depths[-1] > 1 and tables.skewed_rounds.cutting.width == width
        # They leave rows at both ends where these wait for each other.
        assert 40 / width <= strips[-1] <= 40 / width + 2


def test_indices_keep_planes_whole(tmp_path, monkeypatch):
    """What kernels know as the place of a point counts from where their views begin."""
    share_small_work(monkeypatch)
    depths, strips = skew_small_arrays(monkeypatch), cut_planes(monkeypatch, 8)
    row = "%n = stencil.index 1 <[0, 0, 0]>\n%m = arith.index_cast %n : index to i64\n"
    text = LEVELS.replace(
        "%third = arith.constant 0.3 : f64", row + "%third = arith.sitofp %m : i64 to f64"
    )
    for _ in assert_bits_of_calls_one_by_one(text, tmp_path, (1,)):
        assert depths[-1] > 1 and not strips


@pytest.mark.parametrize("name", ["wave", "fdtd"])
@pytest.mark.parametrize("at_once", [1, 10])
def test_slices_of_a_run(name, at_once, tmp_path, monkeypatch):
    """They are as many steps as are skewed, so that the next slice begins like the first one.

    The first one alone copies its inputs, and the first two of waves take over halos: others follow
    in the same slice.
    """
    depths, told = skew_small_arrays(monkeypatch), []
    boundary = parse_boundary("periodic,fixed", 2)
    stepper = executable_of(TEXTS[name], tmp_path).field_stepper(boundary, 1)
    inputs = inputs_of(stepper)
    expected = one_by_one(stepper, boundary).advance(inputs, 50)
    seconds = slices.POINT_SECONDS * stepper._program_for((), stepper._taken(50)).points
    monkeypatch.setattr(slices, "CALL_SECONDS", seconds * (at_once + 0.5))
    monkeypatch.setattr(slices, "PROGRESS_INTERVAL", 0)
    results = stepper.advance(inputs, 50, progress=lambda *now: told.append(now))
    assert_same_bits(results, expected)
    (depth,) = depths
    first, _ = told[0]
    # Of waves first two rounds and the others but the last three; else one, and all but one.
    begun = 2 + depth - 3 if name == "wave" else depth
    assert 1 < depth < 10
    assert first == begun + max(0, -(-(at_once - begun) // depth)) * depth
    assert told[-1] == (50, 50)


def test_tables_that_are_ready(tmp_path, monkeypatch):
    """Those of the first steps, which take over halos, and of others: no run makes them."""
    skew_small_arrays(monkeypatch)
    stepper = executable_of(TEXTS["wave"], tmp_path).field_stepper(parse_boundary("fixed", 2), 1)
    stepper.get_ready()
    monkeypatch.delattr(round_tables.StepTables, "of_skewed")
    stepper.advance(inputs_of(stepper), 40)


@pytest.mark.parametrize("threads", [1, 2])
def test_tables_that_a_step_writes(threads, tmp_path, monkeypatch):
    """What is read anywhere has to be written everywhere before."""
    share_small_work(monkeypatch)
    skew_small_arrays(monkeypatch)
    boundary = parse_boundary("fixed", 2)
    stepper = executable_of(TABLE, tmp_path).field_stepper(boundary, threads)
    inputs = inputs_of(stepper)
    for steps in (1, 2, 9):
        expected = one_by_one(stepper, boundary).advance(inputs, steps)
        assert_same_bits(stepper.advance(inputs, steps), expected)


@pytest.mark.parametrize("uses_index", [False, True])
@pytest.mark.parametrize("threads", [1, 2])
def test_loops(uses_index, threads, tmp_path, monkeypatch):
    """Iterations that use the index of a loop come one after the other."""
    share_small_work(monkeypatch)
    text = LOOP.replace("INPUTS", "%f = %s : f64").replace("FACTOR", "%f" if uses_index else "%k")
    executable, fixed = executable_of(text, tmp_path), parse_boundary("fixed", 2)
    stepper = executable.field_stepper(fixed, threads)
    inputs = inputs_of(stepper)
    expected = {steps: stepper.advance(inputs, steps) for steps in (1, 2)}
    depths = skew_small_arrays(monkeypatch)
    stepper = executable.field_stepper(fixed, threads)
    for steps, states in expected.items():
        assert_same_bits(stepper.advance(inputs, steps), states)
    assert any(depth > 1 for depth in depths) != uses_index


def test_threads_that_other_steps_are_worth(tmp_path, monkeypatch):
    """Parts of few rows have no seams, and are not skewed: here of all threads."""
    depths = skew_small_arrays(monkeypatch)
    monkeypatch.setattr("twofour.runtime.threads.WAKING_POINTS", 1)
    monkeypatch.setattr(round_tables, "worth_threads", lambda points, threads: threads)
    boundary = parse_boundary("periodic,fixed", 2)
    executable = executable_of(TEXTS["fdtd"], tmp_path)
    stepper = executable.field_stepper(boundary, 16)
    inputs = inputs_of(stepper)
    expected = one_by_one(stepper, boundary).advance(inputs, 20)
    for _ in range(5):
        assert_same_bits(stepper.advance(inputs, 20), expected)
    assert depths[0] > 1
