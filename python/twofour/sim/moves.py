# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Moves, address conversions, selections and comparisons."""

from collections.abc import Callable

import numpy as np

from twofour.errors import TwofourError
from twofour.sim import numerics
from twofour.sim.decode import Binder, Modifiers, Step, Value, assign, decodes, pair
from twofour.sim.integer import BITS, INTEGERS
from twofour.sim.machine import (
    CONSTANT_WINDOW,
    LOCAL_WINDOW,
    PARAMETER_WINDOW,
    SHARED_WINDOW,
    Active,
)
from twofour.sim.ptx import Immediate, Instruction, Operand, Register, Vector
from twofour.sim.special import SPECIAL_REGISTERS
from twofour.sim.variables import SIZES

_VALUES = (*BITS, *INTEGERS, "f32", "f64")


@decodes("move", "mov")
def move(binder: Binder, instruction: Instruction) -> Step:
    modifiers = Modifiers(instruction)
    kind = modifiers.need(*_VALUES, "pred", "b128", "f16", "bf16", "f16x2", "bf16x2")
    modifiers.done()
    binder.count_operands(instruction, 2)
    to, origin = instruction.operands
    if kind == "pred" and Vector in (type(to), type(origin)):
        binder.error(instruction, "expected a predicate, got a vector")
    if isinstance(to, Vector):
        return _unpack(binder, instruction, to, origin, kind)
    if isinstance(origin, Vector):
        return _pack(binder, instruction, to, origin, kind)
    if kind == "b128":
        target, value = binder.wide(instruction, to), binder.wide(instruction, origin)
        return lambda active: np.copyto(
            target, value, where=True if active.mask is True else active.mask[:, None]
        )
    target = binder.destination(instruction, to, kind)
    if isinstance(origin, Register) and SPECIAL_REGISTERS.get(origin.name, True) is None:
        return lambda active: assign(target, binder.machine.step, active)
    # A 32-bit move may take a special register or a literal of another type by its bits.
    if isinstance(origin, Immediate) and origin.bits == 32 and kind[0] in "us":
        kind = "b32"
    value = binder.source(instruction, origin, kind)
    return lambda active: np.copyto(target, value, where=active.mask)


def _parts(binder: Binder, instruction: Instruction, vector: Vector, size: int) -> int:
    """Size of the elements of a vector that makes up `size` bytes."""
    part, rest = divmod(size, len(vector.elements))
    if rest or part not in (1, 2, 4, 8):
        binder.error(instruction, f"expected 2 or 4 elements, got {len(vector.elements)}")
    return part


def _unpack(
    binder: Binder, instruction: Instruction, to: Vector, origin: Operand, kind: str
) -> Step:
    size = SIZES[kind]
    part = _parts(binder, instruction, to, size)
    dtype = f"u{part}"
    targets = [
        None
        if isinstance(e, Register) and e.name == "_"
        else binder.destination(instruction, e, f"b{8 * part}")
        for e in to.elements
    ]
    if kind == "b128":
        value = binder.wide(instruction, origin)
    else:
        value = binder.source(instruction, origin, kind)

    def run(active: Active) -> None:
        pieces = np.ascontiguousarray(value).view(dtype).reshape(-1, len(targets))
        if any(t is not None and np.shares_memory(t, value) for t in targets):
            pieces = pieces.copy()
        for i, target in enumerate(targets):
            if target is not None:
                assign(target, pieces[:, i], active)

    return run


def _pack(binder: Binder, instruction: Instruction, to: Operand, origin: Vector, kind: str) -> Step:
    size = SIZES[kind]
    part = _parts(binder, instruction, origin, size)
    elements = [binder.source(instruction, e, f"b{8 * part}") for e in origin.elements]
    if kind == "b128":
        target = binder.wide(instruction, to)
    else:
        target = binder.destination(instruction, to, kind)
    lanes = len(target)
    count = len(elements)

    def run(active: Active) -> None:
        pieces = np.empty((lanes, count), f"u{part}")
        for i, element in enumerate(elements):
            pieces[:, i] = element
        value = pieces.view(target.dtype)
        value = value.reshape(target.shape)
        mask = active.mask
        if mask is not True and value.ndim > 1:
            mask = mask[:, None]
        np.copyto(target, value, where=mask)

    return run


@decodes("move", "cvta")
def convert_address(binder: Binder, instruction: Instruction) -> Step:
    modifiers = Modifiers(instruction)
    back = modifiers.flag("to")
    space = modifiers.need(
        "global", "shared", "shared::cta", "shared::cluster", "local", "const", "param"
    )
    kind = modifiers.need("u64", "u32")
    modifiers.done()
    binder.count_operands(instruction, 2)
    target = binder.destination(instruction, instruction.operands[0], kind)
    value = binder.source(instruction, instruction.operands[1], kind)
    windows = {
        "shared": SHARED_WINDOW,
        "local": LOCAL_WINDOW,
        "const": CONSTANT_WINDOW,
        "param": PARAMETER_WINDOW,
    }
    window = windows.get(space.split("::")[0], 0)
    if not window or kind == "u32":
        return lambda active: np.copyto(target, value, where=active.mask)
    shift = np.uint64(window)
    operation = np.subtract if back else np.add
    return lambda active: operation(value, shift, out=target, where=active.mask)


@decodes("move", "isspacep")
def is_space(binder: Binder, instruction: Instruction) -> Step:
    modifiers = Modifiers(instruction)
    space = modifiers.need("global", "shared", "shared::cta", "shared::cluster", "local", "const")
    modifiers.done()
    binder.count_operands(instruction, 2)
    target = binder.destination(instruction, instruction.operands[0], "pred")
    value = binder.source(instruction, instruction.operands[1], "u64")
    wanted = {"shared": 1, "local": 2, "const": 3}.get(space.split("::")[0], 0)
    shift = np.uint64(SHARED_WINDOW.bit_length() - 1)
    return lambda active: assign(target, value >> shift == wanted, active)


@decodes("compare", "selp")
def select(binder: Binder, instruction: Instruction) -> Step:
    modifiers = Modifiers(instruction)
    kind = modifiers.need(*_VALUES)
    modifiers.done()
    binder.count_operands(instruction, 4)
    target = binder.destination(instruction, instruction.operands[0], kind)
    first, second = (binder.source(instruction, o, kind) for o in instruction.operands[1:3])
    condition, inverted = binder.predicate(instruction, instruction.operands[3])
    if inverted:
        first, second = second, first
    return lambda active: assign(target, np.where(condition, first, second), active)


@decodes("compare", "slct")
def select_by_sign(binder: Binder, instruction: Instruction) -> Step:
    modifiers = Modifiers(instruction)
    ftz = modifiers.flag("ftz")
    kinds = modifiers.left
    if len(kinds) != 2 or kinds[0] not in _VALUES or kinds[1] not in ("s32", "f32"):
        binder.error(instruction, "expected slct{.ftz}.type.s32 or .f32")
    binder.count_operands(instruction, 4)
    target = binder.destination(instruction, instruction.operands[0], kinds[0])
    first, second = (binder.source(instruction, o, kinds[0]) for o in instruction.operands[1:3])
    sign = binder.source(instruction, instruction.operands[3], kinds[1])

    def run(active: Active) -> None:
        if kinds[1] == "s32":
            condition = sign >= 0
        else:
            value = numerics.widen(sign, "f32")
            condition = (value >= 0) | (ftz & (np.abs(value) < 2.0**-126))
        assign(target, np.where(condition, first, second), active)

    return run


_ORDERED = {
    "eq": np.equal,
    "ne": np.not_equal,
    "lt": np.less,
    "le": np.less_equal,
    "gt": np.greater,
    "ge": np.greater_equal,
    "lo": np.less,
    "ls": np.less_equal,
    "hi": np.greater,
    "hs": np.greater_equal,
}
_UNORDERED = {"equ": "eq", "neu": "ne", "ltu": "lt", "leu": "le", "gtu": "gt", "geu": "ge"}
_FLOATS = ("f16", "f16x2", "bf16", "bf16x2", "f32", "f64")


def _comparison(modifiers: Modifiers) -> tuple[Callable[..., np.ndarray], str]:
    """A function of two operands (bits), and its type."""
    operation = modifiers.need(*_ORDERED, *_UNORDERED, "num", "nan")
    ftz = modifiers.flag("ftz")
    kind = modifiers.need(*BITS, *INTEGERS, *_FLOATS)
    scalar = kind.removesuffix("x2")
    if kind not in _FLOATS:
        if operation not in _ORDERED:
            raise _unsupported(modifiers, operation)
        return _ORDERED[operation], kind
    if operation in ("lo", "ls", "hi", "hs"):
        raise _unsupported(modifiers, operation)

    def run(a: Value, b: Value) -> np.ndarray:
        x, y = numerics.widen(a, scalar), numerics.widen(b, scalar)
        if ftz:
            least = numerics.KINDS[scalar].smallest_normal
            x, y = (np.where(np.abs(v) < least, 0.0, v) for v in (x, y))
        if operation in ("num", "nan"):
            nan = np.isnan(x) | np.isnan(y)
            return nan if operation == "nan" else ~nan
        if operation in _UNORDERED:
            return _ORDERED[_UNORDERED[operation]](x, y) | np.isnan(x) | np.isnan(y)
        result = _ORDERED[operation](x, y)
        # NumPy finds NaN unequal to everything; the ordered ne of PTX does not.
        return result & ~(np.isnan(x) | np.isnan(y)) if operation == "ne" else result

    return run, kind


def _unsupported(modifiers: Modifiers, operation: str) -> TwofourError:
    instruction = modifiers.instruction
    return TwofourError(
        f"unsupported comparison .{operation} in {instruction.opcode}", instruction.location
    )


@decodes("compare", "setp")
def set_predicate(binder: Binder, instruction: Instruction) -> Step:
    """setp.compare{.combine}.type p{|q}, a, b{, c}: q gets the combination of the inverse."""
    modifiers = Modifiers(instruction)
    combine = modifiers.take("and", "or", "xor")
    compare, kind = _comparison(modifiers)
    modifiers.done()
    binder.count_operands(instruction, 4 if combine else 3)
    first, second = pair(instruction.operands[0])
    targets = [
        None if o is None else binder.destination(instruction, o, "pred") for o in (first, second)
    ]
    packed = kind.endswith("x2")
    storage = "b32" if packed else kind
    a, b = (binder.source(instruction, o, storage) for o in instruction.operands[1:3])
    if packed and combine:
        binder.error(instruction, f"unsupported modifier .{combine} of {instruction.opcode}")
    if packed:

        def run_packed(active: Active) -> None:
            x, y = (np.atleast_1d(v).view(np.uint16).reshape(-1, 2) for v in (a, b))
            for i, target in enumerate(targets):
                if target is not None:
                    assign(target, compare(x[:, i], y[:, i]), active)

        return run_packed
    if not combine:
        target, other = targets
        if other is None:
            if compare in _ORDERED.values():
                return lambda active: compare(a, b, out=target, where=active.mask)
            return lambda active: assign(target, compare(a, b), active)

        def run_both(active: Active) -> None:
            result = compare(a, b)
            assign(target, result, active)
            assign(other, ~result, active)

        return run_both
    condition, inverted = binder.predicate(instruction, instruction.operands[3])
    join = {"and": np.logical_and, "or": np.logical_or, "xor": np.logical_xor}[combine]

    def run_combined(active: Active) -> None:
        result = compare(a, b)
        # The condition may be one of the destinations.
        with_condition = ~condition if inverted else condition.copy()
        for target, value in zip(targets, (result, ~result), strict=True):
            if target is not None:
                assign(target, join(value, with_condition), active)

    return run_combined


@decodes("compare", "set")
def set_value(binder: Binder, instruction: Instruction) -> Step:
    """set.compare{.combine}.dtype.stype d, a, b{, c}: all ones (or 1.0) where it holds."""
    modifiers = Modifiers(instruction)
    combine = modifiers.take("and", "or", "xor")
    result_kind = next((m for m in modifiers.left if m in _VALUES or m in _FLOATS), None)
    if result_kind is None:
        binder.error(instruction, f"expected a result type in {instruction.opcode}")
    modifiers.left.remove(result_kind)
    compare, kind = _comparison(modifiers)
    modifiers.done()
    binder.count_operands(instruction, 4 if combine else 3)
    target = binder.destination(instruction, instruction.operands[0], result_kind)
    storage = "b32" if kind.endswith("x2") else kind
    a, b = (binder.source(instruction, o, storage) for o in instruction.operands[1:3])
    packed = kind.endswith("x2")
    if result_kind in _FLOATS:
        one = numerics.round_to(np.ones(1), result_kind.removesuffix("x2"))[0]
    else:
        # All ones: of each half if the operands are pairs.
        one = np.array(-1).astype(np.uint16 if packed else target.dtype)
    condition = None
    if combine:
        condition, inverted = binder.predicate(instruction, instruction.operands[3])
        join = {"and": np.logical_and, "or": np.logical_or, "xor": np.logical_xor}[combine]

    def run(active: Active) -> None:
        x, y = (np.atleast_1d(v).view(np.uint16) for v in (a, b)) if packed else (a, b)
        result = compare(x, y)
        if condition is not None:
            extra = np.repeat(condition, 2) if packed else condition
            result = join(result, ~extra if inverted else extra)
        value = np.where(result, one, one.dtype.type(0))
        assign(target, value.view(np.uint32) if packed else value, active)

    return run
