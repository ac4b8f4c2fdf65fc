# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""What experiments of the CPU share: the machine they run on, columns and plots."""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Protocol

from twofour.bench.cpu.arrays import Arrays
from twofour.bench.cpu.c_library import COPY, COPY_STREAM, Ceilings
from twofour.bench.cpu.comparison import Comparison, compare
from twofour.bench.cpu.contest import Contestant
from twofour.bench.cpu.own import OwnSweeps
from twofour.bench.cpu.setting import CpuSetting
from twofour.bench.cpu.workload import Workload
from twofour.bench.section import Column, Plot, Section

OF_COPY = Column("of the copy", "measured")
OF_STREAM = Column("of the non-temporal copy", "measured")
OF_PEAK = Column("of the multiply-add peak", "measured")
TIMES = """\
*ps*: picoseconds a point and step, medians. *Over* a baseline: its median over that of twofour,
and the least and the most of that in one round."""
FRACTIONS = """\
*Of* a copy: bytes a second, each point read and written once a step, over those of a copy of the
same arrays by as many threads. *Of* the peak: operations a second, two a term, over those of
multiply-adds in registers."""


@dataclass(frozen=True)
class Bench:
    """What all comparisons of a run share; `ceilings` None where there is no C compiler."""

    setting: CpuSetting
    cpus: Sequence[int]
    ceilings: Ceilings | None


def compare_single_steps(
    bench: Bench,
    workloads: Iterable[Workload],
    baselines: Mapping[str, Callable[[Workload, Arrays, Sequence[int]], Contestant]],
) -> Iterator[Comparison]:
    """Time the project's sweeps of one step of every workload against baselines."""
    cpus = bench.cpus
    for one in workloads:
        arrays = Arrays(one)
        own = [OwnSweeps(one, arrays, cpus).native(1)]
        makers = {name: partial(make, one, arrays, cpus) for name, make in baselines.items()}
        yield compare(one, arrays, 1, own, makers, bench.setting.rounds, bench.ceilings, cpus)


class Experiment(Protocol):
    """Comparisons, one by one, and the section that shows those that were made."""

    def count(self, setting: CpuSetting) -> int: ...

    def compare_all(self, bench: Bench) -> Iterator[Comparison]: ...

    def section(self, made: Sequence[Comparison]) -> Section: ...


@dataclass(frozen=True)
class Columns:
    """Columns of figures that comparisons have: times of contestants, ratios, fractions."""

    timed: Sequence[str]
    baselines: Sequence[str]
    fractions: Sequence[Column] = field(default=(OF_COPY, OF_STREAM, OF_PEAK))

    def heads(self) -> list[Column]:
        """The columns."""
        times = [Column(f"{name}, ps", "measured", digits=0) for name in self.timed]
        ratios = [
            column
            for name in self.baselines
            for column in (Column(f"over {name}", "measured"), Column("range", "measured"))
        ]
        return [*times, *ratios, *self.fractions]

    def row(self, one: Comparison) -> list:
        """The figures of one comparison."""
        fractions = {
            OF_COPY: one.of_copy(COPY),
            OF_STREAM: one.of_copy(COPY_STREAM),
            OF_PEAK: one.of_peak(),
        }
        ratios = [f for n in self.baselines for f in (one.over(n), one.range_over(n))]
        times = [one.picoseconds(name) for name in self.timed]
        return [*times, *ratios, *(fractions[column] for column in self.fractions)]


def ratio_plot(
    name: str, title: str, x_label: str, made: Sequence[Comparison], labels: Sequence[str],
    baselines: Sequence[str],
) -> Plot:  # fmt: skip
    """Bars of how much longer baselines take; the line is at one."""
    return Plot(
        name=name,
        title=title,
        kind="bars",
        x_label=x_label,
        y_label="time over that of twofour",
        unit="",
        basis="measured",
        x=tuple(labels),
        series={f"{b} over twofour": tuple(one.over(b) for one in made) for b in baselines},
        line=1.0,
    )
