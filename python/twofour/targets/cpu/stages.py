# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""What the compiler for the CPU has after each of its stages."""

from twofour.analysis import Source, analyse, layout_passes, load_program
from twofour.errors import TwofourError
from twofour.kernels import Kernel
from twofour.mlir import ir, llvm
from twofour.options import CompileOptions
from twofour.targets.cpu.build import chosen_schedule, compile_cpu
from twofour.targets.cpu.jit import give_identifiers, lower_to_llvm
from twofour.targets.cpu.native_object import to_native_object

STAGES = ("stencil", "nm", "llvm", "object")


def emit(source: Source, options: CompileOptions, stage: str) -> str | bytes:
    """The program after a stage out of STAGES; bytes for the object file.

    Functions keep their names where these are identifiers, and each has a C interface
    `_mlir_ciface_NAME` beside it. Raises TwofourError as `compile_cpu` does, and for a stage that
    the schedule does not pass through.
    """
    if stage in ("stencil", "nm"):
        return _text(source, options, stage)
    compiled = compile_cpu(source, options)
    with compiled.module.context, ir.Location.unknown():
        give_identifiers(compiled.module)
        lower_to_llvm(compiled.module, compiled.filename)
        text = llvm.translate_module_to_llvmir(compiled.module.operation)
    return to_native_object(text) if stage == "object" else text


def stage_texts(source: Source, options: CompileOptions) -> dict[str, str]:
    """The program after each stage out of STAGES that its schedule has and that is text, in order.

    Raises TwofourError as `compile_cpu` does.
    """
    sparse = chosen_schedule(options) == "sparse"
    stages = [stage for stage in STAGES if stage != "object" and (stage != "nm" or sparse)]
    return {stage: emit(source, options, stage) for stage in stages}


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
