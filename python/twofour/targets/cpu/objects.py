# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Programs as C links them: LLVM IR and objects that show C interfaces alone, and a header."""

from twofour.analysis import Source
from twofour.diagnostics import located_in
from twofour.identifiers import identifier
from twofour.mlir import ir, llvm
from twofour.mlir_support import error_at, nested_ops
from twofour.options import CompileOptions
from twofour.targets.cpu.build import compile_cpu
from twofour.targets.cpu.header import header_text
from twofour.targets.cpu.jit import lower_to_llvm
from twofour.targets.cpu.linking import name_implementations, show_interfaces
from twofour.targets.cpu.native_object import to_native_object
from twofour.targets.cpu.rounding import add_rounding
from twofour.targets.linked_object import LinkedObject


def compile_object(source: Source, options: CompileOptions) -> LinkedObject:
    """The functions of a program for this machine's processor.

    Raises TwofourError as `compile_cpu` does.
    """
    text, header = linkable(source, options)
    return LinkedObject(to_native_object(text), header)


def linkable(source: Source, options: CompileOptions) -> tuple[str, str]:
    """LLVM IR of a program's functions as an object has them, and the C header.

    Raises TwofourError as `compile_cpu` does.
    """
    compiled = compile_cpu(source, options, whole=True)
    module = compiled.module
    with module.context, ir.Location.unknown():
        name_implementations(module)
        header = header_text(module, identifier(compiled.program.name))
        with located_in(compiled.filename):
            for op in nested_ops(module, "llvm.inline_asm"):
                raise error_at(op, "expected no assembly in an object")
        lower_to_llvm(module, compiled.filename)
        show_interfaces(module)
        add_rounding(module, str(module))
        return llvm.translate_module_to_llvmir(module.operation), header
