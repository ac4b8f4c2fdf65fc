# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The report of what was measured."""

import math
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from statistics import median

from twofour.bench.measured import field_source
from twofour.bench.measured.baselines import COPY, CUDNN, PLAIN, TRITON
from twofour.bench.measured.field_contest import OWN, STEP_ERROR, STEPS
from twofour.bench.measured.measurements import read_results
from twofour.bench.measured.plan import FieldGroup, Group, load_plan, own_name
from twofour.bench.report import Report
from twofour.bench.section import Column, Plot, Section, Table, table
from twofour.errors import TwofourError
from twofour.kernels import TABLE_2

SCHEDULES = ("stream", "sparse", "dense", "simt")
ABLATION = (PLAIN, "dense", "sparse")
BASIS = """\
Measured on a GPU by CUDA events: medians of {protocol}. Every result was compared with sums in
float64 before it was timed. A sweep is one launch that reads its halo from memory; GStencil/s
are 1e9 point updates a second and count true time steps. A copy counts as one step of as many
points. PyTorch and Triton start every sweep from Python, all others are recorded as CUDA graphs,
which matters on small domains."""
RATES_TEXT = """\
Rates of baselines and of every schedule, in true steps; *chosen* is what the compiler takes by
itself. The spread is that of the samples of one contestant, over their median. A dash: absent,
refused or wrong, as listed below."""

FIELDS_TEXT = f"""\
{STEPS} steps of programs over several fields, halos that stay zero. *{OWN}*: one call from Python,
which leaves its inputs as they are and returns new fields. *{PLAIN}*: a kernel for each loop over
all points, one point a thread, in arrays of its own, all steps as a CUDA graph. *Of a copy*: the
least time of a step, in which each loop reads and writes every field once at the rate of a copy,
over the time it takes. Both results are within {STEP_ERROR} units of the last place of 1 a step of
each other."""


@dataclass(frozen=True)
class _Measured:
    """A group: by name, the seconds and steps of one sweep, and why others were left out."""

    group: Group | FieldGroup
    seconds: dict[str, list[float]]
    steps: dict[str, int]
    left_out: dict[str, str]

    def rate(self, name: str | None) -> float | None:
        """The median GStencil/s of a contestant, None where it was not timed."""
        if name not in self.seconds:
            return None
        points = math.prod(self.group.shape)
        return points * self.steps[name] / median(self.seconds[name]) / 1e9

    def spread(self, names: Collection[str] | None = None) -> float | None:
        """The largest spread of samples, of those named or of all, in percent of the median."""
        found = [s for n, s in self.seconds.items() if names is None or n in names]
        return max((100 * (max(s) - min(s)) / median(s) for s in found), default=None)

    def chosen(self, steps: int) -> str | None:
        """The contestant that the compiler takes by itself for so many steps a sweep."""
        return next(
            (e.name for e in self.group.entries if e.chosen and e.steps == steps),
            None,
        )


def report_of(folder: str) -> Report:
    """The report of a folder; raises TwofourError where nothing of its plan was measured."""
    plan = load_plan(folder)
    header, found = read_results(folder, plan)
    groups = [_read(group, found[group.key]) for group in plan.groups if group.key in found]
    fields = [_read(group, found[group.key]) for group in plan.fields if group.key in found]
    measured, planned = len(groups) + len(fields), len(plan.groups) + len(plan.fields)
    if not measured:
        raise TwofourError(f"expected groups that were measured, got none of {planned}")
    basis = BASIS.format(protocol=header["protocol"])
    if measured < planned:
        basis += f"\n\n{measured} of {planned} groups of the plan were measured."
    by_type = {
        dtype: [one for one in groups if one.group.dtype == dtype]
        for dtype in ("f16", "f32", "f64")
    }
    by_paper = set(TABLE_2.values())
    table_2 = {
        dtype: [one for one in found if one.group.kernel in by_paper]
        for dtype, found in by_type.items()
    }
    sections = [
        _rates("table2", "Table 2, single steps, f16", table_2["f16"], 1),
        _rates("fused", "Table 2, fused steps, f16", table_2["f16"], 3),
        _ablation(table_2["f16"]),
        _rates("fp64", "Table 2, single steps, f64", table_2["f64"], 1),
        _rates("fp32", "Table 2, single steps, f32", table_2["f32"], 1),
        _rates("domains", "All kernels, single steps, f16", by_type["f16"], 1),
        _rates("domains-f32", "All kernels, single steps, f32", by_type["f32"], 1),
        _rates("domains-f64", "All kernels, single steps, f64", by_type["f64"], 1),
        _fields(fields),
        _left_out([*groups, *fields]),
    ]
    return Report(
        title="Evaluation, measured",
        basis=basis,
        date=header["date"],
        command=header["command"],
        chip=header["device"],
        versions=header["versions"],
        sections=tuple(section for section in sections if section.tables[0].rows),
    )


def _read(group: Group | FieldGroup, line: dict) -> _Measured:
    return _Measured(
        group,
        {one["name"]: one["seconds"] for one in line["timed"]},
        {one["name"]: one["steps"] for one in line["timed"]},
        {one["name"]: one["reason"] for one in line["left_out"]},
    )


def _rates(name: str, title: str, groups: Sequence[_Measured], steps: int) -> Section:
    names = [COPY, PLAIN, CUDNN, TRITON, *(own_name(s, steps) for s in SCHEDULES)]
    names = [n for n in names if any(n in one.seconds for one in groups)]
    rows = [_row(one, names, steps) for one in groups if one.chosen(steps)]
    columns = [
        Column("kernel"),
        Column("domain"),
        Column("chosen"),
        *(Column(f"{n}, GStencil/s", "measured", digits=1) for n in names),
        Column("chosen of copy", "measured"),
        Column(f"chosen over {PLAIN}", "measured"),
        Column(f"chosen over {CUDNN}", "measured"),
        Column("largest spread, %", "measured"),
    ]
    found = table(title, columns, rows, "measured")
    samples = [
        {"kernel": one.group.kernel, "dtype": one.group.dtype, "seconds": one.seconds}
        for one in groups
    ]
    return Section(name, title, RATES_TEXT, (found,), (_plot(name, found, names),), samples)


def _row(one: _Measured, names: Sequence[str], steps: int) -> list:
    chosen = one.chosen(steps)
    rate = one.rate(chosen)
    ratios = []
    for other in (COPY, PLAIN, CUDNN):
        base = one.rate(other)
        ratios.append(rate / base if rate and base else None)
    rates = [one.rate(n) for n in names]
    label, domain = one.group.label, one.group.domain
    return [label, domain, chosen, *rates, *ratios, one.spread(names)]


def _plot(name: str, found: Table, names: Sequence[str]) -> Plot:
    return Plot(
        name=f"measured-{name}",
        title=found.title,
        kind="bars",
        x_label="kernel",
        y_label="rate",
        unit="GStencil/s",
        basis="measured",
        x=tuple(found.column("kernel")),
        series={n: tuple(found.column(f"{n}, GStencil/s")) for n in names},
    )


def _fields(groups: Sequence[_Measured]) -> Section:
    rows = []
    for one in groups:
        group, own, plain, copy = one.group, *map(one.rate, (OWN, PLAIN, COPY))
        # A copy reads and writes one field a step.
        least = field_source.moved(group.loops) / 2
        ratios = [
            least * own / copy if own and copy else None,
            own / plain if own and plain else None,
        ]
        domain = " x ".join(map(str, group.shape))
        rows.append([group.label, domain, group.dtype, copy, plain, own, *ratios, one.spread()])
    columns = [
        *map(Column, ("program", "points", "type")),
        *(Column(f"{n}, GStencil/s", "measured", digits=1) for n in (COPY, PLAIN, OWN)),
        Column("of a copy", "measured"),
        Column(f"over {PLAIN}", "measured"),
        Column("largest spread, %", "measured"),
    ]
    found = table("Steps of programs", columns, rows, "measured")
    samples = [
        {"program": one.group.program, "dtype": one.group.dtype, "seconds": one.seconds}
        for one in groups
    ]
    title = "Programs over several fields"
    return Section("fields", title, FIELDS_TEXT, (found,), samples=samples)


def _ablation(groups: Sequence[_Measured]) -> Section:
    rows = []
    for one in groups:
        rates = [*map(one.rate, ABLATION), one.rate(one.chosen(1))]
        pairs = zip(rates, rates[1:], strict=False)
        rows.append([one.group.label, *rates, *(b / a if a and b else None for a, b in pairs)])
    names = [*ABLATION, "all optimisations"]
    columns = [Column("kernel"), *(Column(f"{n}, GStencil/s", "measured", digits=1) for n in names)]
    columns += [Column(f"gain by {n}", "measured") for n in names[1:]]
    text = "From the plain CUDA kernel to dense and sparse instructions, and what is chosen."
    return Section(
        "ablation", "Ablation", text, (table("Rates by stage", columns, rows, "measured"),)
    )


def _left_out(groups: Sequence[_Measured]) -> Section:
    rows = [
        [one.group.label, one.group.dtype, name, reason]
        for one in groups
        for name, reason in one.left_out.items()
    ]
    columns = [Column(n) for n in ("kernel", "dtype", "contestant", "reason")]
    text = "Baselines and kernels without a rate, and why."
    return Section("left_out", "Left out", text, (table("Not timed", columns, rows),))
