# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""`twofour bench`: the evaluation, predicted here or measured on a GPU."""

import argparse
import datetime
import shlex

from twofour.bench.report import Report, write_report
from twofour.cost import find
from twofour.errors import TwofourError
from twofour.suggestions import suggest

ALL = "all"


def bench_command(options: argparse.Namespace) -> None:
    """Do one of four things: predict, prepare what a GPU measures, measure it, or report that.

    Raises TwofourError for what is not known and for files that cannot be read or written.
    """
    date = _date(options.date)
    if options.experiment and (options.measure or options.report or options.prepare):
        raise TwofourError(
            "expected experiments without --prepare, --measure and --report, "
            f"got '{options.experiment[0]}'"
        )
    if options.measure is not None:
        from twofour.bench.measured.session import measure_folder

        measure_folder(options.measure)
    elif options.report is not None:
        from twofour.bench.measured.results import report_of

        _finish(report_of(options.report), options.output or options.report)
    elif options.prepare is not None:
        from twofour.bench.measured.prepare import prepare
        from twofour.bench.predicted.setting import find_kernels

        names = options.kernels and find_kernels(options.kernels.split(","))
        target = find(options.chip).architecture
        print(f"{options.prepare}: {prepare(options.prepare, target, names)}")
    else:
        _finish(_predicted(options, date), options.output)


def _predicted(options: argparse.Namespace, date: str) -> Report:
    # What predicts is the whole compiler; reports of measurements do without it.
    from twofour.bench.predicted.experiments import RUN, evaluate
    from twofour.bench.predicted.setting import Setting, find_kernels

    for name in options.experiment:
        if name not in (*RUN, ALL):
            raise TwofourError(f"unknown experiment '{name}'{suggest(name, [*RUN, ALL])}")
    chosen = options.experiment
    if not chosen or ALL in chosen:
        chosen = list(RUN)
    names = options.kernels and find_kernels(options.kernels.split(","))
    setting = Setting(find(options.chip), names)
    return evaluate(list(dict.fromkeys(chosen)), setting, date, _command(options))


def _command(options: argparse.Namespace) -> str:
    """What makes the report again; the folder is left to whoever does."""
    words = ["twofour", "bench", *options.experiment, "--chip", find(options.chip).name]
    if options.kernels:
        words += ["--kernels", options.kernels]
    return shlex.join(words)


def _finish(report: Report, folder: str | None) -> None:
    """Print the report, or write it."""
    if folder is None:
        print(report.markdown(), end="")
        return
    files = write_report(report, folder)
    print(f"{folder}: {len(report.sections)} sections, {len(files)} files")
    if not any(name.endswith(".svg") for name in files):
        print("no plots: they need matplotlib (pip install 'twofour[plot]')")


def _date(text: str | None) -> str:
    """The date of the report; raises TwofourError for another form than YYYY-MM-DD."""
    if text is None:
        return datetime.date.today().isoformat()
    try:
        return datetime.date.fromisoformat(text).isoformat()
    except ValueError:
        raise TwofourError(f"expected a date YYYY-MM-DD, got '{text}'") from None
