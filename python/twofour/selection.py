# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""What of a module that was read is compiled: a program and what it calls, and no word to LLVM."""

from twofour.codegen.cpu.kernel_abi import PAST_CACHES_ATTRIBUTE
from twofour.dialects.stencil.transforms.fuse_steps import STEPS_ATTRIBUTE
from twofour.dialects.stencil.transforms.time_tile import TIME_TILE_ATTRIBUTE
from twofour.mlir import ir
from twofour.mlir_support import error_at, integer_constant, nested_ops
from twofour.program import ROTATION_ATTRIBUTE

# Attributes of the project's dialects begin with these.
_OWN_PREFIXES = ("stencil.", "nm.")
# What the functions of a program that is read may say of themselves.
_KNOWN_ATTRIBUTES = {
    "sym_name",
    "sym_visibility",
    "function_type",
    ROTATION_ATTRIBUTE,
    TIME_TILE_ATTRIBUTE,
}


def keep_program(module: ir.Module, name: str) -> None:
    """Keep the function of a name and those that it calls, with what they say to us, in place.

    Raises TwofourError at what cannot be compiled wherever it stands.
    """
    _keep_called(module, name)
    _check_symbols(module)
    _check_vectors(module)
    _check_loops(module)
    _keep_own_attributes(module)


def _keep_called(module: ir.Module, name: str) -> None:
    """Erase the functions that a run of @name does not call."""
    by_name = {f.attributes["sym_name"].value: f for f in nested_ops(module, "func.func")}
    called, waiting = set(), [name]
    while waiting:
        current = waiting.pop()
        if current in by_name and current not in called:
            called.add(current)
            calls = nested_ops(by_name[current], "func.call")
            waiting += [call.attributes["callee"].value for call in calls]
    for other in by_name.keys() - called:
        by_name[other].operation.erase()


def _check_symbols(module: ir.Module) -> None:
    """Raise TwofourError for calls that cannot be linked, and for functions that only we make.

    So it does for what would run outside of functions. Declarations that nothing calls are erased.
    """
    for op in module.body.operations:
        if op.regions and "sym_name" not in op.attributes and op.operation.name != "builtin.module":
            raise error_at(op, "expected code in functions alone")
    called = {op.attributes["callee"].value for op in nested_ops(module, "func.call")}
    for op in nested_ops(module, "func.func"):
        name = op.attributes["sym_name"].value
        if STEPS_ATTRIBUTE in op.attributes:
            raise error_at(op, f"expected no {STEPS_ATTRIBUTE}: fused steps are made, not read")
        if PAST_CACHES_ATTRIBUTE in op.attributes:
            raise error_at(op, f"expected no {PAST_CACHES_ATTRIBUTE}: kernels are made, not read")
        if not op.regions[0].blocks:
            if name in called:
                raise error_at(op, f"expected a body, got a declaration of @{name} alone")
            op.operation.erase()


def _check_vectors(module: ir.Module) -> None:
    """Raise TwofourError at a vector of a length that is known at run time alone."""
    for op in nested_ops(module):
        for value in op.operation.results:
            kind = value.type
            if isinstance(kind, ir.VectorType) and kind.scalable:
                raise error_at(op, f"expected a vector of known length, got {kind}")


def _check_loops(module: ir.Module) -> None:
    """Raise TwofourError at a loop that would never end."""
    for loop in nested_ops(module, "scf.for"):
        step = integer_constant(loop.operands[2])
        if step is not None and step < 1:
            raise error_at(loop, f"expected a loop with a positive step, got {step}")


def _keep_own_attributes(module: ir.Module) -> None:
    """Drop attributes of other dialects, and all that functions say beyond those known.

    They speak of how LLVM is to make the code of what was read (`passthrough`, `llvm.byval`,
    `nvvm.kernel`); the code is ours, and over some of them LLVM ends the process.
    """
    for op in (module, *nested_ops(module)):
        attributes = op.operation.attributes
        is_function = op.operation.name == "func.func"
        for name in list(attributes):
            is_foreign = "." in name and not name.startswith(_OWN_PREFIXES)
            if is_foreign or (is_function and name not in _KNOWN_ATTRIBUTES):
                del attributes[name]
