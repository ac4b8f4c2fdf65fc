# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Applies that read nothing, and applies with loops and branches of their own."""

import ml_dtypes
import numpy as np
import pytest

COORDINATES = """
!field = !stencil.field<[-1,6]x[0,70]xf64>
!temp = !stencil.temp<?x?xf64>
func.func @coordinates(%out: !field) {
  %r = stencil.apply() -> (!temp) {
    %i = stencil.index 0 <[0, 0]>
    %j = stencil.index 1 <[0, 0]>
    %k = arith.muli %i, %j : index
    %n = arith.index_cast %k : index to i64
    %x = arith.sitofp %n : i64 to f64
    stencil.return %x : f64
  }
  stencil.store %r to %out(<[-1, 0], [6, 70]>) : !temp to !field
  return
}
"""
CONSTANT = """
!field = !stencil.field<[0,90]xTYPE>
!temp = !stencil.temp<?xTYPE>
func.func @constant(%u: !field, %out: !field) {
  %t = stencil.load %u : !field -> !temp
  %c = stencil.apply(%a = %t : !temp) -> (!temp) {
    %k = arith.constant VALUE : TYPE
    stencil.return %k : TYPE
  }
  %q = stencil.apply(%a = %t : !temp, %b = %c : !temp) -> (!temp) {
    %x = stencil.access %a[0] : !temp
    %y = stencil.access %b[0] : !temp
    %z = MULTIPLY %x, %y : TYPE
    %w = MULTIPLY %z, %x : TYPE
    stencil.return %w : TYPE
  }
  stencil.store %STORED to %out(<[0], [90]>) : !temp to !field
  return
}
"""
LOOP = """
!field = !stencil.field<[-1,9]xf64>
!temp = !stencil.temp<?xf64>
func.func @loop(%u: !field, %v: !field) {
  %t = stencil.load %u : !field -> !temp
  %r = stencil.apply(%a = %t : !temp) -> (!temp) {
    %c0 = arith.constant 0 : index
    %c1 = arith.constant 1 : index
    %c3 = arith.constant 3 : index
    %half = arith.constant 0.5 : f64
    %x = stencil.access %a[1] : !temp
    %q = scf.for %i = %c0 to %c3 step %c1 iter_args(%s = %x) -> (f64) {
      %y = stencil.access %a[-1] : !temp
      %h = arith.mulf %half, %s : f64
      %z = arith.addf %h, %y : f64
      scf.yield %z : f64
    }
    stencil.return %q : f64
  }
  stencil.store %r to %v(<[0], [8]>) : !temp to !field
  return
}
"""


def test_coordinates_alone(compiled):
    program = compiled(COORDINATES)
    expected = np.multiply.outer(np.arange(-1.0, 6), np.arange(70.0))
    np.testing.assert_array_equal(program(), expected)


@pytest.mark.parametrize("stored", ["c", "q"])
@pytest.mark.parametrize(
    ("kind", "value", "multiply"), [("f64", "0.25", "arith.mulf"), ("i32", "-3", "arith.muli")]
)
def test_a_constant_that_is_stored_or_read(compiled, kind, value, multiply, stored):
    text = CONSTANT.replace("TYPE", kind).replace("VALUE", value)
    program = compiled(text.replace("MULTIPLY", multiply).replace("STORED", stored))
    u = np.arange(90).astype({"f64": np.float64, "i32": np.int32}[kind])
    constant = u.dtype.type(float(value))
    expected = u * constant * u if stored == "q" else np.full_like(u, constant)
    for _ in range(3):
        np.testing.assert_array_equal(program(u), expected)


@pytest.mark.parametrize("boundary", ["periodic", "fixed"])
def test_a_loop_in_an_apply_is_no_time_loop(compiled, boundary):
    """Halos are refreshed and results become inputs, as without it."""
    program = compiled(LOOP, boundary=boundary)
    assert not program.has_time_loop
    u = np.arange(10.0) ** 2
    expected = u.copy()
    for steps in (1, 2, 3):
        if boundary == "periodic":
            expected[0], expected[9] = expected[8], expected[1]
        inside = expected[2:]
        for _ in range(3):
            inside = 0.5 * inside + expected[:-2]
        expected[1:9] = inside
        if boundary == "periodic":
            expected[0], expected[9] = expected[8], expected[1]
        np.testing.assert_array_equal(program(u, steps=steps), expected)


CHOICE = """
!field = !stencil.field<[-1,9]x[-1,40]xELEMENT>
!temp = !stencil.temp<?x?xELEMENT>
func.func @choice(%u : !field, %v : !field) {
  %t = stencil.load %u : !field -> !temp
  %r = stencil.apply(%a = %t : !temp) -> (!temp) {
    %c = stencil.access %a[0, 0] : !temp
    %d = stencil.access %a[0, 1] : !temp
    %is = COMPARE %c, %d : ELEMENT
    BODY
    stencil.return %x : ELEMENT
  }
  stencil.store %r to %v(<[0, 0], [8, 39]>) : !temp to !field
  return
}
"""
BRANCHES = """
    %x = scf.if %is -> (ELEMENT) {
      %w = stencil.access %a[-1, 0] : !temp
      %m = MULTIPLY %c, %w : ELEMENT
      %less = COMPARE %d, %w : ELEMENT
      %y = scf.if %less -> (ELEMENT) {
        scf.yield %m : ELEMENT
      } else {
        %e = stencil.access %a[1, 1] : !temp
        scf.yield %e : ELEMENT
      }
      scf.yield %y : ELEMENT
    } else {
      %s = stencil.access %a[0, -1] : !temp
      scf.yield %s : ELEMENT
    }
"""


@pytest.mark.parametrize("element", ["f64", "f16", "bf16", "i8", "i16"])
def test_branches_that_read_neighbours(compiled, element):
    is_float = element.endswith(("f16", "f64"))
    words = {
        "BODY": BRANCHES,
        "COMPARE": "arith.cmpf olt," if is_float else "arith.cmpi slt,",
        "MULTIPLY": "arith.mulf" if is_float else "arith.muli",
        "ELEMENT": element,
    }
    text = CHOICE
    for word, meaning in words.items():
        text = text.replace(word, meaning)
    numbers = np.random.default_rng(3).integers(-8, 9, (10, 41))
    kind = {"f16": np.float16, "bf16": ml_dtypes.bfloat16, "i8": np.int8, "i16": np.int16}
    # Products are exact in every type.
    u = numbers.astype(kind.get(element, float))
    got = compiled(text)(u).astype(int)[1:-1, 1:-1]
    c, d, w = numbers[1:-1, 1:-1], numbers[1:-1, 2:], numbers[:-2, 1:-1]
    inner = np.where(d < w, c * w, numbers[2:, 2:])
    np.testing.assert_array_equal(got, np.where(c < d, inner, numbers[1:-1, :-2]))
