# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Rounding from f64 to f16, which LLVM calls a function for that no library may have."""

from twofour.mlir import ir

# Rounding twice would be wrong near the middle of two numbers. Of what f32 cannot hold, the number
# towards zero with its last bit set lies on the same side of every middle. LLVM must not take the
# function for unused, and several objects of a program may have it.
_FUNCTION = """
llvm.func weak_odr hidden @__truncdfhf2(%x: f64) -> f16 {
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
  %result = llvm.fptrunc %between : f32 to f16
  llvm.return %result : f16
}
"""


def add_rounding(module: ir.Module, text: str) -> None:
    """Add the function to a module of the LLVM dialect whose `text` has numbers of 16 bits."""
    if "f16" not in text:
        return
    with module.context, ir.Location.unknown():
        source = ir.Module.parse(_FUNCTION)
        with ir.InsertionPoint(module.body):
            for function in source.body.operations:
                function.operation.clone()
