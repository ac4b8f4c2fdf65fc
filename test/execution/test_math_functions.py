# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Functions of the math dialect, and what is said where CUDA's library lacks."""

import ml_dtypes
import numpy as np
import pytest
from scipy import special

import twofour
from twofour.targets.gpu import cuda_toolkit

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


def error_in_eps(op, kind, x, target, path):
    """The largest error of a function of x, or of 1/x, relative to its value."""
    x = (1 / x if op == "math.acosh %x" else x).astype(TYPES[kind])
    path.write_text(PROGRAM.format(op=op, kind=kind))
    got = twofour.compile(path, target=target)(x)
    expected = FUNCTIONS[op](x.astype(np.float64))
    error = np.abs(got.astype(np.float64) - expected)
    return (error / np.abs(expected)).max() / float(ml_dtypes.finfo(TYPES[kind]).eps)


@needs_libdevice
@pytest.mark.parametrize("op, kind", CASES)
def test_simulated_gpus(op, kind, tmp_path):
    x = np.linspace(0.05, 0.95, 64)
    assert error_in_eps(op, kind, x, "sim:sm_90", tmp_path / "f.mlir") <= 4


@pytest.mark.parametrize("op", FUNCTIONS)
def test_cpus(op, tmp_path):
    for kind, smallest in {"f16": 1e-3, "bf16": 1e-30, "f32": 1e-7, "f64": 1e-14}.items():
        x = np.geomspace(smallest, 0.95, 64)
        assert error_in_eps(op, kind, x, "cpu", tmp_path / "f.mlir") <= 2, kind


def test_without_the_library(tmp_path, monkeypatch):
    monkeypatch.setattr(cuda_toolkit, "find_libdevice", lambda: None)
    path = tmp_path / "f.mlir"
    path.write_text(PROGRAM.format(op="math.exp %x", kind="f32"))
    with pytest.raises(twofour.TwofourError, match=r"f.mlir:7:\d+: error: .*libdevice"):
        twofour.compile(path, target="sm_90")
