# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Logic, shifts, counts of bits, bit fields and permutations of bytes."""

import numpy as np

from twofour.sim.decode import Binder, Modifiers, Step, assign, decodes, integer_of
from twofour.sim.integer import BITS, INTEGERS
from twofour.sim.machine import Active
from twofour.sim.ptx import Instruction
from twofour.sim.variables import SIZES


@decodes("integer", "and", "or", "xor", "not", "cnot")
def logic(binder: Binder, instruction: Instruction) -> Step:
    modifiers = Modifiers(instruction)
    kind = modifiers.need(*BITS, "pred")
    modifiers.done()
    root = instruction.root
    binder.count_operands(instruction, 2 if root in ("not", "cnot") else 3)
    target = binder.destination(instruction, instruction.operands[0], kind)
    sources = [binder.source(instruction, o, kind) for o in instruction.operands[1:]]
    if root == "cnot":
        return lambda active: assign(target, sources[0] == 0, active)
    names = {"and": "bitwise_and", "or": "bitwise_or", "xor": "bitwise_xor", "not": "invert"}
    operation = getattr(np, names[root])
    return lambda active: operation(*sources, out=target, where=active.mask)


@decodes("integer", "shl", "shr")
def shift(binder: Binder, instruction: Instruction) -> Step:
    modifiers = Modifiers(instruction)
    kind = modifiers.need(*BITS, *(INTEGERS if instruction.root == "shr" else ()))
    modifiers.done()
    binder.count_operands(instruction, 3)
    target = binder.destination(instruction, instruction.operands[0], kind)
    value = binder.source(instruction, instruction.operands[1], kind)
    # NumPy's shifts by the width or more give zero, or copies of the sign, as PTX has it.
    amount = binder.source(instruction, instruction.operands[2], "u32")
    dtype = target.dtype
    operation = np.left_shift if instruction.root == "shl" else np.right_shift
    if not isinstance(amount, np.ndarray):
        amount = dtype.type(min(int(amount), 8 * dtype.itemsize))
        return lambda active: operation(value, amount, out=target, where=active.mask)
    limit = np.uint32(8 * dtype.itemsize)

    def run(active: Active) -> None:
        clamped = np.minimum(amount, limit).astype(dtype)
        operation(value, clamped, out=target, where=active.mask)

    return run


@decodes("integer", "shf")
def funnel_shift(binder: Binder, instruction: Instruction) -> Step:
    modifiers = Modifiers(instruction)
    left = modifiers.need("l", "r") == "l"
    wrap = modifiers.need("wrap", "clamp") == "wrap"
    modifiers.need("b32")
    modifiers.done()
    binder.count_operands(instruction, 4)
    target = binder.destination(instruction, instruction.operands[0], "b32")
    low, high, amount = (binder.source(instruction, o, "u32") for o in instruction.operands[1:])

    def run(active: Active) -> None:
        both = (np.uint64(high) << np.uint64(32)) | np.uint64(low)
        shift = amount & np.uint32(31) if wrap else np.minimum(amount, np.uint32(32))
        shift = np.uint64(shift)
        result = both >> (np.uint64(32) - shift) if left else both >> shift
        assign(target, result, active)

    return run


@decodes("integer", "popc", "clz", "brev", "bfind")
def count_bits(binder: Binder, instruction: Instruction) -> Step:
    modifiers = Modifiers(instruction)
    root = instruction.root
    amount = root == "bfind" and modifiers.flag("shiftamt")
    kind = modifiers.need(*(INTEGERS[1:3] + INTEGERS[4:] if root == "bfind" else BITS[1:]))
    modifiers.done()
    binder.count_operands(instruction, 2)
    bits = 8 * SIZES[kind]
    target = binder.destination(
        instruction, instruction.operands[0], kind if root == "brev" else "u32"
    )
    value = binder.source(instruction, instruction.operands[1], kind)
    unsigned = np.uint32 if bits == 32 else np.uint64

    def run(active: Active) -> None:
        number = np.asarray(value)
        if root == "popc":
            result = np.bitwise_count(number)
        elif root == "brev":
            result = _reversed(number, bits)
        else:
            if kind[0] == "s":
                number = np.where(number < 0, ~number, number)
            highest = _highest_bit(number.astype(unsigned))
            if root == "clz":
                result = bits - 1 - highest
            else:
                none = highest < 0
                result = np.where(none, 0xFFFFFFFF, bits - 1 - highest if amount else highest)
        assign(target, result, active)

    return run


def _reversed(number: np.ndarray, bits: int) -> np.ndarray:
    result = number
    shift = bits // 2
    mask = (1 << bits) - 1
    while shift:
        mask ^= mask << shift & (1 << bits) - 1
        low = number.dtype.type(mask)
        by = number.dtype.type(shift)
        result = ((result >> by) & low) | ((result & low) << by)
        shift //= 2
    return result


def _highest_bit(number: np.ndarray) -> np.ndarray:
    """Place of the highest one, -1 for zero."""
    number = np.array(number, np.uint64)
    place = np.where(number == 0, -1, 0)
    for shift in (32, 16, 8, 4, 2, 1):
        high = number >> np.uint64(shift)
        some = high != 0
        place += np.where(some, shift, 0)
        number = np.where(some, high, number)
    return place


@decodes("integer", "bfe", "bfi")
def bit_field(binder: Binder, instruction: Instruction) -> Step:
    modifiers = Modifiers(instruction)
    extract = instruction.root == "bfe"
    kind = modifiers.need(*("u32", "s32", "u64", "s64") if extract else ("b32", "b64"))
    modifiers.done()
    binder.count_operands(instruction, 4 if extract else 5)
    bits = 8 * SIZES[kind]
    plain = np.uint32 if bits == 32 else np.uint64
    operands = instruction.operands
    target = binder.destination(instruction, operands[0], "b" + kind[1:])
    values = [binder.source(instruction, o, "b" + kind[1:]) for o in operands[1:-2]]
    position, length = (binder.source(instruction, o, "u32") for o in operands[-2:])

    def ones(count: np.ndarray) -> np.ndarray:
        """That many low ones."""
        return ~(~plain(0) << np.minimum(count, bits).astype(plain))

    def run(active: Active) -> None:
        start = (np.asarray(position) & 0xFF).astype(np.int64)
        count = (np.asarray(length) & 0xFF).astype(np.int64)
        begin = np.minimum(start, bits).astype(plain)
        if not extract:
            mask = ones(count) << begin
            result = (values[1] & ~mask) | ((values[0] << begin) & mask)
        else:
            value = values[0]
            mask = ones(count)
            result = (value >> begin) & mask
            if kind[0] == "s":
                last = np.minimum(start + count - 1, bits - 1)
                sign = (value >> np.maximum(last, 0).astype(plain)) & plain(1)
                valid = np.minimum(count, np.maximum(bits - start, 0))
                result = np.where((sign != 0) & (count > 0), result | ~ones(valid), result)
        assign(target, result, active)

    return run


@decodes("integer", "prmt")
def permute_bytes(binder: Binder, instruction: Instruction) -> Step:
    modifiers = Modifiers(instruction)
    modifiers.need("b32")
    mode = modifiers.take("f4e", "b4e", "rc8", "ecl", "ecr", "rc16")
    modifiers.done()
    binder.count_operands(instruction, 4)
    target = binder.destination(instruction, instruction.operands[0], "b32")
    low, high, control = (binder.source(instruction, o, "u32") for o in instruction.operands[1:])
    table = None if mode is None else np.array(_PRMT_MODES[mode])

    def run(active: Active) -> None:
        both = (np.uint64(high) << np.uint64(32)) | np.uint64(low)
        result = np.uint32(0)
        for i in range(4):
            if table is None:
                choice = (control >> np.uint32(4 * i)) & np.uint32(15)
            else:
                choice = table[control & np.uint32(3), i]
            byte = (both >> (np.uint64(8) * np.uint64(choice & 7))) & np.uint64(0xFF)
            sign = np.where(byte & np.uint64(0x80), np.uint64(0xFF), np.uint64(0))
            byte = np.where(np.asarray(choice & 8) != 0, sign, byte)
            result = result | (byte.astype(np.uint32) << np.uint32(8 * i))
        assign(target, result, active)

    return run


_PRMT_MODES = {
    "f4e": [[0, 1, 2, 3], [1, 2, 3, 4], [2, 3, 4, 5], [3, 4, 5, 6]],
    "b4e": [[0, 7, 6, 5], [1, 0, 7, 6], [2, 1, 0, 7], [3, 2, 1, 0]],
    "rc8": [[0] * 4, [1] * 4, [2] * 4, [3] * 4],
    "ecl": [[0, 1, 2, 3], [1, 1, 2, 3], [2, 2, 2, 3], [3, 3, 3, 3]],
    "ecr": [[0, 0, 0, 0], [0, 1, 1, 1], [0, 1, 2, 2], [0, 1, 2, 3]],
    "rc16": [[0, 1, 0, 1], [2, 3, 2, 3], [0, 1, 0, 1], [2, 3, 2, 3]],
}


@decodes("integer", "lop3")
def lookup_logic(binder: Binder, instruction: Instruction) -> Step:
    modifiers = Modifiers(instruction)
    modifiers.need("b32")
    modifiers.done()
    binder.count_operands(instruction, 5)
    target = binder.destination(instruction, instruction.operands[0], "b32")
    a, b, c = (binder.source(instruction, o, "b32") for o in instruction.operands[1:4])
    table = integer_of(instruction.operands[4])
    if table is None or not 0 <= table <= 255:
        binder.error(instruction, "expected a constant below 256 as the table of lop3")

    def run(active: Active) -> None:
        result = np.zeros(target.shape, np.uint32)
        for row in range(8):
            if table >> row & 1:
                term = a if row & 4 else ~a
                term = term & (b if row & 2 else ~b)
                result |= term & (c if row & 1 else ~c)
        assign(target, result, active)

    return run
