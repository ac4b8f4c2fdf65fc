# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Floating-point constants of LLVM IR in the spelling that every LLVM reads alike."""

import struct

import llvmlite.binding as llvmlite
import numpy as np
import pytest

from twofour.errors import TwofourError
from twofour.mlir import ir, llvm
from twofour.targets.llvm_text import adapt


@pytest.mark.parametrize(
    "line, expected",
    [
        ("store float 1.000000e-01, ptr %0", "store float 0x3FB99999A0000000, ptr %0"),
        ("%7 = fmul float %2, 1.000000e-01", "%7 = fmul float %2, 0x3FB99999A0000000"),
        ("%8 = fmul half %3, 9.997550e-02", "%8 = fmul half %3, 0xH2E66"),
        ("%9 = fmul bfloat %4, 1.000980e-01", "%9 = fmul bfloat %4, 0xR3DCD"),
        ("%1 = fadd double %0, 1.000000e-01", "%1 = fadd double %0, 0x3FB999999999999A"),
        ("%3 = phi float [ -2.5, %a ], [ %b, %c ]",
         "%3 = phi float [ 0xC004000000000000, %a ], [ %b, %c ]"),
        ("@u = constant [2 x float] [float 1.0, float -2.0e+00]",
         "@u = constant [2 x float] [float 0x3FF0000000000000, float 0xC000000000000000]"),
        ("store float +inf, ptr %0", "store float 0x7FF0000000000000, ptr %0"),
        ("store half -inf, ptr %0", "store half 0xHFC00, ptr %0"),
        ("store double +nan(0x1), ptr %0", "store double 0x7FF8000000000001, ptr %0"),
        ("store double +snan(0x1), ptr %0", "store double 0x7FF0000000000001, ptr %0"),
        ("%4 = fmul float %2, f0x38800000", "%4 = fmul float %2, 0x3F10000000000000"),
        ("store bfloat -inf, ptr %0", "store bfloat 0xRFF80, ptr %0"),
        ("store half +nan(0x1), ptr %0", "store half 0xH7E01, ptr %0"),
        ("store half +qnan, ptr %0", "store half 0xH7E00, ptr %0"),
        ("store bfloat +qnan, ptr %0", "store bfloat 0xR7FC0, ptr %0"),
        ("store float -qnan, ptr %0", "store float 0xFFF8000000000000, ptr %0"),
        ("%1 = fadd double %float, 0.1", "%1 = fadd double %float, 0x3FB999999999999A"),
        ("store bfloat f0x3DCD, ptr %0", "store bfloat 0xR3DCD, ptr %0"),
        ('source_filename = "float 1.5"', 'source_filename = "float 1.5"'),
        ("call void @llvm.aarch64.sme.st1d.horiz.p0(<vscale x 2 x i1> %m, ptr %p, i32 0, i32 %s)",
         "call void @llvm.aarch64.sme.st1d.horiz(<vscale x 2 x i1> %m, ptr %p, i32 0, i32 %s)"),
        ("declare void @llvm.aarch64.sme.ld1w.vert.p0(<vscale x 4 x i1>, ptr, i32 immarg, i32)",
         "declare void @llvm.aarch64.sme.ld1w.vert(<vscale x 4 x i1>, ptr, i32 immarg, i32)"),
        ("call void @llvm.memcpy.p0.p0.i64(ptr %a, ptr %b, i64 8, i1 false)",
         "call void @llvm.memcpy.p0.p0.i64(ptr %a, ptr %b, i64 8, i1 false)"),
        ("%x = add i32 %y.1.5, 3", "%x = add i32 %y.1.5, 3"),
        ("br label %float.2.5", "br label %float.2.5"),
    ],
)  # fmt: skip
def test_constants_are_rewritten(line, expected):
    assert adapt(line) == expected


@pytest.mark.parametrize("line", ["ret 1.5", "store float +snan(0x1), ptr %0"])
def test_what_has_no_spelling_is_refused(line):
    with pytest.raises(TwofourError, match="LLVM IR"):
        adapt(line)


FORMATS = {"f16": ("e", "half"), "f32": ("f", "float"), "f64": ("d", "double")}


@pytest.mark.parametrize("kind", FORMATS)
def test_constants_survive_both_printers(kind):
    code, name = FORMATS[kind]
    rng = np.random.default_rng(0)
    bits = 8 * struct.calcsize(code)
    words = (
        rng.integers(0, 2**bits, 200, np.uint64, endpoint=False).tolist()
        if bits < 64
        else [int(x) for x in rng.integers(0, 2**64, 200, np.uint64)]
    )
    values = np.array(words, f"u{bits // 8}").view(f"f{bits // 8}")
    values = [0.5, -0.1875, *(v for v in values.tolist() if np.isfinite(v))]
    stores = "".join(
        f"  %{i} = llvm.mlir.constant({v!r} : {kind}) : {kind}\n"
        f"  llvm.store volatile %{i}, %p : {kind}, !llvm.ptr\n"
        for i, v in enumerate(values)
        if "." in repr(v) or "e" in repr(v)
    )
    with ir.Context(), ir.Location.unknown():
        module = ir.Module.parse(f"llvm.func @f(%p: !llvm.ptr) {{\n{stores}  llvm.return\n}}")
        text = adapt(llvm.translate_module_to_llvmir(module.operation))
    llvmlite.initialize_all_targets()
    read = str(llvmlite.parse_assembly(text))
    found = [
        line.split(f"store volatile {name} ")[1].split(",")[0]
        for line in read.split("\n")
        if "store volatile" in line
    ]
    assert len(found) == stores.count("store")
    for spelled, value in zip(found, values, strict=True):
        assert _value(spelled, kind) == value


def _value(spelled, kind):
    if spelled.startswith("0xH"):
        return float(np.array(int(spelled[3:], 16), np.uint16).view(np.float16))
    if spelled.startswith("0x"):
        return float(np.array(int(spelled[2:], 16), np.uint64).view(np.float64))
    return float(spelled)
