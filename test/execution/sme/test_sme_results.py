# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Kernels for Arm SME compute the right values, with one binary at every vector length."""

import dataclasses
import re

import numpy as np
import pytest

from arm_machine import COMPILER, DISASSEMBLER, EMULATOR, HERE, cpu_flags, run_tool
from sme_cases import (
    VECTOR_BITS,
    box,
    build,
    check,
    cross,
    expected_output,
    link,
    random_input,
    star,
    weighted,
)
from twofour.context import make_context
from twofour.kernels import Kernel, built_in_kernels
from twofour.mlir import ir
from twofour.targets.sme.arm_object import to_arm_object
from twofour.targets.sme.build import compile_sme
from twofour.targets.sme.lowering import to_llvm_ir
from twofour.targets.sme.options import SmeOptions

# Below a block at every length, between blocks, and whole blocks up to the end of the arrays.
EXTENTS = {2: ((1, 5), (33, 7), (17, 70), (32, 128)), 3: ((2, 3, 5), (9, 18, 35), (16, 16, 64))}


def check_everywhere(program, kernel, element, extents=None):
    for number, shape in enumerate(extents or EXTENTS[kernel.rank]):
        values = random_input(kernel, shape, element)
        expected = expected_output(kernel, values)
        for place, bits in enumerate(VECTOR_BITS):
            guard = "begin" if (number + place) % 3 == 0 else "end"
            check(program.run(values, bits, guard=guard), expected, element)


@pytest.mark.parametrize(
    ("kernel", "cover", "element"),
    [
        (box(2, 1), "parallel", "f64"),
        (box(2, 2), "parallel", "f32"),
        (box(2, 3), "parallel", "f64"),
        (star(2, 1), "orthogonal", "f64"),
        (star(2, 3), "orthogonal", "f64"),
        (cross(2), "diagonal", "f64"),
        (box(2, 2), "diagonal", "f32"),
        (box(3, 1), "parallel", "f64"),
        (box(3, 1), "auto", "f32"),
        (star(3, 1), "hybrid", "f64"),
        (star(3, 2), "orthogonal", "f64"),
        (star(3, 3), "parallel", "f64"),
        *(
            pytest.param(*case, marks=pytest.mark.full)
            for case in (
                (star(2, 1), "parallel", "f32"),
                (star(2, 2), "orthogonal", "f32"),
                (star(3, 1), "orthogonal", "f32"),
            )
        ),
    ],
    ids=lambda value: getattr(value, "name", value),
)
def test_one_binary_at_every_vector_length(tmp_path, kernel, cover, element):
    check_everywhere(build(tmp_path, kernel, cover, element), kernel, element)


@pytest.mark.parametrize(
    "kernel",
    [
        # To one side only, so that the input begins after the output, or ends before it.
        weighted("upwind", [(0, 1), (0, 2), (1, 1)]),
        weighted("behind", [(-3, -2), (-1, -1)]),
        # Rows of two lines so far apart that the shortest vectors cannot run the schedule.
        weighted("apart", [(-9, 0), (-8, 0), (8, 1), (9, 1)]),
        weighted("single", [(0, 0)]),
        weighted("wide", [(0, o) for o in range(-20, 21, 4)]),
        # Input rows in matrix registers up to the end of the array.
        weighted("along", [(0, o) for o in range(-2, 3)]),
    ],
    ids=lambda kernel: kernel.name,
)
@pytest.mark.parametrize("cover", ["parallel", "orthogonal"])
def test_uneven_reach(tmp_path, kernel, cover):
    check_everywhere(build(tmp_path, kernel, cover), kernel, "f64")


@pytest.mark.parametrize("cover", ["parallel", "orthogonal"])
def test_a_range_of_rows(tmp_path, cover):
    kernel = star(3, 1)
    program = build(tmp_path, kernel, cover)
    values = random_input(kernel, (21, 17, 35), "f64")
    got = program.run(values, 256, rows=(3, 20))
    check(got[3:20], expected_output(kernel, values)[3:20], "f64")
    assert (got[:3] == -77).all() and (got[20:] == -77).all()


PROGRAM = """
func.func @affine(%in: !stencil.field<#stencil.bounds<[-1, -1], [65, 65]>, f64>,
                  %out: !stencil.field<#stencil.bounds<[-1, -1], [65, 65]>, f64>) {
  %t = "stencil.load"(%in) : (!stencil.field<#stencil.bounds<[-1, -1], [65, 65]>, f64>)
    -> !stencil.temp<2 : i64, f64>
  %r = "stencil.apply"() ({
    %a = "stencil.access"(%t) {offset = array<i64: -1, 1>} : (!stencil.temp<2 : i64, f64>) -> f64
    %b = "stencil.access"(%t) {offset = array<i64: 1, -1>} : (!stencil.temp<2 : i64, f64>) -> f64
    %c = "stencil.access"(%t) {offset = array<i64: 1, 1>} : (!stencil.temp<2 : i64, f64>) -> f64
    %h = "stencil.access"(%t) {offset = array<i64: -1, -1>} : (!stencil.temp<2 : i64, f64>) -> f64
    %w = arith.constant 0.5 : f64
    %c0 = arith.constant 0.75 : f64
    %d = arith.mulf %w, %a : f64
    %e = arith.addf %d, %b : f64
    %f = arith.subf %e, %c : f64
    %i = arith.subf %f, %h : f64
    %g = arith.addf %i, %c0 : f64
    %s = "stencil.store_result"(%g) : (f64) -> !stencil.result<f64>
    "stencil.return"(%s) : (!stencil.result<f64>) -> ()
  }) : () -> !stencil.temp<2 : i64, f64>
  "stencil.store"(%r, %out) {bounds = #stencil.bounds<[0, 0], [64, 64]>}
    : (!stencil.temp<2 : i64, f64>, !stencil.field<#stencil.bounds<[-1, -1], [65, 65]>, f64>) -> ()
  return
}
"""


@pytest.mark.parametrize("cover", ["parallel", "orthogonal", "diagonal"])
def test_a_file_with_a_constant(tmp_path, cover):
    path = tmp_path / "affine.mlir"
    path.write_text(PROGRAM)
    compiled = compile_sme(str(path), SmeOptions(cover))
    kernel = weighted("affine", [(-1, 1), (1, -1), (1, 1), (-1, -1)])
    kernel = dataclasses.replace(kernel, weights=(0.5, 1.0, -1.0, -1.0))
    program = link(tmp_path, kernel, "f64", compiled.data, compiled.header)
    values = random_input(kernel, (17, 70), "f64")
    for bits in VECTOR_BITS:
        check(program.run(values, bits), expected_output(kernel, values, 0.75), "f64")


def test_fused_steps(tmp_path):
    kernel = star(2, 1)
    compiled = compile_sme(kernel, SmeOptions(dtype="f64", fuse_steps=2))
    assert "A sweep advances 2 steps." in compiled.header
    twice = weighted("star2d1", [o for o in box(2, 2).offsets if sum(map(abs, o)) <= 2])
    program = link(tmp_path, twice, "f64", compiled.data, compiled.header)
    values = random_input(twice, (17, 70), "f64")
    expected = expected_output(kernel, expected_output(kernel, values).astype(float))
    check(program.run(values, 512), expected, "f64")


def test_infinities_spread_no_further_than_their_tiles(tmp_path):
    """Within these they may, by products with zeros."""
    kernel = box(2, 1)
    program = build(tmp_path, kernel)
    values = random_input(kernel, (16, 128), "f64")
    values[3, 3] = np.inf
    got, expected = program.run(values, 512), expected_output(kernel, values)
    assert not np.isfinite(got[1:4, 1:4]).any()
    check(got[8:], expected[8:], "f64")
    check(got[:, 8:], expected[:, 8:], "f64")


@pytest.mark.parametrize("bits", VECTOR_BITS)
def test_matrices_of_another_owner_are_saved(tmp_path, bits):
    kernel = Kernel("copy", ((0, 0),), (1.0,))
    compiled = compile_sme(kernel, SmeOptions(dtype="f64"))
    (tmp_path / "copy.o").write_bytes(compiled.data)
    (tmp_path / "copy.h").write_text(compiled.header)
    program = tmp_path / "copy"
    flags = ["-static", "-include", tmp_path / "copy.h"]
    run_tool([COMPILER, *flags, HERE / "dormant_za.c", tmp_path / "copy.o", "-o", program])
    run_tool([EMULATOR, *cpu_flags(bits), program])


HEADERS = '#include "copy.h"\n#include "COPY.h"\n'
TWICE = "void twice(const double *in, double *out, const int64_t *n, const int64_t *strides)"
PROGRAM_OF_TWO_KERNELS = """
int main(void) {
  const double u[8] = {1, 2, 3, 4, 5, 6, 7, 8};
  double v[8], w[8];
  const int64_t extents[2] = {2, 4}, strides[1] = {4};
  copy_sweep(u, v, extents, strides, strides);
  twice(v, w, extents, strides);
  for (int i = 0; i < 8; i++)
    if (v[i] != u[i] || w[i] != 2 * u[i]) return 1;
  return 0;
}
"""


@pytest.mark.parametrize("flags", [(), ("-flto",)])
def test_a_program_of_two_kernels(tmp_path, flags):
    """Their names differ in case; each of the two files includes both headers."""
    for name, weight in (("copy", 1.0), ("COPY", 2.0)):
        compiled = compile_sme(Kernel(name, ((0, 0),), (weight,)), SmeOptions(dtype="f64"))
        (tmp_path / f"{name}.o").write_bytes(compiled.data)
        (tmp_path / f"{name}.h").write_text(compiled.header)
    call = "{ COPY_sweep(in, out, n, strides, strides); }"
    (tmp_path / "twice.c").write_text(f"{HEADERS}{TWICE} {call}\n")
    (tmp_path / "main.c").write_text(f"{HEADERS}{TWICE};{PROGRAM_OF_TWO_KERNELS}")
    parts = [tmp_path / name for name in ("main.c", "twice.c", "copy.o", "COPY.o")]
    program = tmp_path / "main"
    run_tool([COMPILER, "-static", "-O2", "-Wall", "-Werror", *flags, *parts, "-o", program])
    run_tool([EMULATOR, *cpu_flags(512), program])


PLAIN_TILE = """
func.func @tile(%view: memref<?xf64>) attributes {llvm.emit_c_interface} {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %zero = arith.constant dense<0.0> : vector<[2]x[2]xf64>
  %vector = vector.load %view[%c0] : memref<?xf64>, vector<[2]xf64>
  %tile = vector.outerproduct %vector, %vector, %zero {kind = #vector.kind<add>}
    : vector<[2]xf64>, vector<[2]xf64>
  %slice = memref.dim %view, %c0 : memref<?xf64>
  %mask = vector.create_mask %slice : vector<[2]xi1>
  arm_sme.store_tile_slice %tile, %slice, %mask, %view[%c0]
    : memref<?xf64>, vector<[2]xi1>, vector<[2]x[2]xf64>
  return
}
"""


def test_the_return_address_survives_the_call_that_saves_matrices(tmp_path):
    """LLVM 22 does not see that call where nothing else makes it keep the address."""
    with make_context(), ir.Location.unknown():
        text = to_llvm_ir(ir.Module.parse(PLAIN_TILE), "tile.mlir")
    path = tmp_path / "tile.o"
    path.write_bytes(to_arm_object(text))
    listing = run_tool([DISASSEMBLER, "-d", path]).decode()
    before, called, _ = listing.partition("\tbl\t")
    assert called and re.search(r"\tst[rp]\t.*x30", before)


def test_nothing_but_the_interface_can_be_seen(tmp_path):
    kernel = box(2, 1)
    build(tmp_path, kernel)
    symbols = run_tool([DISASSEMBLER, "-t", tmp_path / f"{kernel.name}.o"]).decode()
    # The second letter group of a line: g is global.
    names = [line.split()[-1] for line in symbols.splitlines() if " g " in line]
    assert names == [f"_mlir_ciface_{kernel.name}_kernel0"]


def test_no_sve_outside_of_streaming_mode(tmp_path):
    """There are machines with SME that have none; vectors that go to the stack are most at risk."""
    kernel = box(3, 2)
    build(tmp_path, kernel)
    listing = run_tool([DISASSEMBLER, "-d", "--no-show-raw-insn", tmp_path / f"{kernel.name}.o"])
    streaming, vectors = False, 0
    for name, operands in re.findall(r"^ +[0-9a-f]+:\t(\S+)\t?(.*)", listing.decode(), re.M):
        if name in ("smstart", "smstop") and operands == "sm":
            streaming = name == "smstart"
        uses = re.search(r"\b[zp]\d|mul vl", operands) or re.match("addvl|addpl|cnt|rdvl|inc", name)
        assert streaming or not uses, f"{name} {operands}"
        vectors += bool(uses)
    assert vectors and not streaming


@pytest.mark.full
@pytest.mark.parametrize("element", ["f64", "f32"])
@pytest.mark.parametrize(
    "kernel", [k for k in built_in_kernels().values() if k.rank > 1], ids=lambda kernel: kernel.name
)
def test_built_in_kernels(tmp_path, kernel, element):
    extents = (17, 70) if kernel.rank == 2 else (9, 18, 35)
    program = build(tmp_path, kernel, element=element)
    check_everywhere(program, kernel, element, [extents])
