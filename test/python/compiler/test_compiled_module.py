# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""What the compiler for the CPU hands to LLVM, beside the kernels' code."""

import ctypes
import re

import pytest

from twofour.cli.main import main
from twofour.codegen.rolled_loops import keep_outer_loops_rolled
from twofour.mlir import execution_engine, ir
from twofour.mlir_support import nested_ops
from twofour.runtime.recent import Recent
from twofour.targets.cpu import jit
from twofour.targets.cpu.jit import CompiledModule

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
# The sum of what it was given so far.
SUM = """
memref.global "private" @sum : memref<1xi64> = dense<0>
func.func @add(%x: i64, %place: !llvm.ptr) attributes {llvm.emit_c_interface} {
  %0 = arith.constant 0 : index
  %sum = memref.get_global @sum : memref<1xi64>
  %before = memref.load %sum[%0] : memref<1xi64>
  %after = arith.addi %before, %x : i64
  memref.store %after, %sum[%0] : memref<1xi64>
  llvm.store %after, %place : i64, !llvm.ptr
  return
}
"""


@pytest.fixture
def context():
    with ir.Context() as context, ir.Location.unknown():
        yield context


def test_loops_that_hold_others_are_not_unrolled(context):
    module = ir.Module.parse(LOOPS)
    keep_outer_loops_rolled(module)
    marked = ["loop_annotation" in loop.attributes for loop in nested_ops(module, "scf.for")]
    assert marked == [True, False, False]


def test_llvm_is_told_which_loops_it_shall_not_unroll(capfd):
    assert main(["compile", "heat2d_ftcs", "--emit", "llvm"]) == 0
    assert "llvm.loop.unroll.disable" in capfd.readouterr().out


def test_kernels_align_their_stacks(capfd):
    assert main(["compile", "heat2d_ftcs", "--emit", "llvm"]) == 0
    text = capfd.readouterr().out
    groups = dict(re.findall(r"^attributes (#\d+) = (.*)$", text, re.M))
    kernels = re.findall(r"^define .*@[\w.]*kernel\w*\(.*$", text, re.M)
    assert len(kernels) == 4
    for kernel in kernels:
        assert "alignstack=64" in groups[kernel.split()[-2]], kernel


@pytest.fixture
def compiled(monkeypatch):
    """The functions seen from outside of each module that LLVM compiles, none before."""
    found = []

    def engine(module, **options):
        found.append(
            [
                op.attributes["sym_name"].value
                for op in nested_ops(module, "llvm.func")
                if "internal" not in str(op.attributes["linkage"])
            ]
        )
        return build(module, **options)

    build = execution_engine.ExecutionEngine
    monkeypatch.setattr(execution_engine, "ExecutionEngine", engine)
    monkeypatch.setattr(jit, "RECENT", Recent(2))
    return found


def call(code: CompiledModule, name: str, *arguments: int) -> int:
    """What a function leaves at the place that is its last argument."""
    place = ctypes.c_int64()
    types = [ctypes.c_int64] * len(arguments)
    function = ctypes.CFUNCTYPE(None, *types, ctypes.c_void_p)(code.address(name))
    function(*arguments, ctypes.addressof(place))
    return place.value


def test_only_addresses_are_seen_from_outside(context, compiled):
    code = CompiledModule(ir.Module.parse(CALLS))
    ((seen,),) = compiled
    assert seen.endswith("_address")
    assert call(code, "put") == 9


def test_modules_that_come_to_the_same_share_their_code(context, compiled):
    first = CompiledModule(ir.Module.parse(CALLS))
    other = CompiledModule(ir.Module.parse(CALLS.replace("arith.constant 9", "arith.constant 8")))
    again = CompiledModule(ir.Module.parse(CALLS.replace("@put", "@set")))
    assert len(compiled) == 2
    assert again.address("set") == first.address("put")
    assert [call(first, "put"), call(other, "put"), call(again, "set")] == [9, 8, 9]


def test_programs_have_variables_of_their_own(context, compiled):
    first, other = (CompiledModule(ir.Module.parse(SUM)) for _ in range(2))
    assert len(compiled) == 2
    assert [call(code, "add", 3) for code in (first, other, first)] == [3, 3, 6]
