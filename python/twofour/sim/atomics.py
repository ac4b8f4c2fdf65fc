# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""atom and red."""

from collections.abc import Callable

import numpy as np

from twofour.sim import float_ops
from twofour.sim.access import CACHE, split_windows
from twofour.sim.counting import Counting
from twofour.sim.decode import Binder, Modifiers, Step, decodes, over_lanes, put
from twofour.sim.machine import Active
from twofour.sim.memory import UNSIGNED
from twofour.sim.ptx import Instruction, Register
from twofour.sim.variables import SIZES

# (old values, which of the accesses find them): new values.
Change = Callable[[np.ndarray, np.ndarray], np.ndarray]
# (active, int64 addresses, change): old values.
AtomicAccess = Callable[[Active, np.ndarray, Change], np.ndarray]

_ATOMIC = {
    "add": lambda old, a, b: old + a,
    "and": lambda old, a, b: old & a,
    "or": lambda old, a, b: old | a,
    "xor": lambda old, a, b: old ^ a,
    "exch": lambda old, a, b: a,
    "min": lambda old, a, b: np.minimum(old, a),
    "max": lambda old, a, b: np.maximum(old, a),
    "cas": lambda old, a, b: np.where(old == a, b, old),
    "inc": lambda old, a, b: np.where(old >= a, old.dtype.type(0), old + old.dtype.type(1)),
    "dec": lambda old, a, b: np.where((old == 0) | (old > a), a, old - old.dtype.type(1)),
}


@decodes("atomic", "atom", "red")
def atomic(binder: Binder, instruction: Instruction) -> Step:
    """Atomic operations: one lane after the other where several address one word."""
    modifiers = Modifiers(instruction)
    space = modifiers.take("global", "shared", "shared::cta", default="generic").split("::")[0]
    name = modifiers.need(*_ATOMIC)
    if modifiers.flag("noftz") and name != "add":
        binder.error(instruction, "expected .noftz with .add only")
    kind = modifiers.need(
        *("b32", "b64", "u32", "u64", "s32", "s64", "f32", "f64", "f16", "f16x2", "bf16", "bf16x2")
    )
    modifiers.left = [m for m in modifiers.left if m not in CACHE]
    modifiers.done()
    reduction = instruction.root == "red"
    operands = instruction.operands if reduction else instruction.operands[1:]
    binder.count_operands(instruction, (2 if reduction else 3) + (name == "cas"))
    storage = "b32" if kind.endswith("x2") else kind
    addresses = binder.address(instruction, operands[0])
    values = [binder.source(instruction, o, storage) for o in operands[1:]]
    result = None
    if not reduction and not (
        isinstance(instruction.operands[0], Register) and instruction.operands[0].name == "_"
    ):
        result = binder.destination(instruction, instruction.operands[0], storage)
    operation = _ATOMIC[name]
    if kind[0] in "f" or kind.startswith("bf"):
        scalar = kind.removesuffix("x2")
        if name != "add":
            binder.error(instruction, f"unsupported operation of {instruction.opcode}")

        def operation(old: np.ndarray, a: np.ndarray, b: np.ndarray) -> np.ndarray:
            if storage != kind:
                parts = (np.ascontiguousarray(v).view(np.uint16) for v in (old, a))
                return float_ops.add(*parts, scalar).view(np.uint32)
            return float_ops.add(old, a, scalar)

    access = atomic_access(binder, instruction, space, SIZES[storage])

    def run(active: Active) -> None:
        operands = [over_lanes(v, active) for v in values]
        a = operands[0]
        b = operands[1] if len(operands) > 1 else a

        def change(old: np.ndarray, chosen: np.ndarray) -> np.ndarray:
            return operation(old.view(a.dtype), a[chosen], b[chosen]).view(old.dtype)

        old = access(active, addresses(active), change)
        if result is not None:
            put(result, old.view(result.dtype), active)

    return run


def atomic_access(binder: Binder, instruction: Instruction, space: str, size: int) -> AtomicAccess:
    """A function (active, addresses, change) to old values; `change(old, which)` gives new ones."""
    counting = Counting(binder, instruction, True)

    def serialised(rows: np.ndarray, index: np.ndarray, change: Change) -> np.ndarray:
        old = np.empty(index.size, rows.dtype)
        # Round k is the k-th lane of every address.
        order = np.argsort(index, kind="stable")
        ordered = index[order]
        starts = np.flatnonzero(np.r_[True, ordered[1:] != ordered[:-1]])
        lengths = np.diff(np.r_[starts, index.size])
        for round_ in range(int(lengths.max())):
            chosen = order[starts[lengths > round_] + round_]
            place = index[chosen]
            before = rows[place]
            old[chosen] = before
            rows[place] = change(before, chosen)
        return old

    def on_global(active: Active, addresses: np.ndarray, change: Change) -> np.ndarray:
        place = addresses.view(np.uint64)
        old = np.empty(addresses.size, UNSIGNED[size])
        for allocation, selection, offsets in binder.globals.locate(
            instruction, place, active.lanes, size
        ):
            selection = np.arange(addresses.size) if selection is None else selection
            binder.globals.check_defined(
                instruction, allocation, place, active.lanes, selection, offsets // size, size
            )
            old[selection] = serialised(
                allocation.rows(size, 1),
                offsets // size,
                lambda before, chosen, s=selection: change(before, s[chosen]),
            )
        counting.of_global(addresses, active)
        return old

    def on_shared(active: Active, offsets: np.ndarray, change: Change) -> np.ndarray:
        positions = binder.shared.locate(instruction, offsets, active.lanes, size)
        binder.shared.check_atomic(
            instruction, binder.shared.granules(positions, size), active.lanes
        )
        old = serialised(binder.shared.rows(size, 1), positions // size, change)
        counting.of_shared(offsets, active, size)
        return old

    if space == "global":
        return on_global
    if space == "shared":
        return on_shared

    def anywhere(active: Active, addresses: np.ndarray, change: Change) -> np.ndarray:
        windows = addresses >> 56
        old = np.empty(addresses.size, UNSIGNED[size])
        for window, part, index in split_windows(active, windows):
            numbers = np.arange(addresses.size)[index]
            if window > 1:
                lane = int(np.flatnonzero(part.here)[0])
                message = "an atomic operation on local or constant memory"
                binder.machine.fault(instruction, "undefined operation", message, lane)
            old[index] = (on_global, on_shared)[window](
                part,
                addresses[index] - (window << 56),
                lambda before, chosen, n=numbers: change(before, n[chosen]),
            )
        return old

    return anywhere
