# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Many steps in one call from Python: the project against other packages, in a process each."""

from collections.abc import Iterator, Sequence
from contextlib import ExitStack

import numpy as np

from twofour.bench.cpu.comparison import Comparison, LeftOut, checked
from twofour.bench.cpu.contest import ContestantFailed, compete
from twofour.bench.cpu.experiment import Bench
from twofour.bench.cpu.packages import OWN, PACKAGES, Job
from twofour.bench.cpu.peers import Peer, write_job
from twofour.bench.cpu.setting import CpuSetting
from twofour.bench.cpu.workload import Workload, initial_values, random_stencil
from twofour.bench.section import Column, Plot, Section, table
from twofour.files import temporary_folder

OTHERS = [name for name in PACKAGES if name != OWN]
TEXT = """\
All steps in one call, box r=1, f64; the array is the domain, and its rim keeps its value. Each
package is compiled and warm, in a process of its own that is stopped while others are timed, and
may use as many processors as it is given threads. *twofour* and *numba* return a new array; the
others go on with values that they hold. *gcc* is C with OpenMP, without Python. SciPy has no
threads."""


def count(setting: CpuSetting) -> int:
    """The number of comparisons."""
    return len(setting.thread_counts)


def compare_all(bench: Bench) -> Iterator[Comparison]:
    """Time all packages with each number of threads."""
    setting = bench.setting
    size, steps = setting.sizes[0], setting.call_steps
    kernel = random_stencil("box", 1, "f64")
    for threads in setting.thread_counts:
        inner = (size - 2 * kernel.radius,) * 2
        workload = Workload("box r=1", kernel, inner, "f64", threads)
        job = Job(kernel, initial_values((size, size), "f64"), steps, threads)
        yield _compare(workload, job, bench)


def _compare(workload: Workload, job: Job, bench: Bench) -> Comparison:
    found = Comparison(workload, job.steps)
    with ExitStack() as stack:
        folder = stack.enter_context(temporary_folder())
        write_job(folder, job, bench.cpus[: job.threads])

        def start(name: str) -> Peer:
            peer = Peer(name, folder, job)
            stack.callback(peer.close)
            return peer

        own = start(OWN)
        makers = {name: (lambda name=name: start(name)) for name in OTHERS}
        bound = workload.bound(job.steps)
        right = checked(makers, np.array(own.result()), bound, found)
        found.samples, failed = compete([own, *right], bench.setting.rounds)
        found.left_out += [LeftOut(name, reason) for name, reason in failed.items()]
    if OWN in failed:
        raise ContestantFailed(f"{OWN}: {failed[OWN]}")
    return found


def section(made: Sequence[Comparison]) -> Section:
    """A row for each package and number of threads."""
    columns = [
        Column("threads"),
        Column("package"),
        Column("a call, ms", "measured"),
        Column("ps", "measured", digits=0),
        Column(f"over {OWN}", "measured"),
        Column("range", "measured"),
    ]
    rows = []
    for one in made:
        for name in (n for n in PACKAGES if n in one.samples):
            milliseconds = 1e3 * one.samples[name].median
            ratios = (one.over(name), one.range_over(name))
            rows.append([one.workload.threads, name, milliseconds, one.picoseconds(name), *ratios])
    w = made[0].workload
    edge = w.shape[0]
    title = f"{made[0].steps} steps in one call, {edge} x {edge}, f64"
    found = table(title, columns, rows, "measured")
    counts = [f"{one.workload.threads} thread{'s'[: one.workload.threads - 1]}" for one in made]
    names = [name for name in OTHERS if any(name in one.samples for one in made)]
    plot = Plot(
        name="cpu-calls",
        title=title,
        kind="bars",
        x_label="package",
        y_label="time over that of twofour",
        unit="",
        basis="measured",
        x=tuple(names),
        series={
            label: tuple(one.over(name) for name in names)
            for label, one in zip(counts, made, strict=True)
        },
        line=1.0,
    )
    samples = [one.as_dict() for one in made]
    return Section("calls", "Calls from Python", TEXT, (found,), (plot,), samples)
