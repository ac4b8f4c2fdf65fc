# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Accesses of lanes to global memory in one launch, and their checks."""

from collections.abc import Sequence
from typing import NoReturn

import numpy as np

from twofour.sim.machine import Machine
from twofour.sim.memory import GlobalAllocation, Memory
from twofour.sim.ptx import Instruction

# Accesses to one allocation: it, which of all accesses they are (None: all), offsets in it.
Part = tuple[GlobalAllocation, np.ndarray | None, np.ndarray]


class GlobalSpace:
    """Global memory as the lanes of a launch see it.

    `granule` divides the size of every store of the kernel: who wrote is recorded for so many bytes
    at a time.
    """

    def __init__(self, machine: Machine, memory: Memory, granule: int):
        self.machine = machine
        self.memory = memory
        self.granule = granule
        self._writers: dict[int, tuple[np.ndarray, np.ndarray]] = {}
        self._last: GlobalAllocation | None = None

    def locate(
        self, instruction: Instruction, addresses: np.ndarray, lanes: np.ndarray | None, size: int
    ) -> Sequence[Part]:
        """Pairs (allocation, selection, offsets) that cover the accesses; selection None is all.

        Faults where an address is misaligned or [address, address + size) is not all registered.
        """
        self.machine.check_aligned(instruction, addresses, lanes, size)
        low, high = int(addresses.min()), int(addresses.max())
        last = self._last
        if last is None or low < last.start or high + size > last.end:
            last = self.memory.find(low)
            if last is None or high + size > last.end:
                return self._split(instruction, addresses, lanes, size)
            self._last = last
        return ((last, None, (addresses - addresses.dtype.type(last.start)).view(np.int64)),)

    def _split(
        self, instruction: Instruction, addresses: np.ndarray, lanes: np.ndarray | None, size: int
    ) -> Sequence[Part]:
        parts = []
        rest = np.ones(addresses.size, bool)
        while rest.any():
            first = int(np.flatnonzero(rest)[0])
            allocation = self.memory.find(int(addresses[first]))
            if allocation is None or int(addresses[first]) + size > allocation.end:
                message = f"{size} bytes of global memory that no array holds"
                self.machine.fault_of(
                    instruction, "out of bounds", message, lanes, first, addresses
                )
            start = addresses.dtype.type(allocation.start)
            last = addresses.dtype.type(allocation.end - size)
            inside = np.flatnonzero(rest & (addresses >= start) & (addresses <= last))
            rest[inside] = False
            parts.append((allocation, inside, (addresses[inside] - start).view(np.int64)))
        return parts

    def load(
        self,
        instruction: Instruction,
        addresses: np.ndarray,
        lanes: np.ndarray | None,
        element: int,
        count: int,
    ) -> np.ndarray:
        """[n] or [n, count] unsigned elements at `addresses` (uint64, one for each of `lanes`)."""
        size = element * count
        shift = size.bit_length() - 1
        parts = self.locate(instruction, addresses, lanes, size)
        result = None
        for allocation, selection, offsets in parts:
            index = offsets >> shift
            self.check_defined(instruction, allocation, addresses, lanes, selection, index, size)
            values = allocation.rows(element, count)[index]
            if selection is None:
                return values
            if result is None:
                result = np.empty((addresses.size, *values.shape[1:]), values.dtype)
            result[selection] = values
        return result

    def check_defined(
        self,
        instruction: Instruction,
        allocation: GlobalAllocation,
        addresses: np.ndarray,
        lanes: np.ndarray | None,
        selection: np.ndarray | None,
        index: np.ndarray,
        size: int,
    ) -> None:
        if allocation.undefined is None:
            return
        marks = allocation.undefined.reshape(-1, size)[index].any(axis=1)
        if marks.any():
            bad = int(np.flatnonzero(marks)[0])
            bad = bad if selection is None else int(selection[bad])
            message = f"{size} bytes of global memory that nobody wrote"
            self.machine.fault_of(instruction, "uninitialised read", message, lanes, bad, addresses)

    def store(
        self,
        instruction: Instruction,
        addresses: np.ndarray,
        lanes: np.ndarray | None,
        values: np.ndarray,
        element: int,
        count: int,
    ) -> None:
        """Write [n] or [n, count] unsigned elements, after the checks."""
        size = element * count
        shift = size.bit_length() - 1
        step = self.machine.next_step(instruction)
        for allocation, selection, offsets in self.locate(instruction, addresses, lanes, size):
            who = lanes if selection is None else _picked(lanes, selection)
            self._record(instruction, allocation, addresses, selection, offsets, who, size, step)
            rows = allocation.rows(element, count)
            rows[offsets >> shift] = values if selection is None else values[selection]
            if allocation.undefined is not None:
                allocation.undefined.reshape(-1, size)[offsets >> shift] = 0

    def _record(
        self,
        instruction: Instruction,
        allocation: GlobalAllocation,
        addresses: np.ndarray,
        selection: np.ndarray | None,
        offsets: np.ndarray,
        lanes: np.ndarray | None,
        size: int,
        step: int,
    ) -> None:
        machine = self.machine
        if allocation.start not in self._writers:
            count = allocation.padded.size // self.granule
            self._writers[allocation.start] = (
                np.zeros(count, np.int64),
                np.zeros(count, np.uint32),
            )
        writers, steps = self._writers[allocation.start]
        lanes = np.arange(machine.lanes) if lanes is None else lanes
        thread = machine.global_thread()[lanes]
        place = offsets // self.granule
        for part in range(size // self.granule):
            before, earlier = writers[place + part], steps[place + part]
            other = (before != 0) & (before != thread)
            if other.any():
                # A barrier of the block in between makes it no conflict.
                same = (before - 1) // machine.threads == (thread - 1) // machine.threads
                other &= ~(same & (earlier <= machine.ordered[lanes]))
            writers[place + part] = thread
            steps[place + part] = step
            other |= writers[place + part] != thread
            if other.any():
                self._conflict(instruction, addresses, selection, lanes, other, before, earlier)

    def _conflict(
        self,
        instruction: Instruction,
        addresses: np.ndarray,
        selection: np.ndarray | None,
        lanes: np.ndarray,
        other: np.ndarray,
        before: np.ndarray,
        earlier: np.ndarray,
    ) -> NoReturn:
        machine = self.machine
        bad = int(np.flatnonzero(other)[0])
        by = "another thread of the same instruction"
        if before[bad]:
            block, thread = divmod(int(before[bad]) - 1, machine.threads)
            line = machine.trace[int(earlier[bad])].location.line
            by = f"thread {thread} of block {block} at line {line}"
        machine.fault(
            instruction,
            "conflicting global writes",
            f"expected one writer of a byte, got also {by}",
            int(lanes[bad]),
            int(addresses[bad if selection is None else selection[bad]]),
        )

    def start(self) -> None:
        """Forget who wrote what: a launch begins."""
        self._writers.clear()
        self._last = None

    def finish(self) -> None:
        """Forget the marks of arrays that are initialised all over by now."""
        for allocation in self.memory:
            if allocation.undefined is not None and not allocation.undefined.any():
                allocation.undefined = None


def _picked(lanes: np.ndarray | None, selection: np.ndarray) -> np.ndarray:
    return selection if lanes is None else lanes[selection]
