# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The kernels of table 2 against a copy and plain threads (SparStencil, table 2 and figure 6)."""

from twofour.bench.predicted.setting import (
    LIMITED,
    OF_COPY,
    RATE,
    Setting,
    over,
    per_schedule,
    rates,
)
from twofour.bench.section import Column, Plot, Section, Table, table, transposed
from twofour.cost.explore import DOMAINS
from twofour.kernels import Kernel

SCHEDULES = ("stream", "simt", "sparse", "dense")
STEPS = (1, 3)
COLUMNS = (
    Column("kernel"),
    Column("points", "exact"),
    Column("domain"),
    Column("chosen", "predicted"),
    RATE,
    Column("copy, GStencil/s", "predicted", digits=0),
    OF_COPY,
    Column("over plain threads", "predicted"),
    LIMITED,
)
TEXT = """\
What `auto` takes, its rate in true steps, and that rate over those of a copy and of plain
threads (`simt`, one step at a time); then the rate of each schedule over that of a copy, a dash
where it cannot execute the kernel. cuDNN and Triton are compared on a GPU only."""
FP64_TEXT = """\
As in table 2, for f64, which has no sparse instruction: `dense` or plain threads. Published
figures are those of the paper's table 3; its unit reads GFlops/s, its sizes are GStencil/s."""
# SparStencil, table 3.
PUBLISHED = {"Heat-2D": 72.49, "Box-2D9P": 73.25, "Star-2D13P": 71.34, "Box-2D49P": 67.28}


def run(setting: Setting) -> Section:
    """Single steps and three fused ones, f16."""
    tables, plots = [], []
    for steps in STEPS:
        title = "Single steps" if steps == 1 else f"{steps} fused steps"
        found = _table(setting, f"{title}, f16", "f16", steps, SCHEDULES)
        tables.append(found)
        plots.append(
            _plot(setting, found, f"table2-{steps}", f"Table 2, {title.lower()}, f16", SCHEDULES)
        )
    title = "Table 2: speed against copy and plain threads"
    return Section("table2", title, TEXT, tuple(tables), tuple(plots))


def run_fp64(setting: Setting) -> Section:
    """Single steps in f64, without sparse instructions (SparStencil, table 3)."""
    found = _table(setting, "Single steps, f64", "f64", 1, ("dense", "simt"))
    rows = [(*row, PUBLISHED.get(row[0])) for row in found.rows]
    published = Column("SparStencil on A100, GStencil/s", "published")
    found = table(found.title, [*found.columns, published], rows, found.common)
    plot = _plot(setting, found, "fp64", "Table 2, single steps, f64", ("dense", "simt"))
    title = "FP64: table 2 without sparse instructions"
    return Section("fp64", title, FP64_TEXT, (found,), (plot,))


def _table(
    setting: Setting, title: str, dtype: str, steps: int, schedules: tuple[str, ...]
) -> Table:
    rows = [
        _row(setting, label, kernel, dtype, steps, schedules)
        for label, kernel in over(list(setting.table_2().items()), title)
    ]
    return table(title, [*COLUMNS, *per_schedule(schedules)], rows, "predicted")


def _row(
    setting: Setting,
    label: str,
    kernel: Kernel,
    dtype: str,
    steps: int,
    schedules: tuple[str, ...],
) -> list:
    report = setting.explain(kernel, dtype, steps)
    predicted, plain = report["predicted"], rates(setting.explain(kernel, dtype))["simt"]
    fractions = rates(report, "fraction_of_copy")
    rate = predicted["gstencil_per_s"]
    return [
        label,
        len(kernel.offsets),
        "x".join(map(str, DOMAINS[kernel.rank])),
        report["schedule"],
        rate,
        rate / predicted["fraction_of_copy"],
        predicted["fraction_of_copy"],
        rate / plain,
        predicted["limited_by"],
        *(fractions.get(schedule) for schedule in schedules),
    ]


def _plot(
    setting: Setting, found: Table, name: str, title: str, schedules: tuple[str, ...]
) -> Plot:
    names = [column.name for column in found.columns]
    values = dict(zip(names, transposed(found.rows), strict=True))
    return Plot(
        name=name,
        title=f"{title}, {setting.gpu.name}",
        kind="bars",
        x_label="kernel",
        y_label="rate over that of a copy",
        unit="",
        basis="predicted",
        x=tuple(found.column("kernel")),
        series={name: values[name] for name in schedules},
        line=1.0,
    )
