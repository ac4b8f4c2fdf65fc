# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""cp.async: copies to shared memory that a thread waits for by groups.

The data are copied at once, but their bytes stay marked as in flight, which no access may touch,
until the thread that copies waits for the group; then they count as written by it.
"""

import numpy as np

from twofour.sim import bulk, mbarrier
from twofour.sim.copy_groups import group_count
from twofour.sim.counting import Counting
from twofour.sim.decode import Binder, Modifiers, PerLane, Step, decodes, integer_of, over_lanes
from twofour.sim.machine import Active
from twofour.sim.memory import UNSIGNED
from twofour.sim.ptx import Immediate, Instruction

_HINTS = ("L2::64B", "L2::128B", "L2::256B")


@decodes("asynchronous", "cp")
def copy(binder: Binder, instruction: Instruction) -> Step:
    """Everything that starts with cp."""
    modifiers = Modifiers(instruction)
    modifiers.need("async")
    if modifiers.flag("bulk"):
        return bulk.decode(binder, instruction, modifiers)
    if modifiers.flag("commit_group"):
        modifiers.done()
        binder.count_operands(instruction, 0)
        return binder.asynchronous.commit
    if modifiers.flag("wait_all"):
        modifiers.done()
        binder.count_operands(instruction, 0)
        return lambda active: binder.asynchronous.wait(instruction, active, None)
    if modifiers.flag("wait_group"):
        modifiers.done()
        binder.count_operands(instruction, 1)
        count = group_count(binder, instruction)
        return lambda active: binder.asynchronous.wait(instruction, active, count)
    if modifiers.flag("mbarrier"):
        return mbarrier.decode_copy_arrival(binder, instruction, modifiers)
    return _copy(binder, instruction, modifiers)


def _copy(binder: Binder, instruction: Instruction, modifiers: Modifiers) -> Step:
    """cp.async.ca|cg.shared.global [to], [from], size{, source size or ignore}{, cache policy}."""
    cache = modifiers.need("ca", "cg")
    modifiers.need("shared", "shared::cta")
    modifiers.need("global")
    modifiers.take("L2::cache_hint")
    modifiers.take(*_HINTS)
    modifiers.done()
    binder.count_operands(instruction, 3, 4, 5)
    size = integer_of(instruction.operands[2])
    if size not in ((16,) if cache == "cg" else (4, 8, 16)):
        binder.error(instruction, f"expected a constant copy size of 4, 8 or 16 ({cache})")
    element, count = (8, 2) if size == 16 else (size, 1)
    to = binder.address(instruction, instruction.operands[0])
    origin = binder.address(instruction, instruction.operands[1])
    limit = _source_size(binder, instruction, size)
    loads, stores = Counting(binder, instruction, False), Counting(binder, instruction, True)
    machine, shared = binder.machine, binder.shared
    dtype = UNSIGNED[element]

    def run(active: Active) -> None:
        offsets, addresses = to(active), origin(active)
        lanes = active.lanes
        if limit is None:
            values = binder.globals.load(
                instruction, addresses.view(np.uint64), lanes, element, count
            )
            loads.of_global(addresses, active)
        else:
            values = np.zeros((offsets.size, size), np.uint8)
            sizes = limit(active)
            for present in np.unique(sizes).tolist():
                if present == 0:
                    continue
                if present > size:
                    bad = int(np.flatnonzero(sizes > size)[0])
                    message = f"expected a source size up to {size}, got {present}"
                    machine.fault_of(instruction, "undefined operation", message, lanes, bad)
                chosen = np.flatnonzero(sizes == present)
                who = chosen if lanes is None else lanes[chosen]
                values[chosen, :present] = _bytes(
                    binder, instruction, addresses[chosen], who, present, size
                )
                here = np.zeros_like(active.here)
                here[who] = True
                loads.of_global(addresses[chosen], Active(here, who.size, False))
            values = values.view(dtype)
            if count == 1:
                values = values[:, 0]
        positions = shared.locate(instruction, offsets, lanes, size)
        granules = shared.granules(positions, size)
        shared.check_write(instruction, granules, lanes, in_flight=True)
        shared.rows(element, count)[positions >> (size.bit_length() - 1)] = values
        stores.of_shared(offsets, active, size)
        everyone = np.arange(machine.lanes) if lanes is None else lanes
        binder.asynchronous.issue(everyone, granules)

    return run


def _bytes(
    binder: Binder,
    instruction: Instruction,
    addresses: np.ndarray,
    lanes: np.ndarray,
    present: int,
    size: int,
) -> np.ndarray:
    """The first `present` bytes at addresses that are multiples of `size`, [n, present]."""
    places = addresses.view(np.uint64)
    if present == size:
        element, count = (8, 2) if size == 16 else (size, 1)
        values = binder.globals.load(instruction, places, lanes, element, count)
        return values.view(np.uint8).reshape(-1, size)
    binder.machine.check_aligned(instruction, places, lanes, size)
    columns = [
        binder.globals.load(instruction, places + np.uint64(i), lanes, 1, 1) for i in range(present)
    ]
    return np.stack(columns, axis=1)


def _source_size(binder: Binder, instruction: Instruction, size: int) -> PerLane | None:
    """A function from active lanes to how many bytes they read, None if it is always `size`."""
    operands = instruction.operands[3:]
    if "L2::cache_hint" in instruction.modifiers:
        operands = operands[:-1]
    if not operands:
        return None
    if len(operands) > 1:
        binder.error(instruction, "expected one source size or predicate")
    (operand,) = operands
    if isinstance(operand, Immediate) or binder.size_of(operand):
        value = binder.source(instruction, operand, "u32")
        if not isinstance(value, np.ndarray) and int(value) == size:
            return None
        return lambda active: over_lanes(value, active)
    ignore, inverted = binder.predicate(instruction, operand)

    def of_predicate(active: Active) -> np.ndarray:
        skipped = over_lanes(ignore, active)
        return np.where(~skipped if inverted else skipped, 0, size)

    return of_predicate
