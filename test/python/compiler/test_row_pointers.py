# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Inner loops that step through rows do what they did."""

import ctypes

import numpy as np
import pytest

from twofour.codegen.cpu.kernel_abi import INPUTS_ATTRIBUTE
from twofour.kernels import built_in_kernels
from twofour.mlir import ir
from twofour.mlir_support import functions, nested_ops, op_names
from twofour.options import CompileOptions
from twofour.runtime.native import descriptor
from twofour.targets.cpu.build import compile_cpu
from twofour.targets.cpu.jit import CompiledModule, lower_to_llvm
from twofour.targets.cpu.linking import C_INTERFACE
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
        STORE
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

INSIDE = """\
%w = memref.cast %u : VIEW to VIEW
%r = vector.load %w[%i, %j, %x] : VIEW, vector<4xf64>"""
NUMBER = """\
%number = memref.load %u[%i, %j, %x] : VIEW
%r = vector.broadcast %number : f64 to vector<4xf64>"""
STORE = "vector.store %r, %v[%i, %j, %x] : VIEW, vector<4xf64>"
MASKED_STORE = """\
%most = vector.constant_mask [3] : vector<4xi1>
vector.maskedstore %v[%i, %j, %x], %most, %r : VIEW, vector<4xi1>, vector<4xf64>"""
STORED_NUMBER = """\
%y = vector.extract %r[2] : f64 from vector<4xf64>
memref.store %y, %v[%i, %j, %x] : VIEW"""


def loaded(indices):
    return f"%r = vector.load %u[{indices}] : VIEW, vector<4xf64>"


def summed(*places):
    """The sum of vectors that lie planes, rows and columns further."""
    lines = ["%sum0 = arith.constant dense<0.0> : vector<4xf64>"]
    for n, place in enumerate(places):
        for axis, base, by in zip("abc", ("%i", "%j", "%x"), place, strict=True):
            lines.append(f"%by{axis}{n} = arith.constant {by} : index")
            lines.append(f"%{axis}{n} = arith.addi {base}, %by{axis}{n} : index")
        indices = ", ".join(f"%{axis}{n}" for axis in "abc")
        lines.append(f"%u{n} = vector.load %u[{indices}] : VIEW, vector<4xf64>")
        lines.append(f"%sum{n + 1} = arith.addf %sum{n}, %u{n} : vector<4xf64>")
    return "\n".join([*lines, f"%r = arith.addf %sum{len(places)}, %sum0 : vector<4xf64>"])


def part(planes=0, rows=0, columns=0):
    return U[planes : planes + 5, rows : rows + 6, columns : columns + 12]


def sum_of(*places):
    return sum(part(*place) for place in places)


STAR = (0, 1, 4), (1, 0, 4), (1, 1, 0), (1, 1, 4), (1, 1, 7), (1, 2, 4), (3, 1, 4)
DOWNWARDS = (6, 3, 0), (6, 2, 0), (4, 3, 0), (4, 0, 0), (0, 2, 0)
ROWS = [(0, n, 0) for n in (0, 1, 2, 0, 3, 1)]
IN_FOURS = np.arange(12) // 4 * 4

# What is loaded and stored, the result, and how many pointers to rows there are.
CASES = {
    "at": (loaded("%i, %j, %x"), STORE, part(), 2),
    "further": (FURTHER, STORE, U[4:9, 1:7, 3:15], 2),
    "a star": (summed(*STAR), STORE, sum_of(*STAR), 6),
    "downwards": (summed(*DOWNWARDS), STORE, sum_of(*DOWNWARDS), 6),
    "rows again": (summed(*ROWS), STORE, sum_of(*ROWS), 5),
    "view made in the loop": (INSIDE, STORE, part(), 1),
    "constant": (loaded("%4, %j, %x"), STORE, np.broadcast_to(U[4, :6, :12], (5, 6, 12)), 2),
    "constants alone": (loaded("%4, %3, %2"), STORE, np.tile(U[4, 3, 2:6], (5, 6, 3)), 2),
    "backwards": (loaded("%i, %back, %x"), STORE, U[:5, 6:0:-1, :12], 2),
    "masked": (MASKED, STORE, np.broadcast_to(U[:5, 1:2, :12], (5, 6, 12)), 2),
    "masked store": (loaded("%i, %j, %x"), MASKED_STORE, part() * (np.arange(12) % 4 < 3), 2),
    "number": (NUMBER, STORE, part()[:, :, IN_FOURS], 2),
    "stored number": (
        loaded("%i, %j, %x"),
        STORED_NUMBER,
        part(columns=2) * (np.arange(12) % 4 == 0),
        2,
    ),
    "changing": (
        loaded("%x, %j, %0"),
        STORE,
        np.broadcast_to(U[:12:4, :6, :4].swapaxes(0, 1).reshape(6, 12), (5, 6, 12)),
        1,
    ),
}


def words(array, offset):
    """A descriptor whose offset counts."""
    _, _, _, *rest = descriptor(array)
    start = array.ctypes.data - offset * array.itemsize
    return (ctypes.c_int64 * (3 + len(rest)))(start, start, offset, *rest)


def pointed(load, store):
    """The function that loads and stores so, with pointers to rows."""
    text = FUNCTION.replace("LOAD", load).replace("STORE", store).replace("VIEW", VIEW)
    module = ir.Module.parse(text)
    point_at_rows(functions(module.operation)[0])
    assert module.operation.verify()
    return module


@pytest.mark.parametrize("load, store, expected, count", CASES.values(), ids=CASES)
def test_loops_do_what_they_did(load, store, expected, count):
    result = np.zeros((5, 6, 12))
    with ir.Context(), ir.Location.unknown():
        module = pointed(load, store)
        assert len(nested_ops(module, "llvm.intr.strip.invariant.group")) == count
        copy = CompiledModule(module)
        call = ctypes.CFUNCTYPE(None, *[ctypes.c_void_p] * 2)(copy.address("copy"))
        call(words(U, 5), words(result, 7))
    np.testing.assert_array_equal(result, expected)


def hidden(module):
    """What the pointers are before LLVM does not see through them any more."""
    return [op.operands[0].owner for op in nested_ops(module, "llvm.intr.strip.invariant.group")]


def test_rows_of_a_plane_are_one_step_apart():
    with ir.Context(), ir.Location.unknown():
        module = pointed(summed(*((0, n, 0) for n in range(4)), *((2, n, 0) for n in range(4))), "")
        _, *further = hidden(module)
        steps = [op.operands[1] for op in further]
    assert len(steps) == 7
    assert len({*steps[:3], *steps[4:]}) == 1
    assert steps[3] not in steps[:3]


def test_prefetches_have_pointers_of_their_own():
    fetch = "memref.prefetch %v[%i, %j, %x], write, locality<3>, data : VIEW\n"
    with ir.Context(), ir.Location.unknown():
        assert len(hidden(pointed(fetch + loaded("%i, %j, %x"), STORE))) == 3


def test_accesses_keep_what_they_say_of_themselves():
    fetch = "memref.prefetch %u[%i, %1, %x], write, locality<2>, data : VIEW\n"
    past = STORE.replace(" : ", " {nontemporal = true, alignment = 32 : i64} : ")
    with ir.Context(), ir.Location.unknown():
        text = str(pointed(fetch + loaded("%i, %j, %x"), past))
    assert '"llvm.intr.prefetch"' in text
    assert "cache = 1 : i32, hint = 2 : i32, rw = 1 : i32" in text
    assert "{alignment = 32 : i64, nontemporal} : vector<4xf64>" in text
    assert "{alignment = 8 : i64} : !llvm.ptr -> vector<4xf64>" in text


@pytest.mark.parametrize("name", ["heat2d_ftcs", "heat3d_ftcs"])
def test_kernels_have_no_other_accesses(name):
    compiled = compile_cpu(built_in_kernels()[name], CompileOptions(dtype="f64"), whole=True)
    names = set()
    with compiled.module.context, ir.Location.unknown():
        for function in functions(compiled.module.operation):
            if INPUTS_ATTRIBUTE in function.attributes:
                point_at_rows(function)
                names |= op_names(function)
    assert "llvm.load" in names
    assert not names & {"vector.load", "vector.maskedload", "vector.store", "vector.maskedstore"}


def test_kernels_that_are_lowered_step_through_rows():
    options = CompileOptions(dtype="f64")
    compiled = compile_cpu(built_in_kernels()["heat2d_ftcs"], options, whole=True)
    with compiled.module.context, ir.Location.unknown():
        lower_to_llvm(compiled.module)
    kernels = [
        op
        for op in compiled.module.body.operations
        if INPUTS_ATTRIBUTE in op.attributes and not op.sym_name.value.startswith(C_INTERFACE)
    ]
    assert len(kernels) == 2
    assert all("llvm.intr.strip.invariant.group" in op_names(kernel) for kernel in kernels)


LOOPS = """
func.func @fill(%n: index, %u: memref<?x?xf64>, %v: memref<?xf64>, %x: vector<1xf64>) {
  %0 = arith.constant 0 : index
  %1 = arith.constant 1 : index
  scf.for %i = %0 to %n step %1 {
    vector.store %x, %u[%0, %i] : memref<?x?xf64>, vector<1xf64>
    scf.for %j = %0 to %n step %1 { vector.store %x, %v[%j] : memref<?xf64>, vector<1xf64> }
  }
  return
}"""
WITHOUT_VECTORS = """
func.func @fill(%n: index, %u: memref<?x?xf64>, %x: f64) {
  %0 = arith.constant 0 : index
  %1 = arith.constant 1 : index
  scf.for %i = %0 to %n step %1 {
    scf.for %j = %0 to %n step %1 { memref.store %x, %u[%i, %j] : memref<?x?xf64> }
  }
  return
}"""


@pytest.mark.parametrize("text", [LOOPS, WITHOUT_VECTORS], ids=["outer, one axis", "no vectors"])
def test_others_stay_as_they_are(text):
    with ir.Context(), ir.Location.unknown():
        module = ir.Module.parse(text)
        before = str(module)
        point_at_rows(functions(module.operation)[0])
        assert str(module) == before
