# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""`twofour compile`: write a bundle, or the program as it looks after one stage of compiling it."""

import argparse
import sys

from twofour.api import find_source
from twofour.errors import TwofourError
from twofour.files import check_output, write_files
from twofour.kernels import Kernel
from twofour.options import CompileOptions
from twofour.runtime import parse_boundary

STANDARD_OUTPUT = "-"
BINARY_STAGES = ("bundle", "cubin")


def compile_command(options: argparse.Namespace) -> None:
    """Run the command; raises TwofourError before anything is written."""
    source = find_source(options.source)
    if isinstance(source, Kernel):
        parse_boundary(options.boundary, source.rank)
    wanted = CompileOptions(
        target=options.target,
        schedule=options.schedule,
        dtype=options.dtype,
        fuse_steps=options.fuse_steps,
        function=options.function,
    )
    if wanted.target == "cpu":
        raise TwofourError("expected a GPU target such as sm_90 to compile for, got 'cpu'")
    path = options.output
    if path is None:
        if options.emit in BINARY_STAGES:
            raise TwofourError(f"expected -o FILE to write the {options.emit} to")
        path = STANDARD_OUTPUT
    if path != STANDARD_OUTPUT:
        check_output(path)
    if options.emit == "bundle":
        data, report = _bundle(source, wanted, options.boundary)
    else:
        # The compiler for GPUs is loaded where it is used only.
        from twofour.targets.gpu.build import emit

        data, report = emit(source, wanted, options.emit), None
    data = data.encode() if isinstance(data, str) else data
    if path == STANDARD_OUTPUT:
        sys.stdout.flush()
        sys.stdout.buffer.write(data)
        return
    write_files([(path, lambda file: file.write(data))])
    print(f"{path}: {report or options.emit}, {len(data)} bytes")


def _bundle(source: str | Kernel, wanted: CompileOptions, boundary: str) -> tuple[bytes, str]:
    from twofour.targets.gpu.build import compile_gpu

    bundle = compile_gpu(source, wanted).bundle
    bundle = bundle.with_boundary(parse_boundary(boundary, bundle.program.boundary_rank))
    count = len(bundle.kernels)
    report = (
        f"{bundle.program.name} for {bundle.target} ({bundle.manifest['schedule']}, "
        f"{bundle.manifest['element']}), {count} kernel{'s' if count > 1 else ''}, "
        f"{'PTX and cubin' if bundle.cubin else 'PTX'}"
    )
    return bundle.to_bytes(), report
