# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Loops of rows and planes that LLVM shall not unroll."""

from twofour.mlir import ir
from twofour.mlir_support import enclosing, nested_ops

_LOOP = "scf.for"


def keep_rolled(module: ir.Module) -> None:
    """Mark every loop that holds another one.

    For cores with large caches of decoded instructions LLVM unrolls those as well. Their bodies
    come three to five times then, are as fast as before, and take as much longer to compile.
    """
    with module.context:
        mark = ir.Attribute.parse("#llvm.loop_annotation<unroll = <disable = true>>")
    for loop in nested_ops(module, _LOOP):
        outer = enclosing(loop.operation, _LOOP)
        if outer is not None:
            # Without the dialect's prefix, so that it is an attribute of LLVM's branch later.
            outer.attributes["loop_annotation"] = mark
