# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The command line of `twofour`."""

from __future__ import annotations

import argparse
import re
from collections.abc import Iterator

from twofour import __version__
from twofour.command_line import Parser
from twofour.files import output_name
from twofour.tune.arguments import COUNT, add_measuring

STAGES = ("bundle", "ptx", "cubin", "llvm", "nvvm", "gpu", "nm", "stencil", "object")


def parse_arguments(arguments: list[str]) -> argparse.Namespace:
    """Read the command line; `command` of the result is the function to call with it."""
    return make_parser().parse_args(list(_joined_numbers(arguments)))


def _joined_numbers(arguments: list[str]) -> Iterator[str]:
    """The words, with numbers that argparse would take for options, as -1e-3, behind a `=`."""
    last = None
    for word in arguments:
        if last == "--scalar" and re.match(r"-[\d.in]", word):
            last = f"{last}={word}"
            continue
        if last is not None:
            yield last
        last = word
    if last is not None:
        yield last


def make_parser() -> Parser:
    """The parser of the command line, with one subparser a command."""
    parser = Parser("twofour", description="Stencils on CPUs and sparse tensor cores.")
    parser.add_argument("--version", action="version", version=f"twofour {__version__}")
    commands = parser.add_subparsers(metavar="COMMAND", required=True, parser_class=Parser)
    _add_run(commands)
    _add_compile(commands)
    _add_explain(commands)
    _add_tune(commands)
    _add_kernels(commands)
    _add_bench(commands)
    return parser


def _add_program(
    parser: argparse.ArgumentParser,
    *,
    is_optional: bool = False,
    targets: str = "cpu (default), sm_80, sm_89, sm_90, sm_100, sim:sm_90, ..., sme (compile only)",
    tuned: str = "measured choices for GPUs",
) -> None:
    """What run, compile, explain and tune share; `targets` and `tuned` are helps of options."""
    parser.add_argument(
        "source",
        nargs="?" if is_optional else None,
        metavar="FILE|KERNEL",
        help="an .mlir file, - (standard input), or a built-in kernel",
    )
    parser.add_argument(
        "--target",
        default="cpu",
        help=targets,
    )
    parser.add_argument(
        "--dtype",
        help="f16, bf16, f32, f64 (kernels: f32; files: their own), on GPUs tf32 for f32 arrays",
    )
    parser.add_argument(
        "--schedule",
        default="auto",
        help="auto (default); CPU: direct, sparse, outer; GPU: stream, sparse, dense, simt; "
        "sme: parallel, orthogonal, hybrid, diagonal",
    )
    parser.add_argument(
        "--fuse-steps",
        type=_fused_steps,
        default=1,
        metavar="N",
        help="steps in one sweep (default 1), on GPUs also auto: what is predicted to be fastest",
    )
    parser.add_argument("--function", metavar="NAME", help="the function of a file with several")
    parser.add_argument(
        "--no-reassociate",
        dest="reassociate",
        action="store_false",
        help="CPU: add term by term, also where inputs of a row have the same weight",
    )
    parser.add_argument(
        "--tuned",
        metavar="FILE.json",
        help=f"{tuned} (default: the file that TWOFOUR_TUNED names)",
    )


def _fused_steps(text: str) -> int | str:
    if text == "auto":
        return text
    try:
        return int(text)
    except ValueError:
        raise argparse.ArgumentTypeError(f"expected a number or auto, got '{text}'") from None


def _add_run(commands) -> None:
    parser = commands.add_parser("run", help="advance fields by time steps")
    _add_program(parser)
    parser.add_argument("--steps", type=int, default=1, metavar="N", help="time steps (default 1)")
    parser.add_argument(
        "--input",
        action="append",
        metavar="FILE.npy",
        help="a field's values, halo included, - for standard input; once for each input field "
        "(default: a smooth bump)",
    )
    parser.add_argument(
        "-o",
        "--output",
        type=output_name,
        metavar="FILE.npy",
        help="where the result goes, - for standard output (then what was done is said on standard "
        "error)",
    )
    _add_boundary(parser)
    parser.add_argument(
        "--shape",
        metavar="N[,N...]",
        help="extents of a kernel's domain (default: 2^20 points, 1024 x 1024 or 128 x 128 x 128)",
    )
    parser.add_argument(
        "--scalar", action="append", metavar="X", help="a number argument of a file"
    )
    parser.add_argument(
        "--threads",
        type=int,
        metavar="N",
        help="CPU: the most that a sweep takes (default: TWOFOUR_NUM_THREADS, else all CPUs)",
    )
    parser.add_argument(
        "--device", metavar="NAME", help="GPU: cuda (default: the first), cuda:N, or sim"
    )
    parser.add_argument("--plot", metavar="FILE.png", help="a picture of each 2-D result")
    parser.add_argument(
        "--profile", action="store_true", help="print what simulated kernels cost (sim: targets)"
    )
    parser.set_defaults(command=_run)


def _add_boundary(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--boundary",
        default="fixed",
        metavar="MODE[,MODE...]",
        help="fixed (default), zero, constant(c), periodic, reflect, nearest; one or one an axis",
    )


def _add_compile(commands) -> None:
    parser = commands.add_parser(
        "compile", help="write a bundle or an object file, or what a stage looks like"
    )
    _add_program(parser)
    _add_boundary(parser)
    parser.add_argument(
        "-o",
        "--output",
        type=output_name,
        metavar="FILE",
        help="where it goes, - for standard output (default for texts)",
    )
    parser.add_argument(
        "--emit",
        choices=STAGES,
        help=f"{', '.join(STAGES)}, which has a C header beside it (default bundle, for sme "
        "object); CPU: llvm, nm, stencil, object; sme: llvm, stencil, object",
        metavar="STAGE",
    )
    parser.set_defaults(command=_compile)


def _add_explain(commands) -> None:
    parser = commands.add_parser("explain", help="say what the compiler decides, and why")
    _add_program(parser)
    parser.add_argument(
        "--chip",
        metavar="NAME",
        help="predict for A100, H100, H200 or RTX4090",
    )
    form = parser.add_mutually_exclusive_group()
    form.add_argument("--json", action="store_true", help="as JSON")
    form.add_argument(
        "--html",
        type=output_name,
        metavar="FILE.html",
        help="as a page with pictures of A and the IR of every stage, - for standard output",
    )
    parser.set_defaults(command=_explain)


def _add_tune(commands) -> None:
    parser = commands.add_parser("tune", help="measure layouts and keep the fastest")
    _add_program(
        parser,
        is_optional=True,
        targets="sm_80, sm_89, sm_90, sm_100, or sim:sm_90, ..., which counts instead of timing",
        tuned="where the fastest is stored",
    )
    parser.add_argument("--chip", metavar="NAME", help="rank layouts for A100, H100, H200, RTX4090")
    parser.add_argument(
        "--count",
        type=int,
        default=COUNT,
        metavar="N",
        help=f"layouts to measure (default {COUNT})",
    )
    parser.add_argument("--shape", metavar="N[,N...]", help="extents of the domain to measure on")
    part = parser.add_mutually_exclusive_group()
    part.add_argument("--prepare", metavar="DIR", help="write bundles and a plan; needs no GPU")
    part.add_argument(
        "--measure",
        metavar="DIR",
        help="measure what was prepared; needs no compiler (also: python -m twofour.tune)",
    )
    part.add_argument("--commit", metavar="DIR", help="store the fastest in the file of --tuned")
    add_measuring(parser)
    parser.set_defaults(command=_tune)


def _add_kernels(commands) -> None:
    parser = commands.add_parser("kernels", help="list the built-in kernels")
    parser.add_argument("name", nargs="?", help="show one kernel, with weights and source")
    parser.add_argument("--json", action="store_true", help="as JSON")
    parser.set_defaults(command=_kernels)


def _add_bench(commands) -> None:
    parser = commands.add_parser(
        "bench", help="make the tables and figures of the evaluation, predicted or measured"
    )
    parser.add_argument(
        "experiment",
        nargs="*",
        metavar="EXPERIMENT",
        help="table2, domains, ablation, preprocessing, sweep, heatmap, resources, counters, fp64, "
        "exploration; all (default); or cpu, which measures on this machine, alone or with some of "
        "ceilings, sweeps, short-rows, steps, kernels, fields, calls",
    )
    parser.add_argument("--chip", metavar="NAME", help="A100, H100, H200 (default) or RTX4090")
    parser.add_argument(
        "--kernels", metavar="NAME[,NAME...]", help="only these, built-in or of table 2"
    )
    parser.add_argument(
        "--output", metavar="DIR", help="where the report goes (default: its text is printed)"
    )
    parser.add_argument("--date", metavar="YYYY-MM-DD", help="of the report (default: today)")
    parser.add_argument(
        "--sizes",
        type=_numbers,
        metavar="N[,N...]",
        help="cpu: edges of square domains (default 512,4096)",
    )
    parser.add_argument(
        "--threads",
        type=_numbers,
        metavar="N[,N...]",
        help="cpu: threads for each size (default: 1 for the first, 2 for others)",
    )
    parser.add_argument(
        "--rounds", type=int, metavar="N", help="cpu: samples of each contestant (default 9)"
    )
    what = parser.add_mutually_exclusive_group()
    what.add_argument(
        "--prepare", metavar="DIR", help="write what `python -m twofour.bench` measures on a GPU"
    )
    what.add_argument("--measure", metavar="DIR", help="measure on a GPU, or go on with it")
    what.add_argument("--report", metavar="DIR", help="report what was measured")
    parser.add_argument("--device", metavar="NAME", help="with --measure: cuda (default) or cuda:N")
    parser.set_defaults(command=_bench)


def _numbers(text: str) -> tuple[int, ...]:
    try:
        return tuple(map(int, text.split(",")))
    except ValueError:
        message = f"expected numbers with commas between, got '{text}'"
        raise argparse.ArgumentTypeError(message) from None


# Commands are imported when they are called: `kernels` and `--help` need no compiler.
def _run(options: argparse.Namespace) -> None:
    from twofour.cli.run import run

    run(options)


def _compile(options: argparse.Namespace) -> None:
    from twofour.cli.compile import compile_command

    compile_command(options)


def _explain(options: argparse.Namespace) -> None:
    from twofour.cli.explain import explain_command

    explain_command(options)


def _tune(options: argparse.Namespace) -> None:
    from twofour.cli.tune import tune_command

    tune_command(options)


def _kernels(options: argparse.Namespace) -> None:
    from twofour.cli.kernels import kernels_command

    kernels_command(options)


def _bench(options: argparse.Namespace) -> None:
    from twofour.cli.bench import bench_command

    bench_command(options)
