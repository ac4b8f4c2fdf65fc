# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""What programs from files may hold besides linear applies, compared with NumPy."""

import numpy as np
import pytest

from file_cases import NONLINEAR, close, random_field
from twofour.accuracy import sweep_error
from twofour.errors import TwofourError
from twofour.runtime import element_type, from_storage, to_storage


def test_index_counts_from_the_origin_of_the_bounds(compiled):
    program = compiled("""
!field = !stencil.field<[-3,6]x[2,9]xf64>
!temp = !stencil.temp<?x?xf64>
func.func @ramp(%u: !field, %v: !field) {
  %t = stencil.load %u : !field -> !temp
  %r = stencil.apply(%a = %t : !temp) -> (!temp) {
    %i = stencil.index 0 <[0, 0]>
    %j = stencil.index 1 <[0, -4]>
    %ten = arith.constant 10 : index
    %k = arith.muli %i, %ten : index
    %n = arith.addi %k, %j : index
    %w = arith.index_cast %n : index to i64
    %x = arith.sitofp %w : i64 to f64
    %c = stencil.access %a[0, 1] : !temp
    %y = arith.addf %x, %c : f64
    stencil.return %y : f64
  }
  stencil.store %r to %v(<[-2, 3], [5, 8]>) : !temp to !field
  return
}""")
    u = random_field((9, 7))
    expected = u.copy()
    i, j = np.mgrid[-2:5, 3:8]
    expected[1:8, 1:6] = 10 * i + (j - 4) + u[1:8, 2:7]
    close(program(u), expected)


SCALED = """
!field = !stencil.field<[0,8]xf64>
!temp = !stencil.temp<?xf64>
func.func @scaled(%u: !field, %v: !field, %f: f64) {
  %t = stencil.load %u : !field -> !temp
  %r = stencil.apply(%a = %t : !temp, %w = %f : f64) -> (!temp) {
    %x = stencil.access %a[0] : !temp
    %y = arith.mulf %x, %w : f64
    stencil.return %y : f64
  }
  stencil.store %r to %v(<[0], [8]>) : !temp to !field
  return
}
"""


def test_fields_of_lower_rank_and_scalars(compiled):
    program = compiled("""
!box = !stencil.field<[0,6]x[-1,8]x[0,5]xf64>
!temp = !stencil.temp<?x?x?xf64>
!line = !stencil.temp<?xf64>
!plane = !stencil.temp<?x?xf64>
func.func @layers(%k: f32, %u: !box, %y: !stencil.field<[-1,8]xf64>, %n: i32,
    %xz: !stencil.field<[0,7]x[0,5]xf64>, %g: f64, %out: !box) {
  %ut = stencil.load %u : !box -> !temp
  %yt = stencil.load %y : !stencil.field<[-1,8]xf64> -> !line
  %xzt = stencil.load %xz : !stencil.field<[0,7]x[0,5]xf64> -> !plane
  %r = stencil.apply(%a = %ut : !temp, %p = %yt : !line,
      %m = %xzt : !plane, %k0 = %k : f32, %n0 = %n : i32,
      %g0 = %g : f64) -> (!temp) {
    %0 = stencil.access %a[0, 1, 0] : !temp
    %1 = stencil.access %p[_, -1, _] : !line
    %2 = stencil.access %m[1, _, 0] : !plane
    %3 = arith.mulf %0, %1 : f64
    %4 = arith.divf %3, %2 : f64
    %5 = arith.extf %k0 : f32 to f64
    %6 = arith.mulf %4, %5 : f64
    %7 = arith.sitofp %n0 : i32 to f64
    %8 = arith.addf %6, %7 : f64
    %9 = arith.mulf %8, %g0 : f64
    stencil.return %9 : f64
  }
  stencil.store %r to %out(<[0, 0, 0], [6, 7, 5]>) : !temp to !box
  return
}""")
    u, y = random_field((6, 9, 5), 1), random_field(9, 2)
    xz = random_field((7, 5), 3, 1.0, 2.0)
    got = program(u, y, xz, scalars=[0.375, -3, 1.5])
    expected = u.copy()
    ratio = u[:, 2:] * y[None, :-2, None] / xz[1:, None, :]
    expected[:, 1:8] = (ratio * 0.375 - 3) * 1.5
    close(got, expected)


@pytest.mark.parametrize("dtype", ["f32", "f16", "bf16"])
def test_scalars_of_other_types(compiled, dtype):
    """They are rounded to the type, and have to be in its range."""
    program = compiled(SCALED, dtype=dtype)
    element = element_type(dtype)
    u = to_storage(np.arange(8.0), element)
    factor = from_storage(to_storage(np.float64(0.3), element), element)
    expected = to_storage(np.float32(np.arange(8.0)) * np.float32(factor), element)
    np.testing.assert_array_equal(program(u, scalars=[0.3]), expected)
    with pytest.raises(TwofourError, match=f"scalar 0: expected a number in the range of {dtype}"):
        program(u, scalars=[1e39])


@pytest.mark.parametrize("scalars", [[0.5], []])
def test_a_number_that_a_linear_step_does_not_need(compiled, scalars):
    program = compiled("""
!field = !stencil.field<[-1,9]xf64>
!temp = !stencil.temp<?xf64>
func.func @mean(%k: f64, %u: !field, %v: !field) {
  %t = stencil.load %u : !field -> !temp
  %r = stencil.apply(%a = %t : !temp) -> (!temp) {
    %w = stencil.access %a[-1] : !temp
    %e = stencil.access %a[1] : !temp
    %s = arith.addf %w, %e : f64
    stencil.return %s : f64
  }
  stencil.store %r to %v(<[0], [8]>) : !temp to !field
  return
}""")
    u = random_field(10, 1)
    if scalars:
        np.testing.assert_array_equal(program(u, scalars=scalars)[1:-1], u[:-2] + u[2:])
        return
    with pytest.raises(TwofourError, match="expected 1 scalar argument, got 0"):
        program(u)


# In MLIR's form: xDSL lets a temp that is buffered be read by that alone.
BUFFERED = """
!field = !stencil.field<#stencil.bounds<[-1], [9]>, f64>
!temp = !stencil.temp<1 : i64, f64>
func.func @shift(%u: !field, %v: !field, %w: !field) {
  %t = "stencil.load"(%u) : (!field) -> !temp
  %r = "stencil.apply"() ({
    %x = "stencil.access"(%t) {offset = array<i64: 1>} : (!temp) -> f64
    "stencil.return"(%x) : (f64) -> ()
  }) : () -> !temp
  %b = "stencil.buffer"(%r) : (!temp) -> !temp
  "stencil.store"(%FIRST, %v) {bounds = #stencil.bounds<[0], [8]>} : (!temp, !field) -> ()
  "stencil.store"(%SECOND, %w) {bounds = #stencil.bounds<[0], [8]>} : (!temp, !field) -> ()
  return
}
"""


@pytest.mark.parametrize("stored", ["br", "rb", "rr", "bb"])
def test_a_buffer_and_its_temp_are_stored(compiled, stored):
    first, second = stored
    program = compiled(BUFFERED.replace("FIRST", first).replace("SECOND", second))
    u = random_field(10, 1)
    for got in program(u):
        np.testing.assert_array_equal(got[1:-1], u[2:])


@pytest.mark.parametrize("boundary", [("fixed", "fixed"), ("periodic", "zero")], ids=",".join)
def test_products_and_selections(compiled, boundary):
    program = compiled(NONLINEAR, boundary=boundary)
    assert program.schedule == compiled.schedule("loops")
    u = random_field((35, 3))
    got = program(u, steps=3)
    for _ in range(3):
        below, above = np.diff(u, axis=0)[:-1], np.diff(u, axis=0)[1:]
        if boundary[0] == "periodic":
            u[0], u[-1] = u[-2], u[1]
            below, above = np.diff(u, axis=0)[:-1], np.diff(u, axis=0)[1:]
        u = u.copy()
        u[1:-1] += np.where(below * above > 0, np.sqrt(np.abs(below)), 0.0)
    if boundary[0] == "periodic":
        u[0], u[-1] = u[-2], u[1]
    close(got, u)


LOOP = """
!field = !stencil.field<[-1,41]xf64>
!temp = !stencil.temp<?xf64>
func.func @march(%a: !field, %b: !field, %count: index) -> !field {
  %begin = arith.constant 0 : index
  %one = arith.constant 1 : index
  %last, %other = scf.for %i = %begin to %count step %one
      iter_args(%now = %a, %next = %b) -> (!field, !field) {
    %t = stencil.load %now : !field -> !temp
    %r = stencil.apply(%x = %t : !temp) -> (!temp) {
      %l = stencil.access %x[-1] : !temp
      %h = stencil.access %x[1] : !temp
      %w = arith.constant 0.3 : f64
      %v = arith.constant 0.7 : f64
      %0 = arith.mulf %w, %l : f64
      %1 = math.fma %v, %h, %0 : f64
      stencil.return %1 : f64
    }
    stencil.store %r to %next(<[0], [40]>) : !temp to !field
    scf.yield %next, %now : !field, !field
  }
  return %last : !field
}
"""


@pytest.mark.parametrize("count", [0, 1, 2, 5])
def test_time_loop_in_the_file(compiled, count):
    a, b = random_field(42, 1), random_field(42, 2)
    got = compiled(LOOP)(a, b, scalars=[count])
    for step in range(count):
        now, following = (a, b) if step % 2 == 0 else (b, a)
        following[1:-1] = 0.3 * now[:-2] + 0.7 * now[2:]
    close(got[0], a)
    close(got[1], b)


@pytest.mark.parametrize("shift", [-2, -1, 1, 2])
def test_field_that_is_read_and_written(compiled, shift):
    """Loads take the values from before the store, whichever way the point looks."""
    program = compiled(f"""
!field = !stencil.field<[-2,202]x[0,3]xf64>
!temp = !stencil.temp<?x?xf64>
func.func @inplace(%u: !field) {{
  %t = stencil.load %u : !field -> !temp
  %r = stencil.apply(%a = %t : !temp) -> (!temp) {{
    %x = stencil.access %a[{shift}, 0] : !temp
    %y = stencil.access %a[0, 0] : !temp
    %half = arith.constant 0.5 : f64
    %z = arith.mulf %half, %y : f64
    %s = arith.addf %x, %z : f64
    stencil.return %s : f64
  }}
  stencil.store %r to %u(<[0, 0], [200, 3]>) : !temp to !field
  return
}}""")
    u = random_field((204, 3))
    expected = u.copy()
    for _ in range(3):
        expected[2:-2] = expected[2 + shift : 202 + shift] + 0.5 * expected[2:-2]
    close(program(u, steps=3), expected)


def test_store_before_a_later_load(compiled):
    """A field that one apply writes and a second one reads, in the order of the program."""
    program = compiled("""
!field = !stencil.field<[-1,19]xf64>
!temp = !stencil.temp<?xf64>
func.func @two(%u: !field, %v: !field) {
  %t = stencil.load %u : !field -> !temp
  %early = stencil.load %v : !field -> !temp
  %r = stencil.apply(%a = %t : !temp) -> (!temp) {
    %l = stencil.access %a[-1] : !temp
    %h = stencil.access %a[1] : !temp
    %0 = arith.addf %l, %h : f64
    stencil.return %0 : f64
  }
  stencil.store %r to %v(<[0], [18]>) : !temp to !field
  %late = stencil.load %v : !field -> !temp
  %s = stencil.apply(%a = %early : !temp, %b = %late : !temp) -> (!temp) {
    %0 = stencil.access %a[1] : !temp
    %1 = stencil.access %b[1] : !temp
    %2 = arith.subf %0, %1 : f64
    stencil.return %2 : f64
  }
  stencil.store %s to %u(<[0], [18]>) : !temp to !field
  return
}""")
    u, v = random_field(20, 1), random_field(20, 2)
    got = program(u, v)
    later = v.copy()
    later[1:-1] = u[:-2] + u[2:]
    first = u.copy()
    first[1:-1] = v[2:] - later[2:]
    close(got[0], first)
    close(got[1], later)


def test_memrefs_loaded_and_stored(compiled):
    program = compiled("""
!wide = !stencil.field<[0,8]x[-2,18]xf64>
!inner = !stencil.field<[0,8]x[0,16]xf64>
!temp = !stencil.temp<?x?xf64>
func.func @outside(%in: memref<8x20xf64>, %out: memref<8x16xf64>, %copy: memref<8x16xf64>) {
  %u = stencil.external_load %in : memref<8x20xf64> -> !wide
  %v = stencil.external_load %out : memref<8x16xf64> -> !inner
  %t = stencil.load %u : !wide -> !temp
  %r = stencil.apply(%a = %t : !temp) -> (!temp) {
    %l = stencil.access %a[0, -2] : !temp
    %h = stencil.access %a[0, 2] : !temp
    %x = arith.mulf %l, %h : f64
    stencil.return %x : f64
  }
  stencil.store %r to %v(<[0, 0], [8, 16]>) : !temp to !inner
  stencil.external_store %v to %copy : !inner to memref<8x16xf64>
  return
}""")
    u = random_field((8, 20))
    for result in program(u):
        close(result, u[:, :-4] * u[:, 4:])


@pytest.mark.parametrize("dtype", ["f64", "f32", "f16", "bf16"])
def test_forms_over_several_fields_are_rounded_once_on_both_routes(compiled_for_cpu, dtype):
    """The partial sum over the first field keeps the accumulation type."""
    text = """
!field = !stencil.field<[-1,1001]xf64>
!temp = !stencil.temp<?xf64>

func.func @combine(%a : !field, %b : !field, %c : !field) {
  %s = stencil.load %a : !field -> !temp
  %t = stencil.load %b : !field -> !temp
  %r = stencil.apply(%x = %s : !temp, %y = %t : !temp) -> (!temp) {
    %third = arith.constant 0.3 : f64
    %x0 = stencil.access %x[0] : !temp
    %yl = stencil.access %y[-1] : !temp
    %yr = stencil.access %y[1] : !temp
    %d = arith.subf %yr, %yl : f64
    %e = arith.mulf %d, %third : f64
    %f = arith.mulf %x0, %third : f64
    %g = arith.addf %e, %f : f64
    stencil.return %g : f64
  }
  stencil.store %r to %c(<[0], [1000]>) : !temp to !field
  return
}
"""
    element = element_type(dtype)
    fields = [to_storage(random_field(1002, seed), element) for seed in (1, 2)]
    direct, plain, sparse = (
        compiled_for_cpu(text, dtype=dtype, **options)(*fields)
        for options in ({}, {"reassociate": False}, {"schedule": "sparse"})
    )
    np.testing.assert_array_equal(plain, sparse)
    x, y = (from_storage(field, element) for field in fields)
    weight = float(np.float32(0.3)) if dtype != "f64" else 0.3
    exact = weight * (x[1:-1] + y[2:] - y[:-2])
    absolute = weight * (abs(x[1:-1]) + abs(y[2:]) + abs(y[:-2]))
    for result in (direct, sparse):
        error = abs(from_storage(result, element)[1:-1] - exact)
        assert (error <= sweep_error(dtype, 3, exact, absolute)).all()
