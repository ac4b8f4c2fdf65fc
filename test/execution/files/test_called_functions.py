# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Functions that call others: what these load and store is the program's, on every target."""

import numpy as np
import pytest

from file_cases import LINE_TYPES, average, close, random_field
from twofour.errors import TwofourError
from twofour.options import CompileOptions
from twofour.runtime import NativeFieldStepper, parse_boundary
from twofour.targets.cpu.build import compile_cpu
from twofour.targets.cpu.executable import CpuExecutable

SQUARE = f"""{LINE_TYPES}
func.func @square(%a: !field, %b: !field, %s: f64) {{
  {average("0", "%a", "%b")}
  %t = stencil.load %b : !field -> !temp
  %r = stencil.apply(%c = %t : !temp, %k = %s : f64) -> (!temp) {{
    %0 = stencil.access %c[0] : !temp
    %1 = arith.mulf %0, %0 : f64
    %2 = arith.addf %1, %k : f64
    stencil.return %2 : f64
  }}
  stencil.store %r to %a(<[0], [40]>) : !temp to !field
  return
}}
"""
CALLED = f"""{SQUARE}
func.func @both(%u: !field, %v: !field, %s: f64) {{
  func.call @square(%u, %v, %s) : (!field, !field, f64) -> ()
  func.call @square(%v, %u, %s) : (!field, !field, f64) -> ()
  return
}}
"""
CALLED_IN_A_LOOP = f"""{SQUARE}
func.func @main(%u: !field, %v: !field, %s: f64) {{
  func.call @steps(%u, %v, %s) : (!field, !field, f64) -> ()
  return
}}
func.func @steps(%u: !field, %v: !field, %s: f64) {{
  %zero = arith.constant 0 : index
  %one = arith.constant 1 : index
  %three = arith.constant 3 : index
  scf.for %i = %zero to %three step %one {{
    func.call @square(%u, %v, %s) : (!field, !field, f64) -> ()
  }}
  return
}}
"""


def squared(a, b, s):
    b[1:-1] = 0.25 * a[:-2] + 0.5 * a[2:]
    a[1:-1] = b[1:-1] * b[1:-1] + s


def test_what_is_left_of_called_functions_is_told(compiled):
    assert compiled(CALLED, function="both").schedule == compiled.schedule("loops")
    line = CALLED[: CALLED.index("arith.mulf %0, %0")].count("\n") + 1
    schedule = compiled.schedule("sparse")
    with pytest.raises(TwofourError, match=rf"mlir:{line}:\d+: error: .*expected constant weights"):
        compiled(CALLED, function="both", schedule=schedule)


def test_fields_that_only_called_functions_touch(compiled):
    u, v = random_field(42, 1), random_field(42, 2)
    got = compiled(CALLED, function="both")(u, v, scalars=[0.75])
    squared(u, v, 0.75)
    squared(v, u, 0.75)
    close(got[0], u)
    close(got[1], v)


def test_loops_in_called_functions(compiled):
    u, v = random_field(42, 1), random_field(42, 2)
    program = compiled(CALLED_IN_A_LOOP, function="main")
    got = program(u, v, scalars=[0.5])
    for _ in range(3):
        squared(u, v, 0.5)
    close(got[0], u)
    close(got[1], v)
    assert program.has_time_loop
    with pytest.raises(TwofourError, match="expected boundary 'fixed' for a program with"):
        compiled(CALLED_IN_A_LOOP, function="main", boundary="periodic")


def test_native_code_runs_them(tmp_path):
    path = tmp_path / "program.mlir"
    path.write_text(CALLED_IN_A_LOOP)
    executable = CpuExecutable(compile_cpu(str(path), CompileOptions(function="main")))
    stepper = executable.field_stepper(parse_boundary("fixed", 1))
    assert isinstance(stepper, NativeFieldStepper)


def test_interiors_count_from_the_bounds_of_the_caller(compiled):
    """The same memory, seen as a field from -1 on in one function and from 4 on in the other."""
    text = """
!near = !stencil.field<[-1,9]xf64>
!far = !stencil.field<[4,14]xf64>
!temp = !stencil.temp<?xf64>
func.func @inner(%m: memref<10xf64>) {
  %u = stencil.external_load %m : memref<10xf64> -> !far
  %t = stencil.load %u : !far -> !temp
  %r = stencil.apply(%a = %t : !temp) -> (!temp) {
    %0 = stencil.access %a[0] : !temp
    %1 = arith.mulf %0, %0 : f64
    stencil.return %1 : f64
  }
  stencil.store %r to %u(<[6], [9]>) : !temp to !far
  return
}
func.func @outer(%m: memref<10xf64>) {
  %u = stencil.external_load %m : memref<10xf64> -> !near
  func.call @inner(%m) : (memref<10xf64>) -> ()
  return
}
"""
    program = compiled(text, function="outer")
    assert program.outputs[0].interior == ((2,), (5,))
    u = np.arange(10.0)
    expected = u.copy()
    expected[2:5] **= 2
    np.testing.assert_array_equal(program(u), expected)


def test_functions_that_call_themselves_are_refused(compiled):
    text = f"""{LINE_TYPES}
func.func @f(%u: !field, %v: !field) {{
  {average("0", "%u", "%v")}
  func.call @g(%u, %v) : (!field, !field) -> ()
  return
}}
func.func @g(%u: !field, %v: !field) {{
  func.call @f(%u, %v) : (!field, !field) -> ()
  return
}}
"""
    with pytest.raises(TwofourError, match="no function that calls itself, got @f") as seen:
        compiled(text, function="f")
    assert seen.value.location.line == 23


def test_functions_that_are_values_are_not_called(compiled):
    text = """
func.func @f(%a: memref<10xf64>, %b: memref<10xf64>) {
  memref.copy %a, %b : memref<10xf64> to memref<10xf64>
  %f = func.constant @f : (memref<10xf64>, memref<10xf64>) -> ()
  func.call_indirect %f(%a, %b) : (memref<10xf64>, memref<10xf64>) -> ()
  return
}
"""
    with pytest.raises(TwofourError, match="expected a call of a function by its name") as seen:
        compiled(text)
    assert seen.value.location.line == 5
