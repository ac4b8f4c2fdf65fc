# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Groups of asynchronous copies: what each lane has committed, and what is in flight."""

from dataclasses import dataclass

import numpy as np

from twofour.sim.decode import Binder, integer_of
from twofour.sim.machine import Active
from twofour.sim.ptx import Instruction


def group_count(binder: Binder, instruction: Instruction) -> int:
    """The groups that a `wait_group` leaves pending; raises TwofourError where it says none."""
    count = integer_of(instruction.operands[0])
    if count is None or count < 0:
        binder.error(instruction, "expected a constant number of groups")
    return count


@dataclass
class _Copies:
    """Copies of one instruction: for each the lane, its group, and what it writes ([parts, n])."""

    lanes: np.ndarray
    groups: np.ndarray
    granules: np.ndarray

    def part(self, chosen: np.ndarray) -> "_Copies":
        return _Copies(self.lanes[chosen], self.groups[chosen], self.granules[..., chosen])


class Copies:
    """The asynchronous copies of a batch: committed groups of each lane, and what is in flight."""

    def __init__(self, binder: Binder):
        self._binder = binder
        self._committed = np.zeros(binder.machine.lanes, np.int64)
        self._flying: list[_Copies] = []

    def start(self) -> None:
        self._committed[:] = 0
        self._flying.clear()

    def issue(self, lanes: np.ndarray, granules: np.ndarray) -> None:
        self._flying.append(_Copies(lanes, self._committed[lanes].copy(), granules))

    def commit(self, active: Active) -> None:
        self._committed[active.here] += 1

    def wait(self, instruction: Instruction, active: Active, allowed: int | None) -> None:
        """Complete all but the last `allowed` groups of the active lanes; None: every copy."""
        step = self._binder.machine.next_step(instruction)
        left = []
        for copies in self._flying:
            done = active.here[copies.lanes]
            if allowed is not None:
                done &= copies.groups < self._committed[copies.lanes] - allowed
            if not done.any():
                left.append(copies)
                continue
            chosen = copies
            if not done.all():
                left.append(copies.part(~done))
                chosen = copies.part(done)
            self.complete(chosen, step)
        self._flying = left

    def complete(self, copies: _Copies, step: int) -> None:
        """What was copied is there from a step on."""
        self._binder.shared.write_step[copies.granules] = step


class Reads(Copies):
    """What bulk copies to global memory read of shared memory, by groups of each lane."""

    _last: Instruction | None = None

    def read(self, instruction: Instruction, lanes: np.ndarray, granules: np.ndarray) -> None:
        """Begin to read granules ([n] or [parts, n]) for the n lanes."""
        self._binder.shared.engine_reads[granules] = True
        self._last = instruction
        self.issue(lanes, granules)

    def complete(self, copies: _Copies, step: int) -> None:
        """The lanes that waited are the ones that have read, as far as others are concerned."""
        shared = self._binder.shared
        shared.engine_reads[copies.granules] = False
        shared.read_step[copies.granules] = step
        shared.read_thread[copies.granules] = self._binder.machine.thread[copies.lanes]

    def finish(self) -> None:
        """Fault where a copy was never waited for: shared memory is gone when a block has ended."""
        if self._flying:
            self._binder.machine.fault(
                self._last,
                "missing bulk wait",
                "its thread ended before the copy had read its source",
                int(self._flying[0].lanes[0]),
            )
