# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The layout that the model picks against all of its family, each of them simulated.

SparStencil, equation 11, searches all layouts by its model; this says what trusting ours costs.
"""

import math
from dataclasses import dataclass, replace

from twofour.bench.predicted.setting import Setting, over
from twofour.bench.section import Column, Section, table
from twofour.codegen.gpu.kernel_abi import kernel_module
from twofour.codegen.gpu.matrix_ops import MatrixOps
from twofour.codegen.gpu.stream_kernel import StreamKernel, build_stream_kernel
from twofour.context import make_context
from twofour.cost import Costs, GpuModel, Prediction, predict
from twofour.cost.counts import Counts
from twofour.cost.explore import DOMAINS, best_stream
from twofour.cost.stream import stream_costs, stream_counts
from twofour.errors import Unsuitable
from twofour.kernels import TABLE_2, Kernel, built_in_kernels
from twofour.layout.chunks import chunk_operator
from twofour.layout.fragments import SPARSE_16
from twofour.layout.stream import StreamLayout, stream_layouts
from twofour.mlir import ir
from twofour.reach import reach_of
from twofour.runtime.devices.device import DeviceKernel
from twofour.runtime.devices.simulated import SimulatedDevice
from twofour.runtime.devices.stepping import SECTOR, aligned_rows
from twofour.runtime.dtypes import ELEMENT_TYPES
from twofour.runtime.manifest import KernelSpec
from twofour.sim import parse
from twofour.sim.ptx import Kernel as SimulatedKernel
from twofour.targets.gpu.lowering import to_llvm_ir, to_nvvm
from twofour.targets.gpu.ptx import to_ptx
from twofour.targets.gpu.report import domain

EXPLORED = ("Heat-1D", "Heat-2D", "Box-2D9P", "Star-2D13P", "Box-2D49P", "Heat-3D")
ELEMENT = "f16"
NAME = "stream"
TEXT = """\
Single steps of f16 by schedule `stream`: every layout of that family (rows and warps of a block,
inputs read ahead to registers or to a ring, steps of a march) is compiled and simulated on a domain
of whole blocks. What the model says that a launch on a large domain costs is then corrected by the
ratio of simulated to modelled counters, and the rate predicted from that. The loss is how much
longer the layout takes that the model alone picks than the best of all. Deviation is that of
modelled from simulated instructions."""
COLUMNS = (
    Column("kernel"),
    Column("layouts", "exact"),
    Column("picked"),
    Column("best", "simulated"),
    Column("picked, GStencil/s", "simulated", digits=1),
    Column("best, GStencil/s", "simulated", digits=1),
    Column("loss, %", "simulated"),
    Column("deviation of the pick, %", "simulated"),
    Column("largest deviation, %", "simulated"),
)


@dataclass(frozen=True)
class _Tried:
    """A layout, and its prediction from simulated counters.

    `deviation` is that of modelled from simulated instructions, relative to these.
    """

    layout: StreamLayout
    prediction: Prediction
    deviation: float


def run(setting: Setting) -> Section:
    """The pick's loss for six kernels of table 2."""
    kernels = setting.table_2()
    if setting.names is None:
        kernels = {label: built_in_kernels()[TABLE_2[label]] for label in EXPLORED}
    rows, samples = [], []
    for label, kernel in kernels.items():
        try:
            layouts = stream_layouts(
                chunk_operator(kernel.offsets, kernel.weights), reach_of(kernel.offsets)
            )
        except Unsuitable:
            continue
        picked = layouts.index(best_stream(layouts, ELEMENT, setting.gpu))
        codes, tried = {}, []
        for layout in over(layouts, f"exploring {label}", "layouts"):
            # All that differs between layouts of one stencil, but for the steps of a march.
            key = layout.warps, layout.rows, layout.ring, layout.stages
            if key not in codes:
                codes[key] = _code(layout, setting.gpu.architecture)
            tried.append(_try(layout, codes[key], setting.gpu))
        rows.append(_row(label, tried, picked))
        samples.append(_samples(kernel, tried))
    title = "Exploration: the model's pick against exhaustive simulation"
    found = table("The loss of the pick", COLUMNS, rows, "simulated")
    return Section("exploration", title, TEXT, (found,), samples=samples)


def _row(label: str, tried: list[_Tried], picked: int) -> list:
    pick = tried[picked]
    best = min(tried, key=lambda one: one.prediction.seconds_per_point)
    loss = pick.prediction.seconds_per_point / best.prediction.seconds_per_point - 1
    return [
        label,
        len(tried),
        _spelled(pick.layout),
        _spelled(best.layout),
        pick.prediction.gstencil_per_s,
        best.prediction.gstencil_per_s,
        100 * loss,
        100 * pick.deviation,
        100 * max(one.deviation for one in tried),
    ]


def _samples(kernel: Kernel, tried: list[_Tried]) -> dict:
    rates = {_spelled(one.layout): one.prediction.gstencil_per_s for one in tried}
    return {"kernel": kernel.name, "gstencil_per_s": rates}


def _spelled(layout: StreamLayout) -> str:
    ahead = f"{layout.stages} steps in a ring" if layout.ring else f"{layout.stages} fragments"
    return f"{layout.warps} warps, {layout.rows} rows, {ahead}, {layout.march} steps"


def _try(layout: StreamLayout, code: SimulatedKernel, gpu: GpuModel) -> _Tried:
    spec = KernelSpec(
        name=NAME,
        rank=layout.rank,
        inputs=1,
        outputs=1,
        scalars=(),
        threads=layout.threads,
        tile=layout.tile,
        march=layout.march,
        shared_bytes=layout.shared_bytes,
        alignment=SECTOR,
    )
    shape = tuple(domain(spec))
    counted = simulate(layout, code, spec, shape, gpu.architecture)
    modelled = stream_counts(layout, shape)
    large = DOMAINS[layout.rank]
    costs = stream_costs(layout, large, ELEMENT, gpu.multiprocessors)
    prediction = predict(gpu, corrected(costs, modelled, counted), math.prod(large))
    return _Tried(layout, prediction, abs(modelled.instructions / counted.instructions - 1))


def corrected(costs: Costs, modelled: Counts, counted: Counts) -> Costs:
    """Costs of the model, by the ratio of what was counted to what was modelled elsewhere."""
    sectors = (counted.global_load_bytes + counted.global_store_bytes) / (
        modelled.global_load_bytes + modelled.global_store_bytes
    )
    return replace(
        costs,
        instructions=costs.instructions * counted.instructions / modelled.instructions,
        mma={kind: n * counted.mma / modelled.mma for kind, n in costs.mma.items()},
        l1_wavefronts=costs.l1_wavefronts * sectors,
        l2_bytes=costs.l2_bytes * sectors,
    )


def simulate(
    layout: StreamLayout,
    code: SimulatedKernel,
    spec: KernelSpec,
    shape: tuple[int, ...],
    chip: str,
) -> Counts:
    """The counters of one launch of a stream on an output of `shape`."""
    device = SimulatedDevice(chip)
    element = ELEMENT_TYPES[ELEMENT]
    granule = SECTOR // element.itemsize
    reach = zip(layout.reach_lo, layout.reach_hi, strict=True)
    grown = [n + lo + hi for n, (lo, hi) in zip(shape, reach, strict=True)]
    below = layout.reach_lo[-1]
    with device.active():
        source = aligned_rows(device, grown, below, element.storage, granule)
        target = aligned_rows(device, shape, 0, element.storage, granule)
        DeviceKernel(device, spec, code).bind([source], [target], reach_below=below).run(
            0, shape[0]
        )
    counters = device.profiles[NAME].counters
    points = math.prod(shape)
    return Counts(
        instructions=counters.instructions / points,
        mma=counters.mma / points,
        shared_wavefronts=counters.shared_wavefronts / points,
        global_load_bytes=counters.global_load_bytes / points,
        global_store_bytes=counters.global_store_bytes / points,
    )


def _code(layout: StreamLayout, chip: str) -> SimulatedKernel:
    return parse(_ptx(layout, chip), name=f"{NAME}.ptx").kernels[NAME]


def _ptx(layout: StreamLayout, chip: str) -> str:
    with make_context(), ir.Location.unknown():
        module = ir.Module.create()
        with ir.InsertionPoint(kernel_module(module.operation, chip)):
            ops = MatrixOps(SPARSE_16, ELEMENT)
            build_stream_kernel(StreamKernel(NAME, layout, ELEMENT, ops=ops))
        to_nvvm(module, NAME)
        return to_ptx(to_llvm_ir(module, NAME), chip)
