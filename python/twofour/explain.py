# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""What the compiler decided for a program, and why: the report of `twofour explain`."""

from dataclasses import asdict, fields
from typing import TYPE_CHECKING

from twofour.analysis import Analysis, LinearSweep, Source, SparseLayout
from twofour.errors import TwofourError
from twofour.options import CompileOptions
from twofour.pipeline import PassElement, pipeline_text
from twofour.targets.cpu.build import chosen_schedule, compile_cpu

if TYPE_CHECKING:
    from twofour.targets.gpu.fusion_depth import Depth
    from twofour.tuned.database import Tuned

_REASONS = {
    "direct": "sums over points by vectors: on the CPU faster than emulated 2:4 fragments",
    "outer": "asked for: outer products of coefficient lines, those with zeros left out",
    "loops": "not linear with constant coefficients: computed as it is written "
    "(see left_on_general_path)",
}
_CPU_SPARSE = "asked for: the 2:4 operator, executed from its values, metadata and offsets"
_GPU_REASONS = {
    "stream": "rows through sparse tensor cores as they lie in memory, by chunks of eight inputs",
    "sparse": "the 2:4 operator on sparse tensor cores",
    "dense": "the crushed operator on dense tensor cores",
    "simt": "plain threads, without tensor cores",
}


def explain(source: Source, options: CompileOptions, chip: str | None = None) -> dict:
    """Every choice made for a file or kernel, as plain values for JSON.

    The layout (tile, rows, columns, k, ...) is that of the 2:4 operator of the first sweep, of the
    fused one where steps are fused, whether or not the schedule executes it (`layout_executed`);
    its fields are None for programs without a linear sweep. `sweeps` lists all operators. For a GPU
    target the costs of the main kernel follow (`twofour.targets.gpu.report.gpu_report`), and for
    linear steps how fast each schedule is predicted to be on a large domain (`predicted` that of
    the chosen one, `candidates` all of them); `chip` names the chip of twofour.cost.GPUS to predict
    for, one that stands for the target if None. `tuned` is the measurement that chose the layout,
    or None; `fusion_depths` lists the depths that were compared where the depth is auto. For the
    CPU `register_tile`, `time_tile` and `skewed` follow
    (`twofour.targets.cpu.report.cpu_report`). Raises TwofourError as compiling does, and for a chip
    of another architecture.
    """
    if options.target == "cpu":
        if chip is not None:
            raise TwofourError(f"expected a GPU target for chip {chip}, got target 'cpu'")
        compiled = compile_cpu(source, options, whole=True, report_layouts=True)
        found, layouts, passes = compiled, compiled.layouts, compiled.passes
        schedule = compiled.schedule
        why = _REASONS.get(schedule, _CPU_SPARSE)
        executed = chosen_schedule(options) == "sparse"
    else:
        # The compiler for GPUs is not needed for the CPU.
        from twofour.targets.gpu.build import compile_gpu
        from twofour.targets.gpu.predictions import gpu_model

        model = gpu_model(options, chip)
        gpu = compile_gpu(source, options, report_layouts=True)
        found, layouts, passes = gpu.found, gpu.layouts, gpu.found.passes
        schedule = gpu.schedule
        why = _GPU_REASONS[schedule]
        if gpu.refusal is not None:
            why += f"; not on tensor cores: {gpu.refusal}"
        if gpu.tuned is not None:
            why += f"; tuned on {gpu.tuned.device}, {gpu.tuned.date}"
        executed = schedule in ("stream", "sparse")
    layout = _main_layout(found.single, found.fused, layouts)
    report = {
        "name": source if isinstance(source, str) else source.name,
        "target": options.target,
        "dtype": options.dtype or found.element,
        "schedule": schedule,
        "why": why,
        "steps_per_sweep": found.fused.steps if found.fused else 1,
        "next_inputs": _next_inputs(found),
        "layout_executed": executed and layout is not None,
    }
    for item in fields(SparseLayout):
        report[item.name] = _plain(getattr(layout, item.name)) if layout else None
    report["sweeps"] = [
        {key: _plain(value) for key, value in asdict(item).items()} for item in layouts
    ]
    report["left_on_general_path"] = [
        {"location": str(item.location), "reason": item.reason} for item in found.left
    ]
    report["pipeline"] = pipeline_text([PassElement(p.spell(), p) for p in passes])
    if options.target == "cpu":
        from twofour.targets.cpu.report import cpu_report

        report |= cpu_report(compiled)
    else:
        from twofour.targets.gpu.predictions import predictions
        from twofour.targets.gpu.report import gpu_report

        report["tuned"] = gpu.tuned and _tuned(gpu.tuned)
        report["fusion_depths"] = [_depth(depth) for depth in gpu.depths]
        report |= gpu_report(gpu.bundle, options)
        report |= predictions(found, gpu.bundle.manifest["arithmetic"], schedule, model)
    return report


def _next_inputs(found: Analysis) -> list[dict]:
    """The arguments whose fields become inputs of the next call, for the functions of files."""
    rotation = found.program.rotation
    if found.is_kernel:
        return []
    return [
        {"input": field.index, "from": rotation[field.index]}
        for field in found.program.inputs
        if rotation[field.index] != field.index
    ]


def _main_layout(
    single: LinearSweep | None, fused: LinearSweep | None, layouts: list[SparseLayout]
) -> SparseLayout | None:
    wanted = (fused or single).function if single else None
    for layout in layouts:
        if wanted in (None, layout.function):
            return layout
    return None


def _tuned(entry: "Tuned") -> dict:
    """A measurement as plain values."""
    return {
        "device": entry.device,
        "date": entry.date,
        "choice": entry.choice.as_json(),
        "seconds_per_point": entry.seconds_per_point,
        "version": entry.version,
        "basis": "measured",
        "database": entry.file,
    }


def _depth(depth: "Depth") -> dict:
    """A depth of fusion as plain values; `step_gstencil_per_s` counts the refresh, too."""
    return {
        "steps": depth.steps,
        "schedule": depth.schedule,
        "gstencil_per_s": depth.prediction.gstencil_per_s,
        "fraction_of_copy": depth.prediction.fraction_of_copy,
        "limited_by": depth.prediction.limited_by,
        "refresh_seconds": depth.refresh_seconds,
        "step_gstencil_per_s": depth.gstencil_per_s,
    }


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
    if report["next_inputs"]:
        pairs = [f"argument {one['from']} becomes {one['input']}" for one in report["next_inputs"]]
        lines.append(f"  from step to step: {', '.join(pairs)}")
    if report.get("fusion_depths"):
        lines.append(f"  {_depths(report)}")
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
    if report.get("register_tile"):
        lines.append(f"  {_blocks(report)}")
    if "counters" in report:
        lines += _costs(report)
        lines += _ranking(report)
    lines.append(f"  pipeline: {report['pipeline']}")
    return "\n".join(lines)


def _blocks(report: dict) -> str:
    """What a CPU kernel sums up at a time, and what stays in the caches for several steps."""
    block, tile = report["register_tile"], report["time_tile"]
    rows, vectors, size = (block[name] for name in ("rows", "vectors", "vector_bytes"))
    pairs = ", rows in pairs" if block["in_pairs"] else ""
    planes = f"{block['planes']} planes of " if block["planes"] > 1 else ""
    text = f"{planes}{rows} x {vectors} vectors of {size} bytes at a time{pairs}"
    if tile is None:
        return text
    extents, domain = (" x ".join(map(str, tile[name])) for name in ("extents", "domain"))
    steps = "1 step" if tile["steps"] == 1 else f"{tile['steps']} steps"
    threads = "1 thread" if tile["threads"] == 1 else f"{tile['threads']} threads"
    text = f"{text}; on {domain} points with {threads}, "
    skewed = report["skewed"]
    if skewed is not None:
        strips = f" in strips of {skewed['rows']} rows" if skewed["rows"] else ""
        return f"{text}{skewed['steps']} skewed steps at once{strips}"
    kind = "streamed tile" if tile["streamed"] else "tile"
    return f"{text}{steps} of {extents} points in a {kind}"


def _depths(report: dict) -> str:
    """The depths of fusion that were compared."""
    compared = [f"{d['steps']}: {d['step_gstencil_per_s']:.0f}" for d in report["fusion_depths"]]
    text = "predicted GStencil/s of a sweep and a refresh of the halo, by steps in one sweep"
    return f"{text}: {', '.join(compared)}"


def _ranking(report: dict) -> list[str]:
    """The candidates, the fastest first."""
    ranked = [
        f"{c['schedule']} {c['gstencil_per_s']:.0f} GStencil/s ({c['fraction_of_copy']:.0%} of a "
        f"copy, limited by {c['limited_by']})"
        for c in report["candidates"]
    ]
    return [f"  predicted for {report['chip']}: {'; '.join(ranked)}"] if ranked else []


def _costs(report: dict) -> list[str]:
    """What a GPU kernel costs, by the simulator and by ptxas."""
    lines = []
    if report["counters"] is not None:
        counters = ", ".join(f"{name} {x:.4g}" for name, x in report["counters"].items())
        lines.append(f"  simulated, per output point: {counters}")
    needs = f"{report['shared_bytes']} bytes of shared memory a block"
    if report["registers"] is not None:
        needs = (
            f"{report['registers']} registers, {report['spills']} bytes spilled (ptxas), {needs}, "
            f"occupancy {report['occupancy']:.0%}"
        )
    lines.append(f"  {needs}")
    return lines
