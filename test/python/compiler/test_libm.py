# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Calls of C's library of mathematical functions, as they stand in a module."""

import ctypes

import pytest

from twofour.diagnostics import TwofourError
from twofour.mlir import ir
from twofour.mlir_support import nested_ops
from twofour.targets.cpu.libm import FUNCTIONS, call_libm

FUNCTION = """
func.func @f(%x: {kind}) -> {kind} {{
  %y = math.expm1 %x : {kind}
  return %y : {kind}
}}
"""


def called(text):
    with ir.Context(), ir.Location.unknown():
        module = ir.Module.parse(text, ir.Context.current)
        call_libm(module, nested_ops(module, *FUNCTIONS))
        assert module.operation.verify()
        return str(module)


@pytest.mark.parametrize(
    "kind, name, calls",
    [
        ("f64", "expm1", 1),
        ("f32", "expm1f", 1),
        ("vector<4xf64>", "expm1", 4),
        ("vector<8xf16>", "expm1f", 8),
    ],
)
def test_calls(kind, name, calls):
    text = called(FUNCTION.format(kind=kind))
    assert "math." not in text
    assert text.count(f"call @{name}(") == calls
    assert text.count(f"func.func private @{name}(") == text.count("func.func private") == 1


def test_every_function_is_one_of_the_library():
    library = ctypes.CDLL(None)
    for op, name in FUNCTIONS.items():
        text = called(FUNCTION.format(kind="f64").replace("math.expm1", op))
        assert f"call @{name}(" in text and hasattr(library, name)


@pytest.mark.parametrize(
    "kind, got",
    [
        ("f80", "expected a number of f16, bf16, f32 or f64, got f80"),
        ("vector<2x2xf64>", "expected a number or a vector of one axis and a fixed length"),
        ("vector<[4]xf64>", "expected a number or a vector of one axis and a fixed length"),
    ],
)
def test_other_types(kind, got):
    with pytest.raises(TwofourError, match=got):
        called(FUNCTION.format(kind=kind))
