# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""What CPU kernels do at a time on this machine: blocks in registers, and tiles in the caches."""

from twofour.compiler import CompiledCpu
from twofour.cost.explore import DOMAINS
from twofour.runtime.boundary import parse_boundary
from twofour.runtime.dtypes import element_type
from twofour.runtime.processor import caches
from twofour.runtime.stepping import updated_box
from twofour.runtime.streamed_tiles import is_streamed
from twofour.runtime.sweeps import LinearKernel
from twofour.runtime.threads import resolve_threads
from twofour.runtime.tile_choice import MANY_STEPS, choose_tiles
from twofour.runtime.tiles import Geometry
from twofour.targets.cpu.direct_kernel import DirectKernel
from twofour.targets.cpu.vector_unit import vector_unit


def cpu_report(compiled: CompiledCpu) -> dict:
    """Blocks and tiles of a linear step by direct sums, as plain values for JSON.

    `register_tile`: planes, rows and vectors of outputs that are summed up together, the bytes of a
    vector, and whether the rows are summed up in pairs. `time_tile`: steps of a tile, its extents
    and whether it is streamed along the slowest axis, on a large fixed `domain`, by a run of many
    steps on so many `threads`. Both None for programs and schedules that have none.
    """
    report = {"register_tile": None, "time_tile": None}
    if not compiled.is_step or compiled.schedule != "direct":
        return report
    sweep = compiled.fused or compiled.single
    rank = len(sweep.reach_lo)
    if rank in DOMAINS:
        itemsize = element_type(compiled.element).itemsize
        report["register_tile"] = _register_tile(compiled.direct_kernel(sweep), itemsize)
        if compiled.fused is None:
            report["time_tile"] = _time_tile(compiled, DOMAINS[rank])
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


def _time_tile(compiled: CompiledCpu, domain: tuple[int, ...]) -> dict:
    single, threads = compiled.single, resolve_threads(None)
    boundary = parse_boundary("fixed", len(domain))
    kernel = LinearKernel(None, single.reach_lo, single.reach_hi)
    interior = updated_box(domain, kernel, boundary, None)
    unit = vector_unit("host")
    geometry = Geometry(interior, single.reach_lo, single.reach_hi, boundary, unit.core.planes)
    steps, extents = compiled.time_tile or (None, None)
    if steps is None:
        itemsize = element_type(compiled.element).itemsize
        work = compiled.direct_kernel(single).work(unit)
        choice = choose_tiles(geometry, itemsize, work, MANY_STEPS, threads, caches())
        steps, extents = choice.steps, choice.extents
    return {
        "domain": list(domain),
        "threads": threads,
        "steps": steps,
        "extents": list(extents),
        "streamed": is_streamed(geometry, extents[0], steps),
    }
