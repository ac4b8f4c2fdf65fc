# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Inner loops that go on from pointers to rows do what they did."""

import ctypes

import numpy as np
import pytest

from twofour.mlir import ir
from twofour.mlir_support import functions, nested_ops
from twofour.runtime.native import descriptor
from twofour.targets.cpu.jit import CompiledModule
from twofour.targets.cpu.row_pointers import point_at_rows

VIEW = "memref<?x?x?xf64, strided<[?, ?, 1], offset: ?>>"
FUNCTION = """
func.func @copy(%u: VIEW, %v: VIEW) attributes {llvm.emit_c_interface} {
  %0 = arith.constant 0 : index
  %1 = arith.constant 1 : index
  %2 = arith.constant 2 : index
  %3 = arith.constant 3 : index
  %4 = arith.constant 4 : index
  %n = memref.dim %v, %0 : VIEW
  %m = memref.dim %v, %1 : VIEW
  %k = memref.dim %v, %2 : VIEW
  scf.for %i = %0 to %n step %1 {
    %outside = arith.addi %i, %3 : index
    scf.for %j = %0 to %m step %1 {
      %back = arith.subi %m, %j : index
      scf.for %x = %0 to %k step %4 {
        LOAD
        vector.store %r, %v[%i, %j, %x] : VIEW, vector<4xf64>
      }
    }
  }
  return
}
"""
U = np.random.default_rng(7).uniform(-1, 1, (12, 9, 24))
MASKED = """\
%left = arith.subi %k, %x : index
%mask = vector.create_mask %left : vector<4xi1>
%none = arith.constant dense<0.0> : vector<4xf64>
%r = vector.maskedload %u[%i, %1, %x], %mask, %none
  : VIEW, vector<4xi1>, vector<4xf64> into vector<4xf64>"""
FURTHER = """\
%a = arith.addi %outside, %1 : index
%b = arith.addi %j, %1 : index
%c = arith.addi %x, %3 : index
%r = vector.load %u[%a, %b, %c] : VIEW, vector<4xf64>"""

TWICE = """\
%a = arith.addi %i, %1 : index
%here = vector.load %u[%i, %j, %x] : VIEW, vector<4xf64>
%there = vector.load %u[%a, %j, %x] : VIEW, vector<4xf64>
%r = arith.addf %here, %there : vector<4xf64>"""

INSIDE = """\
%w = memref.cast %u : VIEW to VIEW
%r = vector.load %w[%i, %j, %x] : VIEW, vector<4xf64>"""


def loaded(indices):
    return f"%r = vector.load %u[{indices}] : VIEW, vector<4xf64>"


# What is loaded, what the result is then, and how many of the two views begin elsewhere.
CASES = {
    "at": (loaded("%i, %j, %x"), U[:5, :6, :12], 2),
    "further": (FURTHER, U[4:9, 1:7, 3:15], 2),
    "twice": (TWICE, U[:5, :6, :12] + U[1:6, :6, :12], 2),
    "view made in the loop": (INSIDE, U[:5, :6, :12], 1),
    "constant": (loaded("%4, %j, %x"), np.broadcast_to(U[4, :6, :12], (5, 6, 12)), 2),
    "backwards": (loaded("%i, %back, %x"), U[:5, 6:0:-1, :12], 2),
    "masked": (MASKED, np.broadcast_to(U[:5, 1:2, :12], (5, 6, 12)), 2),
    "changing": (
        loaded("%x, %j, %0"),
        np.broadcast_to(U[:12:4, :6, :4].swapaxes(0, 1).reshape(6, 12), (5, 6, 12)),
        1,
    ),
}


def words(array, offset):
    """A descriptor whose offset counts."""
    _, _, _, *rest = descriptor(array)
    start = array.ctypes.data - offset * array.itemsize
    return (ctypes.c_int64 * (3 + len(rest)))(start, start, offset, *rest)


@pytest.mark.parametrize("load, expected, count", CASES.values(), ids=CASES)
def test_loops_do_what_they_did(load, expected, count):
    result = np.zeros((5, 6, 12))
    with ir.Context(), ir.Location.unknown():
        module = ir.Module.parse(FUNCTION.replace("LOAD", load).replace("VIEW", VIEW))
        point_at_rows(functions(module.operation)[0])
        assert module.operation.verify()
        assert len(nested_ops(module, "llvm.intr.launder.invariant.group")) == count
        copy = CompiledModule(module)
        call = ctypes.CFUNCTYPE(None, *[ctypes.c_void_p] * 2)(copy.address("copy"))
        call(words(U, 5), words(result, 7))
    np.testing.assert_array_equal(result, expected)


def test_only_accesses_of_inner_loops_to_several_axes_begin_with_pointers():
    with ir.Context(), ir.Location.unknown():
        module = ir.Module.parse("""
            func.func @fill(%n: index, %u: memref<?x?xf64>, %v: memref<?xf64>, %x: f64) {
              %0 = arith.constant 0 : index
              %1 = arith.constant 1 : index
              scf.for %i = %0 to %n step %1 {
                memref.store %x, %u[%0, %i] : memref<?x?xf64>
                scf.for %j = %0 to %n step %1 { memref.store %x, %v[%j] : memref<?xf64> }
              }
              return
            }""")
        before = str(module)
        point_at_rows(functions(module.operation)[0])
        assert str(module) == before
