# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""MLIR contexts with the project's dialects loaded."""

import sys
import threading

import numpy as np

from twofour.dialects import nm, stencil
from twofour.errors import TwofourError
from twofour.mlir import PACKAGE, ext, ir

DIALECTS: tuple[type[ext.Dialect], ...] = (stencil.Stencil, nm.NM)

# At every access to an op the bindings import a module named after its dialect from their own
# package; where there is none they search the disk for it each time.
for _module in (stencil, nm):
    sys.modules.setdefault(f"{PACKAGE}.dialects.{_module.__name__.split('.')[-1]}", _module)

# The frequent ones first: those that do not take an attribute print it into an error.
_DENSE_ARRAYS = (
    ir.DenseI64ArrayAttr,
    ir.DenseF64ArrayAttr,
    ir.DenseI32ArrayAttr,
    ir.DenseBoolArrayAttr,
    ir.DenseI8ArrayAttr,
    ir.DenseI16ArrayAttr,
    ir.DenseF32ArrayAttr,
)
_DENSE_ELEMENTS = (ir.DenseFPElementsAttr, ir.DenseIntElementsAttr)


def _read_every_attribute() -> None:
    """Let attributes that the bindings have no class for be plain ones, as others are.

    As they come, reading `array<f16: 1.0>`, complex elements or a location raises TypeError.
    """
    location = ir.Location.unknown()
    locations = {
        ir.UnknownLoc: location,
        ir.FileLineColLoc: ir.Location.file("", 1, 1),
        ir.NameLoc: ir.Location.name(""),
        ir.CallSiteLoc: ir.Location.callsite(location, [location]),
        ir.FusedLoc: ir.Location.fused([location], ir.UnitAttr.get()),
    }
    _cast(ir.DenseI64ArrayAttr.get([]), _DENSE_ARRAYS)
    _cast(ir.DenseFPElementsAttr.get(np.zeros(1)), _DENSE_ELEMENTS)
    for kind, location in locations.items():
        _cast(location.attr, (kind,))


def _cast(example: ir.Attribute, classes: tuple[type, ...]) -> None:
    """Give attributes of the example's storage the first of the classes that takes them.

    Locations come as such and as attributes; their classes take only the former.
    """

    @ir.register_type_caster(example.typeid, replace=True)
    def cast(attribute: ir.Attribute | ir.Location) -> ir.Attribute | ir.Location:
        for kind in classes:
            try:
                return kind(attribute)
            except (TypeError, ValueError):
                continue
        return attribute


with ir.Context():
    _read_every_attribute()


# Loading a dialect writes to its classes, which all contexts share.
_LOADING = threading.RLock()
_loading = False


def make_context() -> ir.Context:
    """A context that knows the upstream dialects and the project's own.

    Multithreading stays off: Python verifiers deadlock with MLIR's thread pool. Raises TwofourError
    where a signal handler or a finaliser of the same thread comes in between.
    """
    global _loading
    # The bindings give these attribute classes no name, and IRDL constraints look theirs up by it.
    ir.DenseI64ArrayAttr.attr_name = ir.DenseF64ArrayAttr.attr_name = "builtin.dense_array"
    context = ir.Context()
    with context, _LOADING:
        if _loading:
            # MLIR would be given what was begun for the other context, and end the process.
            raise TwofourError("expected no compilation within another one, by a signal handler")
        _loading = True
        try:
            for dialect in DIALECTS:
                dialect.load()
        finally:
            _loading = False
    return context


# A context keeps every attribute that it was asked for until it goes.
_MOST_PROGRAMS = 64


class _OfThread(threading.local):
    context: ir.Context | None = None
    programs = 0


_of_thread = _OfThread()


def context_of_programs() -> ir.Context:
    """The context that this thread loads programs into: a new one after every 64 of them.

    Making one would be a tenth of a small program's compilation. Raises TwofourError as
    `make_context` does.
    """
    if _of_thread.programs % _MOST_PROGRAMS == 0:
        _of_thread.context = make_context()
    _of_thread.programs += 1
    return _of_thread.context
