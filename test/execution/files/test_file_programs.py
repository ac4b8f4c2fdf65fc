# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Linear and coupled programs from files, compared with the same computation in NumPy."""

from pathlib import Path

import numpy as np
import pytest

import reference
import twofour
from field_programs import COUPLED
from file_cases import BOUNDARIES, NONLINEAR, close, random_field, refilled
from twofour.dialects.stencil import large_arrays
from twofour.errors import TwofourError
from twofour.options import CompileOptions
from twofour.targets.cpu.build import compile_cpu

LEAPFROG = str(Path(__file__).parents[3] / "docs" / "examples" / "wave2d.mlir")

# Two coupled fields; the first apply has two results, which the second reads around the point.


def test_kernels_of_large_arrays_give_the_same_bits(monkeypatch):
    """Programs of several fields have them instead of others where their bounds are large."""
    results = []
    for large in (False, True):
        monkeypatch.setattr(large_arrays, "past_caches", lambda *arguments, large=large: large)
        assert ("nontemporal" in str(compile_cpu(LEAPFROG, CompileOptions()).module)) == large
        program = twofour.compile(LEAPFROG, threads=2)
        results.append(program(*(random_field((130, 130), n) for n in (1, 2)), steps=5))
    for first, second in zip(*results, strict=True):
        assert first.tobytes() == second.tobytes()


@pytest.mark.parametrize("boundary", BOUNDARIES, ids=",".join)
def test_coupled_fields(compiled, boundary):
    u, v = random_field((17, 20), 1), random_field((17, 20), 2)
    program = compiled(COUPLED, boundary=boundary)
    states = [program(u, v, steps=steps) for steps in range(1, 5)]
    for got in states:
        u, v = refilled(u, 2, boundary), refilled(v, 2, boundary)
        slope, mean = u[2:] - u[:-2], v[:, 1:] + v[:, :-1]
        p, q = u.copy(), v.copy()
        p[2:-2, 2:-2] += 0.25 * (slope[:-2] + slope[2:])[:, 2:-2]
        q[2:-2, 2:-2] = 0.25 * mean[2:-2, 1:-2]
        u, v = p, q
        close(got[0], refilled(u, 2, boundary))
        close(got[1], refilled(v, 2, boundary))


WAVE = """
!field = !stencil.field<[-1,21]x[-1,10]xf64>
!temp = !stencil.temp<?x?xf64>
func.func @wave(%old : !field, %now : !field, %next : !field)
    attributes {stencil.rotation = array<i64: 1, 2, 0>} {
  %ot = stencil.load %old : !field -> !temp
  %nt = stencil.load %now : !field -> !temp
  %r = stencil.apply(%o = %ot : !temp, %u = %nt : !temp) -> (!temp) {
    %speed = arith.constant 0.2 : f64
    %n = stencil.access %u[-1, 0] : !temp
    %s = stencil.access %u[1, 0] : !temp
    %w = stencil.access %u[0, -1] : !temp
    %e = stencil.access %u[0, 1] : !temp
    %c = stencil.access %u[0, 0] : !temp
    %b = stencil.access %o[0, 0] : !temp
    %four = arith.constant 4.0 : f64
    %two = arith.constant 2.0 : f64
    %0 = arith.addf %n, %s : f64
    %1 = arith.addf %w, %e : f64
    %2 = arith.addf %0, %1 : f64
    %3 = arith.mulf %c, %four : f64
    %4 = arith.subf %2, %3 : f64
    %5 = arith.mulf %4, %speed : f64
    %6 = arith.mulf %two, %c : f64
    %7 = arith.addf %6, %5 : f64
    %8 = arith.subf %7, %b : f64
    stencil.return %8 : f64
  }
  stencil.store %r to %next(<[0, 0], [20, 9]>) : !temp to !field
  return
}
"""


@pytest.mark.parametrize("boundary", BOUNDARIES, ids=",".join)
def test_wave_with_three_time_levels(compiled, boundary):
    now = random_field((22, 11), 1)
    old = now.copy()
    old[1:-1, 1:-1] = random_field((20, 9), 2)
    program = compiled(WAVE, boundary=boundary)
    states = [program(old, now, steps=steps) for steps in range(1, 8)]
    for got in states:
        now = refilled(now, 1, boundary)
        around = now[:-2, 1:-1] + now[2:, 1:-1] + now[1:-1, :-2] + now[1:-1, 2:]
        following = now.copy()
        following[1:-1, 1:-1] += now[1:-1, 1:-1] - old[1:-1, 1:-1]
        following[1:-1, 1:-1] += 0.2 * (around - 4 * now[1:-1, 1:-1])
        old, now = now, following
        close(got, refilled(now, 1, boundary), 1e-12)


TURNS = """
!field = !stencil.field<[-1,21]xf64>
!temp = !stencil.temp<?xf64>
func.func @turns(%u : !field, %v : !field) attributes {stencil.rotation = array<i64: 1, 0>} {
  %t = stencil.load %v : !field -> !temp
  %r = stencil.apply(%a = %t : !temp) -> (!temp) {
    %w = stencil.access %a[-1] : !temp
    %c = stencil.access %a[0] : !temp
    %s = arith.addf %w, %c : f64
    stencil.return %s : f64
  }
  stencil.store %r to %v(<[0], [20]>) : !temp to !field
  return
}
"""


@pytest.mark.parametrize("boundary", [("fixed",), ("periodic",)], ids=",".join)
def test_two_fields_that_take_turns(compiled, boundary):
    """A linear step of one field, the next of which is one of the other."""
    program = compiled(TURNS, boundary=boundary)
    inputs = u, v = random_field((22,), 1), random_field((22,), 2)
    for steps in range(1, 6):
        v = refilled(v, 1, boundary).copy()
        v[1:-1] += v[:-2]
        close(program(*inputs, steps=steps), refilled(v, 1, boundary))
        u, v = v, u


@pytest.mark.parametrize("target", ["cpu", "sim:sm_90"])
def test_fields_that_take_turns_have_no_steps_to_fuse(tmp_path, target):
    path = tmp_path / "turns.mlir"
    path.write_text(TURNS)
    with pytest.raises(TwofourError, match="mlir:4:1: error: .*expected one linear step of one"):
        twofour.compile(str(path), target=target, fuse_steps=2)


# Linear in one field with hidden constants; in generic form.
LINEAR = """
!field = !stencil.field<#stencil.bounds<[-2, -3], [21, 38]>, f64>
!temp = !stencil.temp<2 : i64, f64>
func.func @linear(%u: !field, %v: !field) {
  %outer = arith.constant 0.5 : f64
  %t = "stencil.load"(%u) : (!field) -> !temp
  %r = "stencil.apply"() ({
    %a = "stencil.access"(%t) {offset = array<i64: -2, 0>} : (!temp) -> f64
    %b = "stencil.access"(%t) {offset = array<i64: 0, 3>} : (!temp) -> f64
    %c = "stencil.access"(%t) {offset = array<i64: 0, 3>} : (!temp) -> f64
    %d = "stencil.access"(%t) {offset = array<i64: 1, -1>} : (!temp) -> f64
    %four = arith.constant 4.0 : f64
    %0 = arith.mulf %outer, %a : f64
    %1 = arith.negf %b : f64
    %2 = arith.divf %c, %four : f64
    %3 = arith.subf %1, %2 : f64
    %4 = math.fma %d, %outer, %3 : f64
    %5 = arith.addf %4, %0 : f64
    "stencil.return"(%5) : (f64) -> ()
  }) : () -> !temp
  "stencil.store"(%r, %v) {bounds = #stencil.bounds<[0, 0], [20, 35]>} : (!temp, !field) -> ()
  return
}
"""
LINEAR_WEIGHTS = {(-2, 0): 0.5, (0, 3): -1.25, (1, -1): 0.5}


@pytest.mark.parametrize("schedule", ["direct", "sparse"])
@pytest.mark.parametrize("fuse_steps", [1, 2])
@pytest.mark.parametrize("boundary", BOUNDARIES, ids=",".join)
def test_linear_program_in_generic_form(compiled, schedule, fuse_steps, boundary):
    """The halo is the field's own: wider than the stencil reaches, and never stale."""
    schedule = compiled.schedule(schedule)
    program = compiled(LINEAR, schedule=schedule, boundary=boundary, fuse_steps=fuse_steps)
    assert program.schedule == schedule
    u = random_field((23, 41))
    for steps in (0, 1, 2, 5):
        got = program(u, steps=steps)
        expected = u
        for _ in range(steps):
            source = halo_of_linear(expected, boundary)
            expected = source.copy()
            total = sum(
                weight * source[2 + i : 22 + i, 3 + j : 38 + j]
                for (i, j), weight in LINEAR_WEIGHTS.items()
            )
            expected[2:22, 3:38] = total
        if steps:
            expected = halo_of_linear(expected, boundary)
        close(got, expected)


def halo_of_linear(field: np.ndarray, boundary) -> np.ndarray:
    for axis, (mode, below, above) in enumerate(zip(boundary, (2, 3), (1, 3), strict=True)):
        if mode != "fixed":
            inside = field.take(range(below, field.shape[axis] - above), axis)
            field = reference.pad(inside, axis, mode, below, above)
    return field


@pytest.mark.parametrize(
    ("dtype", "kind", "tolerance"), [("f32", np.float32, 1e-6), ("f16", np.float16, 2e-3)]
)
@pytest.mark.parametrize("text", [LINEAR, NONLINEAR], ids=["linear", "nonlinear"])
def test_other_element_type_than_in_the_file(compiled, text, dtype, kind, tolerance):
    shape = (23, 41) if text is LINEAR else (35, 3)
    # Away from the jumps of the selection, which rounding could turn.
    u = np.linspace(0, 4, shape[0] * shape[1]).reshape(shape).astype(kind)
    got = compiled(text, dtype=dtype)(u)
    assert got.dtype == kind
    wide = compiled(text)(u.astype(np.float64))
    np.testing.assert_allclose(got.astype(np.float64), wide, rtol=tolerance, atol=tolerance)


def test_function_by_name_and_inputs_unchanged(compiled):
    second = LINEAR[LINEAR.index("func.func") :].replace("@linear", "@second")
    text = LINEAR + second.replace("%four = arith.constant 4.0", "%four = arith.constant 2.0")
    u = random_field((23, 41))
    kept = u.copy()
    one, two = (compiled(text, function=name)(u) for name in ("linear", "second"))
    np.testing.assert_array_equal(u, kept)
    close(one, compiled(LINEAR)(u))
    expected = one.copy()
    expected[2:22, 3:38] -= 0.25 * u[2:22, 6:41]
    close(two, expected)


def test_store_to_part_of_a_field_keeps_the_rest(compiled):
    text = LINEAR.replace("bounds<[0, 0], [20, 35]>}", "bounds<[4, 5], [9, 6]>}")
    u = random_field((23, 41))
    got = compiled(text)(u)
    expected = u.copy()
    expected[6:11, 8:9] = sum(
        weight * u[6 + i : 11 + i, 8 + j : 9 + j] for (i, j), weight in LINEAR_WEIGHTS.items()
    )
    close(got, expected)


BETWEEN = """
!field = !stencil.field<[-1,11]xf64>
!line = !stencil.field<[0,10]xf64>
!temp = !stencil.temp<?xf64>
func.func @between(%line : !line, %u : !field, %c : !line, %w : !field, %un : !field,
                   %wn : !field, %sum : !line) {
  %t0 = stencil.load %u : !field -> !temp
  %t1 = stencil.load %w : !field -> !temp
  %t2 = stencil.load %c : !line -> !temp
  %t3 = stencil.load %line : !line -> !temp
  %r, %s, %q = stencil.apply(%a = %t0 : !temp, %b = %t1 : !temp, %k = %t2 : !temp, %l = %t3 : !temp)
      -> (!temp, !temp, !temp) {
    %x = stencil.access %a[-1] : !temp
    %y = stencil.access %b[0] : !temp
    %z = stencil.access %k[0] : !temp
    %o = stencil.access %l[0] : !temp
    %0 = arith.mulf %x, %z : f64
    %1 = arith.mulf %y, %o : f64
    %2 = arith.addf %o, %y : f64
    stencil.return %0, %1, %2 : f64, f64, f64
  }
  stencil.store %r to %un(<[0], [10]>) : !temp to !field
  stencil.store %s to %wn(<[0], [10]>) : !temp to !field
  stencil.store %q to %sum(<[0], [10]>) : !temp to !line
  return
}
"""


def test_outputs_become_the_inputs_of_their_type_in_order(compiled):
    line, c = random_field((10,), 0), random_field((10,), 1)
    u, w = random_field((12,), 2), random_field((12,), 3)
    got = compiled(BETWEEN)(line, u, c, w, steps=3)
    for _ in range(3):
        inside, beside = w[1:-1].copy(), u[:-2].copy()
        u, w = u.copy(), w.copy()
        u[1:-1], w[1:-1], line = beside * c, inside * line, line + inside
    for one, expected in zip(got, (u, w, line), strict=True):
        close(one, expected)


@pytest.mark.parametrize("fuse_steps", [1, 2, 4])
def test_field_of_one_point(compiled, fuse_steps):
    """No point can take several steps in one, so that all of them are single."""
    text = LINEAR.replace("<[-2, -3], [21, 38]>, f64", "<[-2, -3], [2, 4]>, f64")
    text = text.replace("<[0, 0], [20, 35]>}", "<[0, 0], [1, 1]>}")
    program = compiled(text, boundary="reflect", fuse_steps=fuse_steps)
    u = np.full((4, 7), np.nan)
    u[2, 3] = 2.0
    close(program(u, steps=3), np.full((4, 7), 2.0 * (0.5 - 1.25 + 0.5) ** 3))
