# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""All built-in kernels against LLVM's own vectorisation of plain loops."""

from collections.abc import Iterator, Sequence
from statistics import geometric_mean

from twofour.bench.cpu.comparison import Comparison
from twofour.bench.cpu.experiment import (
    FRACTIONS,
    TIMES,
    Bench,
    Columns,
    compare_single_steps,
    ratio_plot,
)
from twofour.bench.cpu.llvm_loops import LLVM, llvm_sweeps
from twofour.bench.cpu.own import OWN
from twofour.bench.cpu.setting import CpuSetting
from twofour.bench.cpu.workload import Workload, extents
from twofour.bench.section import Column, Section, Table, table

COLUMNS = Columns((OWN, LLVM), (LLVM,))
# A kernel below this is slower, not merely not faster: rounds differ by some percent.
SLOWER = 0.95
TEXT = f"""\
One step a sweep of every built-in kernel with its own weights, over arrays that hold a fixed halo,
of about as many points in one, two and three dimensions.

{TIMES}

{FRACTIONS}"""


def workloads(setting: CpuSetting) -> list[Workload]:
    """The first size with every type and kernel."""
    size, threads = setting.pairs[0]
    return [
        Workload(kernel.name, kernel, extents(size, kernel.rank), dtype, threads)
        for dtype in setting.dtypes
        for kernel in setting.kernels()
    ]


def count(setting: CpuSetting) -> int:
    """The number of comparisons."""
    return len(workloads(setting))


def compare_all(bench: Bench) -> Iterator[Comparison]:
    """Time every workload."""
    return compare_single_steps(bench, workloads(bench.setting), {LLVM: llvm_sweeps})


def section(made: Sequence[Comparison]) -> Section:
    """Means of each type, and a table and a plot of all kernels."""
    columns = [Column("kernel"), Column("domain"), *COLUMNS.heads()]
    groups: dict[str, list[Comparison]] = {}
    for one in made:
        groups.setdefault(one.workload.dtype, []).append(one)
    tables, plots = [_means(groups)], []
    for dtype, found in groups.items():
        threads = found[0].workload.threads
        title = f"{dtype}, {threads} thread{'s' if threads > 1 else ''}"
        rows = [[one.workload.label, one.workload.domain, *COLUMNS.row(one)] for one in found]
        tables.append(table(title, columns, rows, "measured"))
        labels = [one.workload.label for one in found]
        name, title = f"cpu-kernels-{dtype}", f"Built-in kernels, {title}"
        plots.append(ratio_plot(name, title, "kernel", found, labels, (LLVM,)))
    samples = [one.as_dict() for one in made]
    return Section("kernels", "Built-in kernels", TEXT, tuple(tables), tuple(plots), samples)


def _means(groups: dict[str, list[Comparison]]) -> Table:
    columns = [
        Column("dtype"),
        Column("kernels"),
        Column(f"over {LLVM}, geometric mean", "measured"),
        Column("least", "measured"),
        Column("of kernel"),
        Column(f"below {SLOWER}", "measured"),
    ]
    rows = []
    for dtype, found in groups.items():
        ratios = {one.workload.label: r for one in found if (r := one.over(LLVM)) is not None}
        least = min(ratios, key=ratios.get, default=None)
        mean = geometric_mean(ratios.values()) if ratios else None
        slower = sum(r < SLOWER for r in ratios.values())
        rows.append([dtype, len(ratios), mean, ratios.get(least), least, slower])
    return table("Means", columns, rows, "measured")
