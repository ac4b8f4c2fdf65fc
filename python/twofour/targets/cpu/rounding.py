# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Rounding to 16 bits, to nearest even, which LLVM calls functions for that no library may have."""

from twofour.mlir import ir
from twofour.mlir_support import nested_ops

# For what is not done in f32 before (vector.reduction, ops of the LLVM dialect). In integers; NaNs
# stay NaNs. LLVM must not take these functions for unused, and several objects of a program may
# have them.
_FROM_F32_TO_BF16 = """
llvm.func weak_odr hidden @__truncsfbf2(%x: f32) -> bf16 {
  %sixteen = llvm.mlir.constant(16 : i32) : i32
  %one = llvm.mlir.constant(1 : i32) : i32
  %half = llvm.mlir.constant(32767 : i32) : i32
  %quiet = llvm.mlir.constant(64 : i32) : i32
  %bits = llvm.bitcast %x : f32 to i32
  %upper = llvm.lshr %bits, %sixteen : i32
  %tie = llvm.and %upper, %one : i32
  %more = llvm.add %bits, %half : i32
  %sum = llvm.add %more, %tie : i32
  %rounded = llvm.lshr %sum, %sixteen : i32
  %is_nan = llvm.fcmp "uno" %x, %x : f32
  %nan = llvm.or %upper, %quiet : i32
  %chosen = llvm.select %is_nan, %nan, %rounded : i1, i32
  %word = llvm.trunc %chosen : i32 to i16
  %result = llvm.bitcast %word : i16 to bf16
  llvm.return %result : bf16
}
"""
# Rounding twice would be wrong near the middle of two numbers. Of what f32 cannot hold, the number
# towards zero with its last bit set lies on the same side of every middle.
_FROM_F64 = """
llvm.func weak_odr hidden @NAME(%x: f64) -> TYPE {
  %one = llvm.mlir.constant(1 : i32) : i32
  %near = llvm.fptrunc %x : f64 to f32
  %back = llvm.fpext %near : f32 to f64
  %size = llvm.intr.fabs(%x) : (f64) -> f64
  %size_near = llvm.intr.fabs(%back) : (f64) -> f64
  %is_inexact = llvm.fcmp "one" %back, %x : f64
  %is_above = llvm.fcmp "ogt" %size_near, %size : f64
  %bits = llvm.bitcast %near : f32 to i32
  %excess = llvm.zext %is_above : i1 to i32
  %lower = llvm.sub %bits, %excess : i32
  %odd = llvm.or %lower, %one : i32
  %chosen = llvm.select %is_inexact, %odd, %bits : i1, i32
  %between = llvm.bitcast %chosen : i32 to f32
  ROUND
  llvm.return %result : TYPE
}
"""


def _from_f64(name: str, kind: str, rounding: str) -> str:
    return _FROM_F64.replace("NAME", name).replace("TYPE", kind).replace("ROUND", rounding)


_FUNCTIONS = "\n".join(
    [
        _FROM_F32_TO_BF16,
        _from_f64("__truncdfhf2", "f16", "%result = llvm.fptrunc %between : f32 to f16"),
        _from_f64(
            "__truncdfbf2", "bf16", "%result = llvm.call @__truncsfbf2(%between) : (f32) -> bf16"
        ),
    ]
)


def add_rounding(module: ir.Module, text: str) -> None:
    """Add the functions to a module of the LLVM dialect whose `text` has numbers of 16 bits."""
    if "f16" not in text:
        return
    with module.context, ir.Location.unknown():
        source = ir.Module.parse(_FUNCTIONS)
        with ir.InsertionPoint(module.body):
            for function in nested_ops(source.operation, "llvm.func"):
                function.operation.clone()
