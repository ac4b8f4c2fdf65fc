# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""What each stage of the method gains (SparStencil, figure 7)."""

from twofour.bench.predicted.setting import Setting, over, rates, ratio, sweep_of
from twofour.bench.section import Column, Plot, Section, Table, table, transposed
from twofour.kernels import Kernel
from twofour.targets.gpu.candidates import candidates

# Schedules in the order in which the paper adds its optimisations.
STAGES = {
    "plain CUDA": "simt",
    "layout on dense mma": "dense",
    "sparse mma": "sparse",
    "all optimisations": None,
}
SIZED = "Box-2D49P"
SIZES = (256, 512, 768, 1024, 2048, 4096, 10240)
TEXT = """\
From plain threads (`simt`) to the crushed layout on dense tensor cores (`dense`), its 2:4 form
on sparse ones (`sparse`), and what `auto` takes: single steps of f16. Factors are those from one
stage to the next. The paper shows square domains of Box-2D49P. The model reads small ones from
memory too, though they would stay in the second-level cache."""


def run(setting: Setting) -> Section:
    """The kernels of table 2 on large domains, and one on domains of several sizes."""
    kernels = setting.table_2()
    large = [
        _row(label, *_rates(setting, k)) for label, k in over(list(kernels.items()), "ablation")
    ]
    tables = [_table("Rates by stage", "kernel", large)]
    plots = [_plot(setting, "ablation", "Ablation", "kernel", large)]
    if SIZED in kernels:
        kernel = kernels[SIZED]
        sized = [_row(f"{n} x {n}", *_rates(setting, kernel, (n, n))) for n in SIZES]
        tables.append(_table(f"Rates of {SIZED} by domain", "domain", sized))
        title = f"Ablation of {SIZED} by domain"
        plots.append(_plot(setting, "ablation-domains", title, "domain", sized))
    return Section("ablation", "Ablation", TEXT, tuple(tables), tuple(plots))


def _rates(
    setting: Setting, kernel: Kernel, domain: tuple[int, ...] | None = None
) -> list[float | None]:
    """GStencil/s by stage, on a domain or the large one."""
    report = setting.explain(kernel, "f16")
    found = rates(report)
    if domain is not None:
        ranked = candidates(sweep_of(kernel), "f16", "f16", setting.gpu, domain=domain).candidates
        found = {c.schedule: c.prediction.gstencil_per_s for c in ranked}
    return [found.get(schedule or report["schedule"]) for schedule in STAGES.values()]


def _row(label: str, *stages: float | None) -> list:
    """Stages, and the gain of each over the one before."""
    return [label, *stages, *(ratio(b, a) for a, b in zip(stages, stages[1:], strict=False))]


def _table(title: str, first: str, rows: list[list]) -> Table:
    stages = [Column(f"{name}, GStencil/s", "predicted", digits=0) for name in STAGES]
    gains = [Column(f"gain by {name}", "predicted") for name in list(STAGES)[1:]]
    return table(title, [Column(first), *stages, *gains], rows, "predicted")


def _plot(setting: Setting, name: str, title: str, x_label: str, rows: list[list]) -> Plot:
    labels, *series = transposed(rows)
    return Plot(
        name=name,
        title=f"{title}, single steps, f16, {setting.gpu.name}",
        kind="bars",
        x_label=x_label,
        y_label="rate",
        unit="GStencil/s",
        basis="predicted",
        x=labels,
        series=dict(zip(STAGES, series, strict=False)),
    )
