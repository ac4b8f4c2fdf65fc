# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Loops that LLVM shall not unroll."""

from twofour.mlir import ir
from twofour.mlir_support import enclosing, nested_ops

_LOOP = "scf.for"
_NO_UNROLLING = "#llvm.loop_annotation<unroll = <disable = true>>"


def keep_rolled(loop: ir.OpView) -> None:
    """Mark an `scf.for`."""
    # Without the dialect's prefix, so that it is an attribute of LLVM's branch later.
    loop.attributes["loop_annotation"] = ir.Attribute.parse(_NO_UNROLLING, loop.context)


def keep_outer_loops_rolled(module: ir.Module) -> None:
    """Mark every `scf.for` that holds another one.

    For cores with large caches of decoded instructions LLVM unrolls those as well. Their bodies
    come three to five times then, are as fast as before, and take as much longer to compile.
    """
    for loop in nested_ops(module, _LOOP):
        outer = enclosing(loop.operation, _LOOP)
        if outer is not None:
            keep_rolled(outer)
