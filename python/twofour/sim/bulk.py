# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""cp.async.bulk: copies by the copy engine, waited for at an mbarrier or by bulk groups.

Here are the copies of whole ranges of bytes; tensor_copy has those of boxes. Copies to global
memory are done at once, but what they read stays marked until the thread that copies waits for its
group: nobody may write it, and no thread may end.
"""

import numpy as np

from twofour.sim import tensor_copy
from twofour.sim.chunks import CHUNK, lanes_of, read_chunks, shared_offsets, write_chunks
from twofour.sim.copy_groups import group_count
from twofour.sim.counting import Counting
from twofour.sim.decode import Binder, Modifiers, Step, over_lanes
from twofour.sim.machine import Active
from twofour.sim.ptx import Instruction


def decode(binder: Binder, instruction: Instruction, modifiers: Modifiers) -> Step:
    """Everything that starts with cp.async.bulk."""
    if modifiers.flag("commit_group"):
        modifiers.done()
        binder.count_operands(instruction, 0)
        return binder.bulk_reads.commit
    if modifiers.flag("wait_group"):
        modifiers.flag("read")
        modifiers.done()
        binder.count_operands(instruction, 1)
        count = group_count(binder, instruction)
        return lambda active: binder.bulk_reads.wait(instruction, active, count)
    if modifiers.flag("tensor"):
        return tensor_copy.decode(binder, instruction, modifiers)
    if modifiers.left[:2] == ["global", "shared::cta"]:
        return _to_global(binder, instruction, modifiers)
    if modifiers.left[:2] in (["shared::cluster", "global"], ["shared::cta", "global"]):
        return _to_shared(binder, instruction, modifiers)
    binder.error(instruction, f"unsupported instruction {instruction.opcode}")


def _chunks(
    binder: Binder, instruction: Instruction, active: Active, sizes: np.ndarray, *starts: np.ndarray
) -> tuple[np.ndarray, np.ndarray, list[np.ndarray]]:
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


def _to_shared(binder: Binder, instruction: Instruction, modifiers: Modifiers) -> Step:
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

    def run(active: Active) -> None:
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


def _to_global(binder: Binder, instruction: Instruction, modifiers: Modifiers) -> Step:
    modifiers.left = modifiers.left[2:]
    modifiers.need("bulk_group")
    hint = modifiers.flag("L2::cache_hint")
    modifiers.done()
    binder.count_operands(instruction, 4 if hint else 3)
    to = binder.address(instruction, instruction.operands[0])
    origin = shared_offsets(binder, instruction, instruction.operands[1])
    size = binder.source(instruction, instruction.operands[2], "u32")
    counting = Counting(binder, instruction, True)

    def run(active: Active) -> None:
        sizes = over_lanes(size, active).astype(np.int64)
        addresses, offsets = to(active), origin(active)
        lanes, _, (outside, inside) = _chunks(
            binder, instruction, active, sizes, addresses, offsets
        )
        values = read_chunks(binder, instruction, inside, lanes)
        binder.globals.store(instruction, outside.view(np.uint64), lanes, values, 8, 2)
        counting.of_ranges(addresses, sizes, addresses.size)

    return run
