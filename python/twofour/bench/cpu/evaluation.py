# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""All experiments on the CPU, by name, and their report."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from twofour.bench.cpu import calls, ceilings, fields, kernels, short_rows, steps, sweeps
from twofour.bench.cpu.c_library import FLAGS, GCC, Ceilings
from twofour.bench.cpu.comparison import Comparison, LeftOut
from twofour.bench.cpu.experiment import Bench
from twofour.bench.cpu.machine import all_versions, describe_machine
from twofour.bench.cpu.pinning import affinity_restored, usable_cpus
from twofour.bench.cpu.setting import CpuSetting
from twofour.bench.report import Report
from twofour.bench.section import Column, Section, table
from twofour.errors import TwofourError
from twofour.runtime import Progress

# Modules of one form: count, compare_all and section (see twofour.bench.cpu.experiment).
EXPERIMENTS = {
    "ceilings": ceilings,
    "sweeps": sweeps,
    "short-rows": short_rows,
    "steps": steps,
    "kernels": kernels,
    "fields": fields,
    "calls": calls,
}
BASIS = """\
Measured on a CPU by the clock: medians of {rounds} interleaved rounds, each of one sample of every
contestant in another order; a sample takes 2 ms at least and comes after as many sweeps again.
Every thread is on a processor of its own, and none spins while another contestant is timed. All
contestants of a comparison sweep between the same two arrays. The result of every baseline was
compared with that of twofour before it was timed, and both are within the documented error bound
of sums in any order. C was compiled by `gcc {flags}`."""
INTERRUPTED = " **Interrupted: not all comparisons were made.**"


@dataclass(frozen=True)
class Evaluation:
    """A report, which baselines were wrong, and whether it was interrupted."""

    report: Report
    wrong: tuple[str, ...]
    interrupted: bool


def evaluate(names: Sequence[str], setting: CpuSetting, date: str, command: str) -> Evaluation:
    """Run experiments by their names; after Ctrl-C the report holds what was measured till then."""
    bench, missing = _bench(setting)
    made: dict[str, list[Comparison]] = {name: [] for name in names}
    interrupted = False
    total = sum(EXPERIMENTS[name].count(setting) for name in names)
    with Progress("measuring", "comparisons") as progress, affinity_restored():
        try:
            for done, (name, one) in enumerate(_all(names, bench), 1):
                made[name].append(one)
                progress(done, total)
        except KeyboardInterrupt:
            interrupted = True
    found = {name: some for name, some in made.items() if some}
    sections = [EXPERIMENTS[name].section(some) for name, some in found.items()]
    left_out = _left_out([one for some in found.values() for one in some], missing)
    basis = BASIS.format(rounds=setting.rounds, flags=" ".join(FLAGS))
    report = Report(
        "Evaluation on the CPU, measured",
        basis + INTERRUPTED * interrupted,
        date,
        command,
        describe_machine(),
        all_versions(),
        (*sections, left_out),
        caption=True,
    )
    wrong = [
        f"{one.workload.label} {other.name}"
        for some in found.values()
        for one in some
        for other in one.left_out
        if other.wrong
    ]
    return Evaluation(report, tuple(wrong), interrupted)


def _bench(setting: CpuSetting) -> tuple[Bench, list[LeftOut]]:
    """What comparisons share, and what there is not on this machine."""
    try:
        # Loaded before any thread is pinned: OpenMP counts processors then.
        return Bench(setting, usable_cpus(), Ceilings()), []
    except TwofourError as failure:
        missing = LeftOut(f"ceilings by {GCC}", failure.message)
        return Bench(setting, usable_cpus(), None), [missing]


def _all(names: Sequence[str], bench: Bench) -> Iterator[tuple[str, Comparison]]:
    for name in names:
        for one in EXPERIMENTS[name].compare_all(bench):
            yield name, one


def _left_out(made: Sequence[Comparison], missing: Sequence[LeftOut]) -> Section:
    columns = [
        Column("contestant"),
        Column("reason"),
        Column("comparisons"),
        Column("the first of them"),
    ]
    places: dict[tuple[str, str], list[str]] = {
        (one.name, one.reason): ["everywhere"] for one in missing
    }
    for one in made:
        w = one.workload
        place = f"{w.label}, {w.domain}, {w.dtype}, threads: {w.threads}"
        for other in one.left_out:
            places.setdefault((other.name, other.reason), []).append(place)
    rows = [[*key, len(found), found[0]] for key, found in places.items()]
    if not rows:
        return Section("left_out", "Left out", "Nothing: all contestants were timed.", ())
    text = "Contestants without a time, and why."
    return Section("left_out", "Left out", text, (table("Not timed", columns, rows),))
