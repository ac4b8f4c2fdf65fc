# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Runs that go on with what the run before ended with."""

import numpy as np
import pytest

from file_cases import random_field
from twofour.errors import TwofourError

# Waves in a medium: two time levels, and a field that is only read.
WAVES = """
!field = !stencil.field<[-1,21]x[-1,10]xf64>
!temp = !stencil.temp<?x?xf64>
func.func @waves(%old : !field, %now : !field, %speed : !field, %next : !field)
    attributes {stencil.rotation = array<i64: 1, 3, 2, 0>} {
  %ot = stencil.load %old : !field -> !temp
  %nt = stencil.load %now : !field -> !temp
  %st = stencil.load %speed : !field -> !temp
  %r = stencil.apply(%o = %ot : !temp, %n = %nt : !temp, %s = %st : !temp) -> (!temp) {
    %b = stencil.access %o[0, 0] : !temp
    %c = stencil.access %n[0, 0] : !temp
    %w = stencil.access %n[-1, 0] : !temp
    %e = stencil.access %n[1, 1] : !temp
    %k = stencil.access %s[0, 0] : !temp
    %0 = arith.addf %w, %e : f64
    %1 = arith.subf %0, %c : f64
    %2 = arith.mulf %1, %k : f64
    %3 = arith.subf %c, %b : f64
    %4 = arith.addf %2, %3 : f64
    stencil.return %4 : f64
  }
  stencil.store %r to %next(<[0, 0], [20, 9]>) : !temp to !field
  return
}
"""
MEAN = """
!field = !stencil.field<[-1,9]xf64>
!temp = !stencil.temp<?xf64>
func.func @mean(%u : !field, %v : !field) {
  %t = stencil.load %u : !field -> !temp
  %r = stencil.apply(%a = %t : !temp) -> (!temp) {
    %half = arith.constant 0.5 : f64
    %w = stencil.access %a[-1] : !temp
    %e = stencil.access %a[1] : !temp
    %s = arith.addf %w, %e : f64
    %m = arith.mulf %s, %half : f64
    stencil.return %m : f64
  }
  stencil.store %r to %v(<[0], [8]>) : !temp to !field
  return
}
"""


@pytest.mark.parametrize("boundary", [("reflect", "zero"), ("periodic", "fixed")], ids=",".join)
def test_two_time_levels(compiled, boundary):
    program = compiled(WAVES, boundary=boundary)
    inputs = [random_field((22, 11), number) for number in range(3)]
    if boundary[1] == "fixed":
        # What is never updated is the same at all times.
        for rim in (0, -1):
            inputs[0][:, rim] = inputs[1][:, rim]
    whole = program(*inputs, steps=9)
    state = inputs
    for steps in (1, 0, 5, 2):
        before = [array.copy() for array in state]
        after = program(*state, steps=steps, resume=True)
        assert all(map(np.array_equal, before, state))
        new = [one for one in after if not any(one is other for other in state)]
        assert not any(np.shares_memory(one, other) for one in new for other in state)
        state = after
    assert len(state) == 3
    np.testing.assert_array_equal(state[2], inputs[2])
    np.testing.assert_array_equal(program(*state), whole)


@pytest.mark.parametrize("boundary", ["fixed", "periodic"])
def test_one_field_goes_on_with_the_result(compiled, boundary):
    program = compiled(MEAN, boundary=boundary)
    u = random_field((10,), 1)
    state = program(u, steps=3, resume=True)
    np.testing.assert_array_equal(state, program(u, steps=3))
    np.testing.assert_array_equal(program(state, steps=2), program(u, steps=5))


STORE = "  stencil.store %r to %next(<[0, 0], [20, 9]>) : !temp to !field\n"
IN_PARTS = STORE.replace("[20, 9]", "[20, 4]") + STORE.replace("[0, 0]", "[2, 6]")
PERHAPS = f"""\
  %0 = arith.constant 0 : index
  %1 = arith.constant 1 : index
  scf.for %i = %0 to %times step %1 {{
{STORE}  }}
"""


@pytest.mark.parametrize(
    "store, boundary, scalars",
    [
        (IN_PARTS, ("fixed", "fixed"), []),
        (IN_PARTS, ("periodic", "fixed"), []),
        (PERHAPS, ("fixed", "fixed"), [0]),
        (PERHAPS, ("fixed", "fixed"), [1]),
    ],
    ids=["parts", "parts, refreshed", "never", "once"],
)
def test_cells_that_calls_leave_are_those_of_the_level_before(compiled, store, boundary, scalars):
    text = WAVES.replace(STORE, store)
    if scalars:
        text = text.replace("%next : !field)", "%next : !field, %times : index)")
        text = text.replace("0>}", "0, 4>}")
    program = compiled(text, boundary=boundary)
    inputs = [random_field((22, 11), number) for number in range(3)]
    state = program(*inputs, scalars=scalars, resume=True)
    for steps in (2, 3, 4):
        whole = program(*inputs, scalars=scalars, steps=steps)
        np.testing.assert_array_equal(program(*state, scalars=scalars), whole)
        state = program(*state, scalars=scalars, resume=True)


UNLOADED = """
!field = !stencil.field<[0,10]xf64>
!temp = !stencil.temp<?xf64>
func.func @unloaded(%u : !field, %v : !field, %w : !field)
    attributes {stencil.rotation = array<i64: 0, 2, 1>} {
  %t = stencil.load %u : !field -> !temp
  %r = stencil.apply(%a = %t : !temp) -> (!temp) {
    %x = stencil.access %a[0] : !temp
    %y = arith.mulf %x, %x : f64
    stencil.return %y : f64
  }
  stencil.store %r to %v(<[1], [9]>) : !temp to !field
  stencil.store %r to %w(<[1], [4]>) : !temp to !field
  stencil.store %r to %w(<[6], [9]>) : !temp to !field
  return
}
"""


def test_levels_that_are_no_inputs_do_not_rotate(compiled):
    """What a call does not store of them is zero."""
    program, u = compiled(UNLOADED), random_field((10,), 1)
    v, w = program(u)
    expected = u * u
    expected[[0, 9]] = 0
    np.testing.assert_array_equal(v, expected)
    expected[4:6] = 0
    np.testing.assert_array_equal(w, expected)
    with pytest.raises(TwofourError, match="expected outputs of the type of inputs to run 2 steps"):
        program(u, steps=2)


def test_levels_that_only_wait_are_inputs(compiled):
    """The call does not name them, but later ones read them in another's place."""
    text = WAVES.replace("array<i64: 1, 3, 2, 0>", "array<i64: 1, 4, 2, 0, 5, 3>")
    waiting = "%next : !field, %soon : !field, %later : !field)"
    program = compiled(text.replace("%next : !field)", waiting))
    assert [field.position for field in program.inputs] == [0, 1, 2, 4, 5]
    inputs = [random_field((22, 11), number) for number in range(5)]
    whole = program(*inputs, steps=6)
    state = inputs
    for steps in (1, 1, 3):
        state = program(*state, steps=steps, resume=True)
    np.testing.assert_array_equal(program(*state), whole)
    for waits in (3, 4):
        others = [*inputs[:waits], inputs[0], *inputs[waits + 1 :]]
        assert not np.array_equal(whole, program(*others, steps=6))


PRODUCT = """
!field = !stencil.field<[0,4]x[0,4]xELEMENT>
!temp = !stencil.temp<?x?xELEMENT>
func.func @product(%a : !field, %b : !field, %u : !field) {
  %at = stencil.load %a : !field -> !temp
  %bt = stencil.load %b : !field -> !temp
  %ut = stencil.load %u : !field -> !temp
  %r = stencil.apply(%p = %at : !temp, %q = %bt : !temp, %x = %ut : !temp) -> (!temp) {
    %0 = stencil.access %p[0, 0] : !temp
    %1 = stencil.access %q[0, 0] : !temp
    %2 = stencil.access %x[0, 0] : !temp
    %3 = arith.mulf %0, %2 : ELEMENT
    %4 = arith.mulf %1, %3 : ELEMENT
    stencil.return %4 : ELEMENT
  }
  stencil.store %r to %u(<[0, 0], [4, 4]>) : !temp to !field
  return
}
"""


@pytest.mark.parametrize("steps", [1, 2, 20])
def test_inputs_that_begin_in_one_place(compiled, steps):
    """What a run goes on with is the input of that shape and those strides."""
    program = compiled(PRODUCT.replace("ELEMENT", "f64"))
    square = np.arange(16.0).reshape(4, 4)
    for a, b in ((square.T, square), (square, square.T), (square, square)):
        for got, expected in zip(
            program(a, b, square / 16, steps=steps, resume=True), (a, b), strict=False
        ):
            np.testing.assert_array_equal(got, expected)


BROAD = "!broad = !stencil.field<[0,4]x[0,5]xf64>"


def test_inputs_of_two_shapes_in_one_place(compiled):
    text = PRODUCT.replace("%a : !field", "%a : !broad")
    text = BROAD + text.replace("ELEMENT", "f64")
    pool = np.arange(20.0)
    a, b = pool.reshape(4, 5), pool[:16].reshape(4, 4)
    for got, expected in zip(compiled(text)(a, b, b / 16, resume=True), (a, b), strict=False):
        np.testing.assert_array_equal(got, expected)


WHOLE = """
!whole = !stencil.field<[0,4]x[0,4]xi32>
!wide = !stencil.temp<?x?xi32>
"""
NUMBER = """\
%n = stencil.access %q[0, 0] : !wide
    %1 = arith.sitofp %n : i32 to f32"""


def test_inputs_of_two_types_in_one_place(compiled):
    text = PRODUCT.replace("%b : !field", "%b : !whole")
    text = text.replace("stencil.load %b : !whole -> !temp", "stencil.load %b : !whole -> !wide")
    text = text.replace("%q = %bt : !temp", "%q = %bt : !wide")
    text = text.replace("%1 = stencil.access %q[0, 0] : !temp", NUMBER)
    text = WHOLE + text.replace("ELEMENT", "f32")
    bits = np.arange(16, dtype=np.int32).reshape(4, 4)
    a, b, _ = compiled(text)(bits.view(np.float32), bits, np.ones((4, 4), np.float32), resume=True)
    assert (a.dtype, b.dtype) == (np.float32, np.int32)
    np.testing.assert_array_equal(b, bits)


PARTED = """
!field = !stencil.field<[-2,18]xf64>
!temp = !stencil.temp<?xf64>
func.func @parted(%a : !field, %b : !field, %c : !field, %d : !field, %e : !field)
    attributes {stencil.rotation = array<i64: 1, 4, 0, 2, 3>} {
  %t = stencil.load %d : !field -> !temp
  %unused = stencil.load %c : !field -> !temp
  stencil.store %t to %d(<[0], [13]>) : !temp to !field
  %r = stencil.apply(%x = %t : !temp) -> (!temp) {
    %0 = stencil.access %x[1] : !temp
    stencil.return %0 : f64
  }
  stencil.store %r to %c(<[15], [16]>) : !temp to !field
  return
}
"""


def test_fields_of_several_interiors_that_change_places(compiled):
    """What is beside the interior of one place is a part of that of another."""
    program = compiled(PARTED, boundary="reflect")
    inputs = [random_field((20,), number) for number in range(5)]
    state = inputs
    for steps in range(1, 8):
        state = program(*state, resume=True)
        for got, expected in zip(state, program(*inputs, steps=steps, resume=True), strict=True):
            np.testing.assert_array_equal(got, expected)
