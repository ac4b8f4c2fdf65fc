# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The vector registers of a processor."""

import platform
from dataclasses import dataclass
from typing import Literal

from twofour.codegen.cpu.core import GOLDEN_COVE, ZEN_3, ZEN_4, Core
from twofour.runtime.processor import cpuinfo, has_flags, is_intel


@dataclass(frozen=True)
class VectorUnit:
    """Vector registers: bytes of one, and how many there are.

    With `halved` the core works on half a register at a time, and half as long ones may be faster.
    With `adds_beside` it starts as many additions as multiply-adds, both at once. Arrays of up to
    `nontemporal_axes` axes that do not fit the caches are better stored past them. `core` is what
    it belongs to.
    """

    bytes: int
    registers: int
    halved: bool = False
    adds_beside: bool = False
    nontemporal_axes: int = 3
    core: Core = ZEN_3


Machine = Literal["avx512", "sapphirerapids", "znver4", "avx2", "sse", "neon", "host"]

_UNITS = {
    "avx512": VectorUnit(64, 32),
    "sapphirerapids": VectorUnit(64, 32, nontemporal_axes=2, core=GOLDEN_COVE),
    "znver4": VectorUnit(64, 32, halved=True, adds_beside=True, nontemporal_axes=2, core=ZEN_4),
    "avx2": VectorUnit(32, 16),
    "sse": VectorUnit(16, 16),
    "neon": VectorUnit(16, 32),
}


def vector_unit(machine: Machine) -> VectorUnit:
    """The vector registers of a kind of processor, or of this one."""
    return _UNITS[_host() if machine == "host" else machine]


ZEN_3_AND_4 = "25"  # of AMD's families; the former has no AVX-512


def _host() -> str:
    """What this processor has; short vectors where the system does not tell."""
    if platform.machine().lower() in ("aarch64", "arm64"):
        return "neon"
    if has_flags("avx512f"):
        if cpuinfo().get("cpu family") == ZEN_3_AND_4:
            return "znver4"
        return "sapphirerapids" if is_intel() else "avx512"
    return "avx2" if has_flags("avx2", "fma") else "sse"
