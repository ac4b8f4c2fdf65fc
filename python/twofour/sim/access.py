# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""ld and st: accesses of single lanes to every state space."""

from collections.abc import Callable, Iterator
from typing import NoReturn

import numpy as np

from twofour.sim.counting import Counting
from twofour.sim.decode import Binder, Modifiers, Step, assign, decodes, over_lanes, put
from twofour.sim.machine import CONSTANT_WINDOW, SHARED_WINDOW, Active
from twofour.sim.memory import UNSIGNED
from twofour.sim.ptx import Address, Instruction, Operand, Symbol
from twofour.sim.variables import SIZES

# (active, int64 addresses): [n] or [n, count] unsigned elements.
Reader = Callable[[Active, np.ndarray], np.ndarray]
# (active, int64 addresses, [n] or [n, count] unsigned elements).
Writer = Callable[[Active, np.ndarray, np.ndarray], None]

_KINDS = (
    *(f"{c}{bits}" for c in "bus" for bits in (8, 16, 32, 64)),
    *("f32", "f64", "b128"),
)
_SPACES = (
    *("global", "shared", "shared::cta", "shared::cluster", "local", "const"),
    *("param", "param::entry"),
)
# Hints and orderings that change nothing of what is computed here.
CACHE = {
    *("ca", "cg", "cs", "lu", "cv", "wb", "wt", "nc", "volatile", "weak", "relaxed", "acquire"),
    *("release", "acq_rel", "cta", "cluster", "gpu", "sys", "mmio"),
    *(f"L1::{hint}" for hint in ("evict_normal", "evict_unchanged", "evict_first", "evict_last")),
    *("L1::no_allocate", "L2::64B", "L2::128B", "L2::256B", "L2::evict_last", "L2::evict_first"),
    "L2::evict_normal",
}


def access_modifiers(
    binder: Binder, instruction: Instruction, modifiers: Modifiers
) -> tuple[str, int, str]:
    """The state space ("generic" if none), elements of a vector, and the type."""
    space = modifiers.take(*_SPACES, default="generic").split("::")[0]
    count = int(modifiers.take("v2", "v4", "v8", default="v1")[1:])
    kind = modifiers.need(*_KINDS)
    modifiers.left = [m for m in modifiers.left if m not in CACHE]
    modifiers.done()
    if count * SIZES[kind] > 32:
        binder.error(instruction, f"expected at most 32 bytes, got {instruction.opcode}")
    return space, count, kind


def width(instruction: Instruction) -> int:
    """Bytes that a lane accesses with ld, st, atom or red."""
    count = next((int(m[1:]) for m in instruction.modifiers if m in ("v2", "v4", "v8")), 1)
    return count * next((SIZES[m] for m in reversed(instruction.modifiers) if m in SIZES), 4)


@decodes("global", "ld", "ldu")
def load(binder: Binder, instruction: Instruction) -> Step:
    modifiers = Modifiers(instruction)
    space, count, kind = access_modifiers(binder, instruction, modifiers)
    binder.count_operands(instruction, 2)
    operand = instruction.operands[1]
    elements = binder.elements(instruction.operands[0])
    if len(elements) != count:
        binder.error(instruction, f"expected {count} destinations, got {len(elements)}")
    if space == "param":
        return _load_parameter(binder, instruction, elements, operand, kind)
    if kind == "b128":
        parts = binder.wide(instruction, elements[0])
        targets, element, count = [parts[:, 0], parts[:, 1]], 8, 2
    else:
        targets = [binder.extended(instruction, e, kind) for e in elements]
        element = SIZES[kind]
    signed = kind[0] == "s"
    dtype = np.dtype(f"i{element}") if signed else np.dtype(UNSIGNED[element])
    addresses = binder.address(instruction, operand)
    read = reader(binder, instruction, space, element, count)

    def run(active: Active) -> None:
        values = read(active, addresses(active))
        if signed:
            values = values.view(dtype)
        if count == 1:
            put(targets[0], values, active)
        else:
            for i, target in enumerate(targets):
                put(target, values[:, i], active)

    return run


def _load_parameter(
    binder: Binder,
    instruction: Instruction,
    elements: tuple[Operand, ...],
    operand: Operand,
    kind: str,
) -> Step:
    if not isinstance(operand, Address) or not isinstance(operand.base, Symbol):
        binder.error(instruction, "expected the name of a parameter as the address")
    parameter = binder.parameter(instruction, operand.base.name)
    offset = parameter.offset + operand.base.offset + operand.offset
    size = SIZES[kind]
    if (
        offset < parameter.offset
        or offset + size * len(elements) > parameter.offset + parameter.size
    ):
        binder.error(instruction, f"expected an address inside of parameter {parameter.name}")
    targets = [binder.extended(instruction, e, kind) for e in elements]
    dtype = np.dtype(f"{'i' if kind[0] == 's' else 'u'}{size}")

    def run(active: Active) -> None:
        values = np.frombuffer(binder.launch.parameters, dtype, len(targets), offset)
        for target, value in zip(targets, values, strict=True):
            assign(target, value, active)

    return run


@decodes("global", "st")
def store(binder: Binder, instruction: Instruction) -> Step:
    modifiers = Modifiers(instruction)
    space, count, kind = access_modifiers(binder, instruction, modifiers)
    binder.count_operands(instruction, 2)
    if space in ("param", "const"):
        binder.error(instruction, f"unsupported store to .{space} memory")
    elements = binder.elements(instruction.operands[1])
    if len(elements) != count:
        binder.error(instruction, f"expected {count} values, got {len(elements)}")
    if kind == "b128":
        parts = binder.wide(instruction, elements[0])
        sources, element, count = [parts[:, 0], parts[:, 1]], 8, 2
    else:
        sources = [binder.source(instruction, e, kind, wider=True) for e in elements]
        element = SIZES[kind]
    dtype = UNSIGNED[element]
    addresses = binder.address(instruction, instruction.operands[0])
    write = writer(binder, instruction, space, element, count)

    def run(active: Active) -> None:
        if count == 1:
            values = over_lanes(sources[0], active).view(dtype)
        else:
            values = np.empty((active.count, count), dtype)
            for i, value in enumerate(sources):
                values[:, i] = (
                    value if active.lanes is None or np.ndim(value) == 0 else value[active.lanes]
                )
        write(active, addresses(active), values)

    return run


def reader(
    binder: Binder, instruction: Instruction, space: str, element: int, count: int
) -> Reader:
    """A function (active, int64 addresses) to [n] or [n, count] unsigned elements."""
    counting = Counting(binder, instruction, False)
    size = element * count

    def from_global(active: Active, addresses: np.ndarray) -> np.ndarray:
        values = binder.globals.load(
            instruction, addresses.view(np.uint64), active.lanes, element, count
        )
        counting.of_global(addresses, active)
        return values

    def from_shared(active: Active, offsets: np.ndarray) -> np.ndarray:
        values = binder.shared.load(instruction, offsets, active.lanes, element, count)
        counting.of_shared(offsets, active, size)
        return values

    def from_local(active: Active, offsets: np.ndarray) -> np.ndarray:
        return binder.local.load(instruction, offsets, active.lanes, element, count)

    def from_constants(active: Active, offsets: np.ndarray) -> np.ndarray:
        return binder.constants.load(instruction, offsets, active.lanes, element, count)

    spaces = (from_global, from_shared, from_local, from_constants)
    names = ("global", "shared", "local", "const")
    if space in names:
        return spaces[names.index(space)]

    def from_anywhere(active: Active, addresses: np.ndarray) -> np.ndarray:
        windows = addresses >> 56
        if (windows == windows[0]).all():
            window = _window(windows[0])
            return spaces[window](active, addresses - (window << 56))
        result = np.empty(
            (addresses.size, count) if count > 1 else addresses.size, UNSIGNED[element]
        )
        for window, part, index in split_windows(active, windows):
            result[index] = spaces[window](part, addresses[index] - (window << 56))
        return result

    return from_anywhere


def writer(
    binder: Binder, instruction: Instruction, space: str, element: int, count: int
) -> Writer:
    """A function (active, int64 addresses, values) that stores [n] or [n, count] elements."""
    counting = Counting(binder, instruction, True)
    size = element * count

    def to_global(active: Active, addresses: np.ndarray, values: np.ndarray) -> None:
        binder.globals.store(
            instruction, addresses.view(np.uint64), active.lanes, values, element, count
        )
        counting.of_global(addresses, active)

    def to_shared(active: Active, offsets: np.ndarray, values: np.ndarray) -> None:
        binder.shared.store(instruction, offsets, active.lanes, values, element, count)
        counting.of_shared(offsets, active, size)

    def to_local(active: Active, offsets: np.ndarray, values: np.ndarray) -> None:
        binder.local.store(instruction, offsets, active.lanes, values, element, count)

    def to_constants(active: Active, offsets: np.ndarray, values: np.ndarray) -> NoReturn:
        lane = int(np.flatnonzero(active.here)[0])
        binder.machine.fault(instruction, "out of bounds", "a store to constant memory", lane)

    spaces = (to_global, to_shared, to_local, to_constants)
    names = ("global", "shared", "local")
    if space in names:
        return spaces[names.index(space)]

    def to_anywhere(active: Active, addresses: np.ndarray, values: np.ndarray) -> None:
        windows = addresses >> 56
        for window, part, index in split_windows(active, windows):
            spaces[window](part, addresses[index] - (window << 56), values[index])

    return to_anywhere


def _window(number: np.integer) -> int:
    """0 for global, 1 for shared, 2 for local, 3 for constant memory; others count as global."""
    return int(number) if SHARED_WINDOW >> 56 <= number <= CONSTANT_WINDOW >> 56 else 0


def split_windows(
    active: Active, windows: np.ndarray
) -> Iterator[tuple[int, Active, np.ndarray | slice]]:
    """Parts of the active lanes by state space: (window, lanes, their places among the active)."""
    everyone = np.flatnonzero(active.here)
    for number in np.unique(windows):
        index = np.flatnonzero(windows == number)
        if index.size == windows.size:
            yield _window(number), active, slice(None)
        else:
            here = np.zeros_like(active.here)
            here[everyone[index]] = True
            yield _window(number), Active(here, index.size, False), index


def category(instruction: Instruction) -> str:
    """The class of an access in the counters."""
    names = {m.split("::")[0] for m in instruction.modifiers}
    for space in ("shared", "local"):
        if space in names:
            return space
    if "param" in names:
        return "parameter"
    return "constant" if "const" in names else "global"
