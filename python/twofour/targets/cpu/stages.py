# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""What the compiler for the CPU has after each of its stages."""

from dataclasses import dataclass

from twofour.analysis import Source, analyse, layout_passes, load_program
from twofour.errors import TwofourError
from twofour.identifiers import identifier
from twofour.kernels import Kernel
from twofour.mlir import ir, llvm
from twofour.options import CompileOptions
from twofour.targets.cpu.build import chosen_schedule, compile_cpu
from twofour.targets.cpu.header import header_text
from twofour.targets.cpu.jit import lower_to_llvm
from twofour.targets.cpu.linking import name_implementations, show_interfaces
from twofour.targets.cpu.native_object import to_native_object
from twofour.targets.cpu.rounding import add_rounding

TEXTS = ("stencil", "nm", "llvm")
STAGES = (*TEXTS, "object")


@dataclass(frozen=True)
class CpuObject:
    """An object file for this machine's processor, and the C header for it."""

    data: bytes
    header: str


def compile_object(source: Source, options: CompileOptions) -> CpuObject:
    """The functions of a program for C: each is `_mlir_ciface_NAME`, and nothing else is seen.

    Raises TwofourError as `compile_cpu` does.
    """
    text, header = _linkable(source, options)
    return CpuObject(to_native_object(text), header)


def emit(source: Source, options: CompileOptions, stage: str) -> str:
    """The program after a stage out of TEXTS; in LLVM IR as it is for an object.

    Raises TwofourError as `compile_cpu` does, and for a stage that the schedule does not pass
    through.
    """
    return _linkable(source, options)[0] if stage == "llvm" else _text(source, options, stage)


def stage_texts(source: Source, options: CompileOptions) -> dict[str, str]:
    """The program after each stage out of TEXTS that its schedule has, in order.

    Raises TwofourError as `compile_cpu` does.
    """
    sparse = chosen_schedule(options) == "sparse"
    stages = [stage for stage in TEXTS if stage != "nm" or sparse]
    return {stage: emit(source, options, stage) for stage in stages}


def _linkable(source: Source, options: CompileOptions) -> tuple[str, str]:
    """LLVM IR of a program's functions as an object has them, and the C header."""
    compiled = compile_cpu(source, options)
    module = compiled.module
    with module.context, ir.Location.unknown():
        name_implementations(module)
        header = header_text(module, identifier(compiled.program.name))
        lower_to_llvm(module, compiled.filename)
        show_interfaces(module)
        add_rounding(module, str(module))
        return llvm.translate_module_to_llvmir(module.operation), header


def _text(source: Source, options: CompileOptions, stage: str) -> str:
    module, filename = load_program(source, options)
    found = analyse(module, filename, options, is_kernel=isinstance(source, Kernel))
    if stage == "nm":
        schedule = "loops" if found.left else chosen_schedule(options)
        if schedule != "sparse":
            raise TwofourError(f"expected a stage that schedule '{schedule}' has, got 'nm'")
        found.run(layout_passes())
    with module.context:
        return str(module)
