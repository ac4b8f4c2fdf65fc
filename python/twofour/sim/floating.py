# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Floating-point arithmetic, and the instructions that exist for integers and floats alike."""

from collections.abc import Callable

import numpy as np

from twofour.sim import float_ops, numerics
from twofour.sim.decode import (
    Binary,
    Binder,
    Modifiers,
    Step,
    Unary,
    Value,
    assign,
    decodes,
    over_lanes,
    put,
)
from twofour.sim.integer import arithmetic, is_integer
from twofour.sim.machine import Active
from twofour.sim.ptx import Instruction

# A function of float64 values.
RealFunction = Callable[[np.ndarray], np.ndarray]

FLOATS = ("f16", "f16x2", "bf16", "bf16x2", "f32", "f64")
ROUNDINGS = ("rn", "rz", "rm", "rp")
_SHARED = ("add", "sub", "mul", "mad", "div", "min", "max", "abs", "neg", "rem")
_SIGN = {"f16": 0x8000, "bf16": 0x8000, "f32": 1 << 31, "f64": 1 << 63}


@decodes("float", "fma", "rcp", "sqrt", "rsqrt", "sin", "cos", "lg2", "ex2", "tanh")
def float_only(binder: Binder, instruction: Instruction) -> Step:
    return float_arithmetic(binder, instruction)


@decodes("arithmetic", *_SHARED)
def any_arithmetic(binder: Binder, instruction: Instruction) -> Step:
    if is_integer(instruction):
        return arithmetic(binder, instruction)
    return float_arithmetic(binder, instruction)


def float_arithmetic(binder: Binder, instruction: Instruction) -> Step:
    modifiers = Modifiers(instruction)
    root = "fma" if instruction.root == "mad" else instruction.root
    kind = modifiers.need(*FLOATS)
    scalar, packed = kind.removesuffix("x2"), kind.endswith("x2")
    # Of what is added in f32 the first operand may be of 16 bits, of a product both factors.
    is_mixed = kind == "f32" and root in ("add", "sub", "fma")
    narrow = modifiers.take("f16", "bf16") if is_mixed else None
    function, count = _function(binder, instruction, modifiers, root, scalar)
    modifiers.done()
    if narrow:
        return _mixed(binder, instruction, function, count, narrow)
    binder.count_operands(instruction, count + 1)
    storage = "b32" if packed else kind
    target = binder.destination(instruction, instruction.operands[0], storage)
    sources = [binder.source(instruction, o, storage) for o in instruction.operands[1:]]
    if packed:
        halves = target.view(np.uint16)

        def run_packed(active: Active) -> None:
            parts = [np.atleast_1d(s).view(np.uint16) for s in sources]
            if len({p.size for p in parts}) > 1:
                parts = [np.broadcast_to(p.reshape(-1, 2), (target.size, 2)).ravel() for p in parts]
            result = function(*parts)
            if active.mask is True and result.size == halves.size:
                halves[:] = result
            else:
                assign(target, result.astype(np.uint16, copy=False).view(np.uint32), active)

        return run_packed
    if kind == "f64":
        # What lanes hold that take no part may need the slow way of exact arithmetic.
        return lambda active: put(
            target, function(*(over_lanes(source, active) for source in sources)), active
        )
    return lambda active: assign(target, function(*sources), active)


def _mixed(
    binder: Binder,
    instruction: Instruction,
    function: Callable[..., Value],
    count: int,
    narrow: str,
) -> Step:
    """All operands but the last one, of 16 bits, are widened to f32, which is exact."""
    binder.count_operands(instruction, count + 1)
    to, *factors, addend = instruction.operands
    target = binder.destination(instruction, to, "f32")
    sources = [binder.source(instruction, operand, narrow) for operand in factors]
    last = binder.source(instruction, addend, "f32")

    def run(active: Active) -> None:
        wide = (numerics.round_to(numerics.widen(np.asarray(s), narrow), "f32") for s in sources)
        assign(target, function(*wide, last), active)

    return run


def _function(
    binder: Binder, instruction: Instruction, modifiers: Modifiers, root: str, kind: str
) -> tuple[Callable[..., Value], int]:
    """A function on bits of values of `kind`, and its number of operands."""
    if root in ("abs", "neg"):
        return _sign_change(modifiers, root, kind), 1
    if root in ("min", "max"):
        return _extremum(modifiers, root, kind), 2
    ftz = (kind in ("f32", "f16") or root == "ex2") and modifiers.flag("ftz")
    if root in ("add", "sub", "mul", "fma"):
        mode = modifiers.take(*ROUNDINGS, default="rn")
        options = {"mode": mode, "ftz": ftz}
        if kind != "f64" and kind != "bf16":
            options["sat"] = modifiers.flag("sat")
        if root == "fma" and kind in ("f16", "bf16"):
            options["relu"] = modifiers.flag("relu")
        operation = getattr(float_ops, root)
        # Plain modes have the fast paths: spare the keyword arguments their defaults.
        options = {k: v for k, v in options.items() if v and v != "rn"}
        if root == "fma":
            return (lambda a, b, c: operation(a, b, c, kind, **options)), 3
        return (lambda a, b: operation(a, b, kind, **options)), 2
    approximate = modifiers.take("approx", "full")
    if approximate and kind == "f64" and root in ("rcp", "rsqrt"):
        if modifiers.flag("ftz"):
            return (lambda a: _gross(_APPROXIMATE[root], a)), 1
        if root == "rcp":
            binder.error(instruction, f"expected .ftz in {instruction.opcode}")
    mode = modifiers.take(*ROUNDINGS, default="rn")
    if root == "div":
        return (lambda a, b: float_ops.div(a, b, kind, mode, ftz)), 2
    if root == "sqrt":
        return (lambda a: float_ops.sqrt(a, kind, mode, ftz)), 1
    if root == "rcp":
        one = numerics.round_to(np.ones(1), kind)
        return (lambda a: float_ops.div(one, a, kind, mode, ftz)), 1
    if not approximate and not (root == "tanh" or kind in ("f16", "bf16")):
        binder.error(instruction, f"expected .approx in {instruction.opcode}")
    return (lambda a: _approximated(_APPROXIMATE[root], a, kind, ftz)), 1


def _rsqrt(x: np.ndarray) -> np.ndarray:
    return 1.0 / np.sqrt(x)


_APPROXIMATE: dict[str, RealFunction] = {
    "rcp": np.reciprocal,
    "rsqrt": _rsqrt,
    "sin": np.sin,
    "cos": np.cos,
    "lg2": np.log2,
    "ex2": np.exp2,
    "tanh": np.tanh,
}


def _approximated(operation: RealFunction, bits: Value, kind: str, ftz: bool) -> np.ndarray:
    """The function in float64, rounded: at least as exact as the hardware's approximation."""
    values = numerics.widen(bits, kind)
    if ftz:
        values = np.where(np.abs(values) < 2.0**-126, np.copysign(0.0, values), values)
    with np.errstate(all="ignore"):
        return numerics.round_to(operation(values), kind, ftz=ftz)


def _gross(operation: RealFunction, bits: Value) -> np.ndarray:
    """An approximation of f64 from, and with, the upper 32 bits; subnormals count as zero."""
    upper = np.asarray(bits, np.uint64) & np.uint64(0xFFFFFFFF00000000)
    values = upper.view(np.float64)
    smallest = np.finfo(np.float64).tiny
    with np.errstate(all="ignore"):
        values = np.where(np.abs(values) < smallest, np.copysign(0.0, values), values)
        results = operation(values)
        results = np.where(np.abs(results) < smallest, np.copysign(0.0, results), results)
    results = np.where(np.isnan(results), np.nan, results)
    return results.view(np.uint64) & np.uint64(0xFFFFFFFF00000000)


def _flush(bits: Value, kind: str, ftz: bool) -> Value:
    if not ftz:
        return bits
    return numerics.round_to(numerics.widen(bits, kind), kind, ftz=True)


def _sign_change(modifiers: Modifiers, root: str, kind: str) -> Unary:
    ftz = kind != "f64" and modifiers.flag("ftz")
    dtype = numerics.KINDS[kind].dtype
    sign = dtype(_SIGN[kind])
    if root == "neg":
        return lambda a: _flush(a, kind, ftz) ^ sign
    return lambda a: _flush(a, kind, ftz) & ~sign


def _extremum(modifiers: Modifiers, root: str, kind: str) -> Binary:
    """Min and max: of a number and NaN the number, -0 below +0; .NaN passes NaN on."""
    ftz = kind != "f64" and modifiers.flag("ftz")
    nan_passes = kind != "f64" and modifiers.flag("NaN")
    swap_sign = kind != "f64" and modifiers.flag("xorsign")
    if swap_sign:
        modifiers.need("abs")
    sign = numerics.KINDS[kind].dtype(_SIGN[kind])
    canonical = numerics.KINDS[kind].dtype(
        numerics.KINDS[kind].nan if kind != "f64" else 0x7FF8000000000000
    )

    def run(a: Value, b: Value) -> np.ndarray:
        a, b = _flush(np.asarray(a), kind, ftz), _flush(np.asarray(b), kind, ftz)
        result_sign = (a ^ b) & sign
        if swap_sign:
            a, b = a & ~sign, b & ~sign
        x, y = numerics.widen(a, kind), numerics.widen(b, kind)
        x_first = (x < y) | ((x == y) & np.signbit(x) & (x == 0))
        if root == "max":
            x_first = (x > y) | ((x == y) & ~np.signbit(x))
        result = np.where(x_first | np.isnan(y), a, b)
        nan = np.isnan(x) | np.isnan(y) if nan_passes else np.isnan(x) & np.isnan(y)
        if swap_sign:
            result = result | result_sign
        return np.where(nan, canonical, result)

    return run


@decodes("float", "copysign")
def copy_sign(binder: Binder, instruction: Instruction) -> Step:
    """Copysign d, a, b: the magnitude of b with the sign of a."""
    modifiers = Modifiers(instruction)
    kind = modifiers.need("f32", "f64")
    modifiers.done()
    binder.count_operands(instruction, 3)
    target = binder.destination(instruction, instruction.operands[0], kind)
    a, b = (binder.source(instruction, o, kind) for o in instruction.operands[1:])
    sign = target.dtype.type(_SIGN[kind])
    return lambda active: assign(target, (a & sign) | (b & ~sign), active)


@decodes("compare", "testp")
def test_property(binder: Binder, instruction: Instruction) -> Step:
    modifiers = Modifiers(instruction)
    test = modifiers.need("finite", "infinite", "number", "notanumber", "normal", "subnormal")
    kind = modifiers.need("f32", "f64")
    modifiers.done()
    binder.count_operands(instruction, 2)
    target = binder.destination(instruction, instruction.operands[0], "pred")
    bits = binder.source(instruction, instruction.operands[1], kind)
    least = numerics.KINDS[kind].smallest_normal

    def run(active: Active) -> None:
        value = numerics.widen(bits, kind)
        size = np.abs(value)
        results = {
            "finite": lambda: np.isfinite(value),
            "infinite": lambda: np.isinf(value),
            "number": lambda: ~np.isnan(value),
            "notanumber": lambda: np.isnan(value),
            "normal": lambda: np.isfinite(value) & (size >= least),
            "subnormal": lambda: (size < least) & (size > 0),
        }
        assign(target, results[test](), active)

    return run
