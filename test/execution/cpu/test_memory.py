# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Programs whose fields are read and written in other ways than by loads and stores of grids."""

import numpy as np

FIELD = "!stencil.field<#stencil.bounds<[-1], [9]>, f64>"
TEMP = "!stencil.temp<1 : i64, f64>"
BOUNDS = "#stencil.bounds<[-1], [9]>"
WHOLE = f"!stencil.temp<{BOUNDS}, f64>"


def apply(name: str, factor: str) -> str:
    """An apply that multiplies the temp %t by a scalar."""
    return f"""
  %{name} = "stencil.apply"() ({{
    %a = "stencil.access"(%t) {{offset = array<i64: 0>}} : ({TEMP}) -> f64
    %p = arith.mulf %a, {factor} : f64
    "stencil.return"(%p) : (f64) -> ()
  }}) : () -> {TEMP}"""


def store(temp: str, field: str) -> str:
    bounds = "{bounds = #stencil.bounds<[0], [8]>}"
    return f'"stencil.store"({temp}, {field}) {bounds} : ({TEMP}, {FIELD}) -> ()'


def load(temp: str, field: str) -> str:
    return f'{temp} = "stencil.load"({field}) : ({FIELD}) -> {TEMP}'


def test_table_read_inside_an_apply(compiled):
    program = compiled(f"""
func.func @f(%u: {FIELD}, %v: {FIELD}, %table: memref<2xf64>) {{
  {load("%t", "%u")}
  %r = "stencil.apply"() ({{
    %i = arith.constant 1 : index
    %w = memref.load %table[%i] : memref<2xf64>
    %a = "stencil.access"(%t) {{offset = array<i64: 0>}} : ({TEMP}) -> f64
    %p = arith.mulf %a, %w : f64
    "stencil.return"(%p) : (f64) -> ()
  }}) : () -> {TEMP}
  {store("%r", "%v")}
  return
}}""")
    u = np.arange(10.0)
    np.testing.assert_array_equal(program(u, np.array([2.0, 3.0]))[1:9], 3 * u[1:9])


def test_table_that_was_stored_to(compiled):
    """Its reader must not be computed together with what is stored."""
    program = compiled(f"""
func.func @f(%u: {FIELD}, %m: memref<10xf64>, %v: {FIELD}) {{
  %field = "stencil.external_load"(%m) : (memref<10xf64>) -> {FIELD}
  {load("%t", "%u")}
  %two = arith.constant 2.0 : f64
  {apply("r", "%two")}
  {store("%r", "%field")}
  %s = "stencil.apply"() ({{
    %i = arith.constant 4 : index
    %w = memref.load %m[%i] : memref<10xf64>
    %a = "stencil.access"(%t) {{offset = array<i64: 0>}} : ({TEMP}) -> f64
    %p = arith.mulf %a, %w : f64
    "stencil.return"(%p) : (f64) -> ()
  }}) : () -> {TEMP}
  {store("%s", "%v")}
  return
}}""")
    u = np.arange(10.0)
    table, product = program(u, np.zeros(10))
    np.testing.assert_array_equal(table[1:9], 2 * u[1:9])
    np.testing.assert_array_equal(product[1:9], u[1:9] * 2 * u[4])


def test_memory_read_before_a_store_holds_the_old_value(compiled_for_cpu):
    program = compiled_for_cpu(f"""
func.func @f(%u: {FIELD}, %m: memref<10xf64>, %v: {FIELD}) {{
  %field = "stencil.external_load"(%m) : (memref<10xf64>) -> {FIELD}
  {load("%t", "%u")}
  %two = arith.constant 2.0 : f64
  {apply("r", "%two")}
  %i = arith.constant 1 : index
  %old = memref.load %m[%i] : memref<10xf64>
  {store("%r", "%field")}
  {apply("s", "%old")}
  {store("%s", "%v")}
  return
}}""")
    u = np.arange(10.0)
    first, second = program(u, 7 * np.ones(10))
    np.testing.assert_array_equal(first[1:9], 2 * u[1:9])
    np.testing.assert_array_equal(second[1:9], 7 * u[1:9])


def test_temp_keeps_its_value_when_memory_is_written(compiled_for_cpu):
    program = compiled_for_cpu(f"""
func.func @f(%m: memref<10xf64>, %v: {FIELD}) {{
  %field = "stencil.external_load"(%m) : (memref<10xf64>) -> {FIELD}
  {load("%t", "%field")}
  %i = arith.constant 3 : index
  %big = arith.constant 1000.0 : f64
  memref.store %big, %m[%i] : memref<10xf64>
  {apply("r", "%big")}
  {store("%r", "%v")}
  return
}}""")
    u = np.arange(10.0)
    np.testing.assert_array_equal(program(u)[1:9], 1000 * u[1:9])


def test_temp_keeps_its_value_across_a_call(compiled):
    program = compiled(
        f"""
func.func @clear(%u: {FIELD}) {{
  {load("%t", "%u")}
  %zero = arith.constant 0.0 : f64
  %x = "stencil.apply"() ({{
    %a = "stencil.access"(%t) {{offset = array<i64: 0>}} : ({TEMP}) -> f64
    %p = arith.mulf %a, %a : f64
    %q = arith.mulf %p, %zero : f64
    "stencil.return"(%q) : (f64) -> ()
  }}) : () -> {TEMP}
  {store("%x", "%u")}
  return
}}
func.func @f(%u: {FIELD}, %v: {FIELD}) {{
  {load("%t", "%u")}
  func.call @clear(%u) : ({FIELD}) -> ()
  %two = arith.constant 2.0 : f64
  {apply("r", "%two")}
  {store("%r", "%v")}
  return
}}""",
        function="f",
    )
    u = np.arange(10.0)
    cleared, doubled = program(u)
    np.testing.assert_array_equal(cleared[1:9], 0)
    np.testing.assert_array_equal(doubled[1:9], 2 * u[1:9])


def test_external_store_of_a_view_leaves_the_boundary_alone(compiled):
    text = f"""
func.func @f(%a: memref<10xf64>, %b: memref<10xf64>) {{
  %u = "stencil.external_load"(%a) : (memref<10xf64>) -> {FIELD}
  %v = "stencil.external_load"(%b) : (memref<10xf64>) -> {FIELD}
  {load("%t", "%u")}
  %r = "stencil.apply"() ({{
    %a0 = "stencil.access"(%t) {{offset = array<i64: -1>}} : ({TEMP}) -> f64
    "stencil.return"(%a0) : (f64) -> ()
  }}) : () -> {TEMP}
  {store("%r", "%v")}
  "stencil.external_store"(%v, %b) : ({FIELD}, memref<10xf64>) -> ()
  return
}}"""
    u = np.arange(10.0)
    got = compiled(text, boundary="periodic")(u, steps=2)
    np.testing.assert_array_equal(got[1:9], np.roll(u[1:9], 2))


def test_other_functions_of_the_file_do_not_matter(compiled):
    text = f"""
func.func @big(%u: {FIELD}, %v: {FIELD}) {{
  {load("%t", "%u")}
  %half = arith.constant 0.5 : f64
  {apply("r", "%half")}
  {store("%r", "%v")}
  return
}}
func.func @other(%u: !stencil.field<#stencil.bounds<[0], [1]>, f32>) {{
  return
}}"""
    program = compiled(text, function="big", fuse_steps=2, dtype="f32")
    u = np.arange(10, dtype=np.float32)
    np.testing.assert_array_equal(program(u, steps=2)[1:9], u[1:9] / 4)


def test_memory_of_no_axis_that_nothing_reads(compiled_for_cpu):
    memory = "memref<10xf64>"
    program = compiled_for_cpu(f"""
func.func @f(%a: {memory}, %b: {memory}, %number: memref<f64>) {{
  %u = "stencil.external_load"(%a) : ({memory}) -> {FIELD}
  %v = "stencil.external_load"(%b) : ({memory}) -> {FIELD}
  %t = "stencil.load"(%u) : ({FIELD}) -> {WHOLE}
  "stencil.store"(%t, %v) {{bounds = {BOUNDS}}} : ({WHOLE}, {FIELD}) -> ()
  return
}}
""")
    u = np.arange(1.0, 11.0)
    np.testing.assert_array_equal(program(u), u)


def test_a_number_in_memory_and_a_buffer_of_any_length(compiled_for_cpu):
    program = compiled_for_cpu(f"""
func.func @f(%u: {FIELD}, %v: {FIELD}, %number: memref<f64>) {{
  %ten = arith.constant 10 : index
  %buffer = memref.alloc(%ten) : memref<?xf64>
  %s = memref.load %number[] : memref<f64>
  {load("%t", "%u")}
  {apply("r", "%s")}
  {store("%r", "%v")}
  memref.dealloc %buffer : memref<?xf64>
  return
}}
""")
    u = np.arange(10.0)
    expected = u.copy()
    expected[1:9] *= 27
    np.testing.assert_array_equal(program(u, np.array(3.0), steps=3), expected)
