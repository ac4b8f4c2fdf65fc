# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""What `twofour-opt` does with each part of its input."""

import re
import sys
from collections.abc import Iterator, Sequence

from twofour.context import make_context
from twofour.errors import TwofourError
from twofour.files import STANDARD_STREAM, check_output, write_files
from twofour.frontend.source import ParseFailure, parse_module, read_text
from twofour.mlir import ir
from twofour.mlir_support import printable
from twofour.opt.expected import check_expectations
from twofour.opt.options import OptOptions
from twofour.passes import pass_class, pass_names, pass_options
from twofour.pipeline import (
    PassElement,
    PipelineFailure,
    PipelineOptions,
    parse_pipeline,
    run_pipeline,
)

_SEPARATOR = re.compile(r"^[ \t]*// -----.*$", re.MULTILINE)


def list_passes() -> str:
    """The project's passes: names, first lines of docstrings, and a line for each option."""
    width = max(map(len, pass_names()))
    lines = []
    for name in pass_names():
        cls = pass_class(name)
        lines.append(f"{name:{width}}  {(cls.__doc__ or '').strip().splitlines()[0]}")
        lines += [f"    {option}" for option in pass_options(cls)]
    return "\n".join(lines)


def process(options: OptOptions) -> int:
    """Run the tool on its input; returns the exit status."""
    if options.output not in ("", STANDARD_STREAM):
        check_output(options.output)
    text = read_text(options.filename)
    elements = parse_pipeline(options.pipeline)
    outputs, failed = [], False
    for part, first_line in _parts(text, options.split_input_file):
        errors, output, reproducer = _process_part(part, first_line, elements, options)
        if options.verify_diagnostics:
            errors = check_expectations(part, first_line, options.filename, errors)
            reproducer = None
        for error in errors:
            print(error, file=sys.stderr)
        if errors and reproducer:
            print(f"note: to reproduce: {reproducer}", file=sys.stderr)
        failed = failed or bool(errors)
        if output is not None:
            outputs.append(output)
    if failed:
        return 1
    if not options.verify_diagnostics or outputs:
        _write("// -----\n".join(outputs), options.output)
    return 0


def _parts(text: str, split: bool) -> Iterator[tuple[str, int]]:
    """Parts of the input and the line on which each begins."""
    if not split:
        yield text, 1
        return
    begin = 0
    for match in [*_SEPARATOR.finditer(text), None]:
        end = match.start() if match else len(text)
        yield text[begin:end], text.count("\n", 0, begin) + 1
        begin = match.end() if match else end


def _process_part(
    text: str, first_line: int, elements: Sequence[PassElement], options: OptOptions
) -> tuple[list[TwofourError], str | None, str | None]:
    """Errors, the printed module (None after an error), and the command to reproduce them."""
    context = make_context()
    context.allow_unregistered_dialects = options.allow_unregistered_dialect
    with context:
        try:
            module = parse_module(text, options.filename, first_line)
            run_pipeline(module, elements, _pipeline_options(options))
        except ParseFailure as failure:
            return failure.errors, None, None
        except PipelineFailure as failure:
            return failure.errors, None, failure.reproducer
        return [], _print(module, options), None


def _pipeline_options(options: OptOptions) -> PipelineOptions:
    printing = None
    after = options.print_ir_after_all or options.print_ir_after_failure
    if options.print_ir_before_all or after:
        printing = {
            "print_before_all": options.print_ir_before_all,
            "print_after_all": after,
            "print_after_change": options.print_ir_after_change,
            "print_after_failure": options.print_ir_after_failure
            and not options.print_ir_after_all,
            "enable_debug_info": options.print_debuginfo,
            "print_generic_op_form": options.print_generic,
        }
    return PipelineOptions(
        verify=options.verify_each,
        timing=options.timing,
        printing=printing,
        filename=options.filename,
        flags=options.reproducer_flags,
    )


def _print(module: ir.Module, options: OptOptions) -> str:
    text = module.operation.get_asm(
        enable_debug_info=options.print_debuginfo, print_generic_op_form=options.print_generic
    )
    if options.print_debuginfo and options.filename != STANDARD_STREAM:
        # MLIR does not know the name of what it parses. Quotes within texts are printed as \\22.
        name = str(ir.StringAttr.get(printable(options.filename)))
        text = re.sub(r'"-":(?=\d+:\d+)', lambda _: f"{name}:", text)
    return text if text.endswith("\n") else text + "\n"


def _write(text: str, output: str) -> None:
    if not output:
        raise TwofourError("expected the name of a file after '-o', got ''")
    if output == "-":
        sys.stdout.write(text)
        return
    write_files([(output, lambda file: file.write(text.encode()))])
