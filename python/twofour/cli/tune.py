# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""`twofour tune`: prepare candidates, measure them, store the fastest; each part alone or all.

What a part does not need is not imported: `--measure` and `--commit` run without the compiler.
"""

import argparse
from dataclasses import fields
from pathlib import Path

from twofour.cli.compile_options import compile_options
from twofour.errors import TwofourError
from twofour.files import check_folder_name
from twofour.options import CompileOptions
from twofour.runtime import Progress
from twofour.runtime.devices.simulated import SimulatedDevice
from twofour.tune.arguments import COUNT, ROUNDS
from twofour.tune.commit import commit, finished_result
from twofour.tune.measure import check_rounds, measure, open_for
from twofour.tune.result import MEASURED, report
from twofour.tuned.database import VARIABLE, database_name, read_entries
from twofour.tuned.documents import MAX_COUNT

# What a plan has decided, and what belongs to one part alone, as the command line has it by itself.
_PLANNED = {
    **{f.name: f.default for f in fields(CompileOptions) if f.name != "tuned"},
    **{"chip": None, "count": COUNT, "shape": None},
}
_MEASURING = {"device": None, "rounds": ROUNDS}
_STORING = {"tuned": None}


def tune_command(options: argparse.Namespace) -> None:
    """Run the parts that are asked for; raises TwofourError for what they lack."""
    planned, nothing = "since the plan names it", "which measures nothing"
    for folder in (options.measure, options.commit, options.prepare):
        if folder is not None:
            check_folder_name(folder)
    if options.measure is not None:
        _check_alone(options, "--measure", _PLANNED, planned)
        _check_alone(options, "--measure", _STORING, "which stores nothing")
        _measure(options, options.measure)
    elif options.commit is not None:
        _check_alone(options, "--commit", _PLANNED, planned)
        _check_alone(options, "--commit", _MEASURING, nothing)
        _commit(options, options.commit)
    elif options.source is None:
        raise TwofourError("expected a FILE or KERNEL to tune, or --measure or --commit")
    elif options.prepare is not None:
        _check_alone(options, "--prepare", _MEASURING, nothing, program=True)
        _check_alone(options, "--prepare", _STORING, "which stores nothing", program=True)
        _prepare(options, options.prepare)
    else:
        _all(options)


def _check_alone(
    options: argparse.Namespace, flag: str, usual: dict, why: str, *, program: bool = False
) -> None:
    """Raise TwofourError for options that one part does not take, and for a program where none is.

    `usual` has their names, and what they are where nobody gives them.
    """
    if options.source is not None and not program:
        raise TwofourError(f"expected no program with {flag}, {why}, got '{options.source}'")
    for name, value in usual.items():
        got = getattr(options, name)
        if got != value:
            option = "no-reassociate" if name == "reassociate" else name.replace("_", "-")
            raise TwofourError(f"expected no --{option} with {flag}, {why}, got '{got}'")


def _all(options: argparse.Namespace) -> None:
    """Every part in a row, in a folder that is named for the program and stays."""
    if options.target == "cpu":
        raise TwofourError("expected a GPU target such as sm_90 to tune for, got 'cpu'")
    if options.device is None and options.target.startswith("sim:"):
        options.device = "sim"
    # What is missing should not be found after minutes of compiling.
    check_rounds(options.rounds)
    device = open_for(options.target.removeprefix("sim:"), options.device)
    if not isinstance(device, SimulatedDevice):
        _database(options)
    folder = _folder(options)
    _prepare(options, folder)
    _measure(options, folder, quiet=True)
    _commit(options, folder)


def _folder(options: argparse.Namespace) -> str:
    target = options.target.removeprefix("sim:")
    parts = [options.source, target, options.dtype, options.schedule, str(options.fuse_steps)]
    name = "-".join(["tune", *filter(None, parts)])
    return "".join(c if c.isalnum() or c in "._-" else "_" for c in name)


def _prepare(options: argparse.Namespace, folder: str) -> None:
    from twofour.api import find_source
    from twofour.targets.gpu.predictions import gpu_model
    from twofour.tune.prepare import prepare

    source = find_source(options.source)
    # Here --tuned is where the choice goes, not where one comes from.
    wanted = compile_options(options, tuned=None)
    if wanted.chip is None:
        raise TwofourError("expected a GPU target such as sm_90 to tune for, got 'cpu'")
    if options.count < 1:
        raise TwofourError(f"expected --count of at least 1, got '{options.count}'")
    shape = None if options.shape is None else _extents(options.shape)
    model = gpu_model(wanted, options.chip)
    with Progress("compiling", "layouts") as progress:
        plan = prepare(
            source, wanted, model, folder, count=options.count, shape=shape, progress=progress
        )
    print(f"{folder}: {len(plan.candidates)} layouts of {plan.name} for {plan.key.target}")


def _extents(text: str) -> tuple[int, ...]:
    try:
        extents = tuple(map(int, text.split(",")))
    except ValueError:
        raise TwofourError(f"expected extents as N,N,..., got '{text}'") from None
    if not all(1 <= extent < MAX_COUNT for extent in extents):
        raise TwofourError(f"expected positive extents below 2^31, got '{text}'")
    return extents


def _measure(options: argparse.Namespace, folder: str, *, quiet: bool = False) -> None:
    with Progress("measuring", "samples") as progress:
        found = measure(folder, options.device, rounds=options.rounds, progress=progress)
    if not quiet:
        print(report(*found))


def _commit(options: argparse.Namespace, folder: str) -> None:
    plan, result = finished_result(folder)
    if result.basis != MEASURED:
        print(report(plan, result))
        print("nothing is stored: these times are simulated, and a database holds measured ones")
        return
    database = _database(options)
    entry = commit(plan, result, database)
    print(report(plan, result))
    untuned = result.seconds_per_point(plan)[0]
    gain = f", {untuned / entry.seconds_per_point:.3f} times as fast as untuned" if untuned else ""
    print(f"{database}: {entry.choice} for {plan.name} on {entry.device}{gain}")


def _database(options: argparse.Namespace) -> str:
    """The file to store in; raises TwofourError where none is named or it is no database."""
    database = database_name(options.tuned)
    if database is None:
        raise TwofourError(f"expected --tuned FILE.json or {VARIABLE} to store the fastest in")
    if Path(database).exists():
        read_entries(database)
    return database
