# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""What a launch costs: instructions by class, memory sectors, shared-memory wavefronts.

Instructions count once for every warp that issues them, whichever of its lanes take part. A global
access needs every 32-byte sector that some lane of the warp touches; a shared access as many
wavefronts as the bank (of 32, each 4 bytes wide) with the most different words, 64-bit accesses
half a warp and 128-bit accesses a quarter of a warp at a time.
"""

from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import TypeVar

import numpy as np

SECTOR = 32

# (addresses [warps, 32], mask of the active lanes or None if all are): a number for every warp.
Count = Callable[[np.ndarray, np.ndarray | None], np.ndarray]


@dataclass
class GlobalAccesses:
    """Accesses of warps to global memory."""

    requests: int = 0
    sectors: int = 0

    @property
    def bytes(self) -> int:
        return SECTOR * self.sectors


@dataclass
class SharedAccesses:
    """Accesses of warps to shared memory; `ideal` wavefronts are those without bank conflicts."""

    requests: int = 0
    wavefronts: int = 0
    ideal: int = 0

    @property
    def conflicts(self) -> int:
        return self.wavefronts - self.ideal


@dataclass
class LineCounters:
    """The part of one line of the PTX."""

    executions: int = 0
    sectors: int = 0
    wavefronts: int = 0
    conflicts: int = 0


@dataclass
class Counters:
    """Totals of one launch, or of several added up.

    `classes`: warp instructions by class ("integer", "float", "convert", "move", "compare",
    "control", "barrier", "parameter", "global", "shared", "local", "constant", "atomic",
    "asynchronous", "matrix", "mma", "warp"); `mma`: those of the tensor cores by opcode; `lines`:
    by line of the PTX.
    """

    classes: Counter = field(default_factory=Counter)
    mma_kinds: Counter = field(default_factory=Counter)
    global_loads: GlobalAccesses = field(default_factory=GlobalAccesses)
    global_stores: GlobalAccesses = field(default_factory=GlobalAccesses)
    shared_loads: SharedAccesses = field(default_factory=SharedAccesses)
    shared_stores: SharedAccesses = field(default_factory=SharedAccesses)
    lines: dict[int, LineCounters] = field(default_factory=dict, repr=False)

    @property
    def instructions(self) -> int:
        return sum(self.classes.values())

    @property
    def mma(self) -> int:
        return sum(self.mma_kinds.values())

    @property
    def global_load_bytes(self) -> int:
        return self.global_loads.bytes

    @property
    def global_store_bytes(self) -> int:
        return self.global_stores.bytes

    @property
    def shared_wavefronts(self) -> int:
        return self.shared_loads.wavefronts + self.shared_stores.wavefronts

    @property
    def shared_conflicts(self) -> int:
        return self.shared_loads.conflicts + self.shared_stores.conflicts

    def line(self, number: int) -> LineCounters:
        return self.lines.setdefault(number, LineCounters())

    def __add__(self, other: "Counters") -> "Counters":
        total = Counters(self.classes + other.classes, self.mma_kinds + other.mma_kinds)
        for name in ("global_loads", "global_stores", "shared_loads", "shared_stores"):
            setattr(total, name, _sum(getattr(self, name), getattr(other, name)))
        for number in sorted(self.lines.keys() | other.lines.keys()):
            parts = (c.lines.get(number, LineCounters()) for c in (self, other))
            total.lines[number] = _sum(*parts)
        return total

    def as_dict(self) -> dict[str, int]:
        """The totals that `twofour explain --json` prints."""
        names = (
            *("instructions", "mma", "shared_wavefronts", "shared_conflicts"),
            *("global_load_bytes", "global_store_bytes"),
        )
        return {name: getattr(self, name) for name in names}


Part = TypeVar("Part", GlobalAccesses, SharedAccesses, LineCounters)


def _sum(a: Part, b: Part) -> Part:
    return type(a)(**{k: v + getattr(b, k) for k, v in vars(a).items()})


class AccessCounter:
    """Counts the accesses of one instruction.

    The lanes of most warps address memory in the same pattern again and again: its count is kept.
    """

    def __init__(self, count: Count):
        self._count = count
        self._pattern: np.ndarray | None = None
        self._result = 0

    def total(self, addresses: np.ndarray, active: np.ndarray | None, modulus: int) -> int:
        """Sum of counts over warps of int64 addresses [warps, 32], inactive lanes left out.

        The count of a warp does not change when all its addresses move by a multiple of `modulus`.
        """
        if active is not None:
            return int(self._count(addresses, active).sum())
        # From the lowest one, since an address below 0 is that of an inactive lane.
        relative = addresses - (addresses.min(axis=1, keepdims=True) & -modulus)
        if self._pattern is not None and (relative == self._pattern).all():
            return self._result * len(relative)
        first = relative[0]
        if (relative == first).all():
            self._pattern = first.copy()
            self._result = int(self._count(relative[:1], None)[0])
            return self._result * len(relative)
        return int(self._count(addresses, None).sum())


def sectors(addresses: np.ndarray, active: np.ndarray | None) -> np.ndarray:
    """Sectors of every warp of [warps, 32] addresses whose accesses cross no sector's end."""
    return _distinct(addresses // SECTOR, active)


def _distinct(values: np.ndarray, active: np.ndarray | None) -> np.ndarray:
    if active is not None:
        values = np.where(active, values, -1)
    values = np.sort(values, axis=1)
    changes = (values[:, 1:] != values[:, :-1]).sum(axis=1)
    return changes + (values[:, 0] >= 0) if active is not None else changes + 1


def wavefronts_of(size: int) -> Count:
    """A function like `sectors` that counts wavefronts of accesses of `size` bytes a lane."""
    words = max(1, size // 4)
    phases = max(1, min(words, 4))

    def count(addresses: np.ndarray, active: np.ndarray | None) -> np.ndarray:
        warps = len(addresses)
        groups = (addresses >> 2).reshape(warps * phases, -1)
        part = None if active is None else active.reshape(warps * phases, -1)
        if words > 1:
            groups = (groups[:, :, None] + np.arange(words)).reshape(warps * phases, -1)
            part = None if part is None else np.repeat(part, words, axis=1)
        return _bank_depth(groups, part).reshape(warps, phases).sum(axis=1)

    return count


def ideal_wavefronts(size: int, active: np.ndarray | None, warps: int) -> int:
    """Wavefronts without conflicts: one for every part of a warp that has an active lane."""
    phases = max(1, min(size // 4, 4))
    if active is None:
        return warps * phases
    return int(np.count_nonzero(active.reshape(warps * phases, -1).any(axis=1)))


def _bank_depth(words: np.ndarray, active: np.ndarray | None) -> np.ndarray:
    """Most different words of one bank, for every row of word addresses."""
    rows = len(words)
    if active is not None:
        words = np.where(active, words, -1)
    words = np.sort(words, axis=1)
    new = np.ones(words.shape, bool)
    new[:, 1:] = words[:, 1:] != words[:, :-1]
    new &= words >= 0
    bank = np.arange(rows)[:, None] * 32 + (words & 31)
    return np.bincount(bank[new], minlength=rows * 32).reshape(rows, 32).max(axis=1)
