# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""What CPU kernels do at a time on this machine: blocks in registers, and tiles in the caches."""

from twofour.codegen.cpu.direct_kernel import DirectKernel
from twofour.codegen.cpu.vector_unit import vector_unit
from twofour.cost.explore import DOMAINS
from twofour.runtime.boundary import parse_boundary
from twofour.runtime.dtypes import element_type
from twofour.runtime.processor import caches
from twofour.runtime.rounds.step_tables import StepCode
from twofour.runtime.rounds.stepping import SkewedSteps
from twofour.runtime.rounds.strips import LEAST_RANK
from twofour.runtime.stepping import updated_box
from twofour.runtime.sweeps import LinearKernel
from twofour.runtime.threads import resolve_threads
from twofour.runtime.tiles.choice import MANY_STEPS, choose_tiles, is_skewing_faster
from twofour.runtime.tiles.steps import Geometry
from twofour.runtime.tiles.streamed import is_streamed
from twofour.targets.cpu.build import CompiledCpu

# What is reported of many steps.
MANY = ("time_tile", "skewed")


def cpu_report(compiled: CompiledCpu) -> dict:
    """Blocks and tiles of a linear step by direct sums, as plain values for JSON.

    `register_tile`: planes, rows and vectors of outputs that are summed up together, the bytes of a
    vector, and whether the rows are summed up in pairs. `time_tile`: steps of a tile, its extents
    and whether it is streamed along the slowest axis, on a large fixed `domain`, by a run of many
    steps on so many `threads`. `skewed`: the steps that go over it together instead, and the rows
    of a strip where planes are cut; None where tiles are taken. All None for programs and schedules
    that have none.
    """
    report = dict.fromkeys(("register_tile", *MANY))
    if not compiled.is_step or compiled.schedule != "direct":
        return report
    sweep = compiled.fused or compiled.single
    rank = len(sweep.reach_lo)
    if rank in DOMAINS:
        itemsize = element_type(compiled.element).itemsize
        report["register_tile"] = _register_tile(compiled.direct_kernel(sweep), itemsize)
        if compiled.fused is None:
            report |= zip(MANY, _many_steps(compiled, DOMAINS[rank]), strict=True)
    return report


def _register_tile(kernel: DirectKernel, itemsize: int) -> dict:
    unit = vector_unit("host")
    # Sums of types of 16 bits are of 32.
    tile = kernel.tile(unit, unit.bytes // max(4, itemsize))
    size = tile.vector_bytes or unit.bytes
    return {
        "planes": tile.planes,
        "rows": tile.rows,
        "vectors": tile.vectors,
        "vector_bytes": size,
        "in_pairs": kernel.in_pairs(unit),
    }


def _many_steps(compiled: CompiledCpu, domain: tuple[int, ...]) -> tuple[dict, dict | None]:
    """The tile of a run of many steps, and how they are skewed if they are."""
    single, threads = compiled.single, resolve_threads(None)
    boundary = parse_boundary("fixed", len(domain))
    kernel = LinearKernel(None, single.reach_lo, single.reach_hi)
    interior = updated_box(domain, kernel, boundary, None)
    unit = vector_unit("host")
    geometry = Geometry(interior, single.reach_lo, single.reach_hi, boundary, unit.core.planes)
    steps, extents = compiled.time_tile or (None, None)
    skewed = None
    if steps is None:
        element = element_type(compiled.element)
        work = compiled.direct_kernel(single).work(unit)
        choice = choose_tiles(geometry, element.itemsize, work, MANY_STEPS, threads, caches())
        steps, extents = choice.steps, choice.extents
        if len(domain) >= LEAST_RANK:
            code = StepCode(None, None, None, unit.core.planes)
            planned = SkewedSteps(kernel, code, geometry, domain, element, threads)
            data = planned.cycles(MANY_STEPS)
            if data is not None and is_skewing_faster(choice, data, work, element.itemsize):
                cutting = planned.rounds.cutting
                skewed = {"steps": planned.rounds.depth, "rows": cutting and cutting.width}
    tile = {
        "domain": list(domain),
        "threads": threads,
        "steps": steps,
        "extents": list(extents),
        "streamed": is_streamed(geometry, extents[0], steps),
    }
    return tile, skewed
