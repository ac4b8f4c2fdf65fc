# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Functions of the math dialect, and what is said where CUDA's library lacks."""

import re

import ml_dtypes
import numpy as np
import pytest
from scipy import special

import twofour
from twofour.codegen.gpu import cuda_toolkit

PROGRAM = """
func.func @f(%a: !stencil.field<[0,64]x{kind}>, %b: !stencil.field<[0,64]x{kind}>) {{
  %t = stencil.load %a : !stencil.field<[0,64]x{kind}> -> !stencil.temp<?x{kind}>
  %r = stencil.apply(%u = %t : !stencil.temp<?x{kind}>) -> (!stencil.temp<?x{kind}>) {{
    %x = stencil.access %u[0] : !stencil.temp<?x{kind}>
    %c = arith.constant 0.75 : {kind}
    %y = {op} : {kind}
    stencil.return %y : {kind}
  }}
  stencil.store %r to %b(<[0], [64]>) : !stencil.temp<?x{kind}> to !stencil.field<[0,64]x{kind}>
  return
}}
"""
FUNCTIONS = {
    "math.acos %x": np.arccos,
    "math.acosh %x": np.arccosh,
    "math.asin %x": np.arcsin,
    "math.asinh %x": np.arcsinh,
    "math.atan %x": np.arctan,
    "math.atanh %x": np.arctanh,
    "math.atan2 %x, %c": lambda x: np.arctan2(x, 0.75),
    "math.cbrt %x": np.cbrt,
    "math.cos %x": np.cos,
    "math.cosh %x": np.cosh,
    "math.erf %x": special.erf,
    "math.exp %x": np.exp,
    "math.exp2 %x": np.exp2,
    "math.expm1 %x": np.expm1,
    "math.log %x": np.log,
    "math.log10 %x": np.log10,
    "math.log1p %x": np.log1p,
    "math.log2 %x": np.log2,
    "math.powf %x, %c": lambda x: x**0.75,
    "math.sin %x": np.sin,
    "math.sinh %x": np.sinh,
    "math.tan %x": np.tan,
    "math.tanh %x": np.tanh,
}
TYPES = {"f16": np.float16, "f32": np.float32, "f64": np.float64, "bf16": ml_dtypes.bfloat16}
needs_libdevice = pytest.mark.skipif(
    cuda_toolkit.find_libdevice() is None, reason="CUDA's libdevice is not installed"
)


SAMPLE = {
    ("math.sin %x", "f64"),
    ("math.powf %x, %c", "f64"),
    ("math.atan2 %x, %c", "f64"),
    ("math.exp %x", "f32"),
}
CASES = [
    pytest.param(op, kind, marks=() if (op, kind) in SAMPLE else (pytest.mark.full,))
    for op in FUNCTIONS
    for kind in TYPES
]


# The least x for CPUs, on which functions near zero are tried as well.
SMALLEST = {"f16": 1e-3, "bf16": 1e-30, "f32": 1e-7, "f64": 1e-14}


def argument(op, x, kind):
    """Where a function is tried: at x, or at 1/x."""
    return (1 / x if op == "math.acosh %x" else x).astype(TYPES[kind])


def error_in_eps(op, x, got):
    """The largest error of a function, relative to its value."""
    expected = FUNCTIONS[op](x.astype(np.float64))
    error = np.abs(got.astype(np.float64) - expected)
    return (error / np.abs(expected)).max() / float(ml_dtypes.finfo(x.dtype).eps)


@needs_libdevice
@pytest.mark.parametrize("op, kind", CASES)
def test_simulated_gpus(op, kind, tmp_path):
    path = tmp_path / "f.mlir"
    path.write_text(PROGRAM.format(op=op, kind=kind))
    x = argument(op, np.linspace(0.05, 0.95, 64), kind)
    assert error_in_eps(op, x, twofour.compile(path, target="sim:sm_90")(x)) <= 4


def all_functions(kind, flags=""):
    """A program of a field for each function and another one for its values."""
    _, _, body = PROGRAM.format(op=f"OP{flags}", kind=kind).partition(" {\n")
    body = body.rpartition("  return")[0]
    fields, lines = [], []
    for number, op in enumerate(FUNCTIONS):
        of_one = re.sub(r"%(\w+)", rf"%\g<1>_{number}", body.replace("OP", op))
        lines.append(of_one)
        field = f"!stencil.field<[0,64]x{kind}>"
        fields += [f"%a_{number}: {field}", f"%b_{number}: {field}"]
    return f"func.func @f({', '.join(fields)}) {{\n{''.join(lines)}  return\n}}\n"


@pytest.mark.parametrize(("flags", "bound"), [("", 2), (" fastmath<afn>", 4)])
@pytest.mark.parametrize(("kind", "smallest"), SMALLEST.items())
def test_cpus(kind, smallest, flags, bound, tmp_path):
    path = tmp_path / "f.mlir"
    path.write_text(all_functions(kind, flags))
    places = [argument(op, np.geomspace(smallest, 0.95, 64), kind) for op in FUNCTIONS]
    for op, x, got in zip(FUNCTIONS, places, twofour.compile(path)(*places), strict=True):
        assert error_in_eps(op, x, got) <= bound, op


def test_without_the_library(tmp_path, monkeypatch):
    monkeypatch.setattr(cuda_toolkit, "find_libdevice", lambda: None)
    path = tmp_path / "f.mlir"
    path.write_text(PROGRAM.format(op="math.exp %x", kind="f32"))
    with pytest.raises(twofour.TwofourError, match=r"f.mlir:7:\d+: error: .*libdevice"):
        twofour.compile(path, target="sm_90")
