# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Instructions that lanes of a warp execute together: shuffles, votes, reductions, and ordering.

Those with a member mask need every live lane of it at the instruction at the same time, with the
same mask. Lanes of one warp that are there with different masks are groups that know nothing of
each other.
"""

from collections.abc import Callable

import numpy as np
from numpy.typing import DTypeLike

from twofour.sim import registers
from twofour.sim.decode import Binder, Modifiers, Step, Value, assign, decodes, pair
from twofour.sim.machine import Active, Machine
from twofour.sim.ptx import Instruction, Operand

_LANE = np.arange(32)
_BIT = np.uint32(1) << np.arange(32, dtype=np.uint32)


def _members(
    binder: Binder, instruction: Instruction, operand: Operand
) -> Callable[[Active], np.ndarray | None]:
    """A step that checks a member mask and orders the warps.

    It returns which lanes each lane has its mask in common with, bool [warps, 32, 32], or None
    where the active lanes of every warp have one mask.
    """
    mask = binder.source(instruction, operand, "b32")
    machine = binder.machine

    def check(active: Active) -> np.ndarray | None:
        machine.order_warps(active, instruction)
        if not isinstance(mask, np.ndarray) and int(mask) == 0xFFFFFFFF:
            machine.require_whole_warps(active, instruction, machine.live)
            return None
        masks = np.broadcast_to(mask, machine.lanes).reshape(-1, 32)
        here = active.by_warp
        # Every member that has not exited must be here, and everyone here must be a member.
        member = (masks[:, :, None] >> np.arange(32, dtype=np.uint32)) & np.uint32(1) != 0
        live = machine.live.reshape(-1, 1, 32)
        groups = here[:, None, :] & (masks[:, :, None] == masks[:, None, :])
        missing = here & (member & live & ~groups).any(axis=2)
        outside = here & ~member[:, _LANE, _LANE]
        bad = missing | outside
        if bad.any():
            warp, lane = (int(i) for i in np.argwhere(bad)[0])
            machine.fault(
                instruction,
                "divergent warp",
                f"expected the threads of mask {int(masks[warp, lane]):#x} at "
                f"{instruction.opcode}, got {_mask_of(groups[warp, lane]):#x}",
                warp * 32 + lane,
            )
        return groups if (here[:, :, None] & here[:, None, :] & ~groups).any() else None

    return check


def _seen(groups: np.ndarray | None, lanes: np.ndarray) -> np.ndarray:
    """Of `lanes` [warps, 32], those in the group of each lane: [warps, 32 or 1, 32]."""
    return lanes[:, None, :] if groups is None else groups & lanes[:, None, :]


def _per_lane(results: np.ndarray) -> np.ndarray:
    """Results [warps, 32 or 1] for all lanes."""
    return np.broadcast_to(results, (len(results), 32)).reshape(-1)


def _mask_of(lanes: np.ndarray) -> int:
    return int((_BIT * lanes).sum())


def _by_warp(binder: Binder, value: Value, dtype: DTypeLike) -> np.ndarray:
    return np.broadcast_to(np.asarray(value, dtype), binder.machine.lanes).reshape(-1, 32)


@decodes("warp", "shfl")
def shuffle(binder: Binder, instruction: Instruction) -> Step:
    modifiers = Modifiers(instruction)
    modifiers.need("sync")
    mode = modifiers.need("up", "down", "bfly", "idx")
    modifiers.need("b32")
    modifiers.done()
    binder.count_operands(instruction, 5)
    first, second = pair(instruction.operands[0])
    target = binder.destination(instruction, first, "b32")
    inside = None if second is None else binder.destination(instruction, second, "pred")
    value, amount, clamp = (binder.source(instruction, o, "b32") for o in instruction.operands[1:4])
    check = _members(binder, instruction, instruction.operands[4])
    machine = binder.machine
    passed = registers.passed(instruction)

    def run(active: Active) -> None:
        groups = check(active)
        by = _by_warp(binder, amount, np.int64) & 31
        limits = _by_warp(binder, clamp, np.int64)
        segment, last = limits >> 8 & 31, limits & 31
        upper = (_LANE & segment) | (last & ~segment)
        lower = _LANE & segment
        if mode == "up":
            origin = _LANE - by
            valid = origin >= upper
        elif mode == "down":
            origin = _LANE + by
            valid = origin <= upper
        else:
            origin = _LANE ^ by if mode == "bfly" else lower | (by & ~segment)
            valid = origin <= upper
        origin = np.where(valid, origin, _LANE)
        _check_source(machine, active, instruction, origin, groups)
        for name in passed & binder.defined.keys():
            _check_defined(binder, active, instruction, origin, name)
        values = np.take_along_axis(_by_warp(binder, value, np.uint32), origin, axis=1)
        assign(target, values.reshape(-1), active)
        if inside is not None:
            assign(inside, valid.reshape(-1), active)

    return run


def _check_source(
    machine: Machine,
    active: Active,
    instruction: Instruction,
    origin: np.ndarray,
    groups: np.ndarray | None,
) -> None:
    """Reading the register of a lane that is not there gives nothing defined."""
    if active.full and groups is None:
        return
    here = active.by_warp
    if groups is None:
        present = np.take_along_axis(here, origin, axis=1)
    else:
        present = np.take_along_axis(groups, origin[:, :, None], axis=2)[:, :, 0]
    absent = here & ~present
    if absent.any():
        warp, lane = (int(i) for i in np.argwhere(absent)[0])
        machine.fault(
            instruction,
            "undefined operation",
            f"the value of lane {int(origin[warp, lane])}, which takes no part, is read",
            warp * 32 + lane,
        )


def _check_defined(
    binder: Binder, active: Active, instruction: Instruction, origin: np.ndarray, name: str
) -> None:
    """Every lane must come from one whose register has a value."""
    values = np.take_along_axis(binder.defined[name].reshape(-1, 32), origin, axis=1)
    missing = active.by_warp & ~values
    if missing.any():
        warp, lane = (int(i) for i in np.argwhere(missing)[0])
        message = f"{name} of lane {int(origin[warp, lane])} is read"
        binder.machine.fault(instruction, "uninitialised register", message, warp * 32 + lane)


@decodes("warp", "vote")
def vote(binder: Binder, instruction: Instruction) -> Step:
    modifiers = Modifiers(instruction)
    modifiers.need("sync")
    mode = modifiers.need("all", "any", "uni", "ballot")
    modifiers.need("b32" if mode == "ballot" else "pred")
    modifiers.done()
    binder.count_operands(instruction, 3)
    kind = "b32" if mode == "ballot" else "pred"
    target = binder.destination(instruction, instruction.operands[0], kind)
    condition, inverted = binder.predicate(instruction, instruction.operands[1])
    check = _members(binder, instruction, instruction.operands[2])

    def run(active: Active) -> None:
        groups, here = check(active), active.by_warp
        values = _by_warp(binder, ~condition if inverted else condition, bool)
        yes, no = _seen(groups, here & values), _seen(groups, here & ~values)
        if mode == "ballot":
            result = (_BIT * yes).sum(axis=2, dtype=np.uint32)
        elif mode == "any":
            result = yes.any(axis=2)
        elif mode == "all":
            result = ~no.any(axis=2)
        else:
            result = ~(yes.any(axis=2) & no.any(axis=2))
        assign(target, _per_lane(result), active)

    return run


@decodes("warp", "match")
def match(binder: Binder, instruction: Instruction) -> Step:
    modifiers = Modifiers(instruction)
    mode = modifiers.need("any", "all")
    modifiers.need("sync")
    kind = modifiers.need("b32", "b64")
    modifiers.done()
    binder.count_operands(instruction, 3)
    first, second = pair(instruction.operands[0])
    target = binder.destination(instruction, first, "b32")
    same = None if second is None else binder.destination(instruction, second, "pred")
    if same is not None and mode == "any":
        binder.error(instruction, "expected one destination of match.any")
    value = binder.source(instruction, instruction.operands[1], kind)
    check = _members(binder, instruction, instruction.operands[2])

    def run(active: Active) -> None:
        here = _seen(check(active), active.by_warp)
        values = _by_warp(binder, value, np.uint64)
        equal = (values[:, :, None] == values[:, None, :]) & here
        if mode == "any":
            result = (equal * _BIT).sum(axis=2, dtype=np.uint32)
        else:
            everyone = (here * _BIT).sum(axis=2, dtype=np.uint32)
            agree = (equal == here).all(axis=2)
            result = np.where(agree, everyone, np.uint32(0))
            if same is not None:
                assign(same, agree.reshape(-1), active)
        assign(target, result.reshape(-1), active)

    return run


_REDUCTIONS = {
    "add": (np.add, {"u32": 0, "s32": 0}),
    "min": (np.minimum, {"u32": 2**32 - 1, "s32": 2**31 - 1}),
    "max": (np.maximum, {"u32": 0, "s32": -(2**31)}),
    "and": (np.bitwise_and, {"b32": 2**32 - 1}),
    "or": (np.bitwise_or, {"b32": 0}),
    "xor": (np.bitwise_xor, {"b32": 0}),
}


@decodes("warp", "redux")
def reduce_warp(binder: Binder, instruction: Instruction) -> Step:
    modifiers = Modifiers(instruction)
    modifiers.need("sync")
    name = modifiers.need(*_REDUCTIONS)
    operation, neutral = _REDUCTIONS[name]
    kind = modifiers.need(*neutral)
    modifiers.done()
    binder.count_operands(instruction, 3)
    target = binder.destination(instruction, instruction.operands[0], kind)
    value = binder.source(instruction, instruction.operands[1], kind)
    check = _members(binder, instruction, instruction.operands[2])
    dtype = target.dtype

    def run(active: Active) -> None:
        here = _seen(check(active), active.by_warp)
        values = _by_warp(binder, value, dtype)[:, None, :]
        values = np.where(here, values, dtype.type(neutral[kind]))
        assign(target, _per_lane(operation.reduce(values, axis=2, dtype=dtype)), active)

    return run


@decodes("warp", "activemask")
def active_mask(binder: Binder, instruction: Instruction) -> Step:
    modifiers = Modifiers(instruction)
    modifiers.need("b32")
    modifiers.done()
    binder.count_operands(instruction, 1)
    target = binder.destination(instruction, instruction.operands[0], "b32")

    def run(active: Active) -> None:
        masks = (active.by_warp * _BIT).sum(axis=1, dtype=np.uint32)
        assign(target, np.repeat(masks, 32), active)

    return run


@decodes("warp", "elect")
def elect(binder: Binder, instruction: Instruction) -> Step:
    """elect.sync d|p, mask: the lowest lane of the mask leads."""
    modifiers = Modifiers(instruction)
    modifiers.need("sync")
    modifiers.done()
    binder.count_operands(instruction, 2)
    first, second = pair(instruction.operands[0])
    target = binder.destination(instruction, first, "b32")
    if second is None:
        binder.error(instruction, "expected a predicate as the second destination")
    leads = binder.destination(instruction, second, "pred")
    check = _members(binder, instruction, instruction.operands[1])

    def run(active: Active) -> None:
        leader = np.argmax(_seen(check(active), active.by_warp), axis=2)
        assign(target, _per_lane(leader), active)
        assign(leads, (leader == _LANE).reshape(-1), active)

    return run


@decodes("barrier", "bar", "barrier")
def warp_barrier(binder: Binder, instruction: Instruction) -> Step:
    """bar.warp.sync; the barriers of blocks end segments and are not decoded here."""
    modifiers = Modifiers(instruction)
    modifiers.need("warp")
    modifiers.need("sync")
    modifiers.done()
    binder.count_operands(instruction, 1)
    return _members(binder, instruction, instruction.operands[0])


@decodes("barrier", "membar", "fence")
def fence(binder: Binder, instruction: Instruction) -> Step:
    """Order accesses of one thread: the simulator executes them in order anyway.

    Only what the copy engine is to see of them has to be fenced.
    """
    modifiers, to_engine = Modifiers(instruction), False
    if instruction.root == "membar":
        modifiers.need("cta", "gl", "sys")
    elif modifiers.flag("proxy"):
        kind = modifiers.need("alias", "async", "async::generic", "async.global", "tensormap")
        space = modifiers.take("global", "shared::cta", "shared::cluster")
        to_engine = kind == "async" and space != "global"
    elif modifiers.flag("mbarrier_init"):
        modifiers.need("release")
        modifiers.need("cluster")
        to_engine = True
    else:
        modifiers.take("sc", "acq_rel", "acquire", "release")
        modifiers.take("sync_restrict::shared::cta", "sync_restrict::shared::cluster")
        modifiers.need("cta", "cluster", "gpu", "sys")
    modifiers.done()
    binder.count_operands(instruction, 0)
    machine = binder.machine

    def reach_engine(active: Active) -> None:
        machine.fenced[active.here] = machine.next_step(instruction)

    return reach_engine if to_engine else _nothing


@decodes("control", "griddepcontrol", "nanosleep", "prefetch", "prefetchu", "setmaxnreg")
def hint(binder: Binder, instruction: Instruction) -> Step:
    """Instructions that change nothing of what a kernel computes."""
    modifiers = Modifiers(instruction)
    root = instruction.root
    if root == "griddepcontrol":
        modifiers.need("launch_dependents", "wait")
        binder.count_operands(instruction, 0)
    elif root == "nanosleep":
        modifiers.need("u32")
        binder.count_operands(instruction, 1)
    elif root == "setmaxnreg":
        modifiers.need("inc", "dec")
        modifiers.need("sync")
        modifiers.need("aligned")
        modifiers.need("u32")
        binder.count_operands(instruction, 1)
    else:
        modifiers.take("global", "local", "const", "param", "tensormap")
        modifiers.need("L1", "L2", "L2::evict_last", "L2::evict_normal")
        binder.count_operands(instruction, 1)
        modifiers.done()
        return _prefetch(binder, instruction) if "global" in instruction.modifiers else _nothing
    modifiers.done()
    return _nothing


def _prefetch(binder: Binder, instruction: Instruction) -> Step:
    """Nothing but a check: PTX does not say what becomes of addresses that nobody has."""
    addresses = binder.address(instruction, instruction.operands[0])

    def run(active: Active) -> None:
        found = addresses(active).view(np.uint64)
        binder.globals.locate(instruction, found, active.lanes, 1)

    return run


def _nothing(active: Active) -> None:
    """For instructions without an effect here."""
