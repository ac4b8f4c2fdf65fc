# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""`twofour compile`: a bundle, an object file, or the program after one stage of compiling it."""

import argparse

from twofour.api import find_source
from twofour.cli.compile_options import compile_options, refuse_boundary
from twofour.cli.results import check_results, write_object, write_result
from twofour.errors import TwofourError
from twofour.files import STANDARD_STREAM
from twofour.kernels import Kernel
from twofour.options import SME, CompileOptions
from twofour.runtime import parse_boundary

BINARY_STAGES = ("bundle", "cubin", "object")


def compile_command(options: argparse.Namespace) -> None:
    """Run the command; raises TwofourError before anything is written."""
    if options.target == SME:
        from twofour.cli.compile_sme import compile_sme_command

        compile_sme_command(options)
        return
    options.emit = options.emit or "bundle"
    source = find_source(options.source)
    if isinstance(source, Kernel):
        parse_boundary(options.boundary, source.rank)
    wanted = compile_options(options)
    _check_stage(options.emit, wanted.target)
    if options.emit != "bundle":
        refuse_boundary(options.boundary, options.emit, wanted.target)
    path = options.output
    if path is None:
        if options.emit in BINARY_STAGES:
            raise TwofourError(f"expected -o FILE to write the {options.emit} to")
        path = STANDARD_STREAM
    if options.emit == "object":
        from twofour.targets.cpu.objects import compile_object

        write_object(path, options.source, "object", lambda: compile_object(source, wanted))
        return
    check_results([path], options.source)
    if options.emit == "bundle":
        data, report = _bundle(source, wanted, options.boundary)
    else:
        data, report = _emit(source, wanted, options.emit), None
    data = data.encode() if isinstance(data, str) else data
    write_result(path, data, report or options.emit)


def _check_stage(stage: str, target: str) -> None:
    """Raise TwofourError for a stage that a target has not."""
    if target != "cpu":
        if stage == "object":
            raise TwofourError(f"expected target 'cpu' for --emit object, got '{target}'")
        return
    # The compilers are loaded where they are used only.
    from twofour.targets.cpu.stages import STAGES

    if stage not in STAGES:
        raise TwofourError(
            f"expected a GPU target such as sm_90 to compile for (--emit {stage}), or one of "
            f"--emit {', '.join(STAGES)} for the CPU"
        )


def _emit(source: str | Kernel, wanted: CompileOptions, stage: str) -> str | bytes:
    if wanted.target == "cpu":
        from twofour.targets.cpu.stages import emit
    else:
        from twofour.targets.gpu.build import emit

    return emit(source, wanted, stage)


def _bundle(source: str | Kernel, wanted: CompileOptions, boundary: str) -> tuple[bytes, str]:
    from twofour.targets.gpu.build import compile_gpu

    bundle = compile_gpu(source, wanted).with_boundary(boundary)
    count = len(bundle.kernels)
    report = (
        f"{bundle.program.name} for {bundle.target} ({bundle.manifest['schedule']}, "
        f"{bundle.manifest['element']}), {count} kernel{'s' if count > 1 else ''}, "
        f"{'PTX and cubin' if bundle.cubin else 'PTX'}"
    )
    return bundle.to_bytes(), report
