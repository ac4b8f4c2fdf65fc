# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""`twofour compile --target sme`: an object file and its header, or a stage of compiling it."""

import argparse

from twofour.api import find_source
from twofour.cli.compile_options import refuse_boundary
from twofour.cli.results import check_results, write_object, write_result
from twofour.errors import TwofourError
from twofour.files import STANDARD_STREAM
from twofour.kernels import Kernel
from twofour.options import SME
from twofour.runtime import parse_boundary
from twofour.targets.sme.build import STAGES, compile_sme, emit
from twofour.targets.sme.options import SmeOptions


def compile_sme_command(options: argparse.Namespace) -> None:
    """Run the command; raises TwofourError before anything is written."""
    source = find_source(options.source)
    if isinstance(source, Kernel):
        parse_boundary(options.boundary, source.rank)
    if options.tuned is not None:
        raise TwofourError("expected a GPU target for --tuned, got target 'sme'")
    if not options.reassociate:
        raise TwofourError("expected a CPU target for --no-reassociate, got target 'sme'")
    wanted = SmeOptions(options.schedule, options.dtype, options.fuse_steps, options.function)
    stage = options.emit or "object"
    if stage not in STAGES:
        raise TwofourError(f"expected --emit {', '.join(STAGES)} for target 'sme', got '{stage}'")
    refuse_boundary(options.boundary, stage, SME)
    path = options.output or STANDARD_STREAM
    if stage != "object":
        check_results([path], options.source)
        write_result(path, emit(source, wanted, stage).encode(), stage)
        return
    write_object(path, options.source, "object for Arm SME", lambda: compile_sme(source, wanted))
