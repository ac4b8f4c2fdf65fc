# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The vector registers of a processor."""

import platform
from dataclasses import dataclass
from functools import cache
from typing import Literal


@dataclass(frozen=True)
class VectorUnit:
    """Vector registers: bytes of one, and how many there are."""

    bytes: int
    registers: int


Machine = Literal["avx512", "avx2", "sse", "neon", "host"]

_UNITS = {
    "avx512": VectorUnit(64, 32),
    "avx2": VectorUnit(32, 16),
    "sse": VectorUnit(16, 16),
    "neon": VectorUnit(16, 32),
}


def vector_unit(machine: Machine) -> VectorUnit:
    """The vector registers of a kind of processor, or of this one."""
    return _UNITS[_host() if machine == "host" else machine]


@cache
def _host() -> str:
    """What this processor has; short vectors where the system does not tell."""
    if platform.machine().lower() in ("aarch64", "arm64"):
        return "neon"
    try:
        with open("/proc/cpuinfo", encoding="ascii", errors="replace") as lines:
            flags = next((line for line in lines if line.startswith("flags")), "").split()
    except OSError:
        flags = []
    if "avx512f" in flags:
        return "avx512"
    return "avx2" if "avx2" in flags and "fma" in flags else "sse"
