# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Execution of a batch of blocks: which threads run next, and where they go.

All threads that stand at one segment run it together. The segment with the lowest number goes
first; `flow` numbers them so that threads meet again as early as their paths allow. Threads at a
barrier, or waiting at an mbarrier, are out of the way until they can go on.
"""

import heapq

import numpy as np

from twofour.sim.machine import Active
from twofour.sim.program import BoundSegment, Program


class Executor:
    """Runs the blocks of one launch, a batch at a time."""

    def __init__(self, program: Program, blocks: int, max_steps: int):
        self.program = program
        self.machine = program.machine
        self.blocks = blocks
        self.max_steps = max_steps

    def run(self, first_block: int) -> None:
        """Execute the blocks [first_block, first_block + batch) as far as the grid has them."""
        program, machine = self.program, self.machine
        program.start(first_block)
        self.live = machine.real & (machine.block < self.blocks)
        self.live_count = int(np.count_nonzero(self.live))
        self.ready: dict[int, np.ndarray] = {}
        self.queue: list[int] = []
        self.waiting: dict[int, np.ndarray] = {}
        self.steps = 0
        bound, executions = program.bound, program.executions
        number, active = 0, Active(self.live.copy(), self.live_count, True)
        machine.live = self.live
        with np.errstate(all="ignore"):
            while active is not None:
                segment = bound[number]
                executions[number] += active.warps
                for step in segment.steps:
                    step(active)
                self.steps += len(segment.steps) + 1
                if self.steps > self.max_steps:
                    self._too_many(segment, active)
                following = self._end(segment, active)
                if following is not None and (not self.queue or following < self.queue[0]):
                    number = following
                    continue
                if following is not None:
                    self._put(following, active.here)
                number, active = self._next()
        program.binder.bulk_reads.finish()

    def _put(self, number: int, lanes: np.ndarray) -> None:
        if number in self.ready:
            self.ready[number] = self.ready[number] | lanes
        else:
            self.ready[number] = lanes
            heapq.heappush(self.queue, number)

    def _next(self) -> tuple[int, Active | None]:
        if not self.queue and self.live_count:
            self._wake()
        if not self.queue:
            return 0, None
        number = heapq.heappop(self.queue)
        lanes = self.ready.pop(number)
        count = int(np.count_nonzero(lanes))
        return number, Active(lanes, count, count == self.live_count)

    def _end(self, segment: BoundSegment, active: Active) -> int | None:
        """What follows the segment for all active lanes, or None when they have been sent off."""
        kind, successors = segment.kind, segment.successors
        if kind == "next":
            return successors[0]
        if kind == "bra":
            return self._branch(segment, active)
        if kind == "exit":
            return self._exit(segment, active)
        if kind == "barrier":
            if self.program.binder.barriers.everyone(active, segment.arrival):
                return successors[0]
            return self._barrier(segment, active)
        if kind == "wait":
            return self._wait(segment, active)
        if kind == "brx":
            return self._branch_indexed(segment, active)
        return self._trap(segment, active)

    def _condition(self, segment: BoundSegment, active: Active) -> tuple[np.ndarray, int]:
        """The active lanes for which the guard of the last instruction holds, and their number."""
        values, inverted = segment.condition
        lanes = active.here & (~values if inverted else values)
        return lanes, int(np.count_nonzero(lanes))

    def _branch(self, segment: BoundSegment, active: Active) -> int | None:
        successors = segment.successors
        if segment.condition is None:
            return successors[0]
        lanes, count = self._condition(segment, active)
        if count == active.count:
            return successors[0]
        if count == 0:
            return successors[1]
        if "uni" in segment.instruction.modifiers:
            self._check_uniform(segment, active, lanes)
        self._put(successors[0], lanes)
        self._put(successors[1], active.here & ~lanes)
        return None

    def _check_uniform(self, segment: BoundSegment, active: Active, taken: np.ndarray) -> None:
        """Fault where the threads of a warp go both ways."""
        here, there = (lanes.reshape(-1, 32) for lanes in (active.here & ~taken, taken))
        split = np.flatnonzero(here.any(axis=1) & there.any(axis=1))
        if split.size:
            warp = int(split[0])
            self.machine.fault(
                segment.instruction,
                "divergent warp",
                f"expected a uniform branch, got {np.count_nonzero(there[warp])} of "
                f"{np.count_nonzero(active.by_warp[warp])} threads of the warp taking it",
                warp * 32 + int(np.flatnonzero(there[warp])[0]),
            )

    def _branch_indexed(self, segment: BoundSegment, active: Active) -> None:
        index = np.broadcast_to(segment.index, active.here.shape)
        chosen = np.unique(index[active.here])
        if int(chosen[-1]) >= len(segment.successors):
            self.machine.fault(
                segment.instruction,
                "undefined operation",
                f"expected an index below {len(segment.successors)}, got {chosen[-1]}",
                int(np.flatnonzero(active.here & (index == chosen[-1]))[0]),
            )
        for number in chosen.tolist():
            self._put(segment.successors[number], active.here & (index == number))

    def _exit(self, segment: BoundSegment, active: Active) -> int | None:
        lanes, count = active.here, active.count
        if segment.condition is not None:
            lanes, count = self._condition(segment, active)
            if not count:
                return segment.successors[0]
        rest = active.here & ~lanes
        self.live &= ~lanes
        self.live_count -= count
        if count < active.count:
            self._put(segment.successors[0], rest)
        self._release(segment)
        return None

    def _release(self, segment: BoundSegment) -> None:
        """Barriers may be complete now that some threads have left."""
        barriers = self.program.binder.barriers
        if barriers.pending and self.live_count:
            for number, lanes in barriers.release(self.live, segment.instruction):
                self._put(number, lanes)

    def _barrier(self, segment: BoundSegment, active: Active) -> None:
        barriers, resume = self.program.binder.barriers, segment.successors[0]
        for number, lanes in barriers.arrive(active, segment.arrival, self.live, resume):
            self._put(number, lanes)
        if not segment.arrival.waits:
            self._put(resume, active.here)

    def _wait(self, segment: BoundSegment, active: Active) -> int | None:
        done = segment.wait(active, False)
        count = int(np.count_nonzero(done))
        if count == active.count:
            return segment.successors[0]
        number = self.program.bound.index(segment)
        waiting = active.here & ~done
        self.waiting[number] = self.waiting.get(number, False) | waiting
        if count:
            self._put(segment.successors[0], done)
        return None

    def _wake(self) -> None:
        """Nobody else can run: see who can go on, or who stands in the way."""
        bound = self.program.bound
        waiting, self.waiting = self.waiting, {}
        woken = False
        for number, lanes in waiting.items():
            active = Active(lanes, int(np.count_nonzero(lanes)), False)
            done = bound[number].wait(active, False)
            if done.any():
                self.program.executions[number] += active.warps
                self._put(bound[number].successors[0], done)
                woken = True
            if (lanes & ~done).any():
                self.waiting[number] = lanes & ~done
        if woken:
            return
        for number in sorted(self.waiting):
            segment = bound[number]
            lanes = self.waiting[number]
            if "test_wait" in segment.instruction.modifiers:
                # A test tells that the phase is not complete, and its thread goes on.
                active = Active(lanes, int(np.count_nonzero(lanes)), False)
                segment.wait(active, True)
                self._put(segment.successors[0], lanes)
                del self.waiting[number]
                self.steps += 100
                return
        if self.waiting:
            number, lanes = next(iter(sorted(self.waiting.items())))
            self.machine.fault(
                bound[number].instruction,
                "deadlock",
                "no thread is left that could complete the phase of the mbarrier",
                int(np.flatnonzero(lanes)[0]),
            )
        self.program.binder.barriers.report(self.live)

    def _trap(self, segment: BoundSegment, active: Active) -> int | None:
        lanes, count = active.here, active.count
        if segment.condition is not None:
            lanes, count = self._condition(segment, active)
            if not count:
                return segment.successors[0]
        self.machine.fault(
            segment.instruction, "trap", "the kernel gave up", int(np.flatnonzero(lanes)[0])
        )

    def _too_many(self, segment: BoundSegment, active: Active) -> None:
        instruction = segment.instruction or self.program.kernel.body[-1]
        self.machine.fault(
            instruction,
            "too many steps",
            f"the kernel has not ended after {self.max_steps} steps",
            int(np.flatnonzero(active.here)[0]),
        )
