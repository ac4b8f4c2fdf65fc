# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Integer arithmetic."""

from collections.abc import Callable

import numpy as np

from twofour.sim.decode import Binary, Binder, Modifiers, Step, Value, assign, decodes
from twofour.sim.machine import Active
from twofour.sim.ptx import Instruction
from twofour.sim.variables import SIZES

INTEGERS = ("u16", "u32", "u64", "s16", "s32", "s64")
BITS = ("b16", "b32", "b64")
_WIDE = {"u16": "u32", "s16": "s32", "u32": "u64", "s32": "s64"}


def is_integer(instruction: Instruction) -> bool:
    return not {"f16", "f16x2", "bf16", "bf16x2", "f32", "f32x2", "f64"} & set(
        instruction.modifiers
    )


def arithmetic(binder: Binder, instruction: Instruction) -> Step:
    """add, sub, mul, mad, div, rem, min, max, abs, neg of integers."""
    modifiers = Modifiers(instruction)
    root = instruction.root
    kind = modifiers.need(*INTEGERS, *(("u16x2", "s16x2") if root in ("add", "min", "max") else ()))
    if kind.endswith("x2"):
        modifiers.done()
        return _packed(binder, instruction, kind)
    carry = modifiers.take("cc")
    if root in ("add", "sub", "mad") and carry:
        return _with_carry(binder, instruction, modifiers, kind, True)
    if root in ("addc", "subc", "madc"):
        return _with_carry(binder, instruction, modifiers, kind, bool(carry))
    if carry:
        binder.error(instruction, f"unsupported modifier .cc of {instruction.opcode}")
    part = modifiers.need("lo", "hi", "wide") if root in ("mul", "mad") else None
    may_saturate = kind == "s32" and (root in ("add", "sub") or (root, part) == ("mad", "hi"))
    saturate = may_saturate and modifiers.flag("sat")
    modifiers.done()
    counts = {"mad": 4, "abs": 2, "neg": 2}
    binder.count_operands(instruction, counts.get(root, 3))
    target_kind = _WIDE[kind] if part == "wide" else kind
    target = binder.destination(instruction, instruction.operands[0], target_kind)
    sources = [binder.source(instruction, o, kind) for o in instruction.operands[1:3]]
    if root in ("mul", "mad"):
        product = _product(kind, part)
        if root == "mul":
            return lambda active: assign(target, product(*sources), active)
        addend = binder.source(instruction, instruction.operands[3], target_kind)
        if saturate:
            return _saturating(target, np.add, lambda: product(*sources), addend)
        return lambda active: np.add(product(*sources), addend, out=target, where=active.mask)
    if saturate:
        first, second = sources
        operation = np.add if root == "add" else np.subtract
        return _saturating(target, operation, lambda: first, second)
    if root in ("div", "rem"):
        divide = _quotient if root == "div" else _remainder
        return lambda active: assign(target, divide(*sources, kind), active)
    operation = _SIMPLE[root]
    return lambda active: operation(*sources, out=target, where=active.mask)


_SIMPLE = {
    "add": np.add,
    "sub": np.subtract,
    "min": np.minimum,
    "max": np.maximum,
    "abs": np.absolute,
    "neg": np.negative,
}


def _packed(binder: Binder, instruction: Instruction, kind: str) -> Step:
    binder.count_operands(instruction, 3)
    dtype = np.int16 if kind[0] == "s" else np.uint16
    target = binder.destination(instruction, instruction.operands[0], "b32")
    sources = [binder.source(instruction, o, "b32") for o in instruction.operands[1:]]
    operation = _SIMPLE[instruction.root]

    def run(active: Active) -> None:
        parts = [np.ascontiguousarray(s).view(dtype) for s in sources]
        result = operation(*np.broadcast_arrays(*(p.reshape(-1, 2) for p in parts)))
        assign(target, np.ascontiguousarray(result).view(np.uint32)[:, 0], active)

    return run


def _product(kind: str, part: str) -> Binary:
    """A function of two operands of a type that gives the wanted part of their product."""
    if part == "lo":
        return np.multiply
    bits = 8 * SIZES[kind]
    if bits == 64 and part == "hi":
        return _high_u64 if kind == "u64" else _high_s64
    wide = {"u16": np.uint32, "s16": np.int32, "u32": np.uint64, "s32": np.int64}[kind]
    if part == "wide":
        return lambda a, b: np.multiply(a, b, dtype=wide)
    return lambda a, b: np.multiply(a, b, dtype=wide) >> wide(bits)


def _high_u64(a: Value, b: Value) -> Value:
    low = np.uint64(0xFFFFFFFF)
    half = np.uint64(32)
    a_high, a_low, b_high, b_low = a >> half, a & low, b >> half, b & low
    middle = a_high * b_low + (a_low * b_low >> half)
    other = a_low * b_high + (middle & low)
    return a_high * b_high + (middle >> half) + (other >> half)


def _high_s64(a: Value, b: Value) -> Value:
    unsigned = _high_u64(a.astype(np.uint64), b.astype(np.uint64)).astype(np.int64)
    return unsigned - np.where(a < 0, b, np.int64(0)) - np.where(b < 0, a, np.int64(0))


def _quotient(a: Value, b: Value, kind: str) -> np.ndarray:
    """Division towards zero; by zero it gives all ones, as the hardware does."""
    if kind[0] == "u":
        result = np.floor_divide(a, np.where(b == 0, b.dtype.type(1), b))
    else:
        result = (a - np.fmod(a, np.where(b == 0, b.dtype.type(1), b))) // np.where(
            b == 0, b.dtype.type(1), b
        )
    return np.where(
        b == 0, result.dtype.type(-1 if kind[0] == "s" else ~result.dtype.type(0)), result
    )


def _remainder(a: Value, b: Value, kind: str) -> np.ndarray:
    return np.where(b == 0, a, np.fmod(a, np.where(b == 0, b.dtype.type(1), b)))


def _saturating(
    target: np.ndarray, operation: Binary, first: Callable[[], Value], second: Value
) -> Step:
    limits = np.iinfo(np.int32)

    def run(active: Active) -> None:
        wide = operation(np.asarray(first()).astype(np.int64), np.asarray(second).astype(np.int64))
        assign(target, np.clip(wide, limits.min, limits.max), active)

    return run


def _with_carry(
    binder: Binder, instruction: Instruction, modifiers: Modifiers, kind: str, keep: bool
) -> Step:
    """Arithmetic that reads (addc, subc, madc) or writes (.cc) the carry of each lane."""
    root = instruction.root
    part = modifiers.need("lo", "hi") if root in ("madc", "mad") else None
    modifiers.done()
    unsigned = "u" + kind[1:]
    binder.count_operands(instruction, 4 if part else 3)
    target = binder.destination(instruction, instruction.operands[0], unsigned)
    sources = [binder.source(instruction, o, unsigned) for o in instruction.operands[1:]]
    carry = binder.carry
    reads = root.endswith("c")
    product = _product(unsigned, part) if part else None

    def run(active: Active) -> None:
        if product:
            # The upper half of a product comes in twice its bits.
            first, second = product(*sources[:2]).astype(target.dtype), sources[2]
        else:
            first, second = sources
        one = carry.astype(target.dtype) if reads else target.dtype.type(0)
        if root.startswith("sub"):
            result = first - second - one
            out = (first < second) | ((first == second) & (one != 0))
        else:
            result = first + second + one
            out = (result < first) | ((result == first) & (one != 0))
        assign(target, result, active)
        if keep:
            assign(carry, out, active)

    return run


@decodes("integer", "sad")
def absolute_difference(binder: Binder, instruction: Instruction) -> Step:
    modifiers = Modifiers(instruction)
    kind = modifiers.need(*INTEGERS)
    modifiers.done()
    binder.count_operands(instruction, 4)
    target = binder.destination(instruction, instruction.operands[0], kind)
    a, b, c = (binder.source(instruction, o, kind) for o in instruction.operands[1:])
    return lambda active: assign(target, c + np.where(a < b, b - a, a - b), active)


@decodes("integer", "dp4a", "dp2a")
def dot_product(binder: Binder, instruction: Instruction) -> Step:
    modifiers = Modifiers(instruction)
    four = instruction.root == "dp4a"
    high = not four and modifiers.need("lo", "hi") == "hi"
    kinds = modifiers.left[:]
    if len(kinds) != 2 or not set(kinds) <= {"u32", "s32"}:
        binder.error(instruction, f"expected two types of u32 or s32 in {instruction.opcode}")
    binder.count_operands(instruction, 4)
    result_kind = "s32" if "s32" in kinds else "u32"
    target = binder.destination(instruction, instruction.operands[0], result_kind)
    a, b, c = (binder.source(instruction, o, "b32") for o in instruction.operands[1:])
    addend = binder.source(instruction, instruction.operands[3], result_kind)

    def parts(value: Value, kind: str, bits: int) -> np.ndarray:
        dtype = np.dtype(f"{'i' if kind[0] == 's' else 'u'}{bits // 8}")
        lanes = np.broadcast_to(value, target.shape)
        return np.ascontiguousarray(lanes).view(dtype).reshape(len(target), -1).astype(np.int64)

    def run(active: Active) -> None:
        first = parts(a, kinds[0], 8 if four else 16)
        second = parts(b, kinds[1], 8)
        if not four:
            second = second[:, 2:] if high else second[:, :2]
        total = (first * second).sum(axis=1)
        assign(target, total + np.asarray(addend).astype(np.int64), active)

    return run


@decodes("integer", "addc", "subc", "madc")
def carrying(binder: Binder, instruction: Instruction) -> Step:
    return arithmetic(binder, instruction)


@decodes("integer", "mul24", "mad24")
def short_product(binder: Binder, instruction: Instruction) -> Step:
    """Products of the low 24 bits of 32-bit registers."""
    modifiers = Modifiers(instruction)
    high = modifiers.need("lo", "hi") == "hi"
    kind = modifiers.need("u32", "s32")
    modifiers.done()
    add = instruction.root == "mad24"
    binder.count_operands(instruction, 4 if add else 3)
    target = binder.destination(instruction, instruction.operands[0], kind)
    sources = [binder.source(instruction, o, kind) for o in instruction.operands[1:]]

    def narrow(value: Value) -> Value:
        shifted = np.asarray(value) << value.dtype.type(8)
        return (shifted >> value.dtype.type(8)).astype(np.int64)

    def run(active: Active) -> None:
        product = narrow(sources[0]) * narrow(sources[1])
        result = product >> 16 if high else product
        assign(target, result + np.asarray(sources[2]).astype(np.int64) if add else result, active)

    return run
