# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""cvt: conversions between integers and floating-point types, also packed ones."""

import numpy as np

from twofour.sim import numerics
from twofour.sim.decode import Binder, Modifiers, Step, Unary, Value, assign, bits_dtype, decodes
from twofour.sim.machine import Active
from twofour.sim.ptx import Instruction

_INTEGERS = tuple(f"{sign}{bits}" for sign in "us" for bits in (8, 16, 32, 64))
_FLOATS = ("f16", "bf16", "tf32", "f32", "f64")
_PACKED = ("f16x2", "bf16x2", "e4m3x2", "e5m2x2")
_WHOLE = ("rni", "rzi", "rmi", "rpi")
_MODES = ("rn", "rna", "rz", "rm", "rp")
_STORAGE = {"tf32": "b32", "f16x2": "b32", "bf16x2": "b32", "e4m3x2": "b16", "e5m2x2": "b16"}


@decodes("convert", "cvt")
def convert(binder: Binder, instruction: Instruction) -> Step:
    modifiers = Modifiers(instruction)
    if modifiers.flag("pack"):
        return _convert_pack(binder, instruction, modifiers)
    kinds = [m for m in modifiers.left if m in (*_INTEGERS, *_FLOATS, *_PACKED)]
    if len(kinds) != 2:
        binder.error(instruction, f"expected two types in {instruction.opcode}")
    modifiers.left = [m for m in modifiers.left if m not in kinds]
    to, origin = kinds
    if to in _PACKED or origin in _PACKED:
        return _convert_packed(binder, instruction, modifiers, to, origin)
    function = _conversion(binder, instruction, modifiers, to, origin)
    modifiers.done()
    binder.count_operands(instruction, 2)
    storage = _STORAGE.get(to, to)
    target = binder.extended(instruction, instruction.operands[0], storage)
    value = binder.source(
        instruction, instruction.operands[1], _STORAGE.get(origin, origin), wider=True
    )
    return lambda active: assign(target, function(value), active)


def _conversion(
    binder: Binder, instruction: Instruction, modifiers: Modifiers, to: str, origin: str
) -> Unary:
    """A function from values or bits of one type to those of the other."""
    if to in _INTEGERS and origin in _INTEGERS:
        saturate = modifiers.flag("sat")
        return _integer_to_integer(to, origin, saturate)
    ftz = "f32" in (to, origin) and modifiers.flag("ftz")
    if origin in _INTEGERS:
        mode = modifiers.need(*_MODES)
        saturate = modifiers.flag("sat")

        def from_integer(values: Value) -> np.ndarray:
            bits = numerics.int_to_float(values, to, mode)
            return numerics.round_to(numerics.widen(bits, to), to, sat=True) if saturate else bits

        return from_integer
    if to in _INTEGERS:
        mode = modifiers.need(*_WHOLE)
        modifiers.flag("sat")  # Conversions to integers always clamp.

        def to_integer(bits: Value) -> np.ndarray:
            return numerics.float_to_int(_values(bits, origin, ftz), to, mode, origin)

        return to_integer
    whole = modifiers.take(*_WHOLE)
    mode = modifiers.take(*_MODES, default="rn")
    options = {"mode": mode, "ftz": ftz and to == "f32"}
    options |= {name: modifiers.flag(name) for name in ("sat", "relu", "satfinite")}

    def between_floats(bits: Value) -> np.ndarray:
        values = _values(bits, origin, ftz)
        if whole:
            values = numerics.round_to_whole(values, whole)
        return numerics.round_to(values, to, **options)

    return between_floats


def _values(bits: Value, kind: str, ftz: bool) -> np.ndarray:
    values = numerics.widen(bits, kind)
    if ftz and kind == "f32":
        return np.where(np.abs(values) < 2.0**-126, np.copysign(0.0, values), values)
    return values


def _integer_to_integer(to: str, origin: str, saturate: bool) -> Unary:
    dtype = bits_dtype(to)
    if not saturate:
        return lambda values: values.astype(dtype)
    limits, source = np.iinfo(dtype), np.iinfo(bits_dtype(origin))
    low, high = max(limits.min, source.min), min(limits.max, source.max)
    return lambda values: np.clip(values, low, high).astype(dtype)


def _convert_packed(
    binder: Binder, instruction: Instruction, modifiers: Modifiers, to: str, origin: str
) -> Step:
    """Two values at once: from one packed register or from two f32 (the first is the high one)."""
    mode = modifiers.need(*_MODES)
    options = {"mode": mode, "relu": modifiers.flag("relu")}
    options["satfinite"] = modifiers.flag("satfinite")
    modifiers.done()
    packed_source = origin.endswith("x2")
    binder.count_operands(instruction, 2 if packed_source else 3)
    if to not in _PACKED or (not packed_source and origin != "f32"):
        binder.error(instruction, f"unsupported types of {instruction.opcode}")
    scalar, part = to.removesuffix("x2"), origin.removesuffix("x2")
    target = binder.destination(instruction, instruction.operands[0], _STORAGE[to])
    sources = [
        binder.source(instruction, o, _STORAGE.get(origin, origin))
        for o in instruction.operands[1:]
    ]
    lanes = len(target)

    def run(active: Active) -> None:
        if packed_source:
            halves = np.atleast_1d(sources[0]).view(numerics.KINDS[part].dtype).reshape(-1, 2)
        else:
            halves = np.empty((lanes, 2), np.uint32)
            halves[:, 0], halves[:, 1] = sources[1], sources[0]
        bits = numerics.round_to(numerics.widen(halves, part), scalar, **options)
        assign(target, np.ascontiguousarray(bits).view(target.dtype)[:, 0], active)

    return run


def _convert_pack(binder: Binder, instruction: Instruction, modifiers: Modifiers) -> Step:
    """cvt.pack.sat: two s32 clamped and packed, below what a third operand holds."""
    modifiers.need("sat")
    kinds = modifiers.left
    if len(kinds) < 2 or kinds[0] not in ("u8", "s8", "u16", "s16") or kinds[1] != "s32":
        binder.error(instruction, f"unsupported types of {instruction.opcode}")
    narrow = kinds[0]
    three = kinds[2:] == ["b32"]
    if kinds[2:] not in ([], ["b32"]) or three != (narrow in ("u8", "s8")):
        binder.error(instruction, f"unsupported types of {instruction.opcode}")
    binder.count_operands(instruction, 4 if three else 3)
    target = binder.destination(instruction, instruction.operands[0], "b32")
    a, b = (binder.source(instruction, o, "s32") for o in instruction.operands[1:3])
    rest = binder.source(instruction, instruction.operands[3], "b32") if three else np.uint32(0)
    limits = np.iinfo(bits_dtype(narrow))
    bits = np.uint32(limits.bits)
    mask = np.uint32((1 << limits.bits) - 1)

    def run(active: Active) -> None:
        high, low = (
            np.clip(np.asarray(v), limits.min, limits.max).astype(np.uint32) & mask for v in (a, b)
        )
        above = rest << np.uint32(2 * limits.bits) if three else np.uint32(0)
        assign(target, above | (high << bits) | low, active)

    return run
