# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""cp.async.bulk: copies of whole ranges of bytes, waited for at an mbarrier or by bulk groups.

Copies to global memory are done at once; a later write to their source before the wait is not
found. Tensor copies are not supported.
"""

import numpy as np

from twofour.sim.counters import SECTOR
from twofour.sim.decode import Binder, Modifiers, Step, over_lanes
from twofour.sim.machine import SHARED_WINDOW, Active
from twofour.sim.ptx import Immediate, Instruction

_CHUNK = 16


def decode(binder: Binder, instruction: Instruction, modifiers: Modifiers) -> Step:
    if modifiers.flag("commit_group"):
        modifiers.done()
        binder.count_operands(instruction, 0)
        return _nothing
    if modifiers.flag("wait_group"):
        modifiers.flag("read")
        modifiers.done()
        binder.count_operands(instruction, 1)
        if not isinstance(instruction.operands[0], Immediate):
            binder.error(instruction, "expected a constant number of groups")
        return _nothing
    if modifiers.left[:2] == ["global", "shared::cta"]:
        return _to_global(binder, instruction, modifiers)
    if modifiers.left[:2] in (["shared::cluster", "global"], ["shared::cta", "global"]):
        return _to_shared(binder, instruction, modifiers)
    binder.error(instruction, f"unsupported instruction {instruction.opcode}")


def _nothing(active: Active) -> None:
    """Copies to global memory are complete when they are issued."""


def _shared_offsets(binder, instruction, operand):
    """Offsets in shared memory, from addresses of either kind."""
    addresses = binder.address(instruction, operand)

    def offsets(active):
        values = addresses(active)
        return np.where(values >= SHARED_WINDOW, values - SHARED_WINDOW, values)

    return offsets


def _chunks(binder, instruction, active, sizes, *starts):
    """Lanes and addresses of all 16-byte chunks of ranges that start at each of `starts`."""
    lanes = np.arange(binder.machine.lanes) if active.lanes is None else active.lanes
    bad = (sizes % _CHUNK != 0) | (sizes == 0)
    if bad.any():
        index = int(np.flatnonzero(bad)[0])
        message = f"expected a positive multiple of 16 bytes, got {sizes[index]}"
        binder.machine.fault(instruction, "undefined operation", message, int(lanes[index]))
    counts = sizes // _CHUNK
    owner = np.repeat(np.arange(lanes.size), counts)
    place = np.arange(owner.size) - np.repeat(np.cumsum(counts) - counts, counts)
    return lanes[owner], owner, [start[owner] + _CHUNK * place for start in starts]


def _count(binder, instruction, addresses, sizes, store):
    counters = binder.launch.counters
    totals = counters.global_stores if store else counters.global_loads
    sectors = int(((addresses + sizes - 1) // SECTOR - addresses // SECTOR + 1).sum())
    totals.requests += addresses.size
    totals.sectors += sectors
    counters.line(instruction.location.line).sectors += sectors


def _to_shared(binder, instruction, modifiers):
    modifiers.left = modifiers.left[2:]
    modifiers.need("mbarrier::complete_tx::bytes")
    hint = modifiers.flag("L2::cache_hint")
    modifiers.done()
    binder.count_operands(instruction, 5 if hint else 4)
    to = _shared_offsets(binder, instruction, instruction.operands[0])
    origin = binder.address(instruction, instruction.operands[1])
    size = binder.source(instruction, instruction.operands[2], "u32")
    mbarrier = _shared_offsets(binder, instruction, instruction.operands[3])
    shared, mbarriers = binder.shared, binder.mbarriers

    def run(active):
        sizes = over_lanes(size, active).astype(np.int64)
        offsets, addresses = to(active), origin(active)
        places = mbarriers.locate(instruction, mbarrier(active), active.lanes)
        lanes, owner, (inside, outside) = _chunks(
            binder, instruction, active, sizes, offsets, addresses
        )
        values = binder.globals.load(instruction, outside.view(np.uint64), lanes, 8, 2)
        positions = shared.locate(instruction, inside, lanes, _CHUNK)
        granules = shared.granules(positions, _CHUNK)
        shared.check_write(instruction, granules, lanes, in_flight=True)
        shared.rows(8, 2)[positions // _CHUNK] = values
        _count(binder, instruction, addresses, sizes, False)
        for index in range(places.size):
            mbarriers.attach(int(places[index]), granules[..., owner == index])
        mbarriers.change(instruction, places, active.lanes, 0, -sizes)

    return run


def _to_global(binder, instruction, modifiers):
    modifiers.left = modifiers.left[2:]
    modifiers.need("bulk_group")
    hint = modifiers.flag("L2::cache_hint")
    modifiers.done()
    binder.count_operands(instruction, 4 if hint else 3)
    to = binder.address(instruction, instruction.operands[0])
    origin = _shared_offsets(binder, instruction, instruction.operands[1])
    size = binder.source(instruction, instruction.operands[2], "u32")

    def run(active):
        sizes = over_lanes(size, active).astype(np.int64)
        addresses, offsets = to(active), origin(active)
        lanes, _, (outside, inside) = _chunks(
            binder, instruction, active, sizes, addresses, offsets
        )
        values = binder.shared.load(instruction, inside, lanes, 8, 2)
        binder.globals.store(instruction, outside.view(np.uint64), lanes, values, 8, 2)
        _count(binder, instruction, addresses, sizes, True)

    return run
