# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""What the compiler for the CPU has after each of its stages."""

from twofour.analysis import Source, analyse, layout_passes, load_program
from twofour.errors import TwofourError
from twofour.kernels import Kernel
from twofour.options import CompileOptions
from twofour.targets.cpu.build import SWEEP_TERMS, chosen_schedule
from twofour.targets.cpu.objects import linkable

TEXTS = ("stencil", "nm", "llvm")
STAGES = (*TEXTS, "object")


def emit(source: Source, options: CompileOptions, stage: str) -> str:
    """The program after a stage out of TEXTS; in LLVM IR as it is for an object.

    Raises TwofourError as `compile_cpu` does, and for a stage that the schedule does not pass
    through.
    """
    return linkable(source, options)[0] if stage == "llvm" else _text(source, options, stage)


def stage_texts(source: Source, options: CompileOptions) -> dict[str, str]:
    """The program after each stage out of TEXTS that its schedule has, in order.

    Raises TwofourError as `compile_cpu` does.
    """
    sparse = chosen_schedule(options) == "sparse"
    stages = [stage for stage in TEXTS if stage != "nm" or sparse]
    return {stage: emit(source, options, stage) for stage in stages}


def _text(source: Source, options: CompileOptions, stage: str) -> str:
    module, filename = load_program(source, options)
    is_kernel = isinstance(source, Kernel)
    found = analyse(module, filename, options, is_kernel=is_kernel, sweep_terms=SWEEP_TERMS)
    if stage == "nm":
        schedule = "loops" if found.left else chosen_schedule(options)
        if schedule != "sparse":
            raise TwofourError(f"expected a stage that schedule '{schedule}' has, got 'nm'")
        found.run(layout_passes())
    with module.context:
        return str(module)
