# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""What the compiler for the CPU hands to LLVM, beside the kernels' code."""

import ctypes

import pytest

from twofour.cli.main import main
from twofour.mlir import execution_engine, ir
from twofour.mlir_support import nested_ops
from twofour.targets.cpu.jit import CompiledModule
from twofour.targets.cpu.rolled_loops import keep_rolled

LOOPS = """
func.func @fill(%n: index, %u: memref<?x?xf64>, %x: f64) {
  %0 = arith.constant 0 : index
  %1 = arith.constant 1 : index
  scf.for %i = %0 to %n step %1 {
    %inside = arith.cmpi slt, %i, %n : index
    scf.if %inside {
      scf.for %j = %0 to %n step %1 { memref.store %x, %u[%i, %j] : memref<?x?xf64> }
    }
  }
  scf.for %i = %0 to %n step %1 { memref.store %x, %u[%i, %0] : memref<?x?xf64> }
  return
}
"""
CALLS = """
func.func private @nine() -> i64 {
  %9 = arith.constant 9 : i64
  return %9 : i64
}
func.func @put(%place: !llvm.ptr) attributes {llvm.emit_c_interface} {
  %9 = call @nine() : () -> i64
  llvm.store %9, %place : i64, !llvm.ptr
  return
}
"""


@pytest.fixture
def context():
    with ir.Context() as context, ir.Location.unknown():
        yield context


def test_loops_that_hold_others_are_not_unrolled(context):
    module = ir.Module.parse(LOOPS)
    keep_rolled(module)
    marked = ["loop_annotation" in loop.attributes for loop in nested_ops(module, "scf.for")]
    assert marked == [True, False, False]


def test_llvm_is_told_which_loops_it_shall_not_unroll(capfd):
    assert main(["compile", "heat2d_ftcs", "--emit", "llvm"]) == 0
    assert "llvm.loop.unroll.disable" in capfd.readouterr().out


def test_only_addresses_are_seen_from_outside(context, monkeypatch):
    seen = []

    def engine(module, **options):
        seen.extend(
            op.attributes["sym_name"].value
            for op in nested_ops(module, "llvm.func")
            if "internal" not in str(op.attributes["linkage"])
        )
        return build(module, **options)

    build = execution_engine.ExecutionEngine
    monkeypatch.setattr(execution_engine, "ExecutionEngine", engine)
    compiled = CompiledModule(ir.Module.parse(CALLS))
    assert len(seen) == 1 and seen[0].endswith("_address")
    place = ctypes.c_int64()
    put = ctypes.CFUNCTYPE(None, ctypes.c_void_p)(compiled.address("put"))
    put(ctypes.addressof(place))
    assert place.value == 9
