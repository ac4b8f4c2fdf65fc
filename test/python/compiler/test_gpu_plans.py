# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""What a function may do besides sweeping where a GPU runs it, and where it is refused."""

import numpy as np
import pytest

import twofour
from twofour.errors import TwofourError

SWEEP = """
    %t = stencil.load %u : !field -> !temp
    %r = stencil.apply(%a = %t : !temp, %f = %k : f64) -> (!temp) {
      %l = stencil.access %a[-1] : !temp
      %p = arith.mulf %l, %f : f64
      stencil.return %p : f64
    }
    stencil.store %r to %v(<[0], [8]>) : !temp to !field"""
PROGRAM = """
!field = !stencil.field<[-1,9]xf64>
!temp = !stencil.temp<?xf64>
func.func @f(%u: !field, %v: !field, %m: memref<10xf64>, %k: f64, %n: index, %flag: i1) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c4 = arith.constant 4 : index
BODY
  return
}
"""


def compiled(tmp_path, body: str, functions: str = ""):
    path = tmp_path / "program.mlir"
    path.write_text(PROGRAM.replace("BODY", body) + functions)
    return twofour.compile(str(path), target="sim:sm_90", function="f")


LOOP = "expected constants or integer arguments as bounds of a loop, for a GPU target"
ONLY = "expected sweeps, copies and loops over them only, for a GPU target"


@pytest.mark.parametrize(
    ("body", "op", "message"),
    [
        (f"%x = memref.load %m[%c1] : memref<10xf64>\n{SWEEP}", "memref.load", ONLY),
        (f"memref.store %k, %m[%c1] : memref<10xf64>\n{SWEEP}", "memref.store", ONLY),
        (f"scf.if %flag {{{SWEEP}\n}}", "scf.if", ONLY),
        (
            f"""%w = scf.while (%i = %c0) : (index) -> index {{
    %more = arith.cmpi slt, %i, %n : index
    scf.condition(%more) %i : index
  }} do {{
  ^bb0(%i: index):
{SWEEP}
    %next = arith.addi %i, %c1 : index
    scf.yield %next : index
  }}""",
            "scf.while",
            ONLY,
        ),
        (
            f"%e = arith.addi %n, %c1 : index\nscf.for %i = %c0 to %e step %c1 {{{SWEEP}\n}}",
            "scf.for",
            LOOP,
        ),
        (
            f"scf.for %i = %c0 to %c4 step %n {{{SWEEP}\n}}",
            "scf.for",
            "expected a loop with a constant positive step",
        ),
        (
            f"""scf.for %i = %c0 to %c4 step %c1 {{
    scf.for %j = %c0 to %i step %c1 {{{SWEEP}
    }}
  }}""",
            "scf.for",
            LOOP,
        ),
        (
            f"""%s = scf.for %i = %c0 to %c4 step %c1 iter_args(%x = %k) -> (f64) {{
{SWEEP}
    %y = arith.mulf %x, %k : f64
    scf.yield %y : f64
  }}""",
            "scf.for",
            "expected a loop that carries fields only",
        ),
        (
            f"""%i0 = arith.constant 0 : i32
  %i1 = arith.constant 1 : i32
  scf.for %i = %i0 to %i1 step %i1 : i32 {{
{SWEEP}
  }}""",
            "scf.for",
            "expected a loop over values of type index, got i32",
        ),
        (
            f"""%z = scf.for %i = %c0 to %c4 step %c1 iter_args(%x = %m) -> (memref<10xf64>) {{
    %own = memref.alloc() : memref<10xf64>
{SWEEP}
    scf.yield %own : memref<10xf64>
  }}""",
            "scf.for",
            "expected a loop that carries fields from outside of it",
        ),
        (f"%d = memref.alloc(%n) : memref<?xf64>\n{SWEEP}", "memref.alloc", "of static extents"),
        (
            "%x = memref.subview %m[0] [5] [2] : memref<10xf64> to memref<5xf64, strided<[2]>>"
            f"\n{SWEEP}",
            "memref.subview",
            "expected a view of static offsets, extents, and strides 1",
        ),
    ],
)
def test_what_a_gpu_does_not_run_is_refused_at_the_op(tmp_path, body, op, message):
    with pytest.raises(TwofourError) as caught:
        compiled(tmp_path, body)
    assert caught.value.message.startswith(f"'{op}' op expected") and message in str(caught.value)
    lines = PROGRAM.replace("BODY", body).splitlines()
    innermost = [number for number, line in enumerate(lines, 1) if op in line][-1]
    assert caught.value.location.line == innermost


def test_buffers_of_the_file_and_a_called_function(tmp_path):
    """Called in a loop: the result goes to a buffer that the function allocates."""
    body = """
  %b = memref.alloc() : memref<10xf64>
  "memref.copy"(%m, %b) : (memref<10xf64>, memref<10xf64>) -> ()
  %w = stencil.external_load %b : memref<10xf64> -> !field
  scf.for %i = %c0 to %c4 step %c1 {
    func.call @scale(%u, %w, %k) : (!field, !field, f64) -> ()
    func.call @scale(%w, %u, %k) : (!field, !field, f64) -> ()
  }
  stencil.external_store %w to %m : !field to memref<10xf64>
  %t = stencil.load %u : !field -> !temp
  %r = stencil.apply(%a = %t : !temp) -> (!temp) {
    %l = stencil.access %a[0] : !temp
    stencil.return %l : f64
  }
  stencil.store %r to %v(<[0], [8]>) : !temp to !field"""
    scale = f"\nfunc.func @scale(%u: !field, %v: !field, %k: f64) {{{SWEEP}\n  return\n}}\n"
    program = compiled(tmp_path, body, scale)
    random = np.random.default_rng(0)
    u, m = random.random(10), random.random(10)
    got = dict(
        zip(
            (field.position for field in program.outputs),
            program(u, m, scalars=[1.5, 0, 0]),
            strict=True,
        )
    )
    for _ in range(4):
        m[1:9] = 1.5 * u[:8]
        u[1:9] = 1.5 * m[:8]
    np.testing.assert_allclose(got[1][1:9], u[1:9], rtol=1e-13)
    np.testing.assert_allclose(got[2], m, rtol=1e-13)


def test_numbers_that_the_function_computes(tmp_path):
    body = f"%half = arith.mulf %k, %k : f64\n  %root = math.sqrt %half : f64{SWEEP}"
    program = compiled(tmp_path, body.replace("%f = %k", "%f = %root"))
    u = np.random.default_rng(0).random(10)
    np.testing.assert_array_equal(program(u, scalars=[2.5, 0, 0])[1:9], 2.5 * u[:8])


def test_explain_takes_one_round_of_a_loop_and_the_kernel_that_computes(tmp_path):
    body = f"scf.for %i = %c4 to %n step %c1 {{{SWEEP.replace('to %v', 'to %u')}\n  }}"
    report = compiled(tmp_path, body).explain()
    # The sweep writes whole sectors of a buffer of its own; copies from and to the field do not.
    assert report["counters"]["global_store_bytes"] == 8


def test_a_program_without_results(tmp_path):
    path = tmp_path / "program.mlir"
    path.write_text("func.func @f(%k: f64) {\n  return\n}\n")
    with pytest.raises(TwofourError, match="expected a function with fields"):
        twofour.compile(str(path), target="sm_90")
    path.write_text("func.func @f(%u: !stencil.field<[0,4]xf64>) {\n  return\n}\n")
    with pytest.raises(TwofourError, match="expected a function that stores to a field"):
        twofour.compile(str(path), target="sm_90")
