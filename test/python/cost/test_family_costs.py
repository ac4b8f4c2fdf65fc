# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Costs of all families of kernels against the simulator's counters, and by hand."""

import math
import subprocess
import sys
import time
from dataclasses import dataclass, fields, replace
from functools import cache
from unittest.mock import patch

import numpy as np
import pytest

from twofour.codegen.cpu.direct_kernel import DirectKernel, Terms
from twofour.codegen.gpu.cuda_toolkit import find_ptxas
from twofour.codegen.gpu.simt_kernel import point_grid
from twofour.cost import simt as cost_simt
from twofour.cost import tile as cost_tile
from twofour.cost.counts import Counts, resident
from twofour.cost.rolling import rolling_costs, rolling_counts
from twofour.cost.simt import full_blocks, simt_costs, simt_counts
from twofour.cost.stream import stream_costs, stream_counts
from twofour.cost.tile import tile_costs, tile_counts
from twofour.dialects.nm.transforms import to_gpu as tensor
from twofour.dialects.stencil.transforms import to_gpu as simt
from twofour.kernels import TABLE_2, built_in_kernels
from twofour.options import CompileOptions
from twofour.runtime import AxisBoundary, field_element_type
from twofour.runtime.devices.simulated import SimulatedDevice
from twofour.runtime.devices.stepping import linear_stepper
from twofour.runtime.dtypes import to_storage
from twofour.sim import chips
from twofour.targets.gpu import build
from twofour.tuned.choice import Choice

# Schedules; "rolling" is the way of "simt" that marches; with rings, or with none.
CASES = (
    ("stream", "f16"),
    ("rolling", "f16"),
    ("rolling", "f32"),
    ("rolling", "f64"),
    ("sparse", "f16"),
    ("dense", "f16"),
    ("simt", "f16"),
    ("simt", "f32"),
    ("dense", "f64"),
    ("simt", "f64"),
    ("stream ring", "f16"),
    ("rolling ring", "f32"),
    ("rolling ring", "f64"),
)
# A from registers and from tables, loops written out and not, one axis to three.
SAMPLE = (
    ("heat1d_ftcs", "stream", "f16"),
    ("paper_box2d49p", "stream", "f16"),
    ("heat1d_ftcs", "sparse", "f16"),
    ("heat1d_ftcs", "simt", "f16"),
    ("heat1d_ftcs", "dense", "f64"),
    ("heat2d_ftcs", "sparse", "f16"),
    ("heat2d_ftcs", "simt", "f64"),
    ("lbm_d2q9_diffusion", "dense", "f64"),
    ("paper_box2d49p", "sparse", "f16"),
    ("paper_box2d49p", "simt", "f16"),
    ("heat3d_ftcs", "dense", "f16"),
    ("heat3d_ftcs", "simt", "f32"),
    ("heat1d_ftcs", "rolling", "f32"),
    ("heat2d_ftcs", "rolling", "f64"),
    ("paper_1d5p", "rolling", "f64"),
    ("heat3d_ftcs", "rolling", "f16"),
    ("paper_star2d13p", "rolling", "f32"),
    ("heat1d_ftcs", "stream ring", "f16"),
    ("paper_star2d13p", "stream ring", "f16"),
    ("paper_box3d27p", "stream ring", "f16"),
    ("paper_1d5p", "rolling ring", "f32"),
    ("heat2d_ftcs", "rolling ring", "f64"),
    ("paper_box2d49p", "rolling ring", "f32"),
)
# Tiles by the copy engine, by threads, and along a folded axis.
RESIDENT = (
    ("paper_star2d13p", ("dense", "f16")),
    ("lbm_d2q9_diffusion", ("sparse", "f16")),
    ("heat1d_ftcs", ("sparse", "f16")),
)
POINTS = 1 << 18
CHIP = chips.find("sm_90")


@dataclass(frozen=True)
class Built:
    """A compiled kernel, and the Costs and Counts of it as functions of the shape."""

    bundle: object
    kernel: object
    costs: object
    counts: object

    @property
    def spec(self):
        return self.bundle.kernels[self.bundle.program.single]

    @property
    def whole_blocks(self) -> list[int]:
        """A domain of about POINTS points, of whole blocks."""
        shape = [self.spec.tile[0] * self.spec.march, *self.spec.tile[1:]]
        shape[-1] *= max(2, POINTS // math.prod(shape))
        return shape


@cache
def built(name: str, schedule: str, dtype: str, chip: str = "sim:sm_90") -> Built:
    built_with = []
    schedule, _, ring = schedule.partition(" ")
    choice = {
        "stream": Choice("stream", ring=bool(ring)),
        "rolling": Choice("simt", rolling=True, ring=bool(ring)),
        "simt": Choice("simt", rolling=False),
    }.get(schedule)
    module, builder = {
        "simt": (simt, "build_simt_kernel"),
        "rolling": (simt, "build_rolling_kernel"),
        "stream": (tensor, "build_stream_kernel"),
    }.get(schedule, (tensor, "build_tensor_kernel"))
    make = getattr(module, builder)
    with patch.object(module, builder, lambda *a: (built_with.append(a), make(*a))[1]):
        options = CompileOptions(chip, choice.schedule if choice else schedule, dtype)
        bundle = build.compile_gpu(built_in_kernels()[name], options, choice=choice).bundle
    if schedule == "rolling":
        (((kernel,)),) = built_with
        return Built(
            bundle,
            kernel,
            lambda shape: rolling_costs(kernel.layout, shape, dtype),
            lambda shape: rolling_counts(kernel.layout, shape),
        )
    if schedule == "stream":
        (((kernel,)),) = built_with
        layout, operand = kernel.layout, kernel.ops.operands
        return Built(
            bundle,
            kernel,
            lambda shape: stream_costs(layout, shape, operand),
            lambda shape: stream_counts(layout, shape),
        )
    if schedule == "simt":
        ((kernel, element, grid, *_),) = built_with

        def costs(shape, **more):
            return simt_costs(kernel, grid, shape, element, CHIP, **more)

        return Built(bundle, grid, costs, lambda shape: simt_counts(kernel, grid, shape, element))
    (((kernel,)),) = built_with
    operand = {"parts": kernel.ops.parts, "scaled": bool(kernel.scale)}

    def costs(shape, layout=kernel.layout, **more):
        return tile_costs(layout, shape, kernel.ops.operands, CHIP, **operand, **more)

    def counts(shape):
        return tile_counts(kernel.layout, shape, kernel.ops.operands, **operand)

    return Built(bundle, kernel, costs, counts)


def simulated(built: Built, shape) -> dict[str, float]:
    """Counters per point of one sweep of a periodic domain."""
    device, program = SimulatedDevice("sm_90"), replace(built.bundle.program, fields=None)
    element = field_element_type(built.bundle.manifest["element"])
    boundary = [AxisBoundary("periodic")] * program.rank
    stepper = linear_stepper(program, device.load(built.bundle), device, element, boundary)
    stepper.advance(to_storage(np.ones(shape), element), 1)
    profile = device.profiles[program.single]
    return {k: n / profile.points for k, n in profile.counters.as_dict().items()}


def check(built: Built, shape, tolerance=0.1, bytes_tolerance=0.01) -> None:
    """Counts are the simulator's: `tolerance` for instructions, `bytes_tolerance` for the rest."""
    found, counts = simulated(built, shape), built.counts(shape)
    got = {field.name: getattr(counts, field.name) for field in fields(Counts)}
    expected = {name: found[name] for name in got}
    instructions = expected.pop("instructions")
    assert got.pop("instructions") == pytest.approx(instructions, rel=tolerance)
    assert got == pytest.approx(expected, rel=bytes_tolerance)
    costs = built.costs(shape)
    assert costs.instructions == counts.instructions
    assert sum(costs.mma.values()) == pytest.approx(counts.mma)


@pytest.mark.parametrize(
    ("name", "schedule", "dtype"),
    [
        pytest.param(name, *case, marks=() if (name, *case) in SAMPLE else (pytest.mark.full,))
        for name in TABLE_2.values()
        for case in CASES
    ],
)
def test_counts_of_table_2(name, schedule, dtype):
    kernel = built(name, schedule, dtype)
    # The model needs 10 %; a part whose instructions are wrong shows sooner.
    check(kernel, kernel.whole_blocks, 0.05)


def test_a_ring_of_as_many_slots_as_a_round_has_steps():
    """Its slots are known to the compiler, which saves instructions."""
    make, built_with = tensor.build_stream_kernel, []
    with patch.object(tensor, "build_stream_kernel", lambda k: (built_with.append(k), make(k))[1]):
        choice = Choice("stream", ring=True, stages=6, march=29)
        options = CompileOptions("sim:sm_90", "stream", "f16")
        bundle = build.compile_gpu(built_in_kernels()["heat2d_ftcs"], options, choice=choice).bundle
    layout = built_with[0].layout
    assert layout.unroll == layout.stages
    kernel = Built(
        bundle,
        built_with[0],
        lambda shape: stream_costs(layout, shape, "f16"),
        lambda shape: stream_counts(layout, shape),
    )
    check(kernel, kernel.whole_blocks, 0.02)


@pytest.mark.full
@pytest.mark.parametrize("name", ["heat1d_ftcs", "heat2d_ftcs", "paper_box2d49p", "heat3d_ftcs"])
@pytest.mark.parametrize(
    ("schedule", "dtype"),
    [(s, d) for s in ("sparse", "dense") for d in ("bf16", "tf32", "f32")] + [("simt", "bf16")],
)
def test_counts_of_other_types(name, schedule, dtype):
    kernel = built(name, schedule, dtype)
    check(kernel, kernel.whole_blocks)


@pytest.mark.full
@pytest.mark.parametrize("schedule", ["sparse", "dense", "simt", "rolling ring"])
@pytest.mark.parametrize("name", ["acoustic_iso3d_o16", "tti2d_gzz_o8", "curlcurl_diag3d"])
def test_counts_of_large_and_scaled_operators(name, schedule):
    kernel = built(name, schedule, "f16")
    check(kernel, kernel.whole_blocks)


@pytest.mark.parametrize(
    ("name", "shape"), [("heat1d_ftcs", (100_000,)), ("heat2d_ftcs", (300, 704))]
)
@pytest.mark.parametrize("schedule", ["sparse", "simt", "stream", "rolling"])
def test_counts_of_blocks_that_are_not_whole(name, schedule, shape):
    check(built(name, schedule, "f16"), shape, 0.15, 0.15)


def test_costs_of_heat_2d_on_tensor_cores():
    # A block tile of 16 x 512, its halo tile of 18 rows, marches of 8 tiles.
    kernel = built("heat2d_ftcs", "sparse", "f16", "sim:sm_80")
    shape = (128 * 4, 512 * 5)
    costs = kernel.costs(shape)
    assert (costs.blocks, costs.store_bytes, dict(costs.fma)) == (20, 2, {})
    # 128 + 2 rows are read, 128 are written.
    assert costs.dram_bytes == pytest.approx(2 * (130 / 128 + 1))
    # Three marches, the last one shorter.
    assert kernel.costs((300, 700)).dram_bytes == pytest.approx(2 * (306 / 300 + 1))
    # 18 rows of 34 sectors and 16 of 32 in a block tile; once a block, tables of 16 + 4 + 4 sectors
    # for A, metadata and offsets, and 2 for where outputs lie.
    block = 8 * (18 * 34 + 16 * 32) + 26
    assert costs.l2_bytes == pytest.approx(32 * block / (128 * 512))
    # A tile is copied while another is multiplied and a third is written, by four warps.
    assert costs.bytes_in_flight == 2 * 16 * 512 * 2 / 4
    # Accesses of 512 bytes meet 4 lines, 5 where a row does not begin one; the last lane, alone, 1.
    # Those to tables: 4 + 1 + 2 + 2.
    row = 4.75 + 4.75 + 1
    tile = 18 * row + 16 * 2 * 4.75
    shared = kernel.counts(shape).shared_wavefronts
    lines = (8 * tile + 4 * 9) / (128 * 512)
    assert costs.l1_wavefronts - shared == pytest.approx(lines, rel=0.02)


def test_costs_of_heat_2d_on_tensor_cores_with_a_copy_engine():
    # A block tile of 16 x 128, its halo tile of 18 rows of 160, marches of 16 tiles.
    kernel = built("heat2d_ftcs", "dense", "f16")
    shape = (256 * 2, 128 * 20)
    costs, counts = kernel.costs(shape), kernel.counts(shape)
    assert costs.blocks == 40
    # 320 bytes from the middle of a sector on; the last box of a row ends 23 elements earlier, and
    # 256 + 2 rows are read. Tables are two blocks of A of 16 sectors, 4 of offsets, 2 of places.
    row = 19 * 11 + 10
    reads, tables = (256 + 2 * 16) * 2 * row, 40 * 38
    assert counts.global_load_bytes == pytest.approx(
        32 * (reads + 4 * tables) / math.prod(shape), rel=1e-3
    )
    assert costs.l2_bytes == pytest.approx(32 * (reads + tables) / math.prod(shape) + 2)
    # Three halo tiles but one are on their way, and results.
    assert costs.bytes_in_flight == 3 * 16 * 128 * 2 / 4
    # A box of 5760 bytes, four of 1024; a group has 8 loads and 4 stores without conflicts.
    tile = 45 + 4 * 8 + 16 * (8 + 4)
    assert counts.shared_wavefronts == pytest.approx(tile / (16 * 128))
    # Only tables pass through the first level as global accesses.
    assert costs.l1_wavefronts - counts.shared_wavefronts == pytest.approx(
        4 * 12 / (16 * 16 * 128), rel=0.02
    )


def test_costs_of_heat_2d_on_plain_threads():
    # A block of 8 x 256 points; a thread has 8 neighbours, a warp a row.
    costs = built("heat2d_ftcs", "simt", "f16").costs((320, 768))
    assert (costs.blocks, costs.dram_bytes, dict(costs.fma)) == (120, 4, {"f32": 5})
    # 8 rows of 258 points, which 18 sectors hold, and two of 256; what is written.
    assert costs.l2_bytes == pytest.approx(32 * (8 * 18 + 2 * 16) / 2048 + 2)
    assert costs.bytes_in_flight == 8 * 32 * 2
    # 512 bytes that begin a sector meet 4.75 lines on average, 5 where they begin beside one.
    # A thread loads its own vector of three rows and those on either side, and writes one.
    assert costs.l1_wavefronts == pytest.approx((3 * 4.75 + 2 * 5 + 4.75) / 256)


def test_tables_that_are_read_again():
    # 28 steps of 2 blocks of A: 8 sectors each, and one for the offsets of a step.
    kernel = built("paper_box2d49p", "dense", "f64")
    costs, counts = (f(kernel.whole_blocks) for f in (kernel.costs, kernel.counts))
    tables = 28 * (2 * 8 + 1) * 32 / (16 * 128)
    halo = 22 * 34 * 32 / (16 * 128)
    # Each of four warps reads them twice in a block tile: its four groups go by two. The
    # first-level cache has them but for the first time.
    assert counts.global_load_bytes == pytest.approx(halo + 4 * 2 * tables, rel=1e-2)
    assert costs.l2_bytes == pytest.approx(halo + tables + 8, rel=1e-2)


def test_one_halo_tile_is_not_copied_while_it_is_multiplied():
    kernel = built("heat2d_ftcs", "sparse", "f16", "sim:sm_80")
    layout = replace(kernel.kernel.layout, stages=1)
    one, two = (
        kernel.costs((512, 2560), layout=x, registers=64) for x in (layout, kernel.kernel.layout)
    )
    assert one.bytes_in_flight == two.bytes_in_flight / 2
    # 37 568 instead of 56 576 bytes of shared memory.
    assert (one.resident_blocks, two.resident_blocks) == (6, 4)


def test_registers_of_vectors():
    # Of 7 rows 10 inputs each: 13 + 2 + 0.9 * 70.
    costs = built("paper_box2d49p", "simt", "f32").costs((80, 1280))
    assert costs.resident_blocks == resident(CHIP, 78, 256, 0)[1] == 3


@pytest.mark.parametrize(
    "name, dtype, chip, blocks",
    [
        # 37 registers are asked for with 32 of 64 warps, 38 are not; 1536 threads have 40.
        ("laplacian2d_o4", "f32", "sm_90", 8),
        ("heat3d_ftcs", "f64", "sm_90", None),
        ("heat3d_ftcs", "f64", "sm_89", 6),
        ("paper_box2d49p", "f32", "sm_90", None),
    ],
)
def test_vectors_leave_room_for_all_warps(name, dtype, chip, blocks):
    stencil, itemsize = built_in_kernels()[name], field_element_type(dtype).itemsize
    kernel = DirectKernel("k", [Terms(stencil.offsets, stencil.weights)])
    grid = point_grid(kernel, itemsize, aligned=True)
    assert full_blocks(kernel, grid, dtype, chips.find(chip)) == blocks
    costs = simt_costs(kernel, grid, (10240,) * stencil.rank, dtype, chips.find(chip))
    assert blocks is None or costs.resident_blocks == blocks
    assert full_blocks(kernel, point_grid(kernel, itemsize), dtype, chips.find(chip)) is None


def test_residency_of_known_registers():
    costs = built("heat2d_ftcs", "simt", "f16").costs
    blocks = [costs((320, 640), registers=n).resident_blocks for n in (32, 64, 128, 255)]
    assert blocks == [8, 4, 2, 1]
    assert costs((320, 640), registers=64).resident_warps == 32
    # 56 576 bytes of shared memory leave room for four blocks, whatever the registers.
    costs = built("heat2d_ftcs", "sparse", "f16", "sim:sm_80").costs
    assert [costs((512, 2560), registers=n).resident_blocks for n in (32, 255)] == [4, 2]


def test_costs_of_several_fields():
    # out[x] = 2 a[x - 1] + 3 a[x + 1] + 4 b[x] + 0 b[x + 9] + c[x]; threads of 8 points of f16.
    inputs = [Terms([(-1,), (1,)], [2.0, 3.0]), Terms([(0,), (9,)], [4.0, 0.0])]
    one, all_three = DirectKernel("one", inputs[:1]), DirectKernel("k", inputs, has_addend=True)
    grid, shape = point_grid(all_three, 2), (1 << 16,)
    costs = simt_costs(all_three, grid, shape, "f16", CHIP)
    assert (costs.dram_bytes, costs.fma) == (2 * 4, {"f32": 3})
    # a: 3 sectors of a warp's accesses on either side, 2050 points of a block; b, c: as a copy.
    counts = simt_counts(all_three, grid, shape, "f16")
    assert counts.global_load_bytes == 2 * 3 + 2 * 2
    assert costs.l2_bytes == 32 * (130 + 128 + 128 + 128) / 2048
    # A load and a conversion of b and c each, a product of b; addresses of two more views.
    more = counts.instructions - simt_counts(one, grid, shape, "f16").instructions
    assert more == (8 * (2 + 2 + 1) + 2 * 4) / 256


@pytest.mark.skipif(find_ptxas() is None, reason="ptxas is not installed")
@pytest.mark.parametrize(
    ("name", "schedule", "dtype"),
    [
        pytest.param(name, *case, marks=() if (name, case) in RESIDENT else (pytest.mark.full,))
        for name in TABLE_2.values()
        for case in CASES
        if case[0].split()[0] not in ("stream", "rolling")
    ],
)
def test_estimated_registers(name, schedule, dtype):
    kernel = built(name, schedule, dtype, "sm_90")
    shape, registers = kernel.whole_blocks, kernel.spec.resources["registers"]
    module, tolerance = (cost_simt, 0.25) if schedule == "simt" else (cost_tile, 0.13)
    with patch.object(module, "resident", wraps=module.resident) as asked:
        estimated = kernel.costs(shape)
        known = kernel.costs(shape, registers=registers)
    (_, found, *_), (_, given, *_) = (call.args for call in asked.call_args_list)
    assert given == registers
    assert found == pytest.approx(registers, rel=tolerance)
    assert abs(estimated.resident_blocks - known.resident_blocks) <= 1


@pytest.mark.parametrize(
    "case", [("paper_box3d27p", "simt", "f16"), ("heat3d_ftcs", "dense", "f64")]
)
def test_costs_take_milliseconds(case):
    kernel, seconds = built(*case), []
    for _ in range(5):
        started = time.perf_counter()
        kernel.costs((512, 512, 512))
        seconds.append(time.perf_counter() - started)
    assert min(seconds) < 0.01


def test_costs_need_no_compiler():
    code = (
        "import sys, twofour.cost.tile, twofour.cost.simt;"
        "print(*{name.partition('.')[0] for name in sys.modules})"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert not {"mlir", "torch_mlir", "llvmlite", "xdsl"} & set(done.stdout.split())
