# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Barriers of a block: bar and barrier, by their numbers."""

from collections.abc import Callable
from dataclasses import dataclass, field

import numpy as np

from twofour.sim.decode import Binder, Modifiers, Value
from twofour.sim.machine import Active, Machine
from twofour.sim.ptx import Immediate, Instruction

# Writes the result of a reduction: (lanes, ones, arrivals), the last two for every block.
Deliver = Callable[[np.ndarray, np.ndarray, np.ndarray], None]


@dataclass
class Arrival:
    """A decoded barrier instruction; `number` and `threads` as operands (threads may be None)."""

    instruction: Instruction
    number: Value
    threads: Value | None
    waits: bool
    aligned: bool
    condition: tuple[Value, bool] | None = None
    deliver: Deliver | None = None


def decode(binder: Binder, instruction: Instruction) -> Arrival:
    """The arrival that a bar or barrier instruction is."""
    modifiers = Modifiers(instruction)
    modifiers.flag("cta")
    action = modifiers.need("sync", "arrive", "red")
    aligned = modifiers.flag("aligned") or instruction.root == "bar"
    operands = list(instruction.operands)
    condition = deliver = None
    if action == "red":
        operation = modifiers.need("popc", "and", "or")
        modifiers.need("u32" if operation == "popc" else "pred")
        if len(operands) not in (3, 4):
            binder.error(instruction, "expected a result, a barrier and a predicate")
        kind = "u32" if operation == "popc" else "pred"
        target = binder.destination(instruction, operands.pop(0), kind)
        condition = binder.predicate(instruction, operands.pop())
        deliver = _deliver(binder.machine, target, operation)
    modifiers.done()
    if len(operands) not in (1, 2) or (action == "arrive" and len(operands) != 2):
        binder.error(instruction, f"expected a barrier{{, threads}} in {instruction.opcode}")
    number, *threads = (binder.source(instruction, o, "u32") for o in operands)
    if isinstance(operands[0], Immediate) and not 0 <= int(number) < 16:
        binder.error(instruction, f"expected a barrier below 16, got {number}")
    return Arrival(
        instruction,
        number,
        threads[0] if threads else None,
        action != "arrive",
        aligned,
        condition,
        deliver,
    )


def _deliver(machine: Machine, target: np.ndarray, operation: str) -> Deliver:
    def deliver(lanes: np.ndarray, ones: np.ndarray, arrivals: np.ndarray) -> None:
        block = machine.local_block[lanes]
        if operation == "popc":
            target[lanes] = ones[block]
        else:
            target[lanes] = (
                ones[block] == arrivals[block] if operation == "and" else ones[block] > 0
            )

    return deliver


@dataclass
class _Barrier:
    arrived: np.ndarray
    ones: np.ndarray
    # Threads that complete it, zero where all of the block do.
    expected: np.ndarray
    parked: dict[int, tuple[np.ndarray, Arrival]] = field(default_factory=dict)


class Barriers:
    """Who waits at which barrier in the blocks of a batch."""

    def __init__(self, machine: Machine):
        self.machine = machine
        self._barriers: dict[int, _Barrier] = {}
        # Arrivals at barriers that are not complete, over all blocks.
        self.pending = 0

    def clear(self) -> None:
        self._barriers.clear()
        self.pending = 0

    def everyone(self, active: Active, arrival: Arrival) -> bool:
        """All threads of every block arrive at once, and nobody waits: True if that was it."""
        if self.pending or active.mask is not True or not arrival.waits:
            return False
        if arrival.threads is not None or isinstance(arrival.number, np.ndarray):
            return False
        machine = self.machine
        machine.ordered[:] = machine.next_step(arrival.instruction)
        if arrival.deliver:
            lanes = np.flatnonzero(active.here)
            ones = self._per_block(self._ones(active, arrival))
            arrival.deliver(lanes, ones, self._per_block(active.here))
        return True

    def _per_block(self, lanes: np.ndarray) -> np.ndarray:
        return np.count_nonzero(lanes.reshape(self.machine.blocks, -1), axis=1)

    def _ones(self, active: Active, arrival: Arrival) -> np.ndarray:
        values, inverted = arrival.condition
        return active.here & (~values if inverted else values)

    def arrive(
        self, active: Active, arrival: Arrival, live: np.ndarray, resume: int
    ) -> list[tuple[int, np.ndarray]]:
        """Note an arrival; whoever waits resumes at a segment. Gives what `release` does."""
        machine = self.machine
        if arrival.aligned:
            self._check_warps(active, arrival, live)
        numbers = np.broadcast_to(arrival.number, active.here.shape)
        for number in np.unique(numbers[active.here]).tolist():
            here = active.narrowed(numbers == number)
            if number > 15:
                machine.fault(
                    arrival.instruction,
                    "undefined operation",
                    f"expected a barrier below 16, got {number}",
                    int(np.flatnonzero(here.here)[0]),
                )
            self._arrive_at(number, here, arrival, resume)
        return self.release(live, arrival.instruction)

    def _arrive_at(self, number: int, active: Active, arrival: Arrival, resume: int) -> None:
        machine = self.machine
        if number not in self._barriers:
            zeros = [np.zeros(machine.blocks, np.int64) for _ in range(3)]
            self._barriers[number] = _Barrier(*zeros)
        barrier = self._barriers[number]
        count = self._per_block(active.here)
        barrier.arrived += count
        self.pending += active.count
        if arrival.condition:
            barrier.ones += self._per_block(self._ones(active, arrival))
        if arrival.threads is not None:
            self._expect(active, arrival, barrier, count)
        if arrival.waits:
            mask, _ = barrier.parked.get(resume, (None, None))
            mask = active.here.copy() if mask is None else mask | active.here
            barrier.parked[resume] = (mask, arrival)

    def _expect(
        self, active: Active, arrival: Arrival, barrier: _Barrier, count: np.ndarray
    ) -> None:
        machine = self.machine
        threads = np.broadcast_to(arrival.threads, active.here.shape)
        expected = np.zeros(machine.blocks, np.int64)
        expected[machine.local_block[active.here]] = threads[active.here]
        here = count > 0
        differs = here & (barrier.expected != 0) & (barrier.expected != expected)
        if differs.any() or (expected[here] % 32).any() or (expected[here] == 0).any():
            machine.fault(
                arrival.instruction,
                "undefined operation",
                "expected the same multiple of 32 as the thread count of every arrival",
                int(np.flatnonzero(active.here)[0]),
            )
        barrier.expected[here] = expected[here]

    def _check_warps(self, active: Active, arrival: Arrival, live: np.ndarray) -> None:
        missing = (live.reshape(-1, 32) & ~active.by_warp)[active.warp_rows].any(axis=1)
        if missing.any():
            warp = int(active.warp_rows[np.flatnonzero(missing)[0]])
            lane = warp * 32 + int(np.flatnonzero(active.by_warp[warp])[0])
            here = np.count_nonzero(active.by_warp[warp])
            self.machine.fault(
                arrival.instruction,
                "barrier divergence",
                f"expected all threads of the warp, got {here} of "
                f"{np.count_nonzero(live.reshape(-1, 32)[warp])}",
                lane,
            )

    def release(self, live: np.ndarray, instruction: Instruction) -> list[tuple[int, np.ndarray]]:
        """Pairs (segment, lanes) of threads whose barrier is complete now."""
        if not self.pending:
            return []
        machine = self.machine
        everyone = self._per_block(live)
        released = []
        for barrier in self._barriers.values():
            needed = np.where(barrier.expected > 0, barrier.expected, everyone)
            complete = (barrier.arrived > 0) & (barrier.arrived >= needed)
            if not complete.any():
                continue
            free = complete[machine.local_block]
            machine.ordered[free] = machine.next_step(instruction)
            for segment, (mask, arrival) in list(barrier.parked.items()):
                lanes = mask & free
                if not lanes.any():
                    continue
                if arrival.deliver:
                    arrival.deliver(np.flatnonzero(lanes), barrier.ones, barrier.arrived)
                released.append((segment, lanes))
                rest = mask & ~free
                if rest.any():
                    barrier.parked[segment] = (rest, arrival)
                else:
                    del barrier.parked[segment]
            self.pending -= int(barrier.arrived[complete].sum())
            for counts in (barrier.arrived, barrier.ones, barrier.expected):
                counts[complete] = 0
        return released

    def report(self, live: np.ndarray) -> None:
        """Fault for threads that wait at a barrier which nobody is left to complete."""
        machine = self.machine
        for barrier in self._barriers.values():
            for mask, arrival in barrier.parked.values():
                lane = int(np.flatnonzero(mask)[0])
                block = machine.local_block[lane]
                needed = int(barrier.expected[block]) or int(self._per_block(live)[block])
                machine.fault(
                    arrival.instruction,
                    "barrier divergence",
                    f"expected {needed} threads of the block at the barrier, "
                    f"got {int(barrier.arrived[block])}",
                    lane,
                )
