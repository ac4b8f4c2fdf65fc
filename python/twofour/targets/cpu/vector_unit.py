# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The vector registers of a processor."""

import platform
from dataclasses import dataclass
from functools import cache
from itertools import takewhile
from typing import Literal


@dataclass(frozen=True)
class VectorUnit:
    """Vector registers: bytes of one, and how many there are.

    With `halved` the core works on half a register at a time, and half as long ones may be faster.
    With `adds_beside` it starts as many additions as multiply-adds, both at once. Arrays of up to
    `nontemporal_axes` axes that do not fit the caches are better stored past them.
    """

    bytes: int
    registers: int
    halved: bool = False
    adds_beside: bool = False
    nontemporal_axes: int = 3


Machine = Literal["avx512", "znver4", "avx2", "sse", "neon", "host"]

_UNITS = {
    "avx512": VectorUnit(64, 32),
    "znver4": VectorUnit(64, 32, halved=True, adds_beside=True, nontemporal_axes=2),
    "avx2": VectorUnit(32, 16),
    "sse": VectorUnit(16, 16),
    "neon": VectorUnit(16, 32),
}


def vector_unit(machine: Machine) -> VectorUnit:
    """The vector registers of a kind of processor, or of this one."""
    return _UNITS[_host() if machine == "host" else machine]


CPUINFO = "/proc/cpuinfo"
ZEN_3_AND_4 = "25"  # of AMD's families; the former has no AVX-512


@cache
def _host() -> str:
    """What this processor has; short vectors where the system does not tell."""
    if platform.machine().lower() in ("aarch64", "arm64"):
        return "neon"
    try:
        with open(CPUINFO, encoding="ascii", errors="replace") as lines:
            pairs = (line.partition(":")[::2] for line in lines)
            # Of the first processor; an empty line ends it.
            first = dict(takewhile(any, ((key.strip(), value.strip()) for key, value in pairs)))
    except OSError:
        first = {}
    flags = first.get("flags", "").split()
    if "avx512f" in flags:
        return "znver4" if first.get("cpu family") == ZEN_3_AND_4 else "avx512"
    return "avx2" if "avx2" in flags and "fma" in flags else "sse"
