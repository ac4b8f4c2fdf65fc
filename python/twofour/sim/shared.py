# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Shared memory of the blocks of a batch, and the checks of its accesses.

For every granule (the largest power of two that divides the size of every shared access of the
kernel, so that no access covers a part of one) the last write and the last reads since a barrier
are recorded, and the last atomic accesses. Two accesses of different threads, one of them a write
and not both atomic, are a race unless a barrier of the block, a wait at an mbarrier, or within one
warp a warp-synchronising instruction, lies between them. Steps number accesses and barriers:
"before the barrier" is a comparison of step numbers.
"""

from typing import NoReturn

import numpy as np

from twofour.sim.machine import Machine
from twofour.sim.memory import UNSIGNED
from twofour.sim.ptx import Instruction

IN_FLIGHT = 0xFFFFFFFF
# Who read: a thread of the block, several of one warp (this plus its number), or several warps.
_WARP = 1 << 11
_MANY = 1 << 12
# Who wrote, where it is a bulk copy.
BULK = 1 << 13


class SharedSpace:
    """Shared memory of every block of the batch: `size` bytes each."""

    def __init__(self, machine: Machine, size: int, granule: int):
        self.machine = machine
        self.size = size
        self.granule = granule
        self.shift = granule.bit_length() - 1
        stride = -(-max(size, 1) // 128) * 128
        self.stride = stride
        self.bytes = np.zeros(machine.blocks * stride, np.uint8)
        count = self.bytes.size >> self.shift
        self.write_step = np.zeros(count, np.uint32)
        self.write_thread = np.zeros(count, np.int16)
        self.read_step = np.zeros(count, np.uint32)
        self.read_thread = np.zeros(count, np.int16)
        self.atomic_step = np.zeros(count, np.uint32)
        self.atomic_thread = np.zeros(count, np.int16)
        self.has_atomics = False
        # What the copy engine is reading.
        self.engine_reads = np.zeros(count, bool)
        self.base = machine.local_block * stride
        self._thread = machine.thread.astype(np.int16)
        self._views: dict[tuple[int, int], np.ndarray] = {}

    def clear(self) -> None:
        """Nothing is initialised when a block starts."""
        self.write_step[:] = 0
        self.read_step[:] = 0
        self.atomic_step[:] = 0
        self.engine_reads[:] = False

    def rows(self, element: int, count: int) -> np.ndarray:
        key = (element, count)
        if key not in self._views:
            view = self.bytes.view(UNSIGNED[element])
            self._views[key] = view.reshape(-1, count) if count > 1 else view
        return self._views[key]

    def locate(
        self, instruction: Instruction, offsets: np.ndarray, lanes: np.ndarray | None, size: int
    ) -> np.ndarray:
        """Positions in `bytes` of the accesses at int64 `offsets` in the blocks' memories."""
        self.machine.check_offsets(instruction, offsets, lanes, size, "shared", self.size)
        return offsets + (self.base if lanes is None else self.base[lanes])

    def granules(self, positions: np.ndarray, size: int) -> np.ndarray:
        """Granules of accesses at positions: [n], or [parts, n] if one covers several."""
        first = positions >> self.shift
        parts = size >> self.shift
        return first if parts == 1 else first + np.arange(parts)[:, None]

    def load(
        self,
        instruction: Instruction,
        offsets: np.ndarray,
        lanes: np.ndarray | None,
        element: int,
        count: int,
    ) -> np.ndarray:
        """[n] or [n, count] unsigned elements, after the checks."""
        size = element * count
        positions = self.locate(instruction, offsets, lanes, size)
        self.check_read(instruction, self.granules(positions, size), lanes)
        return self.rows(element, count)[positions >> (size.bit_length() - 1)]

    def store(
        self,
        instruction: Instruction,
        offsets: np.ndarray,
        lanes: np.ndarray | None,
        values: np.ndarray,
        element: int,
        count: int,
    ) -> None:
        """Write [n] or [n, count] unsigned elements, after the checks."""
        size = element * count
        positions = self.locate(instruction, offsets, lanes, size)
        self.check_write(instruction, self.granules(positions, size), lanes)
        self.rows(element, count)[positions >> (size.bit_length() - 1)] = values

    def check_read(
        self, instruction: Instruction, granules: np.ndarray, lanes: np.ndarray | None
    ) -> None:
        """Check and record reads of `granules` ([n] or [parts, n]) by the n lanes."""
        machine = self.machine
        step = machine.next_step(instruction)
        ordered = machine.ordered if lanes is None else machine.ordered[lanes]
        wrote = self.write_step[granules]
        if not wrote.all():
            self._report(instruction, granules, lanes, wrote == 0, "uninitialised read")
        recent = wrote > ordered
        if recent.any():
            self._check_writes(instruction, granules, lanes, recent, wrote)
        if self.has_atomics:
            self._check_others(
                instruction, granules, lanes, ordered, self.atomic_step, self.atomic_thread
            )
        self._record(granules, lanes, step, ordered, self.read_step, self.read_thread)

    def _record(
        self,
        granules: np.ndarray,
        lanes: np.ndarray | None,
        step: int,
        ordered: np.ndarray,
        steps: np.ndarray,
        threads: np.ndarray,
    ) -> None:
        """Record accesses, which several threads may make, in `steps` and `threads`."""
        thread = self._thread if lanes is None else self._thread[lanes]
        before = steps[granules]
        recent = before > ordered
        code = None
        if recent.any():
            code = self._merged(threads[granules], thread, lanes, recent, before)
        steps[granules] = step
        threads[granules] = thread
        lost = threads[granules] != thread
        if lost.any():
            # Several lanes come to the granule in this instruction.
            other = threads[granules]
            level = np.where(other >> 5 == thread >> 5, _WARP + (thread >> 5), _MANY)
            level = np.where(lost, level, 0)
            code = level if code is None else np.maximum(code, level)
        if code is not None:
            for least, most in ((_WARP, _MANY - 1), (_MANY, _MANY)):
                chosen = (code >= least) & (code <= most)
                if chosen.any():
                    threads[granules[chosen]] = code[chosen]

    def _merged(
        self,
        earlier: np.ndarray,
        thread: np.ndarray,
        lanes: np.ndarray | None,
        recent: np.ndarray,
        before: np.ndarray,
    ) -> np.ndarray:
        """What the `earlier` ones of this interval make of the codes of threads; 0 for nothing."""
        machine = self.machine
        warp = thread >> 5
        same_warp = ((earlier < _WARP) & (earlier >> 5 == warp)) | (earlier == _WARP + warp)
        synchronised = machine.warp_ordered[_warp_of(machine, lanes)]
        # What a warp read before it synchronised is ordered before whatever it does now; for other
        # warps the new record stands in for it.
        ignore = ~recent | (earlier == thread) | (same_warp & (before <= synchronised))
        return np.where(ignore, 0, np.where(same_warp, _WARP + warp, _MANY))

    def check_write(
        self,
        instruction: Instruction,
        granules: np.ndarray,
        lanes: np.ndarray | None,
        in_flight: bool = False,
    ) -> None:
        """Check and record writes of `granules` by the n lanes; `in_flight` by a cp.async."""
        machine = self.machine
        step = machine.next_step(instruction)
        ordered = machine.ordered if lanes is None else machine.ordered[lanes]
        thread = self._thread if lanes is None else self._thread[lanes]
        wrote = self.write_step[granules]
        recent = wrote > ordered
        if recent.any():
            self._check_writes(instruction, granules, lanes, recent, wrote)
        self._check_others(instruction, granules, lanes, ordered, self.read_step, self.read_thread)
        if self.has_atomics:
            self._check_others(
                instruction, granules, lanes, ordered, self.atomic_step, self.atomic_thread
            )
        reading = self.engine_reads[granules]
        if reading.any():
            message = "a bulk copy from it has not been waited for"
            self._report(instruction, granules, lanes, reading, "missing bulk wait", message)
        self.write_thread[granules] = thread
        self.write_step[granules] = IN_FLIGHT if in_flight else step
        lost = self.write_thread[granules] != thread
        if lost.any():
            self._report(
                instruction,
                granules,
                lanes,
                lost,
                "shared-memory race",
                "another thread writes it in the same instruction",
            )

    def check_engine(
        self, instruction: Instruction, granules: np.ndarray, lanes: np.ndarray
    ) -> None:
        """Check that the copy engine sees what threads wrote to the granules.

        Either the thread that wrote them has passed a proxy fence since, or the one that copies.
        """
        machine = self.machine
        writer = self.write_thread[granules]
        first = lanes - machine.thread[lanes]
        writers = first + np.where(writer < BULK, writer, 0)
        fenced = np.maximum(machine.fenced[writers], machine.fenced[lanes])
        missing = (writer < BULK) & (self.write_step[granules] > fenced)
        if missing.any():
            message = "the copy engine reads it, and no fence.proxy.async came after it was written"
            self._report(instruction, granules, lanes, missing, "missing proxy fence", message)

    def check_atomic(
        self, instruction: Instruction, granules: np.ndarray, lanes: np.ndarray | None
    ) -> None:
        """Check and record atomic accesses, which are in no race with each other."""
        machine = self.machine
        step = machine.next_step(instruction)
        ordered = machine.ordered if lanes is None else machine.ordered[lanes]
        wrote = self.write_step[granules]
        if not wrote.all():
            self._report(instruction, granules, lanes, wrote == 0, "uninitialised read")
        if (wrote > ordered).any():
            self._check_writes(instruction, granules, lanes, wrote > ordered, wrote)
        self._check_others(instruction, granules, lanes, ordered, self.read_step, self.read_thread)
        self.has_atomics = True
        self._record(granules, lanes, step, ordered, self.atomic_step, self.atomic_thread)

    def _check_writes(
        self,
        instruction: Instruction,
        granules: np.ndarray,
        lanes: np.ndarray | None,
        recent: np.ndarray,
        wrote: np.ndarray,
    ) -> None:
        machine = self.machine
        flying = wrote == IN_FLIGHT
        if flying.any():
            self._report(
                instruction,
                granules,
                lanes,
                flying,
                "missing cp.async wait",
                "an asynchronous copy to it is in flight",
            )
        thread = self._thread if lanes is None else self._thread[lanes]
        writer = self.write_thread[granules]
        synchronised = machine.warp_ordered[_warp_of(machine, lanes)]
        same_warp = (writer >> 5 == thread >> 5) & (wrote <= synchronised)
        self._race(instruction, granules, lanes, recent & (writer != thread) & ~same_warp, wrote)

    def _check_others(
        self,
        instruction: Instruction,
        granules: np.ndarray,
        lanes: np.ndarray | None,
        ordered: np.ndarray,
        steps: np.ndarray,
        threads: np.ndarray,
    ) -> None:
        """Check against what was recorded of reads or of atomic accesses."""
        before = steps[granules]
        recent = before > ordered
        if not recent.any():
            return
        machine = self.machine
        thread = self._thread if lanes is None else self._thread[lanes]
        reader = threads[granules]
        warp = thread >> 5
        same_warp = ((reader < _WARP) & (reader >> 5 == warp)) | (reader == _WARP + warp)
        same_warp &= before <= machine.warp_ordered[_warp_of(machine, lanes)]
        self._race(instruction, granules, lanes, recent & (reader != thread) & ~same_warp, before)

    def _race(
        self,
        instruction: Instruction,
        granules: np.ndarray,
        lanes: np.ndarray | None,
        bad: np.ndarray,
        steps: np.ndarray,
    ) -> None:
        if not bad.any():
            return
        other = self.machine.trace[int(steps[bad][0])]
        message = (
            f"expected a barrier after {other.opcode} of another thread at line "
            f"{other.location.line}"
        )
        self._report(instruction, granules, lanes, bad, "shared-memory race", message)

    def _report(
        self,
        instruction: Instruction,
        granules: np.ndarray,
        lanes: np.ndarray | None,
        bad: np.ndarray,
        kind: str,
        message: str | None = None,
    ) -> NoReturn:
        where = np.argwhere(bad)[0]
        index = int(where[-1])
        lane = index if lanes is None else int(lanes[index])
        offset = int(granules[tuple(where)]) * self.granule - int(self.base[lane])
        message = message or f"{self.granule} bytes of shared memory that nobody wrote"
        self.machine.fault(instruction, kind, message, lane, offset)


def _warp_of(machine: Machine, lanes: np.ndarray | None) -> np.ndarray:
    return (np.arange(machine.lanes) if lanes is None else lanes) >> 5
