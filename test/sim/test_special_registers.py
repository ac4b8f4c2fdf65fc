# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Special registers and parameters of kernels, over grids and blocks of three dimensions."""

import itertools
import struct

import numpy as np
import pytest

from snippet import HEADER, check_text_assembles
from twofour import sim

GRID, BLOCK = (3, 2, 2), (5, 4, 2)
NAMES = [f"{name}.{axis}" for name in ("tid", "ntid", "ctaid", "nctaid") for axis in "xyz"]
NAMES += ["laneid", "warpid", "nwarpid"]


def kernel_text() -> str:
    """Every thread stores its registers; the row is its number in the grid, x first."""
    lines = [HEADER.format(target="sm_90"), ".visible .entry places(.param .u64 out)", "{"]
    lines += [".reg .b32 %r<8>;", ".reg .b64 %w<4>;", "ld.param.u64 %w0, [out];"]
    # Block and thread numbers from their three indices each.
    for register, index, extent in (("%r0", "ctaid", "nctaid"), ("%r1", "tid", "ntid")):
        lines += [f"mov.u32 {register}, %{index}.z;", f"mov.u32 %r2, %{extent}.y;"]
        lines += [f"mov.u32 %r3, %{index}.y;", f"mad.lo.u32 {register}, {register}, %r2, %r3;"]
        lines += [f"mov.u32 %r2, %{extent}.x;", f"mov.u32 %r3, %{index}.x;"]
        lines += [f"mad.lo.u32 {register}, {register}, %r2, %r3;"]
    lines += [f"mov.u32 %r2, {np.prod(BLOCK)};", "mad.lo.u32 %r0, %r0, %r2, %r1;"]
    lines += [f"mul.wide.u32 %w1, %r0, {4 * len(NAMES)};", "add.s64 %w1, %w1, %w0;"]
    for i, name in enumerate(NAMES):
        lines += [f"mov.u32 %r4, %{name};", f"st.global.u32 [%w1+{4 * i}], %r4;"]
    return "\n".join([*lines, "ret;", "}"])


def test_places():
    gpu = sim.Gpu("sm_90")
    threads = int(np.prod(GRID) * np.prod(BLOCK))
    out = gpu.memory.empty((threads, len(NAMES)), np.uint32)
    kernel = sim.parse(kernel_text()).kernels["places"]
    gpu.launch(kernel, GRID, BLOCK, [out.ctypes.data])
    row = 0
    for block in itertools.product(*(range(extent) for extent in reversed(GRID))):
        for thread in itertools.product(*(range(extent) for extent in reversed(BLOCK))):
            number = thread[2] + BLOCK[0] * (thread[1] + BLOCK[1] * thread[0])
            expected = [*reversed(thread), *BLOCK, *reversed(block), *GRID]
            assert out[row].tolist() == [*expected, number % 32, number // 32, 2]
            row += 1


# Types of parameters, the arguments for them, and how they lie in memory.
PARAMETERS = [
    ("u8", 200, "<B"),
    ("s8", -3, "<b"),
    ("b16", 0x8001, "<H"),
    ("s16", -2, "<h"),
    ("u32", 2**32 - 1, "<I"),
    ("s32", -(2**31), "<i"),
    ("f32", 0.1, "<f"),
    ("u64", 2**64 - 1, "<Q"),
    ("s64", -5, "<q"),
    ("f64", 0.1, "<d"),
    ("b32", np.uint32(7), "<I"),
    ("f32", np.float32(1.5), "<f"),
]


def parameter_text() -> str:
    declared = [".param .u64 out"] + [f".param .{k} p{i}" for i, (k, *_) in enumerate(PARAMETERS)]
    lines = [HEADER.format(target="sm_90"), f".visible .entry store({', '.join(declared)})", "{"]
    lines += [".reg .b16 %h;", ".reg .b32 %r;", ".reg .b64 %w<2>;", "ld.param.u64 %w0, [out];"]
    for i, (kind, *_) in enumerate(PARAMETERS):
        register = {"8": "%h", "16": "%h", "32": "%r", "64": "%w1"}[kind[1:]]
        lines += [f"ld.param.{kind} {register}, [p{i}];"]
        lines += [f"st.global.{kind} [%w0+{8 * i}], {register};"]
    return "\n".join([*lines, "ret;", "}"])


def test_parameters():
    gpu = sim.Gpu("sm_90")
    out = gpu.memory.zeros((len(PARAMETERS), 8), np.uint8)
    kernel = sim.parse(parameter_text()).kernels["store"]
    arguments = [out.ctypes.data, *(argument for _, argument, _ in PARAMETERS)]
    gpu.launch(kernel, (1, 1, 1), (1, 1, 1), arguments)
    for row, (kind, argument, layout) in zip(out, PARAMETERS, strict=True):
        assert row.tobytes() == struct.pack(layout, argument).ljust(8, b"\0"), kind


# A parameter that is a structure of three words, of which the kernel stores the sum.
STRUCTURE = HEADER.format(target="sm_90") + (
    ".visible .entry sum(.param .u64 out, .param .align 4 .b8 words[12])\n{\n.reg .b32 %r<4>;\n"
    ".reg .b64 %w;\nld.param.u64 %w, [out];\nld.param.u32 %r0, [words];\n"
    "ld.param.v2.u32 {%r1, %r2}, [words+4];\nadd.u32 %r0, %r0, %r1;\nadd.u32 %r0, %r0, %r2;\n"
    "st.global.u32 [%w], %r0;\nret;\n}"
)


def test_structures_as_parameters():
    gpu = sim.Gpu("sm_90")
    out = gpu.memory.empty(1, np.uint32)
    kernel = sim.parse(STRUCTURE).kernels["sum"]
    gpu.launch(kernel, (1, 1, 1), (1, 1, 1), [out.ctypes.data, struct.pack("<3I", 1, 20, 300)])
    assert out[0] == 321


@pytest.mark.parametrize("text", [kernel_text(), parameter_text(), STRUCTURE])
def test_kernels_assemble(text, tmp_path):
    check_text_assembles(text, "sm_90", tmp_path)
