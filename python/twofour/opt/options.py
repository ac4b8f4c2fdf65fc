# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The command line of `twofour-opt`."""

import re
from collections.abc import Container
from dataclasses import dataclass
from itertools import islice

from twofour import __version__
from twofour.command_line import Parser
from twofour.errors import TwofourError
from twofour.files import output_name


@dataclass(frozen=True)
class OptOptions:
    """What the command line asked for; `pipeline` is the text of a pass pipeline."""

    filename: str
    output: str
    pipeline: str
    split_input_file: bool
    verify_diagnostics: bool
    verify_each: bool
    allow_unregistered_dialect: bool
    print_ir_before_all: bool
    print_ir_after_all: bool
    print_ir_after_change: bool
    print_ir_after_failure: bool
    print_generic: bool
    print_debuginfo: bool
    timing: bool
    list_passes: bool

    @property
    def reproducer_flags(self) -> list[str]:
        """The flags that decide, besides the pipeline, whether and how it fails."""
        flags = {
            "--split-input-file": self.split_input_file,
            "--allow-unregistered-dialect": self.allow_unregistered_dialect,
            "--verify-each=false": not self.verify_each,
        }
        return [flag for flag, given in flags.items() if given]


_FLAGS = {
    "--split-input-file": "process each part between '// -----' lines on its own",
    "--verify-diagnostics": "check errors against 'expected-error' comments",
    "--allow-unregistered-dialect": "accept ops of dialects that are not loaded",
    "--mlir-print-ir-before-all": "print the IR before each pass, to standard error",
    "--mlir-print-ir-after-all": "print the IR after each pass, to standard error",
    "--mlir-print-ir-after-change": "with after-all: only after passes that changed it",
    "--mlir-print-ir-after-failure": "print the IR after a pass that failed",
    "--mlir-print-op-generic": "print every op in generic form",
    "--mlir-print-debuginfo": "print locations",
    "--mlir-timing": "print the time that each pass took, to standard error",
    "--list-passes": "list the project's passes with their options, and end",
}


# `-oFILE` and `-h` are no passes; otherwise one dash is as good as two.
_PASS = re.compile(r"(?:--|-(?![oh]))(?P<name>[a-zA-Z][^=]*)(?:=(?P<options>.*))?", re.DOTALL)


def make_parser() -> Parser:
    """The parser of the command line, without the flags that name passes."""
    parser = Parser(
        "twofour-opt",
        description="Run passes of twofour and of upstream MLIR over a file.",
        allow_abbrev=False,
    )
    parser.add_argument("--version", action="version", version=f"twofour-opt {__version__}")
    parser.add_argument("file", nargs="?", default="-", help="input (default: standard input)")
    parser.add_argument(
        "-o", dest="output", type=output_name, default="-", metavar="FILE", help="output"
    )
    parser.add_argument(
        "--pass-pipeline", default=None, metavar="TEXT", help="builtin.module(pass,pass{a=b},...)"
    )
    parser.add_argument(
        "--verify-each",
        default="true",
        choices=["true", "false", "1", "0"],
        help="verify after each pass (default: true), as in --verify-each=false",
    )
    for flag, text in _FLAGS.items():
        parser.add_argument(flag, action="store_true", help=text)
    parser.add_argument_group("passes", "--<pass>[=<options>], in order; see --list-passes")
    return parser


def _take_passes(arguments: list[str], known: Container[str]) -> tuple[list[str], list[str]]:
    """Split a command line into its passes, as pipelines spell them, and all other words.

    `known` are the flags that name no passes.
    """
    passes, others = [], []
    words = iter(arguments)
    for word in words:
        if f"-{word}".partition("=")[0] in known:
            # As mlir-opt takes it, and passes are named.
            word = f"-{word}"
        match = _PASS.fullmatch(word)
        if word == "--":
            others += [word, *words]
        elif word in ("-o", "--pass-pipeline"):
            others += [word, *islice(words, 1)]
        elif word == "--verify-each":
            # Its value follows `=` only: the next word may be the file.
            others.append("--verify-each=true")
        elif match and word.partition("=")[0] not in known:
            options = (match["options"] or "").strip()
            if options.startswith("{") and options.endswith("}"):
                options = options[1:-1]
            _check_balance(match["name"], options)
            passes.append(f"{match['name']}{{{options}}}" if options else match["name"])
        else:
            others.append(word)
    return passes, others


def _check_balance(name: str, options: str) -> None:
    """Raise TwofourError for braces that would end the options, with room for passes behind."""
    depth = 0
    for character in options:
        depth += {"{": 1, "}": -1}.get(character, 0)
        if depth < 0:
            break
    if depth != 0:
        raise TwofourError(f"expected balanced braces in the options of '--{name}'")


def parse_arguments(arguments: list[str]) -> OptOptions:
    """Read the command line; raises TwofourError where it is wrong."""
    parser = make_parser()
    # `--<pass>` may name any pass of the project or upstream's: argparse knows none of them.
    known = {option for action in parser._actions for option in action.option_strings}
    passes, others = _take_passes(arguments, known)
    found = parser.parse_args(others)
    if found.pass_pipeline is not None and passes:
        raise TwofourError("expected --pass-pipeline or single passes, got both")
    if found.mlir_print_ir_after_change and not found.mlir_print_ir_after_all:
        raise TwofourError("expected --mlir-print-ir-after-all with --mlir-print-ir-after-change")
    return OptOptions(
        filename=found.file,
        output=found.output,
        pipeline=found.pass_pipeline or f"builtin.module({','.join(passes)})",
        split_input_file=found.split_input_file,
        verify_diagnostics=found.verify_diagnostics,
        verify_each=found.verify_each in ("true", "1"),
        allow_unregistered_dialect=found.allow_unregistered_dialect,
        print_ir_before_all=found.mlir_print_ir_before_all,
        print_ir_after_all=found.mlir_print_ir_after_all,
        print_ir_after_change=found.mlir_print_ir_after_change,
        print_ir_after_failure=found.mlir_print_ir_after_failure,
        print_generic=found.mlir_print_op_generic,
        print_debuginfo=found.mlir_print_debuginfo,
        timing=found.mlir_timing,
        list_passes=found.list_passes,
    )
