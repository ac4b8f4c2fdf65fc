# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""What other programs see of a module: the C interface of every function, and nothing else.

    func.func @"heat-2d"        ->  internal @impl.heat_2d,  @_mlir_ciface_heat_2d that calls it

Functions may be called anything, `exp` and `main` among it. What implements them has a name that no
library has, or the C library would be called by code that means them, and they by code that means
the C library.
"""

import platform

from twofour.identifiers import free_name, identifier
from twofour.mlir import ir, llvm
from twofour.mlir_support import nested_ops

C_INTERFACE = "_mlir_ciface_"
_IMPLEMENTATION = "impl."
_STORE_FENCE = "llvm.x86.sse.sfence"
_X86 = ("x86_64", "amd64")


def name_implementations(module: ir.Module) -> None:
    """Rename the functions of a module, all of which have a body, before it is lowered.

    To an identifier behind `impl.`, each one its own. What they return of i1 is a byte of C.
    """
    functions = nested_ops(module, "func.func")
    symbols = (op.attributes for op in module.body.operations if "sym_name" in op.attributes)
    taken = {attributes["sym_name"].value for attributes in symbols}
    for function in functions:
        plain = identifier(function.attributes["sym_name"].value)
        if plain != function.attributes["sym_name"].value:
            plain = free_name(plain, taken)
            taken.add(plain)
            rename(function, plain, module)
    for function in functions:
        _extend_bits(function)
        rename(function, f"{_IMPLEMENTATION}{function.attributes['sym_name'].value}", module)


def _extend_bits(function) -> None:
    """Fill the byte that C reads of a result of one bit."""
    extended = ir.DictAttr.get({"llvm.zeroext": ir.UnitAttr.get()})
    kinds = [str(kind) for kind in function.type.results]
    if kinds == ["i1"]:
        function.attributes["res_attrs"] = ir.ArrayAttr.get([extended])


def rename(function, name: str, module: ir.Module) -> None:
    """Give a function another name, also where it is called."""
    before = function.attributes["sym_name"].value
    ir.SymbolTable.replace_all_symbol_uses(before, name, module.operation)
    function.attributes["sym_name"] = ir.StringAttr.get(name)


def c_name(function) -> str:
    """The name of the C interface of a function that was renamed."""
    name = function.attributes["sym_name"].value
    return f"{C_INTERFACE}{name.removeprefix(_IMPLEMENTATION)}"


def hide_functions(module: ir.Module, but: str | None = None) -> None:
    """Let no function of a lowered module be seen from outside, but those with that prefix.

    LLVM would keep a function beside the copies that it inlined.
    """
    with module.context:
        internal = ir.Attribute.parse("#llvm.linkage<internal>")
    for op in module.body.operations:
        if op.operation.name != "llvm.func" or not op.regions[0].blocks:
            continue
        if but is None or not op.attributes["sym_name"].value.startswith(but):
            op.attributes["linkage"] = internal


def show_interfaces(module: ir.Module) -> None:
    """Let nothing but C interfaces be seen of a lowered module whose functions were renamed.

    Each ends with a fence where anything is stored past the caches, which processors of x86 may do
    after what follows: other threads may be told of the rows that were written.
    """
    hide_functions(module)
    fences = platform.machine().lower() in _X86 and any(
        "nontemporal" in op.attributes for op in nested_ops(module, "llvm.store")
    )
    hidden = f"{C_INTERFACE}{_IMPLEMENTATION}"
    for op in module.body.operations:
        if op.operation.name != "llvm.func":
            continue
        name = op.attributes["sym_name"].value
        if not name.startswith(hidden):
            continue
        op.attributes["sym_name"] = ir.StringAttr.get(C_INTERFACE + name.removeprefix(hidden))
        op.attributes["linkage"] = ir.Attribute.parse("#llvm.linkage<external>")
        if fences:
            for last in nested_ops(op, "llvm.return"):
                with ir.InsertionPoint(last), last.location:
                    llvm.call_intrinsic(None, _STORE_FENCE, [], [], [])
