# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""`twofour explain`: compile without running, and report every choice."""

import argparse
import json

from twofour.analysis import Source
from twofour.api import find_source
from twofour.cli.compile_options import compile_options
from twofour.cli.results import check_results, write_result
from twofour.explain import as_text, explain
from twofour.frontend.source import ProgramText
from twofour.options import CompileOptions


def explain_command(options: argparse.Namespace) -> None:
    """Print the report, or write it as a page.

    Raises TwofourError for a program that cannot be compiled and a file that cannot be written,
    before anything is.
    """
    source = find_source(options.source)
    wanted = compile_options(options)
    if options.html is not None:
        check_results([options.html], options.source)
        if isinstance(source, str):
            source = ProgramText.of(source)
        report, page = _page(source, wanted, options.chip)
        what = f"{report['name']}, {report['schedule']} on {report['target']}, {report['dtype']}"
        write_result(options.html, page, what)
        return
    report = explain(source, wanted, options.chip)
    print(json.dumps(report, indent=2) if options.json else as_text(report))


def _page(source: Source, wanted: CompileOptions, chip: str | None) -> tuple[dict, bytes]:
    """The report, and the page of it."""
    # What draws is loaded where it is used only, and so are the compilers.
    from twofour.html_page.operator_stages import operator_stages
    from twofour.html_page.page import html_report

    if wanted.target == "cpu":
        from twofour.targets.cpu.stages import stage_texts
    else:
        from twofour.targets.gpu.build import stage_texts

    report = explain(source, wanted, chip)
    texts = stage_texts(source, wanted)
    operators = operator_stages(report, texts["stencil"])
    return report, html_report(report, texts, operators).encode()
