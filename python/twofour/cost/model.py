# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The time of a launch from its costs.

SparStencil's model (section 3.3, equations 6 to 8) takes the longer of T_compute, from the number
of matrix instructions, and T_memory, the longer of global and shared memory. Here there are more
resources: DRAM, the second-level cache, wavefronts of the first level and shared memory, matrix
instructions, scalar arithmetic, instruction issue, and the latency of DRAM by Little's law. They
work side by side, the better the more warps there are: a launch takes less than the sum of their
times, and more than the longest. What comes near the rate of a copy leaves all else at most
BUSY_LIMIT of its peak. Times are those of waves, so that a last wave that is not full costs more
than its share. DRAM is slower the farther apart the places are that a launch reads and writes at a
time.
"""

from collections.abc import Collection, Mapping
from dataclasses import dataclass
from math import ceil, log2

from twofour.cost.chips import GpuModel
from twofour.cost.costs import Costs
from twofour.errors import TwofourError

# Of a published peak: of matrix instructions where nothing was measured, and of all that is LIMITED
# at more than so much of the rate of a copy.
BUSY_LIMIT, NEAR_COPY = 0.7, 0.9
LIMITED = ("l2", "l1", "mma", "fma", "issue")
# Times of resources are added as their p-norm. For plain threads that march p is at least OVERLAP,
# with matrix instructions OVERLAP_MMA, since what follows these waits for them; for a thread with a
# few points of its own OVERLAP_POINTS, for blocks that wait for tiles in shared memory
# OVERLAP_TILES. It grows by OVERLAP_WARP with every warp of a multiprocessor. Warps of a block that
# share a ring wait for each other: it grows by OVERLAP_BLOCK with each of up to MOST_BLOCKS blocks.
# Warps that wait for what they read to registers add OVERLAP_REGISTERS instead. All of this was
# fitted to 1121 layouts on H200s, those near the fastest of their kernel first, but OVERLAP_POINTS
# to threads of one vector, of 123 kernels and types, and OVERLAP_TILES to the 16 tiles of table 2.
OVERLAP, OVERLAP_MMA, OVERLAP_POINTS, OVERLAP_TILES = 2.45, 1.4, 1.5, 1.3
OVERLAP_WARP, OVERLAP_BLOCK, MOST_BLOCKS, OVERLAP_REGISTERS = 0.041, 0.29, 5, 0.56
WAVEFRONT_BYTES = 128
# Marches are slower by so much for every doubling of what they work on at a time, from about so
# many bytes on: fitted to copies on an H200, 1 to 512 rows a march, and to its kernels.
SPREAD_LOSS, SPREAD_BYTES = 0.028, 16e6
# Shared by all multiprocessors: idle ones leave their part to the others.
SHARED_BY_ALL = ("dram", "l2")


@dataclass(frozen=True)
class Prediction:
    """How fast a launch will be: predicted, never measured.

    `seconds_per_point` and `gstencil_per_s` (1e9 points a second) count true time steps.
    `fraction_of_copy` is the rate over that of a copy of the output, a launch that is limited by
    DRAM alone; fused steps may exceed 1. `limited_by` is what takes most of the time: "dram",
    "l2", "l1", "mma", "fma", "issue", "latency" or "launch". `busy` holds for each of them the part
    in use at the predicted rate: of the published peak, for "latency" of the bytes in flight that
    the resident warps offer, for "launch" of the time.
    """

    seconds_per_point: float
    gstencil_per_s: float
    fraction_of_copy: float
    limited_by: str
    busy: Mapping[str, float]


def predict(gpu: GpuModel, costs: Costs, points: int) -> Prediction:
    """The time of a launch whose output has `points` points.

    Raises TwofourError for matrix instructions or types that the chip has no rate for.
    """
    at_peak = _seconds_at_peak(gpu, costs)
    reached = dict.fromkeys(at_peak, 1.0)
    spread = log2(1 + _span(gpu, costs, points) / SPREAD_BYTES)
    locality = max(0.5, 1 - SPREAD_LOSS * spread)
    reached["dram"] = gpu.copy_fraction * locality
    sparse = any(kind.sparse for kind in costs.mma)
    reached["mma"] = min(BUSY_LIMIT, gpu.mma_sp_sync_fraction if sparse else gpu.mma_sync_fraction)
    points_per_block = points / costs.blocks
    # Little's law: what a block reads and writes passes through the bytes that it keeps in flight.
    block_in_flight = costs.bytes_in_flight * costs.resident_warps / costs.resident_blocks
    moved = points_per_block * (costs.dram_bytes + costs.halo_bytes) / locality
    latency = moved / block_in_flight * gpu.dram_latency_s
    power = _power(costs)

    def wave(blocks: int) -> tuple[float, str]:
        """Seconds of a wave, and what they are limited by."""
        busiest = ceil(blocks / gpu.multiprocessors) * gpu.multiprocessors
        seconds = {
            resource: points_per_block
            * (blocks if resource in SHARED_BY_ALL else busiest)
            * needed
            / reached[resource]
            for resource, needed in at_peak.items()
        }
        seconds["latency"] = latency
        together = _overlapped(seconds.values(), power)
        near_copy = seconds["dram"] / NEAR_COPY
        for name in LIMITED:
            at_limit = seconds[name] * reached[name] / BUSY_LIMIT
            together = max(together, min(at_limit, near_copy))
        return together, max(seconds, key=seconds.__getitem__)

    whole_wave = costs.resident_blocks * gpu.multiprocessors
    waves, rest = divmod(costs.blocks, whole_wave)
    shares = {"launch": gpu.launch_seconds}
    for count, blocks in ((waves, whole_wave), (1, rest)):
        if count and blocks:
            seconds, resource = wave(blocks)
            shares[resource] = shares.get(resource, 0.0) + count * seconds
    total = sum(shares.values())

    busy = {resource: points * needed / total for resource, needed in at_peak.items()}
    busy["latency"] = costs.blocks / whole_wave * latency / total
    busy["launch"] = gpu.launch_seconds / total
    rate = points * costs.steps / total
    copied = 2 * costs.store_bytes * points
    copy = copied / (gpu.dram_bytes_per_s * gpu.copy_fraction) + gpu.launch_seconds
    return Prediction(
        seconds_per_point=1 / rate,
        gstencil_per_s=rate / 1e9,
        fraction_of_copy=rate * copy / points,
        limited_by=max(shares, key=shares.__getitem__),
        busy=busy,
    )


def _power(costs: Costs) -> float:
    """How well resources work side by side: the exponent of the p-norm of their times."""
    if costs.span_bytes:
        power = OVERLAP_MMA if costs.mma else OVERLAP
        if costs.reads_to_registers:
            power += OVERLAP_REGISTERS
        else:
            power += OVERLAP_BLOCK * min(costs.resident_blocks, MOST_BLOCKS)
    else:
        power = OVERLAP_TILES if costs.mma else OVERLAP_POINTS
    return power + OVERLAP_WARP * costs.resident_warps


def _overlapped(seconds: Collection[float], power: float) -> float:
    """The time of resources that work side by side: the p-norm of theirs."""
    longest = max(seconds)
    return longest * sum((each / longest) ** power for each in seconds) ** (1 / power)


def dram_bytes(gpu: GpuModel, costs: Costs, points: int) -> float:
    """Bytes of DRAM for every output point of a launch on so many.

    What marches at work read and write shares the second-level cache.
    """
    span = 2 * _span(gpu, costs, points)
    missed = max(0.0, 1 - gpu.l2_bytes / span) if span else 0.0
    return costs.dram_bytes + missed * costs.halo_bytes


def _span(gpu: GpuModel, costs: Costs, points: int) -> float:
    """Bytes of the inputs that all marches at work are for."""
    return min(costs.span_bytes * gpu.multiprocessors, points * costs.store_bytes)


def _seconds_at_peak(gpu: GpuModel, costs: Costs) -> dict[str, float]:
    """Seconds a point that each resource of the whole chip needs at its published peak."""
    clocks = gpu.clock_hz * gpu.multiprocessors
    mma_clocks = sum(
        count * kind.macs / _rate(gpu.mma_macs_per_clock, kind.operand) / (2 if kind.sparse else 1)
        for kind, count in costs.mma.items()
    )
    fma_clocks = sum(count / _rate(gpu.fma_per_clock, kind) for kind, count in costs.fma.items())
    return {
        # What the second level does not hold is read again: that shows in the loss by spread.
        "dram": costs.dram_bytes / gpu.dram_bytes_per_s,
        "l2": costs.l2_bytes / (gpu.l2_bytes_per_clock * gpu.clock_hz),
        "l1": costs.l1_wavefronts * WAVEFRONT_BYTES / gpu.l1_bytes_per_clock / clocks,
        "mma": mma_clocks / clocks,
        "fma": fma_clocks / clocks,
        "issue": costs.instructions / gpu.issue_per_clock / clocks,
    }


def _rate(rates: Mapping[str, int], kind: str) -> int:
    if kind not in rates:
        raise TwofourError(f"expected a type of {', '.join(rates)}, got {kind!r}")
    return rates[kind]
