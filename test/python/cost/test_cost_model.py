# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Predictions against numbers worked out by hand, on a chip of round numbers, and the chips."""

import subprocess
import sys
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from twofour.cost import GPUS, Costs, GpuModel, Mma, find, predict
from twofour.cost.model import (
    MOST_BLOCKS,
    NEAR_COPY,
    OVERLAP,
    OVERLAP_BLOCK,
    OVERLAP_MMA,
    OVERLAP_POINTS,
    OVERLAP_REGISTERS,
    OVERLAP_TILES,
    OVERLAP_WARP,
    SPREAD_BYTES,
    SPREAD_LOSS,
    dram_bytes,
)
from twofour.errors import TwofourError
from twofour.sim import chips

# Peaks of the chip: 1e12 bytes/s of DRAM and of the second level, 10e9 wavefronts/s, 40e9
# instructions/s, 10e12 multiply-adds/s of matrices and 1e12 (f32) or 0.1e12 (f64) of scalars.
CHIP = GpuModel(
    name="round",
    architecture="sm_90",
    multiprocessors=10,
    clock_hz=1e9,
    dram_bytes_per_s=1e12,
    copy_fraction=0.8,
    dram_latency_s=500e-9,
    l2_bytes=1 << 20,
    l2_bytes_per_clock=1000,
    mma_macs_per_clock={"f16": 1000, "f64": 100},
    fma_per_clock={"f32": 100, "f64": 10},
    mma_sync_fraction=0.5,
    mma_sp_sync_fraction=0.25,
    launch_seconds=0.0,
)
# A march that copies 2-byte points, and does next to nothing else, in one wave of 10 x 10 blocks.
COPY = Costs(
    instructions=1e-3,
    l1_wavefronts=1e-3,
    l2_bytes=1e-3,
    dram_bytes=4.0,
    store_bytes=2.0,
    bytes_in_flight=1e6,
    resident_warps=20,
    resident_blocks=10,
    blocks=100,
    span_bytes=1e-3,
)
POINTS = 1_000_000
DENSE = Mma("f16", False, 16, 8, 16)
SPARSE = Mma("f16", True, 16, 8, 32)


def together(*times, warps=20, mma=False):
    """The time of resources that take `times` alone, in marches of many resident blocks."""
    power = (OVERLAP_MMA if mma else OVERLAP) + OVERLAP_WARP * warps + MOST_BLOCKS * OVERLAP_BLOCK
    return sum(time**power for time in times) ** (1 / power)


@pytest.mark.parametrize(
    ("change", "limit", "gstencil_per_s", "busy"),
    [
        # 0.8e12 / 4
        ({}, "dram", 200.0, 0.8),
        # 0.8e12 / 5
        ({"dram_bytes": 5.0}, "dram", 160.0, 0.8),
        # 1e12 / 100
        ({"l2_bytes": 100.0}, "l2", 10.0, 1.0),
        # 10e9 / 1
        ({"l1_wavefronts": 1.0}, "l1", 10.0, 1.0),
        # 40e9 / 4
        ({"instructions": 4.0}, "issue", 10.0, 1.0),
        # 0.5 x 10e12 / (0.5 x 2048)
        ({"mma": {DENSE: 0.5}}, "mma", 4.8828125, 0.5),
        # Twice the multiply-adds at twice the rate, of which half as much is reached.
        ({"mma": {SPARSE: 0.5}}, "mma", 4.8828125 / 2, 0.25),
        # The same and, for f64, 8 x 8 x 4 at a tenth of the rate: 1024 + 10 x 256
        ({"mma": {SPARSE: 0.5, Mma("f64", False, 8, 8, 4): 1.0}}, "mma", 2500 / 3584, 0.25),
        # 1e12 / (60 + 10 x 4)
        ({"fma": {"f32": 60.0, "f64": 4.0}}, "fma", 10.0, 1.0),
        # 10 x 20 warps x 100 bytes / 500 ns / 4
        ({"bytes_in_flight": 100.0}, "latency", 10.0, 1.0),
        ({"bytes_in_flight": 100.0, "resident_warps": 10}, "latency", 5.0, 1.0),
    ],
)
def test_what_limits_a_launch(change, limit, gstencil_per_s, busy):
    prediction = predict(CHIP, replace(COPY, **change), POINTS)
    assert prediction.limited_by == limit
    assert prediction.gstencil_per_s == pytest.approx(gstencil_per_s)
    assert prediction.seconds_per_point == pytest.approx(1e-9 / gstencil_per_s)
    assert prediction.fraction_of_copy == pytest.approx(gstencil_per_s / 200)
    assert prediction.busy[limit] == pytest.approx(busy)
    assert max(prediction.busy.values()) <= 1 + 1e-12


@pytest.mark.parametrize(
    ("budget", "limit", "part"),
    [
        # What a point may cost at 200e9 points/s, with the resource busy to 70 %.
        ({"instructions": 0.14}, "issue", 0.7),
        ({"l1_wavefronts": 0.035}, "l1", 0.7),
        ({"l2_bytes": 3.5}, "l2", 0.7),
        ({"fma": {"f32": 3.5}}, "fma", 0.7),
        # Half of its peak is all that matrix instructions reach.
        ({"mma": {DENSE: 25 / 2048}}, "mma", 1.0),
    ],
)
def test_the_copy_bound_needs_all_else_far_below_70_percent(budget, limit, part):
    def scaled(factor):
        ((name, value),) = budget.items()
        if isinstance(value, dict):
            value = {kind: factor * count for kind, count in value.items()}
        else:
            value = factor * value
        return predict(CHIP, replace(COPY, **{name: value}), POINTS)

    mma = limit == "mma"
    free = scaled(0.1)
    assert free.limited_by == "dram" and free.fraction_of_copy == pytest.approx(1, abs=1e-3)
    within = scaled(0.99)
    slower = together(1, 0.99 * part, mma=mma)
    assert within.limited_by == "dram"
    assert within.fraction_of_copy == pytest.approx(1 / slower, rel=1e-5) and slower > 1.01
    if not mma:
        # Busier than 70 %, although both together allowed more.
        assert together(1, 1.2 * part) < 1 / NEAR_COPY
        assert scaled(1.2).fraction_of_copy == pytest.approx(NEAR_COPY)
    beyond = scaled(1.5)
    slower = together(1, 1.5 * part, mma=mma)
    assert slower > 1 / NEAR_COPY
    assert beyond.limited_by == limit
    assert beyond.fraction_of_copy == pytest.approx(1 / slower, rel=1e-5)


@pytest.mark.parametrize("mma, least", [({}, OVERLAP_POINTS), ({DENSE: 1e-9}, OVERLAP_TILES)])
def test_what_does_not_march_does_less_side_by_side(mma, least):
    costs = replace(COPY, l2_bytes=2.5, l1_wavefronts=0, instructions=0, span_bytes=0.0, mma=mma)
    power = least + OVERLAP_WARP * 20
    expected = 1 / (1 + 0.5**power) ** (1 / power)
    assert predict(CHIP, costs, POINTS).fraction_of_copy == pytest.approx(expected, rel=1e-3)


def test_what_reads_to_registers_does_less_side_by_side():
    costs = replace(COPY, l2_bytes=3.5, instructions=0, l1_wavefronts=0, reads_to_registers=True)
    power = OVERLAP + OVERLAP_REGISTERS + OVERLAP_WARP * 20
    expected = 1 / (1 + 0.7**power) ** (1 / power)
    found = predict(CHIP, costs, POINTS).fraction_of_copy
    assert found == pytest.approx(expected, rel=1e-5)
    assert found < predict(CHIP, replace(costs, reads_to_registers=False), POINTS).fraction_of_copy
    # Blocks that share nothing do not count, and of others five.
    for blocks, registers in ((9, True), (5, False), (7, False)):
        other = replace(costs, resident_blocks=blocks, blocks=10 * blocks)
        other = replace(other, reads_to_registers=registers)
        same = replace(other, resident_blocks=10, blocks=100)
        fractions = [
            predict(CHIP, one, 10_000 * one.blocks).fraction_of_copy for one in (other, same)
        ]
        assert fractions[0] == pytest.approx(fractions[1], rel=1e-3)
    fewer = replace(costs, resident_blocks=4, blocks=40, reads_to_registers=False)
    power = OVERLAP + 4 * OVERLAP_BLOCK + OVERLAP_WARP * 20
    expected = 1 / (1 + 0.7**power) ** (1 / power)
    assert predict(CHIP, fewer, 400_000).fraction_of_copy == pytest.approx(expected, rel=1e-3)


def test_more_warps_do_more_side_by_side():
    found = [
        predict(CHIP, replace(COPY, l2_bytes=3.5, resident_warps=warps), POINTS).fraction_of_copy
        for warps in (10, 20, 40)
    ]
    assert found == sorted(found)
    expected = [1 / together(1, 0.7, warps=warps) for warps in (10, 20, 40)]
    assert found == pytest.approx(expected, rel=1e-5)


def test_the_copy_bound_needs_enough_bytes_in_flight():
    # Little's law: 0.8e12 bytes/s x 500 ns = 400 000 bytes, 2000 for each of 200 warps.
    enough = predict(CHIP, replace(COPY, bytes_in_flight=20000.0), POINTS)
    assert enough.limited_by == "dram" and enough.fraction_of_copy == pytest.approx(1, abs=1e-4)
    assert enough.busy["latency"] == pytest.approx(0.1, rel=1e-4)
    just = predict(CHIP, replace(COPY, bytes_in_flight=2020.0), POINTS)
    assert just.limited_by == "dram"
    assert just.fraction_of_copy == pytest.approx(1 / together(1, 2000 / 2020))
    fewer = predict(CHIP, replace(COPY, bytes_in_flight=1000.0), POINTS)
    assert fewer.limited_by == "latency"
    assert fewer.fraction_of_copy == pytest.approx(1 / together(1, 2))


def test_fused_steps_count_as_true_steps():
    prediction = predict(CHIP, replace(COPY, steps=3), POINTS)
    assert prediction.gstencil_per_s == pytest.approx(600)
    assert prediction.seconds_per_point == pytest.approx(1e-9 / 600)
    assert prediction.fraction_of_copy == pytest.approx(3)
    assert prediction.busy["dram"] == pytest.approx(0.8)


def test_a_launch_costs_time():
    # The points take 5 us.
    prediction = predict(replace(CHIP, launch_seconds=15e-6), COPY, POINTS)
    assert prediction.gstencil_per_s == pytest.approx(50)
    assert prediction.limited_by == "launch"
    assert prediction.busy["launch"] == pytest.approx(0.75)
    assert prediction.busy["dram"] == pytest.approx(0.2)
    assert predict(replace(CHIP, launch_seconds=4e-6), COPY, POINTS).limited_by == "dram"


@pytest.mark.parametrize(
    ("change", "microseconds"),
    [
        # Blocks of 10 000 points wait 10 000 x 4 bytes / 200 bytes x 500 ns = 100 us.
        ({"bytes_in_flight": 100.0, "blocks": 100}, 100),
        ({"bytes_in_flight": 100.0, "blocks": 101}, 200),
        ({"bytes_in_flight": 100.0, "blocks": 150}, 200),
        ({"bytes_in_flight": 100.0, "blocks": 200}, 200),
        ({"bytes_in_flight": 100.0, "blocks": 1}, 100),
        # They wait 4 us; DRAM takes 5 us for a wave and 2.5 us for half a wave.
        ({"bytes_in_flight": 2500.0, "blocks": 150}, together(5, 4) + together(2.5, 4)),
        ({"bytes_in_flight": 2500.0, "blocks": 350}, 3 * together(5, 4) + together(2.5, 4)),
        # DRAM and the second level serve any number of blocks at their whole rate.
        ({"blocks": 150}, 7.5),
        ({"blocks": 5}, 0.25),
        ({"l2_bytes": 100.0, "blocks": 5}, 5),
        # A multiprocessor takes 10 000 x 4 / 4 ns = 10 us for a block.
        ({"instructions": 4.0, "blocks": 100}, 100),
        ({"instructions": 4.0, "blocks": 5}, 10),
        ({"instructions": 4.0, "blocks": 10}, 10),
        ({"instructions": 4.0, "blocks": 11}, 20),
        ({"instructions": 4.0, "blocks": 121}, 130),
    ],
)
def test_waves_that_are_not_full(change, microseconds):
    costs = replace(COPY, **change)
    points = 10_000 * costs.blocks
    seconds = predict(CHIP, costs, points).seconds_per_point * points
    assert seconds == pytest.approx(microseconds * 1e-6)


def test_waves_that_are_not_full_leave_bytes_in_flight_unused():
    costs = replace(COPY, bytes_in_flight=100.0, blocks=150)
    prediction = predict(CHIP, costs, 1_500_000)
    assert prediction.limited_by == "latency"
    assert prediction.busy["latency"] == pytest.approx(0.75)


def amounts(most):
    return st.floats(1e-3, most)


@st.composite
def any_costs(draw):
    resident = draw(st.integers(1, 32))
    return Costs(
        instructions=draw(amounts(2)),
        l1_wavefronts=draw(amounts(1)),
        l2_bytes=draw(amounts(40)),
        dram_bytes=draw(amounts(20)),
        store_bytes=draw(st.sampled_from([2.0, 4.0, 8.0])),
        bytes_in_flight=draw(st.floats(16, 8192)),
        resident_warps=resident * draw(st.integers(1, 8)),
        resident_blocks=resident,
        blocks=draw(st.integers(1, 20_000)),
        steps=draw(st.integers(1, 4)),
        halo_bytes=draw(amounts(4)),
        span_bytes=draw(amounts(1e7)),
        mma={SPARSE: draw(amounts(0.2))},
        fma={"f32": draw(amounts(60)), "f64": draw(amounts(10))},
    )


AMOUNTS = ["instructions", "l1_wavefronts", "l2_bytes", "dram_bytes", "mma", "fma"]
AMOUNTS += ["halo_bytes", "span_bytes"]


@given(st.sampled_from(list(GPUS.values())), any_costs(), st.data())
def test_more_of_a_cost_is_never_faster(gpu, costs, data):
    points = data.draw(st.integers(1, 1 << 30))
    name = data.draw(st.sampled_from([*AMOUNTS, "bytes_in_flight", "resident_warps"]))
    factor = data.draw(st.floats(1, 8))
    value = getattr(costs, name)
    if isinstance(value, dict):
        worse = {kind: factor * count for kind, count in value.items()}
    elif name in AMOUNTS:
        worse = factor * value
    elif name == "resident_warps":
        worse = data.draw(st.integers(1, value))
    else:
        worse = value / factor
    before = predict(gpu, costs, points)
    after = predict(gpu, replace(costs, **{name: worse}), points)
    assert after.seconds_per_point >= before.seconds_per_point * (1 - 1e-12)
    assert after.fraction_of_copy <= before.fraction_of_copy * (1 + 1e-12)


@given(st.sampled_from(list(GPUS.values())), any_costs(), st.integers(1, 1 << 30))
def test_no_resource_is_busier_than_it_may_be(gpu, costs, points):
    prediction = predict(gpu, costs, points)
    limits = dict.fromkeys(["l2", "l1", "fma", "issue"], 1.0)
    if prediction.busy["dram"] > NEAR_COPY * gpu.copy_fraction:
        limits = dict.fromkeys(limits, 0.7)
    limits |= {"dram": gpu.copy_fraction, "mma": min(0.7, gpu.mma_sp_sync_fraction)}
    limits |= {"latency": 1.0, "launch": 1.0}
    assert prediction.busy.keys() == limits.keys()
    for resource, limit in limits.items():
        assert 0 <= prediction.busy[resource] <= limit * (1 + 1e-12)
    assert prediction.limited_by in limits
    # A launch takes its DRAM traffic at the rate of a copy, or longer; a copy is a launch too.
    copies = costs.steps * max(1, 2 * costs.store_bytes / costs.dram_bytes)
    assert prediction.fraction_of_copy <= copies * (1 + 1e-12)


def test_places_far_apart_and_halos_that_are_not_kept_take_time():
    points = 100_000_000
    copy = predict(CHIP, COPY, points).gstencil_per_s
    # 10 x 1.6e6 bytes: once the bytes from which on it counts.
    spread = replace(COPY, span_bytes=SPREAD_BYTES / 10)
    assert predict(CHIP, spread, points).gstencil_per_s == pytest.approx(copy * (1 - SPREAD_LOSS))
    # The cache holds 2^20 of 2 x 2^21 bytes that are read and written between two reads.
    marching = replace(COPY, span_bytes=2**21 / 10, halo_bytes=1.0)
    assert dram_bytes(CHIP, marching, points) == pytest.approx(4 + 0.75)
    assert dram_bytes(CHIP, replace(marching, span_bytes=2**19 / 10), points) == 4
    # No more than the whole array.
    assert dram_bytes(CHIP, marching, 2**20) == pytest.approx(4 + 0.75)
    assert dram_bytes(CHIP, marching, 2**18) == 4


@pytest.mark.parametrize(
    ("name", "copies"), [("A100", 389), ("H100", 838), ("H200", 1200), ("RTX4090", 252)]
)
def test_peak_bandwidth_in_points_of_f16(name, copies):
    gpu = replace(find(name), copy_fraction=1.0, launch_seconds=0.0)
    costs = replace(COPY, blocks=10 * gpu.multiprocessors)
    prediction = predict(gpu, costs, 1 << 28)
    assert prediction.limited_by == "dram"
    assert prediction.gstencil_per_s == pytest.approx(copies, rel=2e-3)


# As published, dense, with f32 sums.
PUBLISHED_TFLOPS = [
    ("A100", "mma", {"f16": 312, "bf16": 312, "tf32": 156, "f64": 19.5}),
    ("A100", "fma", {"f16": 78, "f32": 19.5, "f64": 9.7}),
    ("H100", "mma", {"f16": 989.4, "bf16": 989.4, "tf32": 494.7, "f64": 66.9}),
    ("H100", "fma", {"f16": 133.8, "f32": 66.9, "f64": 33.5}),
    ("H200", "mma", {"f16": 989.5, "bf16": 989.5, "tf32": 494.5, "f64": 67}),
    ("H200", "fma", {"f32": 67}),
    ("RTX4090", "mma", {"f16": 165.2, "bf16": 165.2, "tf32": 82.6}),
    ("RTX4090", "fma", {"f16": 82.6, "f32": 82.6, "f64": 1.29}),
]


@pytest.mark.parametrize(("name", "unit", "published"), PUBLISHED_TFLOPS)
def test_rates_give_the_published_tflops(name, unit, published):
    gpu = GPUS[name]
    rates = {"mma": gpu.mma_macs_per_clock, "fma": gpu.fma_per_clock}[unit]
    clocks = gpu.multiprocessors * gpu.clock_hz
    got = {kind: 2e-12 * clocks * rates[kind] for kind in published}
    assert got == pytest.approx(published, rel=5e-3)


def test_finding_a_chip():
    assert find("H200") is find("h200") is GPUS["H200"]
    with pytest.raises(TwofourError) as raised:
        find("V100")
    assert raised.value.message == "expected a chip of A100, H100, H200, RTX4090, got 'V100'"
    for gpu in GPUS.values():
        assert chips.find(gpu.architecture).name == gpu.architecture


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"mma": {Mma("s8", False, 16, 8, 32): 1}}, "expected a type of f16, f64, got 's8'"),
        ({"fma": {"f16": 1}}, "expected a type of f32, f64, got 'f16'"),
    ],
)
def test_types_without_a_rate(change, message):
    with pytest.raises(TwofourError) as raised:
        predict(CHIP, replace(COPY, **change), POINTS)
    assert raised.value.message == message


def test_the_model_needs_no_compiler():
    code = "import sys, twofour.cost; print(*{name.partition('.')[0] for name in sys.modules})"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert not {"mlir", "torch_mlir", "llvmlite", "xdsl"} & set(done.stdout.split())
