# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""MLIR contexts with the project's dialects loaded."""

from twofour.dialects.nm import NM
from twofour.dialects.stencil import Stencil
from twofour.mlir import ext, ir


def make_context() -> ir.Context:
    """A context that knows the upstream dialects and the project's own.

    Multithreading stays off: Python verifiers deadlock with MLIR's thread pool.
    """
    # The bindings give these attribute classes no name, and IRDL constraints look theirs up by it.
    ir.DenseI64ArrayAttr.attr_name = ir.DenseF64ArrayAttr.attr_name = "builtin.dense_array"
    context = ir.Context()
    with context:
        for dialect in DIALECTS:
            dialect.load()
    return context


DIALECTS: tuple[type[ext.Dialect], ...] = (Stencil, NM)
