# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The processor of this machine, as the system describes it, and its caches."""

import glob
from dataclasses import dataclass
from functools import cache
from itertools import takewhile
from pathlib import Path

# Of Linux; the C library's sysconf knows no caches on some virtual machines.
CPUINFO = "/proc/cpuinfo"
CACHE_FOLDERS = "/sys/devices/system/cpu/cpu0/cache/index*"
# More of the last-level cache than any core has to itself: a virtual machine of few processors is
# told the size of the whole one, which others fill.
MOST_OF_A_CORE = 32 << 20
# Part of the last-level cache that others leave, and how many times as much as is believed of a
# larger one still makes a difference.
LARGE_SHARE, STILL_FOUND = 0.4, 3
# Bytes a cycle between a core and its last-level cache. Cores of Intel with AVX-512 reach slices of
# it over a mesh (12 measured); cores of AMD share one with few others.
NEAR_LAST, OVER_MESH = 30, 12


@dataclass(frozen=True)
class Caches:
    """Bytes of a core's second-level cache and of the last-level cache.

    `last_rate`: bytes a cycle that go between the latter and a core. Of what is larger than `last`
    a part may be found there as long as it is not larger than `most` (0: than `last`).
    """

    second: int
    last: int
    last_rate: float = NEAR_LAST
    most: int = 0

    def missed(self, size: int) -> float:
        """The part of so many bytes that comes from memory, where they are used again and again."""
        least = LARGE_SHARE * self.last
        most = max(self.most, self.last)
        return min(1, max(0, (size - least) / (most - least)))


USUAL_CACHES = Caches(1 << 19, 1 << 24)


@cache
def cpuinfo() -> dict[str, str]:
    """What Linux says of the first processor, empty where there is no such file."""
    try:
        with open(CPUINFO, encoding="utf-8", errors="replace") as lines:
            pairs = (line.partition(":")[::2] for line in lines)
            # An empty line ends it.
            return dict(takewhile(any, ((key.strip(), value.strip()) for key, value in pairs)))
    except OSError:
        return {}


def has_flags(*names: str) -> bool:
    """Whether the first processor has all these extensions of its instruction set."""
    return {*names} <= {*cpuinfo().get("flags", "").split()}


def is_intel() -> bool:
    """Whether Intel made the processor."""
    return cpuinfo().get("vendor_id") == "GenuineIntel"


@cache
def caches() -> Caches:
    """The caches of this machine, or usual ones where the system does not tell."""
    sizes = {2: USUAL_CACHES.second, 3: USUAL_CACHES.last}
    told = 0
    for folder in glob.glob(CACHE_FOLDERS):
        try:
            level, size, kind, sharing = (
                Path(folder, name).read_text("utf-8").strip()
                for name in ("level", "size", "type", "shared_cpu_list")
            )
        except OSError:
            continue
        if kind != "Instruction" and size.endswith("K") and size[:-1].isdigit():
            told = max(told, int(size[:-1]) << 10)
            sizes[int(level)] = min(int(size[:-1]) << 10, MOST_OF_A_CORE * _count(sharing))
    rate = OVER_MESH if is_intel() and has_flags("avx512f") else NEAR_LAST
    last = max(sizes.values())
    return Caches(sizes[2], last, rate, min(told, STILL_FOUND * last))


def _count(listed: str) -> int:
    """How many processors a list of Linux such as 0-3,8 names, one where it names none."""
    ends = [part.split("-") for part in listed.split(",") if part]
    return max(1, sum(int(part[-1]) - int(part[0]) + 1 for part in ends))
