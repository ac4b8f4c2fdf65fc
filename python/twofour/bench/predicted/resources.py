# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""How busy the parts of the chip are (SparStencil, figure 11), and what kernels cost."""

from twofour.bench.predicted.setting import Setting, over
from twofour.bench.section import Column, Plot, Section, table
from twofour.errors import Unsuitable
from twofour.kernels import Kernel
from twofour.pipeline import PipelineFailure

OUTPUTS = 128  # that instructions are given for
RESOURCES_TEXT = """\
Single steps of f16 by the schedule that `auto` takes. Busy is the share of the published peak in
use at the predicted rate, for `latency` that of the bytes in flight which resident warps offer,
for `launch` that of the time."""
COUNTERS_TEXT = f"""\
One sweep on a domain of whole blocks. Warp instructions, mma and wavefronts of shared memory are
given for {OUTPUTS} outputs of the sweep, conflicts as a share of wavefronts, bytes in sectors of
32 for each output, as single warps ask for them, whichever cache answers. Occupancy is that by
registers, threads and shared memory."""
NEEDS = (
    Column("registers", "ptxas"),
    Column("bytes spilled", "ptxas"),
    Column("shared memory", "exact", "bytes a block"),
    Column("occupancy", "ptxas"),
)


def run(setting: Setting) -> Section:
    """The busy share of every resource, and what ptxas says."""
    rows, busy = [], {}
    for label, kernel in over(list(setting.table_2().items()), "resources"):
        report = setting.explain(kernel, "f16")
        busy[label] = report["predicted"]["busy"]
        rows.append([label, report["schedule"], *busy[label].values(), *_needs(report)])
    resources = list(next(iter(busy.values())))
    columns = [Column(resource, "predicted") for resource in resources]
    columns = [Column("kernel"), Column("chosen", "predicted"), *columns, *NEEDS]
    plot = Plot(
        name="resources",
        title=f"Resources in use, single steps, f16, {setting.gpu.name}",
        kind="bars",
        x_label="kernel",
        y_label="busy",
        unit="",
        basis="predicted",
        x=tuple(busy),
        series={r: tuple(found[r] for found in busy.values()) for r in resources},
    )
    tables = (table("Busy", columns, rows, "predicted"),)
    return Section("resources", "Resource utilisation", RESOURCES_TEXT, tables, (plot,))


def run_counters(setting: Setting) -> Section:
    """What every schedule of every kernel of table 2 costs, and three fused steps of the best."""
    kernels = list(setting.table_2().items())
    single = [
        _counted(setting, label, kernel, schedule)
        for schedule in ("stream", "sparse", "dense", "simt")
        for label, kernel in over(kernels, f"counters, {schedule}")
    ]
    fused = [_counted(setting, *item, "auto", 3) for item in over(kernels, "counters, fused")]
    columns = [
        Column("kernel"),
        Column("schedule"),
        Column("warp instructions", "simulated", digits=1),
        Column("mma", "simulated"),
        Column("wavefronts", "simulated", digits=1),
        Column("conflicts", "simulated", digits=3),
        Column("bytes loaded", "simulated"),
        Column("bytes stored", "simulated"),
        *NEEDS,
    ]
    tables = (
        table("Single steps, f16", columns, [row for row in single if row], "simulated"),
        table("3 fused steps, f16", columns, [row for row in fused if row], "simulated"),
    )
    return Section("counters", "Counters of table 2", COUNTERS_TEXT, tables)


def _counted(
    setting: Setting, label: str, kernel: Kernel, schedule: str, steps: int = 1
) -> list | None:
    """A row of counters; None where the schedule cannot take the kernel."""
    try:
        report = setting.explain(kernel, "f16", steps, schedule)
    except PipelineFailure as failure:
        if not isinstance(failure.errors[0], Unsuitable):
            raise
        return None
    counters = report["counters"]
    wavefronts = counters["shared_wavefronts"]
    return [
        label,
        report["schedule"],
        OUTPUTS * counters["instructions"],
        OUTPUTS * counters["mma"],
        OUTPUTS * wavefronts,
        counters["shared_conflicts"] / wavefronts if wavefronts else 0.0,
        counters["global_load_bytes"],
        counters["global_store_bytes"],
        *_needs(report),
    ]


def _needs(report: dict) -> list:
    return [report[key] for key in ("registers", "spills", "shared_bytes", "occupancy")]
