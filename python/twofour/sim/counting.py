# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""What every instruction that accesses memory adds to the counters of a launch."""

import numpy as np

from twofour.sim.counters import (
    SECTOR,
    AccessCounter,
    ideal_wavefronts,
    sectors,
    wavefronts_of,
)
from twofour.sim.decode import Binder
from twofour.sim.machine import Active
from twofour.sim.ptx import Instruction


class Counting:
    """Adds the accesses of one instruction to the launch's counters."""

    def __init__(self, binder: Binder, instruction: Instruction, store: bool):
        self._launch = binder.launch
        self._line = instruction.location.line
        self._store = store
        self._sectors = AccessCounter(sectors)
        self._wavefronts: dict[int, AccessCounter] = {}
        self._grid = binder.machine.lanes

    def _by_warp(
        self, addresses: np.ndarray, active: Active
    ) -> tuple[np.ndarray, np.ndarray | None]:
        """Addresses [warps, 32] and the mask of active lanes (None if all are)."""
        if active.lanes is None:
            return addresses.reshape(-1, 32), None
        spread = np.zeros(self._grid, np.int64)
        spread[active.lanes] = addresses
        rows = active.warp_rows
        mask = active.by_warp[rows]
        return spread.reshape(-1, 32)[rows], None if mask.all() else mask

    def of_global(self, addresses: np.ndarray, active: Active) -> None:
        addresses, mask = self._by_warp(addresses.view(np.int64), active)
        counters = self._launch.counters
        totals = counters.global_stores if self._store else counters.global_loads
        count = self._sectors.total(addresses, mask, 32)
        totals.requests += len(addresses)
        totals.sectors += count
        counters.line(self._line).sectors += count

    def of_shared(self, offsets: np.ndarray, active: Active, size: int) -> None:
        offsets, mask = self._by_warp(offsets, active)
        counter = self._wavefronts.setdefault(size, AccessCounter(wavefronts_of(size)))
        count = counter.total(offsets, mask, 4)
        self._add(count, ideal_wavefronts(size, mask, len(offsets)), len(offsets))

    def of_matrices(self, offsets: np.ndarray, warps: int) -> None:
        """Rows of 8x8 matrices [matrices, 8]: each matrix is read at once."""
        counter = self._wavefronts.setdefault(0, AccessCounter(_matrix_wavefronts))
        self._add(counter.total(offsets, None, 4), len(offsets), warps)

    def of_box(self, size: int, count: int) -> None:
        """`count` boxes of `size` bytes each, moved by the copy engine: a wavefront for 128."""
        wavefronts = -(-size // 128) * count
        self._add(wavefronts, wavefronts, count)

    def of_ranges(self, first: np.ndarray, size: np.ndarray, requests: int) -> None:
        """Ranges of bytes in global memory, each of whole sectors."""
        counters = self._launch.counters
        totals = counters.global_stores if self._store else counters.global_loads
        count = int(((first + size - 1) // SECTOR - first // SECTOR + 1).sum())
        totals.requests += requests
        totals.sectors += count
        counters.line(self._line).sectors += count

    def _add(self, wavefronts: int, ideal: int, requests: int) -> None:
        counters = self._launch.counters
        totals = counters.shared_stores if self._store else counters.shared_loads
        totals.requests += requests
        totals.wavefronts += wavefronts
        totals.ideal += ideal
        line = counters.line(self._line)
        line.wavefronts += wavefronts
        line.conflicts += wavefronts - ideal


_quarter = wavefronts_of(16)


def _matrix_wavefronts(offsets: np.ndarray, active: np.ndarray | None) -> np.ndarray:
    # A quarter of a warp with 16 bytes a lane; the other three repeat its addresses.
    return _quarter(np.repeat(offsets, 4, axis=0).reshape(-1, 32), None) // 4
