# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""What the machine can do at most, and whether its processors are worth their number."""

from collections.abc import Iterator, Sequence

from twofour.bench.cpu.arrays import Arrays
from twofour.bench.cpu.c_library import COPY, COPY_STREAM, PEAK
from twofour.bench.cpu.comparison import Comparison
from twofour.bench.cpu.contest import compete
from twofour.bench.cpu.experiment import Bench
from twofour.bench.cpu.setting import CpuSetting
from twofour.bench.cpu.workload import Workload, random_stencil
from twofour.bench.section import Column, Section, table

# Of the peak of one thread that each of several has where none shares a processor.
ALONE = 0.9
TEXT = """\
Copies, bytes read and written a second, and multiply-adds in registers (two operations).
Each thread is on a processor of its own. Where several threads have less than 0.9 of one thread's
peak each, something else took their processors: do not believe figures of such a run."""


def workloads(setting: CpuSetting) -> list[Workload]:
    """Every size, with one thread and its own number of them, and every type."""
    kernel = random_stencil("box", 1, "f64")
    pairs = [(size, t) for size, threads in setting.pairs for t in sorted({1, threads})]
    return [
        Workload("", kernel, (size, size), dtype, threads)
        for size, threads in pairs
        for dtype in setting.dtypes
    ]


def count(setting: CpuSetting) -> int:
    """The number of comparisons."""
    return len(workloads(setting))


def compare_all(bench: Bench) -> Iterator[Comparison]:
    """Time copies and peaks; nothing without a C compiler."""
    for one in workloads(bench.setting) if bench.ceilings else ():
        arrays = Arrays(one)
        found = Comparison(one, 1)
        contestants = bench.ceilings.contestants(arrays, one.dtype, one.threads, bench.cpus)
        found.samples, _ = compete(contestants, bench.setting.rounds)
        found.copied_bytes = 2 * arrays.both[0].nbytes
        found.peak_flops = bench.ceilings.peak_flops(one.dtype, one.threads)
        yield found


def section(made: Sequence[Comparison]) -> Section:
    """One table."""
    columns = [
        Column("domain"),
        Column("dtype"),
        Column("threads"),
        *(Column(f"{name}, GB/s", "measured", digits=1) for name in (COPY, COPY_STREAM)),
        Column(f"{PEAK}, GFlop/s", "measured", digits=1),
        Column("a thread of one alone", "measured"),
    ]
    alone = {
        (one.workload.dtype, one.workload.domain): peak(one)
        for one in made
        if one.workload.threads == 1
    }
    rows = []
    for one in made:
        w = one.workload
        rates = [
            one.copied_bytes / one.samples[name].median / 1e9 if name in one.samples else None
            for name in (COPY, COPY_STREAM)
        ]
        single = alone.get((w.dtype, w.domain))
        part = peak(one) / w.threads / single if single and w.threads > 1 else None
        rows.append([w.domain, w.dtype, w.threads, *rates, peak(one), part])
    found = table("Ceilings", columns, rows, "measured")
    shared = any(row[-1] is not None and row[-1] < ALONE for row in rows)
    text = TEXT + ("\n\n**Threads shared processors in this run.**" if shared else "")
    samples = [one.as_dict() for one in made]
    return Section("ceilings", "Ceilings", text, (found,), samples=samples)


def peak(one: Comparison) -> float:
    """GFlop/s of multiply-adds."""
    return one.peak_flops / one.samples[PEAK].median / 1e9
