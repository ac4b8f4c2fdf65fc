# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""`twofour bench`: the evaluation, predicted here, measured on a GPU or on this processor."""

import argparse
import datetime
import re
import shlex
from collections.abc import Sequence
from contextlib import suppress

from twofour.bench import plots
from twofour.bench.report import Report, check_folder, write_report
from twofour.cost import find
from twofour.errors import TwofourError
from twofour.files import check_folder_name
from twofour.suggestions import suggest

ALL, CPU = "all", "cpu"
CHIP = "H200"
# What is made, and the options that it takes.
PREDICTIONS = "predictions"
TAKEN = {
    PREDICTIONS: ("chip", "kernels", "output", "date"),
    CPU: ("kernels", "output", "date", "sizes", "threads", "rounds"),
    "--prepare": ("chip", "kernels"),
    "--measure": ("device",),
    "--report": ("output",),
}


def bench_command(options: argparse.Namespace) -> None:
    """Predict, prepare what a GPU measures, measure it, report that, or measure this processor.

    Raises TwofourError for what is not known and for files that cannot be read or written.
    """
    for folder in (options.prepare, options.measure, options.report, options.output):
        if folder is not None:
            check_folder_name(folder)
    made = _made(options)
    for name in dict.fromkeys(name for names in TAKEN.values() for name in names):
        if getattr(options, name) is not None and name not in TAKEN[made]:
            raise TwofourError(f"expected no --{name} with {made}")
    date = _date(options.date)
    if options.experiment and (options.measure or options.report or options.prepare):
        raise TwofourError(
            "expected experiments without --prepare, --measure and --report, "
            f"got '{options.experiment[0]}'"
        )
    if made == CPU:
        given = {name: getattr(options, name) for name in ("sizes", "threads", "rounds")}
        settings = {name: value for name, value in given.items() if value is not None}
        _measured_here(options, options.experiment[1:], settings, date)
    elif options.measure is not None:
        from twofour.bench.measured.session import measure_folder

        measure_folder(options.measure, options.device)
    elif options.report is not None:
        from twofour.bench.measured.results import report_of

        _finish(report_of(options.report), options.output or options.report)
    elif options.prepare is not None:
        from twofour.bench.measured.prepare import prepare

        names = _kernel_names(options)
        target = find(options.chip or CHIP).architecture
        print(f"{options.prepare}: {prepare(options.prepare, target, names)}")
    else:
        _finish(_predicted(options, date), options.output)


def _made(options: argparse.Namespace) -> str:
    """What the command makes: a key of TAKEN."""
    for name in ("prepare", "measure", "report"):
        if getattr(options, name) is not None:
            return f"--{name}"
    return CPU if options.experiment[:1] == [CPU] else PREDICTIONS


def _kernel_names(options: argparse.Namespace) -> tuple[str, ...] | None:
    """The kernels asked for, None for all; raises TwofourError for an unknown one."""
    from twofour.bench.predicted.setting import find_kernels

    return None if options.kernels is None else find_kernels(options.kernels.split(","))


def _predicted(options: argparse.Namespace, date: str) -> Report:
    # What predicts is the whole compiler; reports of measurements do without it.
    from twofour.bench.predicted.experiments import RUN, evaluate
    from twofour.bench.predicted.setting import Setting

    for name in options.experiment:
        if name == CPU:
            raise TwofourError(f"expected '{CPU}' as the first experiment")
        if name not in (*RUN, ALL):
            raise TwofourError(f"unknown experiment '{name}'{suggest(name, [*RUN, ALL, CPU])}")
    chosen = options.experiment
    if not chosen or ALL in chosen:
        chosen = list(RUN)
    names = _kernel_names(options)
    setting = Setting(find(options.chip or CHIP), names)
    _check_output(options)
    return evaluate(list(dict.fromkeys(chosen)), setting, date, _command(options))


def _measured_here(
    options: argparse.Namespace, names: Sequence[str], settings: dict, date: str
) -> None:
    """Measure on this processor; what was measured before an error or Ctrl-C is reported first."""
    from twofour.bench.cpu.evaluation import EXPERIMENTS, evaluate
    from twofour.bench.cpu.setting import CpuSetting

    for name in names:
        if name not in EXPERIMENTS:
            hint = suggest(name, EXPERIMENTS)
            raise TwofourError(f"unknown experiment '{name}' of {CPU}{hint}")
    words = ["twofour", "bench", CPU, *names]
    for name, value in settings.items():
        text = ",".join(map(str, value)) if isinstance(value, tuple) else str(value)
        words += [f"--{name}", text]
    if options.kernels is not None:
        words += ["--kernels", options.kernels]
        settings["names"] = _kernel_names(options)
    chosen = list(dict.fromkeys(names)) or list(EXPERIMENTS)
    setting = CpuSetting(**settings)
    _check_output(options)
    found = evaluate(chosen, setting, date, shlex.join(words))
    _finish(found.report, options.output)
    if found.interrupted:
        raise KeyboardInterrupt
    if found.wrong:
        raise TwofourError(
            f"expected right results of all baselines, got {len(found.wrong)} wrong ones: "
            f"{', '.join(found.wrong)}"
        )


def _command(options: argparse.Namespace) -> str:
    """What makes the report again; the folder is left to whoever does."""
    words = ["twofour", "bench", *options.experiment, "--chip", find(options.chip or CHIP).name]
    if options.kernels is not None:
        words += ["--kernels", options.kernels]
    return shlex.join(words)


def _check_output(options: argparse.Namespace) -> None:
    """What cannot be written should not be found after minutes of work."""
    if options.output is not None:
        check_folder(options.output)


def _finish(report: Report, folder: str | None) -> None:
    """Print the report, or write it."""
    if folder is None:
        print(report.markdown(), end="")
        return
    files = write_report(report, folder)
    print(f"{folder}: {len(report.sections)} sections, {len(files)} files")
    if not plots.can_draw() and any(section.plots for section in report.sections):
        print("no plots: they need matplotlib (pip install matplotlib)")


def _date(text: str | None) -> str:
    """The date of the report; raises TwofourError for another form than YYYY-MM-DD."""
    if text is None:
        return datetime.date.today().isoformat()
    # Other forms of ISO 8601 are taken or not, as Python's version has it.
    if re.fullmatch(r"[0-9]{4}-[0-9]{2}-[0-9]{2}", text):
        with suppress(ValueError):
            return datetime.date.fromisoformat(text).isoformat()
    raise TwofourError(f"expected a date YYYY-MM-DD, got '{text}'")
