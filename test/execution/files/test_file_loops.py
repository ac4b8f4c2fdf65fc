# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Time loops written in files, and programs that copy fields, compared with NumPy."""

from pathlib import Path

import numpy as np
import pytest

import numpy_stencil
from file_cases import LINE_TYPES, average, close, random_field
from twofour import program
from twofour.errors import TwofourError
from twofour.runtime import element_type, from_storage, to_storage
from xdsl_suite import Program, random_arguments

REPOSITORY = Path(__file__).parents[3]
PROGRAMS = sorted(
    [*REPOSITORY.glob("docs/examples/*.mlir"), *Path(__file__).parents[1].glob("programs/*.mlir")]
)
FUNCTIONS = [
    pytest.param(str(op), id=op.sym_name.data)
    for path in PROGRAMS
    for op in numpy_stencil.parse(path.read_text()).walk()
    if op.name == "func.func"
]


@pytest.mark.parametrize("text", FUNCTIONS)
def test_one_call_of_a_program(compiled, text):
    program = compiled(text)
    arguments = random_arguments(Program("program.mlir", program.name, text))
    expected = numpy_stencil.evaluate(text, program.name, arguments).arguments
    inputs = [arguments[field.position] for field in program.inputs]
    got = program(*inputs, scalars=[a for a in arguments if not np.ndim(a)])
    assert program.has_time_loop == (program.name == "heat")
    tolerance = 1e-5 if "f32" in text else 1e-12
    for array, field in zip(got if type(got) is tuple else [got], program.outputs, strict=True):
        inside = tuple(map(slice, *field.interior))
        np.testing.assert_allclose(
            array[inside], expected[field.position][inside], rtol=tolerance, atol=tolerance
        )


def averaged(source, target, left=0.25):
    target[1:-1] = left * source[:-2] + 0.5 * source[2:]


ROTATION = f"""{LINE_TYPES}
func.func @rotate(%a: !field, %b: !field, %c: !field, %d: !field) {{
  %zero = arith.constant 0 : index
  %count = arith.constant COUNT : index
  %one = arith.constant 1 : index
  %p, %q, %r = scf.for %i = %zero to %count step %one
      iter_args(%x = %a, %y = %b, %z = %c) -> (!field, !field, !field) {{
    {average("0", "%x", "%y")}
    {average("1", "%y", "%z", "0.125")}
    scf.yield %y, %z, %x : !field, !field, !field
  }}
  {average("2", "%q", "%d")}
  return
}}
"""


@pytest.mark.parametrize("count", [0, 1, 2, 8])
def test_three_fields_that_rotate_and_a_step_after_the_loop(compiled, count):
    fields = [random_field(42, seed) for seed in range(3)]
    *got, last = compiled(ROTATION.replace("COUNT", str(count)))(*fields)
    x, y, z = fields
    for _ in range(count):
        averaged(x, y)
        averaged(y, z, 0.125)
        x, y, z = y, z, x
    expected = np.zeros(42)
    averaged(y, expected)
    close(last[1:-1], expected[1:-1])
    for array, field in zip(got, fields, strict=True):
        close(array, field)


BESIDE = {
    "empty": "scf.for %i = %zero to %three step %one {\n  }",
    "numbers": """%sum = scf.for %i = %zero to %three step %one iter_args(%s = %zero) -> (index) {
    %0 = arith.addi %s, %i : index
    scf.yield %0 : index
  }""",
}


@pytest.mark.parametrize("loop", BESIDE)
@pytest.mark.parametrize("boundary", ["fixed", "zero", "periodic"])
def test_loops_that_carry_no_field(compiled_for_cpu, loop, boundary):
    """A step is a step with such a loop behind it."""
    text = f"""{LINE_TYPES}
func.func @step(%a: !field, %b: !field) {{
  {average("0", "%a", "%b")}
  %zero = arith.constant 0 : index
  %one = arith.constant 1 : index
  %three = arith.constant 3 : index
  LOOP
  return
}}
"""
    u = random_field(42, 3)
    plain = compiled_for_cpu(text.replace("LOOP", ""), boundary=boundary)(u, steps=3)
    beside = compiled_for_cpu(text.replace("LOOP", BESIDE[loop]), boundary=boundary)
    assert not beside.has_time_loop
    np.testing.assert_array_equal(beside(u, steps=3), plain)


NESTED = f"""{LINE_TYPES}
func.func @nested(%a: !field, %b: !field, %first: i32, %count: i64) {{
  %zero = arith.constant 0 : index
  %one = arith.constant 1 : index
  %two = arith.constant 2 : index
  %three = arith.constant 3 : index
  %begin = arith.index_cast %first : i32 to index
  %end = arith.index_cast %count : i64 to index
  %p, %q = scf.for %i = %begin to %end step %two
      iter_args(%x = %a, %y = %b) -> (!field, !field) {{
    %u, %v = scf.for %j = %zero to %three step %one
        iter_args(%s = %x, %t = %y) -> (!field, !field) {{
      {average("0", "%s", "%t")}
      scf.yield %t, %s : !field, !field
    }}
    %old = stencil.load %u : !field -> !temp
    %k = arith.index_cast %i : index to i64
    %n = stencil.apply(%c = %old : !temp, %time = %k : i64) -> (!temp) {{
      %0 = stencil.access %c[0] : !temp
      %f = arith.sitofp %time : i64 to f64
      %1 = arith.addf %0, %f : f64
      stencil.return %1 : f64
    }}
    stencil.store %n to %u(<[5], [9]>) : !temp to !field
    scf.yield %u, %v : !field, !field
  }}
  return
}}
"""


@pytest.mark.parametrize(("first", "count"), [(-3, 4), (0, 1), (5, 2)])
def test_loops_in_loops_of_scalar_bounds_whose_index_counts(compiled, first, count):
    a, b = random_field(42, 1), random_field(42, 2)
    got = compiled(NESTED)(a, b, scalars=[first, count])
    x, y = a, b
    for index in range(first, count, 2):
        for _ in range(3):
            averaged(x, y)
            x, y = y, x
        x[6:10] += index
    close(got[0], a)
    close(got[1], b)


@pytest.mark.parametrize("step", [0, -2])
def test_loops_that_would_never_end(compiled_for_cpu, step):
    """Their code asks no signal handlers."""
    constant = NESTED.replace("%two = arith.constant 2", f"%two = arith.constant {step}")
    with pytest.raises(TwofourError, match=rf":12:12: .*with a positive step, got {step}$"):
        compiled_for_cpu(constant)
    number = NESTED.replace("%count: i64)", "%count: i64, %step: i32)").replace(
        "%two = arith.constant 2 : index", "%two = arith.index_cast %step : i32 to index"
    )
    arrays = [random_field(42, seed) for seed in (1, 2)]
    program = compiled_for_cpu(number)
    for one, other in zip(
        program(*arrays, scalars=[1, 6, 2]),
        compiled_for_cpu(NESTED)(*arrays, scalars=[1, 6]),
        strict=True,
    ):
        np.testing.assert_array_equal(one, other)
    with pytest.raises(TwofourError, match=f"scalar 2: expected a positive step .*, got {step}$"):
        program(*arrays, scalars=[1, 6, step])


STORED_IN_A_LOOP = f"""{LINE_TYPES}
func.func @stored(%u: !field, %v: !field, %count: index) {{
  %zero = arith.constant 0 : index
  %one = arith.constant 1 : index
  scf.for %i = %zero to %count step %one {{
    {average("0", "%u", "%v")}
  }}
  return
}}
"""


def test_results_of_a_loop_are_no_inputs(compiled):
    program, u = compiled(STORED_IN_A_LOOP), random_field(42, 1)
    got = program(u, scalars=[2])
    expected = np.zeros(42)
    averaged(u, expected)
    close(got, expected)
    assert not program(u, scalars=[0]).any()
    with pytest.raises(TwofourError, match="expected outputs of the type of inputs to run 2 steps"):
        program(u, scalars=[1], steps=2)


COPIED_BACK = f"""{LINE_TYPES}
func.func @march(%u: !field, %m: memref<42xf64>) {{
  %v = stencil.external_load %m : memref<42xf64> -> !field
  %zero = arith.constant 0 : index
  %five = arith.constant 5 : index
  %one = arith.constant 1 : index
  scf.for %i = %zero to %five step %one {{
    {average("0", "%u", "%v")}
    %w = stencil.load %v : !field -> !temp
    %i0 = stencil.apply(%c = %w : !temp) -> (!temp) {{
      %0 = stencil.access %c[0] : !temp
      stencil.return %0 : f64
    }}
    stencil.store %i0 to %u(<[0], [40]>) : !temp to !field
  }}
  stencil.external_store %u to %m : !field to memref<42xf64>
  return
}}
"""


def test_results_that_a_loop_copies_back(compiled):
    u, v = random_field(42, 1), random_field(42, 2)
    got = compiled(COPIED_BACK)(u, v)
    for _ in range(5):
        averaged(u, v)
        u[1:-1] = v[1:-1]
    for array in got:
        close(array, u)


def test_a_time_loop_keeps_halos_fixed(compiled):
    with pytest.raises(TwofourError, match="expected boundary 'fixed' for a program with") as seen:
        compiled(NESTED, boundary="periodic")
    assert seen.value.location.line == 12


@pytest.mark.parametrize("element", ["f16", "bf16", "f32", "f64"])
def test_element_types_of_floats(compiled, element):
    """A field in place: a copy, and a sum that is rounded once."""
    text = f"""
!field = !stencil.field<[-1,41]x{element}>
!temp = !stencil.temp<?x{element}>
func.func @inplace(%u: !field) {{
  {average("0", "%u", "%u", element=element)}
  return
}}
"""
    kind = element_type(element)
    u = to_storage(np.random.default_rng(4).integers(-8, 9, 42) / 8, kind)
    got = from_storage(compiled(text)(u), kind)
    expected = from_storage(u, kind)
    averaged(expected.copy(), expected)
    np.testing.assert_array_equal(got, expected)


@pytest.mark.parametrize("element", ["i8", "i16", "i32", "i64", "index"])
def test_element_types_of_integers(compiled, element):
    """A field in place, and its values from before beside the result."""
    text = f"""
!field = !stencil.field<[-1,41]x{element}>
!temp = !stencil.temp<?x{element}>
func.func @inplace(%u: !field, %v: !field) {{
  %t = stencil.load %u : !field -> !temp
  %r = stencil.apply(%x = %t : !temp) -> (!temp) {{
    %l = stencil.access %x[-1] : !temp
    %h = stencil.access %x[1] : !temp
    %0 = arith.subi %l, %h : {element}
    stencil.return %0 : {element}
  }}
  stencil.store %r to %u(<[0], [40]>) : !temp to !field
  stencil.store %r to %v(<[0], [40]>) : !temp to !field
  return
}}
"""
    dtype = np.int64 if element == "index" else np.dtype(f"int{element[1:]}")
    u = np.random.default_rng(4).integers(-9, 9, 42).astype(dtype)
    inplace, beside = compiled(text)(u)
    u[1:-1] = u[:-2] - u[2:]
    np.testing.assert_array_equal(inplace, u)
    np.testing.assert_array_equal(beside[1:-1], u[1:-1])


SWAPS = """
  %a{after}, %b{after} = scf.for %i{after} = %c0 to %c3 step %c1
      iter_args(%x{after} = %a{before}, %y{after} = %b{before}) -> (!field, !field) {{
    %t{after} = stencil.load %x{after} : !field -> !temp
    %r{after} = stencil.apply(%z = %t{after} : !temp) -> (!temp) {{
      %l = stencil.access %z[-1] : !temp
      %h = stencil.access %z[1] : !temp
      %d = arith.subf %l, %h : f64
      %half = arith.constant 0.5 : f64
      %s = arith.mulf %d, %half : f64
      stencil.return %s : f64
    }}
    stencil.store %r{after} to %y{after}(<[0], [40]>) : !temp to !field
    scf.yield %y{after}, %x{after} : !field, !field
  }}"""


def test_loops_in_a_row_are_followed_once(compiled_for_cpu, monkeypatch):
    """Not once for each way through those before."""
    looked_up, defining_op = [], program.defining_op
    monkeypatch.setattr(
        program, "defining_op", lambda value: looked_up.append(value) or defining_op(value)
    )
    loops = "".join(SWAPS.format(before=n, after=n + 1) for n in range(8))
    step = compiled_for_cpu(f"""
!field = !stencil.field<[-1,41]xf64>
!temp = !stencil.temp<?xf64>
func.func @loops(%a0: !field, %b0: !field) {{
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c3 = arith.constant 3 : index
{loops}
  return
}}""")
    assert len(looked_up) < 1000
    arrays = [random_field((42,), seed) for seed in (1, 2)]
    found = step(*arrays)
    for number in range(24):
        source, target = arrays[number % 2], arrays[(number + 1) % 2]
        target[1:-1] = 0.5 * (source[:-2] - source[2:])
    for array, expected in zip(found, arrays, strict=True):
        np.testing.assert_allclose(array, expected, rtol=1e-12, atol=1e-14)
