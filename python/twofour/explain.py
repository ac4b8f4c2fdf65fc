# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""What the compiler decided for a program, and why: the report of `twofour explain`."""

from dataclasses import asdict, fields

from twofour.compiler import CompiledCpu, CompileOptions, SparseLayout, compile_cpu
from twofour.kernels import Kernel
from twofour.pipeline import PassElement, pipeline_text

_REASONS = {
    "direct": "sums over points by vectors: on the CPU faster than emulated 2:4 fragments",
    "sparse": "asked for: the 2:4 operator, executed from its values, metadata and offsets",
    "loops": "not linear with constant coefficients: plain loops (see left_on_general_path)",
}


def explain(source: str | Kernel, options: CompileOptions) -> dict:
    """Every choice made for a file or kernel, as plain values for JSON.

    The layout (tile, rows, columns, k, ...) is that of the 2:4 operator of the first sweep, of the
    fused one where steps are fused, whether or not the schedule executes it (`layout_executed`);
    its fields are None for programs without a linear sweep. `sweeps` lists all operators. Raises
    TwofourError as compiling does.
    """
    compiled = compile_cpu(source, options, report_layouts=True)
    name = source.name if isinstance(source, Kernel) else source
    schedule = compiled.schedule
    layout = _main_layout(compiled)
    report = {
        "name": name,
        "target": compiled.options.target,
        "dtype": compiled.element,
        "schedule": schedule,
        "why": _REASONS[schedule],
        "steps_per_sweep": compiled.fused.steps if compiled.fused else 1,
        "layout_executed": options.chosen_schedule == "sparse" and layout is not None,
    }
    for item in fields(SparseLayout):
        report[item.name] = _plain(getattr(layout, item.name)) if layout else None
    report["sweeps"] = [
        {key: _plain(value) for key, value in asdict(item).items()} for item in compiled.layouts
    ]
    report["left_on_general_path"] = [
        {"location": str(item.location), "reason": item.reason} for item in compiled.left
    ]
    elements = [PassElement(p.spell(), p) for p in compiled.passes]
    report["pipeline"] = pipeline_text(elements)
    return report


def _main_layout(compiled: CompiledCpu) -> SparseLayout | None:
    wanted = (compiled.fused or compiled.single).function if compiled.single else None
    for layout in compiled.layouts:
        if wanted in (None, layout.function):
            return layout
    return None


def _plain(value):
    return list(value) if isinstance(value, tuple) else value


def as_text(report: dict) -> str:
    """The report for people."""
    lines = [
        f"{report['name']}: {report['schedule']} on {report['target']}, {report['dtype']}",
        f"  {report['why']}",
    ]
    if report["steps_per_sweep"] > 1:
        lines.append(f"  {report['steps_per_sweep']} steps in one sweep, single steps at the rims")
    if report["sweeps"] and not report["layout_executed"]:
        lines.append("  as 2:4 operators (--schedule sparse):")
    for sweep in report["sweeps"]:
        proof = "proven minimal" if sweep["proven"] else f"lower bound {sweep['k_lower_bound']}"
        lines.append(
            f"  @{sweep['function']}: tile {'x'.join(map(str, sweep['tile']))}, A is "
            f"{sweep['rows']} x {sweep['columns']}, padded to K = {sweep['k']} ({proof}) by "
            f"{sweep['strategy']}; {sweep['mma_per_128_outputs']:g} mma.sp.m16n8k"
            f"{sweep['fragment']} per 128 outputs, density {sweep['density']:.3f}"
        )
    for item in report["left_on_general_path"]:
        lines.append(f"  {item['location']}: left on the general path: {item['reason']}")
    lines.append(f"  pipeline: {report['pipeline']}")
    return "\n".join(lines)
