# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Rates of the GPUs that the model knows; docs/guide/cost_model.md has the source of each number.

What fits on a multiprocessor (warps, registers, shared memory) is in twofour.sim.chips, by
architecture.
"""

from collections.abc import Mapping
from dataclasses import dataclass

from twofour.errors import TwofourError


@dataclass(frozen=True)
class GpuModel:
    """What one GPU can do at its boost clock.

    Rates of the whole chip: `dram_bytes_per_s`, published, of which a device copy reaches
    `copy_fraction`; `l2_bytes_per_clock`. Rates of one multiprocessor, each a clock:
    `l1_bytes_per_clock`, the first-level cache and shared memory together; `issue_per_clock`, warp
    instructions; `fma_per_clock`, fused multiply-adds of scalars by type; `mma_macs_per_clock`,
    multiply-adds of dense matrix instructions by operand, sparse ones counting the zeros as well at
    twice the rate. `mma_sync_fraction` is the part of that rate that mma.sync reaches, and
    `mma_sp_sync_fraction` that of mma.sp.sync. `l2_bytes` is the size of the second-level cache,
    `dram_latency_s` the time from a load to its data in an idle memory, `launch_seconds` what a
    launch costs beside its work.
    """

    name: str
    architecture: str
    multiprocessors: int
    clock_hz: float
    dram_bytes_per_s: float
    copy_fraction: float
    dram_latency_s: float
    l2_bytes: int
    l2_bytes_per_clock: float
    mma_macs_per_clock: Mapping[str, int]
    fma_per_clock: Mapping[str, int]
    mma_sync_fraction: float = 1.0
    mma_sp_sync_fraction: float = 1.0
    l1_bytes_per_clock: int = 128
    issue_per_clock: int = 4
    launch_seconds: float = 2e-6


def _hopper(
    name: str, dram_bytes_per_s: float, copy_fraction: float, l2_bytes: int = 50 << 20
) -> GpuModel:
    """H100 and H200 differ in their memory only."""
    return GpuModel(
        name=name,
        architecture="sm_90",
        multiprocessors=132,
        clock_hz=1.98e9,
        dram_bytes_per_s=dram_bytes_per_s,
        copy_fraction=copy_fraction,
        dram_latency_s=337e-9,
        l2_bytes=l2_bytes,
        l2_bytes_per_clock=4472,
        mma_macs_per_clock={"f16": 1893, "bf16": 1893, "tf32": 946, "f64": 128},
        fma_per_clock={"f16": 256, "f32": 128, "f64": 64},
        mma_sync_fraction=0.65,
        mma_sp_sync_fraction=0.45,
    )


GPUS = {
    gpu.name: gpu
    for gpu in (
        GpuModel(
            name="A100",
            architecture="sm_80",
            multiprocessors=108,
            clock_hz=1.41e9,
            dram_bytes_per_s=1555e9,
            copy_fraction=0.88,
            dram_latency_s=330e-9,
            l2_bytes=40 << 20,
            l2_bytes_per_clock=5120,
            mma_macs_per_clock={"f16": 1024, "bf16": 1024, "tf32": 512, "f64": 64},
            fma_per_clock={"f16": 256, "f32": 64, "f64": 32},
        ),
        _hopper("H100", 3350e9, 0.86),
        _hopper("H200", 4800e9, 0.87, 60 << 20),
        GpuModel(
            name="RTX4090",
            architecture="sm_89",
            multiprocessors=128,
            clock_hz=2.52e9,
            dram_bytes_per_s=1008e9,
            copy_fraction=0.91,
            dram_latency_s=250e-9,
            l2_bytes=72 << 20,
            l2_bytes_per_clock=1536,
            mma_macs_per_clock={"f16": 256, "bf16": 256, "tf32": 128, "f64": 2},
            fma_per_clock={"f16": 128, "f32": 128, "f64": 2},
        ),
    )
}


def find(name: str) -> GpuModel:
    """The GPU of a name such as H200; case does not matter. Raises TwofourError for others."""
    gpu = GPUS.get(name.upper())
    if gpu is None:
        raise TwofourError(f"expected a chip of {', '.join(GPUS)}, got {name!r}")
    return gpu
