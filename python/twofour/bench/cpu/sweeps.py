# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Single sweeps of boxes and stars in two and three dimensions against gcc and LLVM."""

from collections.abc import Iterable, Iterator, Sequence
from functools import partial

from twofour.bench.cpu.c_library import GCC, gcc_sweeps
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
from twofour.bench.cpu.workload import Workload, extents, random_stencil
from twofour.bench.section import Column, Section, table

SHAPES = ("box", "star")
COLUMNS = Columns((OWN, GCC, LLVM), (GCC, LLVM))
TEXT = f"""\
One step a sweep, over arrays that hold a fixed halo, with random weights. *twofour*: the native
step loop in the tiles that the model chooses for single steps. *gcc*: plain loops in C with
OpenMP. *LLVM*: the same scalar loops in MLIR, vectorised by LLVM at O3 in the project's JIT.

{TIMES}

{FRACTIONS}"""


def workloads(setting: CpuSetting) -> list[Workload]:
    """Every size, type, shape and radius; and a cube of as many points as the last size has.

    Boxes of three dimensions are those of the first radius: others have hundreds of points.
    """
    domains = [(*pair, 2) for pair in setting.pairs] + [(*setting.pairs[-1], 3)]
    return [
        Workload(
            f"{shape} r={r}",
            random_stencil(shape, r, dtype, rank),
            extents(size, rank),
            dtype,
            threads,
        )
        for size, threads, rank in domains
        for dtype in setting.dtypes
        for shape in SHAPES
        for r in (setting.radii[:1] if (shape, rank) == ("box", 3) else setting.radii)
    ]


def count(setting: CpuSetting) -> int:
    """The number of comparisons."""
    return len(workloads(setting))


def compare_all(bench: Bench) -> Iterator[Comparison]:
    """Time every workload."""
    return compare_with_loops(bench, workloads(bench.setting))


def compare_with_loops(bench: Bench, timed: Iterable[Workload]) -> Iterator[Comparison]:
    """Time single sweeps beside loops by gcc and by LLVM."""
    baselines = {GCC: partial(gcc_sweeps, steps=1), LLVM: llvm_sweeps}
    return compare_single_steps(bench, timed, baselines)


def section(made: Sequence[Comparison]) -> Section:
    """A table and a plot for each size."""
    return sweep_section("sweeps", "Single sweeps", TEXT, made)


def sweep_section(name: str, title: str, text: str, made: Sequence[Comparison]) -> Section:
    """A table and a plot of single sweeps for each domain and number of threads."""
    columns = [Column("stencil"), Column("dtype"), *COLUMNS.heads()]
    groups: dict[tuple[str, int], list[Comparison]] = {}
    for one in made:
        groups.setdefault((one.workload.domain, one.workload.threads), []).append(one)
    tables, plots = [], []
    for (domain, threads), found in groups.items():
        where = f"{domain}, {threads} thread{'s' if threads > 1 else ''}"
        rows = [[one.workload.label, one.workload.dtype, *COLUMNS.row(one)] for one in found]
        tables.append(table(where, columns, rows, "measured"))
        labels = [f"{one.workload.label}\n{one.workload.dtype}".replace(" ", "\n") for one in found]
        sizes = found[0].workload.extents
        file = f"cpu-{name}-{len(sizes)}d-{sizes[0]}"
        heading = f"{title}, {where}"
        plots.append(ratio_plot(file, heading, "stencil", found, labels, COLUMNS.baselines))
    samples = [one.as_dict() for one in made]
    return Section(name, title, text, tuple(tables), tuple(plots), samples)
