# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""All built-in kernels over their domains (SparStencil, figure 10)."""

from collections import defaultdict
from statistics import fmean

from twofour.bench.predicted.setting import (
    LIMITED,
    OF_COPY,
    RATE,
    Setting,
    over,
    ratio,
    sweep_of,
)
from twofour.bench.section import Column, Plot, Section, table
from twofour.cost.costs import Costs
from twofour.kernels import Kernel
from twofour.options import STREAMED
from twofour.targets.gpu.candidates import Candidate, candidates

DTYPES = ("f16", "bf16", "f32", "f64")
TEXT = """\
Single steps of all built-in kernels, by the domain that they come from: the schedule that is
predicted to be the fastest, its rate, and that over the rates of a copy and of plain threads
(`simt`). Multiply-adds are those of matrix instructions, zeros included, for each output; useful
is the share of them that the stencil asks for."""
COLUMNS = (
    Column("kernel"),
    Column("domain"),
    Column("rank", "exact"),
    Column("points", "exact"),
    Column("fastest", "predicted"),
    RATE,
    OF_COPY,
    Column("over simt", "predicted"),
    LIMITED,
    Column("multiply-adds of an output", "predicted", digits=0),
    Column("useful", "predicted"),
)


def run(setting: Setting) -> Section:
    """Every kernel in f16; means by domain and dtype."""
    kernels = setting.all_kernels()
    by_domain = defaultdict(lambda: defaultdict(list))
    rows = []
    for dtype in DTYPES:
        for kernel in over(kernels, f"domains, {dtype}"):
            ranked = _ranked(setting, kernel, dtype)
            by_domain[kernel.domain][dtype].append(ranked[0].prediction.fraction_of_copy)
            if dtype == "f16":
                rows.append(_row(kernel, ranked))
    rows.sort(key=lambda row: (row[1], row[2], row[3], row[0]))
    means = [
        [domain, len(found["f16"]), *(fmean(found[dtype]) for dtype in DTYPES)]
        for domain, found in sorted(by_domain.items())
    ]
    heading = [Column("domain"), Column("kernels", "exact")]
    heading += [Column(dtype, "predicted") for dtype in DTYPES]
    tables = (
        table("Mean rate over that of a copy, by domain", heading, means, "predicted"),
        table("Kernels, f16", COLUMNS, rows, "predicted"),
    )
    plot = Plot(
        name="domains",
        title=f"Single steps of {len(rows)} kernels by domain, f16, {setting.gpu.name}",
        kind="bars",
        x_label="kernel, in the order of the table",
        y_label="rate",
        unit="GStencil/s",
        basis="predicted",
        x=tuple(row[0] for row in rows),
        series={
            "fastest": tuple(row[5] for row in rows),
            "simt": tuple(ratio(row[5], row[7]) for row in rows),
        },
    )
    title = f"{len(rows)} kernels of {len(by_domain)} domains"
    return Section("domains", title, TEXT, tables, (plot,))


def _ranked(setting: Setting, kernel: Kernel, dtype: str) -> list[Candidate]:
    """Candidates, the fastest first; those through shared memory only where nothing streams."""
    sweep = sweep_of(kernel)
    if dtype in STREAMED:
        ranking = candidates(sweep, dtype, dtype, setting.gpu, ("stream", "simt"))
        if not ranking.refused:
            return ranking.candidates
    return candidates(sweep, dtype, dtype, setting.gpu).candidates


def _row(kernel: Kernel, ranked: list[Candidate]) -> list:
    best, predicted = ranked[0], ranked[0].prediction
    plain = next((c.prediction for c in ranked if c.schedule == "simt"), None)
    macs = _multiply_adds(best.costs)
    return [
        kernel.name,
        kernel.domain,
        kernel.rank,
        len(kernel.offsets),
        best.schedule,
        predicted.gstencil_per_s,
        predicted.fraction_of_copy,
        ratio(predicted.gstencil_per_s, plain and plain.gstencil_per_s),
        predicted.limited_by,
        macs,
        ratio(float(len(kernel.offsets)), macs),
    ]


def _multiply_adds(costs: Costs) -> float | None:
    """Those of matrix instructions for each output; None without any."""
    return sum(count * kind.macs for kind, count in costs.mma.items()) or None
