# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The C header of a CPU object: types of views, functions, and where kernels are called on what."""

from collections.abc import Iterable, Sequence

from twofour.codegen.cpu.kernel_abi import INPUTS_ATTRIBUTE, PAST_CACHES_ATTRIBUTE
from twofour.mlir import ir
from twofour.mlir_support import functions
from twofour.runtime import View
from twofour.runtime.loops import nested_launches
from twofour.targets.cpu.linking import C_INTERFACE, c_name
from twofour.targets.plan import KernelCall, NoPlan, read_calls

# Elements of arrays in C; f16 and bf16 are their bits.
_ELEMENTS = {
    "f64": "double",
    "f32": "float",
    "f16": "uint16_t",
    "bf16": "uint16_t",
    "i1": "uint8_t",
    "i8": "int8_t",
    "i16": "int16_t",
    "i32": "int32_t",
    "i64": "int64_t",
    "index": "int64_t",
}
# Numbers, and the macro of a compiler that has such.
_NUMBERS = _ELEMENTS | {"f16": "_Float16", "bf16": "__bf16", "i1": "bool"}
_MACROS = {"_Float16": "__FLT16_MAX__", "__bf16": "__BFLT16_MAX__"}
# Of a declaration in one line.
_WIDTH = 100


def header_text(module: ir.Module, name: str) -> str:
    """The header of a module's functions, renamed and not lowered yet; C99 and C++.

    `name` is an identifier for the whole.
    """
    known = functions(module.operation)
    inputs = {
        op.attributes["sym_name"].value: op.attributes[INPUTS_ATTRIBUTE].value
        for op in known
        if INPUTS_ATTRIBUTE in op.attributes
    }
    calls = _first_calls(known, inputs)
    types: dict[str, str] = {}
    declared = []
    for op in known:
        symbol = op.attributes["sym_name"].value
        if symbol in inputs:
            lines = _kernel(op, inputs[symbol], calls.get(symbol), types)
        else:
            lines = _function(op, types)
        declared.append("\n".join(lines))
    return _TEXT.format(name=name, types="\n".join(types.values()), functions="\n\n".join(declared))


class _NoName(Exception):
    """A type that C has no word for."""


def _kernel(op, inputs: int, call: str | None, types: dict[str, str]) -> list[str]:
    *views, _, _ = op.type.inputs
    names = [*(f"in{i}" for i in range(inputs)), *(f"out{i}" for i in range(len(views) - inputs))]
    about = ["Stores past the caches."] if PAST_CACHES_ATTRIBUTE in op.attributes else []
    about += call.splitlines() if call else []
    parameters = zip(views, names, strict=True)
    return [*_comment(about), *_prototype(op, parameters, types, ["int64_t begin", "int64_t end"])]


def _function(op, types: dict[str, str]) -> list[str]:
    shapes = [
        f"  argument{i}: {_times(kind.shape)}"
        for i, kind in enumerate(op.type.inputs)
        if isinstance(kind, ir.MemRefType) and kind.has_static_shape
    ]
    parameters = [(kind, f"argument{i}") for i, kind in enumerate(op.type.inputs)]
    about = ["The whole function, on one thread" + (", on fields of" if shapes else "."), *shapes]
    return [*_comment(about), *_prototype(op, parameters, types, [])]


def _comment(lines: Sequence[str]) -> list[str]:
    return ["/* " + "\n * ".join(lines) + " */"] if lines else []


def _prototype(
    op, parameters: Iterable[tuple[ir.Type, str]], types: dict[str, str], more: Sequence[str]
) -> list[str]:
    """The declaration of a function's C interface, for compilers that have its types."""
    name = c_name(op)
    try:
        words = [*(_declared(kind, word, types) for kind, word in parameters), *more]
        results = [_result(kind, types) for kind in op.type.results]
    except _NoName as missing:
        return [f"/* {name} takes {missing}, which C has no type for. */"]
    needed = {word.split()[0] for word in (*words, *results)}
    lines, returned = [], "void"
    if len(results) == 1 and not isinstance(op.type.results[0], ir.MemRefType):
        returned = results[0]
    elif len(results) == 1:
        words.insert(0, f"{results[0]} *result")
    elif results:
        several = f"{name.removeprefix(C_INTERFACE)}_results"
        members = " ".join(f"{kind} result{i};" for i, kind in enumerate(results))
        lines.append(f"typedef struct {{ {members} }} {several};")
        words.insert(0, f"{several} *results")
    line = f"{returned} {name}({', '.join(words) or 'void'});"
    if len(line) > _WIDTH:
        line = f"{returned} {name}(\n    " + ",\n    ".join(words) + ");"
    lines.append(line)
    macros = [f"defined({_MACROS[word]})" for word in sorted(needed & _MACROS.keys())]
    if not macros:
        return lines
    # Compilers that have such types warn of them where they are asked to be pedantic.
    lines = [f"__extension__ {line}" for line in lines]
    return [f"#if {' && '.join(macros)}", *lines, "#endif"]


def _declared(kind: ir.Type, name: str, types: dict[str, str]) -> str:
    if isinstance(kind, ir.MemRefType):
        return f"{_view(kind, types)} *{name}"
    return f"{_number(kind)} {name}"


def _result(kind: ir.Type, types: dict[str, str]) -> str:
    return _view(kind, types) if isinstance(kind, ir.MemRefType) else _number(kind)


def _number(kind: ir.Type) -> str:
    if str(kind) not in _NUMBERS:
        raise _NoName(kind)
    return _NUMBERS[str(kind)]


def _view(kind: ir.MemRefType, types: dict[str, str]) -> str:
    """The C type of views of this rank and element, which is added to `types`."""
    element = str(kind.element_type)
    if element not in _ELEMENTS:
        raise _NoName(element)
    name = f"twofour_view{kind.rank}_{element}"
    axes = f", sizes[{kind.rank}], strides[{kind.rank}]" if kind.rank else ""
    types[name] = _VIEW.format(name=name, guard=name.upper(), element=_ELEMENTS[element], axes=axes)
    return name


def _first_calls(known: Sequence, inputs: dict[str, int]) -> dict[str, str]:
    """Of each kernel what its first call in the module is on, where all that calls it is a plan."""
    found: dict[str, str] = {}
    for op in known:
        if op.attributes["sym_name"].value in inputs:
            continue
        try:
            sequence = read_calls(op, inputs)
        except NoPlan:
            continue
        arguments = len(op.type.inputs)
        buffers = [f"a buffer of {_times(shape)}" for shape, _ in sequence.workspaces]
        names = [*(f"argument {i}" for i in range(arguments)), *buffers]
        for call in nested_launches(sequence.steps):
            found.setdefault(call.name, _places(c_name(op), call, names))
    return found


def _places(caller: str, call: KernelCall, names: Sequence[str]) -> str:
    lines = [f"{caller} calls it on"]
    for side, views in (("in", call.inputs), ("out", call.outputs)):
        lines += [f"  {side}{i}: {_place(view, names)}" for i, view in enumerate(views)]
    return "\n".join(lines)


def _place(view: View, names: Sequence[str]) -> str:
    name = names[view.buffer] if view.buffer < len(names) else "what a loop counts or carries"
    if not view.slices:
        return name
    ranges = " x ".join(f"[{axis.start}, {axis.stop})" for axis in view.slices)
    return f"elements {ranges} of {name}"


def _times(extents: Sequence[int]) -> str:
    return " x ".join(map(str, extents))


_VIEW = """\
#ifndef {guard}
#define {guard}
typedef struct {{
  {element} *allocated, *aligned;
  int64_t offset{axes};
}} {name};
#endif
"""
_TEXT = """\
/* Written by twofour, for the processor of the machine that compiled {name}. */
#ifndef TWOFOUR_CPU_{name}_H
#define TWOFOUR_CPU_{name}_H

#include <stdbool.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {{
#endif

/* A view of an array: both addresses are that of its element 0 (`allocated` is not looked at), and
 * `offset` and `strides` are in elements. Strides of the last axis are 1. Numbers that kernels take
 * have views without axes. */
{types}
/* Kernels write rows begin to end - 1 of the outermost axis of their outputs, which
 * threads may share. Views lie to each other as in the call that is given; extents are free. */

{functions}

#ifdef __cplusplus
}}
#endif

#endif
"""
