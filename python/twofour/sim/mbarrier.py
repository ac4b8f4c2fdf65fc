# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""mbarrier objects: phases that complete when all arrivals and all bytes of bulk copies are in.

Bulk copies complete as soon as they are issued, but what they write stays marked as in flight until
some thread sees the phase complete. A thread that does is ordered after everything its block did
before the phase completed, be it of threads that arrived or of others: that misses races of the
latter, and never reports one that is none.
"""

from collections.abc import Callable

import numpy as np

from twofour.sim.decode import Binder, Modifiers, PerLane, Step, Value, decodes, over_lanes, put
from twofour.sim.machine import SHARED_WINDOW, Active, Machine
from twofour.sim.ptx import Instruction, Operand, Register
from twofour.sim.shared import BULK

# (active, give up): which lanes see their phase complete.
Wait = Callable[[Active, bool], np.ndarray]

_SCOPES = ("cta", "cluster")
_SPACES = ("shared", "shared::cta")


class Mbarriers:
    """The mbarrier objects in the shared memory of a batch, by position // 8."""

    def __init__(self, binder: Binder):
        self._binder = binder
        count = binder.shared.bytes.size // 8
        self.valid = np.zeros(count, bool)
        self.expected = np.zeros(count, np.int64)
        self.pending = np.zeros(count, np.int64)
        self.bytes = np.zeros(count, np.int64)
        self.phase = np.zeros(count, np.int64)
        self.step = np.zeros(count, np.uint32)
        self._made = np.zeros(count, np.uint32)
        self._maker = np.zeros(count, np.int64)
        self._copies: dict[int, list[np.ndarray]] = {}

    def start(self) -> None:
        self.valid[:] = False
        self._copies.clear()

    def locate(
        self, instruction: Instruction, offsets: np.ndarray, lanes: np.ndarray | None
    ) -> np.ndarray:
        return self._binder.shared.locate(instruction, offsets, lanes, 8) >> 3

    def require(
        self, instruction: Instruction, places: np.ndarray, lanes: np.ndarray | None
    ) -> None:
        """Fault unless these are mbarriers, which the lanes know to have been made."""
        machine = self._binder.machine
        if not self.valid[places].all():
            bad = int(np.flatnonzero(~self.valid[places])[0])
            message = "expected an mbarrier that mbarrier.init made"
            machine.fault_of(instruction, "undefined operation", message, lanes, bad)
        lanes = np.arange(machine.lanes) if lanes is None else lanes
        maker, made = self._maker[places], self._made[places]
        known = np.maximum(
            machine.ordered[lanes],
            np.where(maker >> 5 == lanes >> 5, machine.warp_ordered[lanes >> 5], 0),
        )
        early = (maker != lanes) & (made > known)
        if early.any():
            message = "expected a barrier after mbarrier.init of another thread"
            lane = int(lanes[np.flatnonzero(early)[0]])
            machine.fault(instruction, "shared-memory race", message, lane)

    def init(
        self,
        instruction: Instruction,
        places: np.ndarray,
        lanes: np.ndarray | None,
        counts: np.ndarray,
    ) -> None:
        self.valid[places] = True
        self._made[places] = self._binder.machine.next_step(instruction)
        self._maker[places] = np.arange(self._binder.machine.lanes) if lanes is None else lanes
        self.expected[places] = self.pending[places] = counts
        self.bytes[places] = self.phase[places] = 0
        self.step[places] = 0
        for place in places.tolist():
            self._copies.pop(place, None)

    def change(
        self,
        instruction: Instruction,
        places: np.ndarray,
        lanes: np.ndarray | None,
        arrivals: np.ndarray | int,
        size: np.ndarray | int,
    ) -> np.ndarray:
        """Count arrivals and expected bytes; gives the phase before, for each of the lanes."""
        self.require(instruction, places, lanes)
        before = self.phase[places]
        np.add.at(self.bytes, places, size)
        np.subtract.at(self.pending, places, arrivals)
        over = self.pending[places] < 0
        if over.any():
            bad = int(np.flatnonzero(over)[0])
            message = f"more arrivals than the {self.expected[places][bad]} of the phase"
            self._binder.machine.fault_of(instruction, "undefined operation", message, lanes, bad)
        done = np.unique(places[(self.pending[places] == 0) & (self.bytes[places] == 0)])
        if done.size:
            self.phase[done] += 1
            self.pending[done] = self.expected[done]
            self.step[done] = self._binder.machine.next_step(instruction)
        return before

    def complete_bytes(
        self, instruction: Instruction, places: np.ndarray, lanes: np.ndarray, size: np.ndarray
    ) -> None:
        """Bytes of bulk copies of these lanes arrive; the engine has to see that it is made."""
        self.require(instruction, places, lanes)
        fenced = self._binder.machine.fenced
        missing = self._made[places] > np.maximum(fenced[self._maker[places]], fenced[lanes])
        if missing.any():
            self._binder.machine.fault(
                instruction,
                "missing proxy fence",
                "expected fence.proxy.async or fence.mbarrier_init after mbarrier.init",
                int(lanes[np.flatnonzero(missing)[0]]),
            )
        self.change(instruction, places, lanes, 0, -size)

    def attach(self, place: int, granules: np.ndarray) -> None:
        """Bytes of a bulk copy that are in flight until a phase is seen complete."""
        self._copies.setdefault(place, []).append(granules)

    def observe(self, places: np.ndarray, lanes: np.ndarray, machine: Machine) -> None:
        """Lanes that have seen a phase complete are ordered after it."""
        shared = self._binder.shared
        for place in np.unique(places).tolist():
            for granules in self._copies.pop(place, ()):
                shared.write_step[granules] = self.step[place]
                shared.write_thread[granules] = BULK
        machine.ordered[lanes] = np.maximum(machine.ordered[lanes], self.step[places])


def _address(
    binder: Binder, instruction: Instruction, operand: Operand, modifiers: Modifiers
) -> PerLane:
    """A function from active lanes to offsets in shared memory."""
    generic = modifiers.take(*_SPACES) is None
    addresses = binder.address(instruction, operand)
    if not generic:
        return addresses
    return lambda active: addresses(active) - SHARED_WINDOW


@decodes("barrier", "mbarrier")
def operate(binder: Binder, instruction: Instruction) -> Step:
    modifiers = Modifiers(instruction)
    action = modifiers.need(
        *("init", "inval", "arrive", "arrive_drop", "expect_tx", "complete_tx", "pending_count")
    )
    if action == "pending_count":
        binder.error(instruction, "unsupported instruction mbarrier.pending_count")
    expect = action == "expect_tx" or (action != "complete_tx" and modifiers.flag("expect_tx"))
    modifiers.take("release", "relaxed")
    modifiers.take(*_SCOPES)
    modifiers.flag("noComplete")
    modifiers.need("b64")
    operands = list(instruction.operands)
    token = None
    if action in ("arrive", "arrive_drop") and isinstance(next(iter(operands), None), Register):
        token = operands.pop(0)
    if not operands:
        binder.error(instruction, f"expected an address in {instruction.opcode}")
    offsets = _address(binder, instruction, operands[0], modifiers)
    modifiers.done()
    needs_value = action in ("init", "complete_tx") or expect
    optional = action in ("arrive", "arrive_drop") and not expect
    if len(operands) != 1 + needs_value and not (optional and len(operands) == 2):
        binder.error(instruction, f"unexpected operands of {instruction.opcode}")
    value: Value = np.uint32(1)
    if len(operands) == 2:
        value = binder.source(instruction, operands[1], "u32")
    target = None
    if token is not None and token.name != "_":
        target = binder.destination(instruction, token, "b64")
    mbarriers, machine = binder.mbarriers, binder.machine

    def run(active: Active) -> None:
        lanes = active.lanes
        places = mbarriers.locate(instruction, offsets(active), lanes)
        amount = over_lanes(value, active).astype(np.int64)
        machine.next_step(instruction)
        if action == "init":
            mbarriers.init(instruction, places, lanes, amount)
        elif action == "inval":
            mbarriers.require(instruction, places, lanes)
            mbarriers.valid[places] = False
        elif action == "complete_tx":
            mbarriers.change(instruction, places, lanes, 0, -amount)
        elif action == "expect_tx":
            mbarriers.change(instruction, places, lanes, 0, amount)
        else:
            if action == "arrive_drop":
                np.subtract.at(mbarriers.expected, places, 1)
            arrivals, size = (1, amount) if expect else (amount, 0)
            before = mbarriers.change(instruction, places, lanes, arrivals, size)
            if target is not None:
                put(target, before, active)

    return run


def decode_wait(binder: Binder, instruction: Instruction) -> Wait:
    """A function (active, give up) to the lanes whose phase is complete.

    It writes the predicate of those lanes, and, to give up, False for the others.
    """
    modifiers = Modifiers(instruction)
    modifiers.need("test_wait", "try_wait")
    parity = modifiers.flag("parity")
    modifiers.take("acquire", "relaxed")
    modifiers.take(*_SCOPES)
    modifiers.need("b64")
    hint = "try_wait" in instruction.modifiers
    binder.count_operands(instruction, 3, *((4,) if hint else ()))
    target = binder.destination(instruction, instruction.operands[0], "pred")
    offsets = _address(binder, instruction, instruction.operands[1], modifiers)
    modifiers.done()
    state = binder.source(instruction, instruction.operands[2], "b32" if parity else "b64")
    mbarriers, machine = binder.mbarriers, binder.machine

    def wait(active: Active, give_up: bool) -> np.ndarray:
        lanes = np.flatnonzero(active.here)
        places = mbarriers.locate(instruction, offsets(active), active.lanes)
        mbarriers.require(instruction, places, active.lanes)
        wanted = over_lanes(state, active).astype(np.int64)
        phase = mbarriers.phase[places]
        done = (phase & 1) != (wanted & 1) if parity else phase != wanted
        target[lanes if give_up else lanes[done]] = done if give_up else True
        if done.any():
            mbarriers.observe(places[done], lanes[done], machine)
        result = np.zeros_like(active.here)
        result[lanes[done]] = True
        return result

    return wait


def decode_copy_arrival(binder: Binder, instruction: Instruction, modifiers: Modifiers) -> Step:
    """cp.async.mbarrier.arrive: the thread's copies so far arrive, and with them the thread.

    Without .noinc the arrival is one more than the phase expects, which leaves its count as it is.
    """
    modifiers.need("arrive")
    counted = modifiers.flag("noinc")
    modifiers.need("b64")
    binder.count_operands(instruction, 1)
    offsets = _address(binder, instruction, instruction.operands[0], modifiers)
    modifiers.done()
    mbarriers = binder.mbarriers

    def run(active: Active) -> None:
        places = mbarriers.locate(instruction, offsets(active), active.lanes)
        binder.asynchronous.wait(instruction, active, None)
        mbarriers.change(instruction, places, active.lanes, int(counted), 0)

    return run
