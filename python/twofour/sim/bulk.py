# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""cp.async.bulk: copies by the copy engine, waited for at an mbarrier or by bulk groups.

Here are the copies of whole ranges of bytes; tensor_copy has those of boxes. Copies to global
memory are done at once, but what they read stays marked until the thread that copies waits for its
group: nobody may write it, and no thread may end.
"""

import numpy as np

from twofour.sim.asynchronous import Copies
from twofour.sim.counting import Counting
from twofour.sim.decode import Binder, Modifiers, Step, over_lanes
from twofour.sim.machine import SHARED_WINDOW, Active
from twofour.sim.ptx import Immediate, Instruction, Operand

CHUNK = 16


class Reads(Copies):
    """What bulk copies to global memory read of shared memory, by groups of each lane."""

    _last: Instruction | None = None

    def read(self, instruction: Instruction, lanes: np.ndarray, granules: np.ndarray) -> None:
        """Begin to read granules ([n] or [parts, n]) for the n lanes."""
        self._binder.shared.engine_reads[granules] = True
        self._last = instruction
        self.issue(lanes, granules)

    def complete(self, copies, step: int) -> None:
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


def decode(binder: Binder, instruction: Instruction, modifiers: Modifiers) -> Step:
    """Everything that starts with cp.async.bulk."""
    from twofour.sim import tensor_copy

    if modifiers.flag("commit_group"):
        modifiers.done()
        binder.count_operands(instruction, 0)
        return binder.bulk_reads.commit
    if modifiers.flag("wait_group"):
        modifiers.flag("read")
        modifiers.done()
        binder.count_operands(instruction, 1)
        count = instruction.operands[0]
        if not isinstance(count, Immediate) or count.value < 0:
            binder.error(instruction, "expected a constant number of groups")
        return lambda active: binder.bulk_reads.wait(instruction, active, count.value)
    if modifiers.flag("tensor"):
        return tensor_copy.decode(binder, instruction, modifiers)
    if modifiers.left[:2] == ["global", "shared::cta"]:
        return _to_global(binder, instruction, modifiers)
    if modifiers.left[:2] in (["shared::cluster", "global"], ["shared::cta", "global"]):
        return _to_shared(binder, instruction, modifiers)
    binder.error(instruction, f"unsupported instruction {instruction.opcode}")


def shared_offsets(binder: Binder, instruction: Instruction, operand: Operand):
    """Offsets in shared memory, from addresses of either kind."""
    addresses = binder.address(instruction, operand)

    def offsets(active):
        values = addresses(active)
        return np.where(values >= SHARED_WINDOW, values - SHARED_WINDOW, values)

    return offsets


def lanes_of(binder: Binder, active: Active) -> np.ndarray:
    """The numbers of the active lanes."""
    return np.arange(binder.machine.lanes) if active.lanes is None else active.lanes


def write_chunks(binder: Binder, instruction: Instruction, offsets, lanes, values) -> np.ndarray:
    """Write 16 bytes ([n, 2] uint64) at each offset, in flight, for the lane of each.

    Gives the granules, [n] or [parts, n].
    """
    shared = binder.shared
    positions = shared.locate(instruction, offsets, lanes, CHUNK)
    granules = shared.granules(positions, CHUNK)
    shared.check_write(instruction, granules, lanes, in_flight=True)
    shared.rows(8, 2)[positions // CHUNK] = values
    return granules


def read_chunks(binder: Binder, instruction: Instruction, offsets, lanes) -> np.ndarray:
    """The 16 bytes ([n, 2] uint64) at each offset, which the engine reads from now on."""
    shared = binder.shared
    values = shared.load(instruction, offsets, lanes, 8, 2)
    granules = shared.granules(shared.locate(instruction, offsets, lanes, CHUNK), CHUNK)
    shared.check_engine(instruction, granules, lanes)
    binder.bulk_reads.read(instruction, lanes, granules)
    return values


def _chunks(binder, instruction, active, sizes, *starts):
    """Lanes and addresses of all 16-byte chunks of ranges that start at each of `starts`."""
    lanes = lanes_of(binder, active)
    bad = (sizes % CHUNK != 0) | (sizes == 0)
    if bad.any():
        index = int(np.flatnonzero(bad)[0])
        message = f"expected a positive multiple of 16 bytes, got {sizes[index]}"
        binder.machine.fault(instruction, "undefined operation", message, int(lanes[index]))
    counts = sizes // CHUNK
    owner = np.repeat(np.arange(lanes.size), counts)
    place = np.arange(owner.size) - np.repeat(np.cumsum(counts) - counts, counts)
    return lanes[owner], owner, [start[owner] + CHUNK * place for start in starts]


def _to_shared(binder, instruction, modifiers):
    modifiers.left = modifiers.left[2:]
    modifiers.need("mbarrier::complete_tx::bytes")
    hint = modifiers.flag("L2::cache_hint")
    modifiers.done()
    binder.count_operands(instruction, 5 if hint else 4)
    to = shared_offsets(binder, instruction, instruction.operands[0])
    origin = binder.address(instruction, instruction.operands[1])
    size = binder.source(instruction, instruction.operands[2], "u32")
    mbarrier = shared_offsets(binder, instruction, instruction.operands[3])
    mbarriers, counting = binder.mbarriers, Counting(binder, instruction, False)

    def run(active):
        sizes = over_lanes(size, active).astype(np.int64)
        offsets, addresses = to(active), origin(active)
        places = mbarriers.locate(instruction, mbarrier(active), active.lanes)
        lanes, owner, (inside, outside) = _chunks(
            binder, instruction, active, sizes, offsets, addresses
        )
        values = binder.globals.load(instruction, outside.view(np.uint64), lanes, 8, 2)
        granules = write_chunks(binder, instruction, inside, lanes, values)
        counting.of_ranges(addresses, sizes, addresses.size)
        for index in range(places.size):
            mbarriers.attach(int(places[index]), granules[..., owner == index])
        mbarriers.complete_bytes(instruction, places, lanes_of(binder, active), sizes)

    return run


def _to_global(binder, instruction, modifiers):
    modifiers.left = modifiers.left[2:]
    modifiers.need("bulk_group")
    hint = modifiers.flag("L2::cache_hint")
    modifiers.done()
    binder.count_operands(instruction, 4 if hint else 3)
    to = binder.address(instruction, instruction.operands[0])
    origin = shared_offsets(binder, instruction, instruction.operands[1])
    size = binder.source(instruction, instruction.operands[2], "u32")
    counting = Counting(binder, instruction, True)

    def run(active):
        sizes = over_lanes(size, active).astype(np.int64)
        addresses, offsets = to(active), origin(active)
        lanes, _, (outside, inside) = _chunks(
            binder, instruction, active, sizes, addresses, offsets
        )
        values = read_chunks(binder, instruction, inside, lanes)
        binder.globals.store(instruction, outside.view(np.uint64), lanes, values, 8, 2)
        counting.of_ranges(addresses, sizes, addresses.size)

    return run
