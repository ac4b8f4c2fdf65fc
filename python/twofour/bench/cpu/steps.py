# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Many steps at once against gcc's single sweeps with their halo refreshed before each."""

from collections.abc import Iterator, Sequence

from twofour.bench.cpu.arrays import Arrays
from twofour.bench.cpu.c_library import GCC, gcc_sweeps
from twofour.bench.cpu.comparison import Comparison, compare
from twofour.bench.cpu.experiment import FRACTIONS, TIMES, Bench, Columns, ratio_plot
from twofour.bench.cpu.own import CALL, OWN, OwnSweeps
from twofour.bench.cpu.setting import CpuSetting
from twofour.bench.cpu.workload import Workload, extents, random_stencil
from twofour.bench.section import Column, Section, table

SHAPES = ("box", "star")
BOUNDARIES = ("fixed", "periodic")
COLUMNS = Columns((OWN, CALL, GCC), (GCC,))
CALL_OVER = Column(f"over {GCC}, a call", "measured")
TEXT = f"""\
All steps at once, radius 1, f64. *twofour*: the native step loop, in time tiles or of three axes
skewed, as the model chooses. *twofour, a call*: a call on a NumPy array, which allocates its result
and leaves its argument as it is. *gcc*: plain loops in C with OpenMP, one sweep a step, the halo
refreshed before each. A copy once a step is the bound of single sweeps: these may be above 1 of it.

{TIMES}

{FRACTIONS}"""


def workloads(setting: CpuSetting) -> list[Workload]:
    """A square of the last size and a cube of as many points, with each shape and boundary."""
    size, threads = setting.pairs[-1]
    return [
        Workload(
            f"{shape} r=1",
            random_stencil(shape, 1, "f64", rank),
            extents(size, rank),
            "f64",
            threads,
            boundary,
        )
        for rank in (2, 3)
        for shape in SHAPES
        for boundary in BOUNDARIES
    ]


def count(setting: CpuSetting) -> int:
    """The number of comparisons."""
    return len(workloads(setting))


def compare_all(bench: Bench) -> Iterator[Comparison]:
    """Time every workload."""
    steps, cpus = bench.setting.steps, bench.cpus
    for one in workloads(bench.setting):
        arrays = Arrays(one)
        sweeps = OwnSweeps(one, arrays, cpus)
        own = [sweeps.native(steps), sweeps.calls(steps)]
        baselines = {GCC: lambda one=one, arrays=arrays: gcc_sweeps(one, arrays, cpus, steps)}
        rounds = bench.setting.rounds
        yield compare(one, arrays, steps, own, baselines, rounds, bench.ceilings, cpus)


def section(made: Sequence[Comparison]) -> Section:
    """A table and a plot for each domain."""
    columns = [Column("stencil"), Column("boundary"), *COLUMNS.heads(), CALL_OVER]
    groups: dict[str, list[Comparison]] = {}
    for one in made:
        groups.setdefault(one.workload.domain, []).append(one)
    tables, plots = [], []
    for domain, found in groups.items():
        rows = [
            [one.workload.label, one.workload.boundary, *COLUMNS.row(one), one.over(GCC, CALL)]
            for one in found
        ]
        w = found[0].workload
        title = f"{made[0].steps} steps, {domain}, {w.threads} thread{'s' if w.threads > 1 else ''}"
        tables.append(table(title, columns, rows, "measured"))
        labels = [f"{one.workload.label}\n{one.workload.boundary}" for one in found]
        name = f"cpu-steps-{len(w.extents)}d"
        plots.append(ratio_plot(name, title, "stencil and boundary", found, labels, (GCC,)))
    samples = [one.as_dict() for one in made]
    return Section("steps", "Many steps", TEXT, tuple(tables), tuple(plots), samples)
