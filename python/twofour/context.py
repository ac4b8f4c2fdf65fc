# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""MLIR contexts with the project's dialects loaded."""

import sys

from twofour.dialects import nm, stencil
from twofour.mlir import PACKAGE, ext, ir

DIALECTS: tuple[type[ext.Dialect], ...] = (stencil.Stencil, nm.NM)

# At every access to an op the bindings import a module named after its dialect from their own
# package; where there is none they search the disk for it each time.
for _module in (stencil, nm):
    sys.modules.setdefault(f"{PACKAGE}.dialects.{_module.__name__.split('.')[-1]}", _module)


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
