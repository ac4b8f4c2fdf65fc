# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""From instructions to Python closures over the arrays of a machine's registers.

Every family of instructions registers decoders here. A decoder reads all modifiers and operands
of its instruction and returns a function of the active lanes that executes it; what it does not
know is an error at the instruction's place. Operands become arrays over lanes: views of registers
(floating-point ones as their bits), or NumPy scalars.
"""

import struct
from collections.abc import Callable
from typing import NoReturn

import numpy as np

from twofour.errors import TwofourError
from twofour.sim.constant import ConstantSpace
from twofour.sim.globals import GlobalSpace
from twofour.sim.local import LocalSpace
from twofour.sim.machine import Active, Machine
from twofour.sim.ptx import (
    Address,
    Immediate,
    Instruction,
    Kernel,
    Negated,
    Operand,
    Pair,
    Parameter,
    Register,
    Symbol,
    Vector,
    spelled,
)
from twofour.sim.registers import Allocation
from twofour.sim.shared import SharedSpace
from twofour.sim.special import SPECIAL_REGISTERS
from twofour.sim.variables import SIZES

# A value of one lane: floating-point ones are integers, by their bits.
Scalar = np.integer | np.bool_
# What an operand reads as: an array over lanes, or one scalar for all of them.
Value = np.ndarray | Scalar
# Functions of operands.
Unary = Callable[[Value], Value]
Binary = Callable[[Value, Value], Value]
# Executes an instruction in the active lanes; what it returns has no meaning.
Step = Callable[[Active], object]
# Gives an integer for each of the active lanes, int64 [n]: an address, an offset or a size.
PerLane = Callable[[Active], np.ndarray]
Decoder = Callable[["Binder", Instruction], Step]

_REGISTER_TYPES: dict[int, type[Scalar]] = {
    0: np.bool_,
    1: np.uint8,
    2: np.uint16,
    4: np.uint32,
    8: np.uint64,
}
_SIGNED: dict[int, type[Scalar]] = {1: np.int8, 2: np.int16, 4: np.int32, 8: np.int64}
_FLOATS = {"f16": "<e", "f32": "<f", "f64": "<d"}

DECODERS: dict[str, tuple[Decoder, str]] = {}


def decodes(category: str, *roots: str) -> Callable[[Decoder], Decoder]:
    """Register a decoder for instructions; `category` is their class in the counters."""

    def register(function: Decoder) -> Decoder:
        for root in roots:
            DECODERS[root] = (function, category)
        return function

    return register


def bits_dtype(kind: str) -> type[Scalar]:
    """NumPy's type for values of a PTX type: floating-point ones by their bits."""
    if kind == "pred":
        return np.bool_
    return _SIGNED[SIZES[kind]] if kind[0] == "s" else _REGISTER_TYPES[SIZES[kind]]


class Modifiers:
    """The modifiers of an instruction, taken one by one; `done` refuses what is left."""

    def __init__(self, instruction: Instruction):
        self.instruction = instruction
        self.left = list(instruction.modifiers)

    def take(self, *names: str, default: str | None = None) -> str | None:
        """The first modifier that is one of `names`, removed."""
        for name in self.left:
            if name in names:
                self.left.remove(name)
                return name
        return default

    def flag(self, name: str) -> bool:
        return self.take(name) is not None

    def need(self, *names: str) -> str:
        """As `take`, but one of them must be there."""
        found = self.take(*names)
        if found is None:
            raise TwofourError(
                f"expected {' or '.join('.' + n for n in names)} in {self.instruction.opcode}",
                self.instruction.location,
            )
        return found

    def done(self) -> None:
        if self.left:
            raise TwofourError(
                f"unsupported modifier .{self.left[0]} of {self.instruction.opcode}",
                self.instruction.location,
            )


class Binder:
    """What decoders need: the machine, its register arrays, its memories, the symbols."""

    def __init__(self, machine: Machine, kernel: Kernel, allocation: Allocation):
        self.machine = machine
        self.kernel = kernel
        self._slots = allocation.slots
        self.arrays = [_register_array(size, machine.lanes) for size in allocation.kinds]
        self.defined = {name: np.zeros(machine.lanes, bool) for name in allocation.tracked}
        self._specials: dict[tuple[str, type], np.ndarray] = {}
        # Set by the program before anything is decoded.
        self.globals: GlobalSpace
        self.shared: SharedSpace
        self.local: LocalSpace
        self.constants: ConstantSpace
        # So are these, whose types are of modules that import this one.
        self.launch = self.asynchronous = self.bulk_reads = None
        self.mbarriers = self.barriers = None
        self.carry = np.zeros(machine.lanes, bool)
        # Name of a variable: (state space, address in it).
        self.symbols: dict[str, tuple[str, int]] = {}

    def start(self) -> None:
        """Values of the special registers, and undefined ones, for the next blocks."""
        for (name, _), array in self._specials.items():
            value = SPECIAL_REGISTERS[name]
            array[:] = self.machine.step if value is None else value(self.machine)
        for defined in self.defined.values():
            defined[:] = False

    def error(self, instruction: Instruction, message: str) -> NoReturn:
        raise TwofourError(message, instruction.location)

    def count_operands(self, instruction: Instruction, *counts: int) -> None:
        if len(instruction.operands) not in counts:
            wanted = " or ".join(map(str, counts))
            self.error(
                instruction,
                f"expected {wanted} operands of {instruction.opcode}, "
                f"got {len(instruction.operands)}",
            )

    def register(self, name: str) -> np.ndarray:
        """The array behind a register: unsigned of its width, bool, or [lanes, 2] for b128."""
        return self.arrays[self._slots[name]]

    def wide(self, instruction: Instruction, operand: Operand) -> np.ndarray:
        """The array [lanes, 2] behind a 128-bit register."""
        if self.size_of(operand) != 16:
            self.error(instruction, f"expected a .b128 register, got {spelled(operand)}")
        return self.register(operand.name)

    def size_of(self, operand: Operand) -> int | None:
        """Bytes of a register operand; None if it is not a declared register."""
        if not isinstance(operand, Register) or operand.name not in self.kernel.registers:
            return None
        kind = self.kernel.registers[operand.name]
        return 0 if kind == "pred" else SIZES[kind]

    def source(
        self, instruction: Instruction, operand: Operand, kind: str, wider: bool = False
    ) -> Value:
        """An operand of a PTX type to read; `wider` registers than that give their low part."""
        dtype = bits_dtype(kind)
        if isinstance(operand, Immediate):
            return immediate(instruction, operand, kind)
        if isinstance(operand, Symbol):
            return dtype(self.address_of(instruction, operand))
        if isinstance(operand, Negated) and kind == "pred":
            self.error(instruction, "a negated predicate cannot be read here")
        if not isinstance(operand, Register):
            self.error(instruction, f"expected a value of type .{kind}, got {spelled(operand)}")
        if operand.name in SPECIAL_REGISTERS:
            if kind == "pred":
                self.error(instruction, f"expected a predicate register, got {operand.name}")
            key = (operand.name, dtype)
            if key not in self._specials:
                self._specials[key] = np.zeros(self.machine.lanes, dtype)
            return self._specials[key]
        return self._view(instruction, operand, kind, wider)

    def _view(
        self, instruction: Instruction, register: Register, kind: str, wider: bool
    ) -> np.ndarray:
        if register.name == "_":
            return np.zeros(self.machine.lanes, bits_dtype(kind))
        array = self.register(register.name)
        size = 0 if kind == "pred" else SIZES[kind]
        actual = self.size_of(register)
        if actual == size:
            return array if size == 0 else array.view(bits_dtype(kind))
        if wider and actual and actual > size and actual <= 8:
            return array.view(bits_dtype(kind))[:: actual // size]
        declared = self.kernel.registers[register.name]
        self.error(
            instruction, f"expected a .{kind} operand, got {register.name} of type .{declared}"
        )

    def destination(self, instruction: Instruction, operand: Operand, kind: str) -> np.ndarray:
        """A register of the size of a PTX type to write."""
        if not isinstance(operand, Register) or operand.name in SPECIAL_REGISTERS:
            self.error(instruction, f"expected a register, got {spelled(operand)}")
        return self._view(instruction, operand, kind, False)

    def extended(self, instruction: Instruction, operand: Operand, kind: str) -> np.ndarray:
        """A register at least as wide as `kind`, as integers of that sign: to be filled up."""
        size = self.size_of(operand)
        if size is None or size <= SIZES[kind] or size > 8:
            return self.destination(instruction, operand, kind)
        signed = kind[0] == "s"
        return self.register(operand.name).view(_SIGNED[size] if signed else _REGISTER_TYPES[size])

    def predicate(self, instruction: Instruction, operand: Operand) -> tuple[Value, bool]:
        """A predicate operand and whether it is read inverted."""
        if isinstance(operand, Negated):
            return self.source(instruction, operand.register, "pred"), True
        return self.source(instruction, operand, "pred"), False

    def elements(self, operand: Operand) -> tuple[Operand, ...]:
        return operand.elements if isinstance(operand, Vector) else (operand,)

    def fragment(
        self, instruction: Instruction, operand: Operand, kind: str, count: int
    ) -> list[Value]:
        """The `count` registers of a vector operand."""
        elements = self.elements(operand)
        if len(elements) != count:
            self.error(
                instruction,
                f"expected {count} registers in a fragment of {instruction.opcode}, "
                f"got {len(elements)}",
            )
        return [self.source(instruction, element, kind) for element in elements]

    def parameter(self, instruction: Instruction, name: str) -> Parameter:
        for parameter in self.kernel.parameters:
            if parameter.name == name:
                return parameter
        self.error(instruction, f"undeclared parameter {name}")

    def address_of(self, instruction: Instruction, symbol: Symbol) -> int:
        if symbol.name not in self.symbols:
            self.error(instruction, f"undeclared variable {symbol.name}")
        return self.symbols[symbol.name][1] + symbol.offset

    def address(self, instruction: Instruction, operand: Operand) -> PerLane:
        """A function from active lanes to the addresses (int64, one for each) of an operand."""
        if not isinstance(operand, Address):
            self.error(instruction, f"expected an address, got {spelled(operand)}")
        if operand.coordinates is not None:
            self.error(instruction, f"unexpected coordinates in an address of {instruction.opcode}")
        base, offset = operand.base, operand.offset
        if isinstance(base, Register):
            is_wide = self.size_of(base) == 8
            array = self.source(instruction, base, "b64" if is_wide else "b32")
            offset = _wrapped(offset)

            def addresses(active: Active) -> np.ndarray:
                lanes = active.lanes
                values = array if lanes is None else array[lanes]
                found = np.add(values, offset, dtype=np.int64, casting="unsafe")
                # A sum of 32 bits wraps there.
                return found if is_wide else found & 0xFFFFFFFF

            return addresses
        value = base.value if isinstance(base, Immediate) else self.address_of(instruction, base)
        constant = _wrapped(value + offset)
        return lambda active: np.full(active.count, constant, np.int64)


def _wrapped(address: int) -> np.int64:
    """A sum of addresses and offsets in 64 bits."""
    return np.int64((address + 2**63) % 2**64 - 2**63)


def immediate(instruction: Instruction, operand: Immediate, kind: str) -> Scalar:
    """The NumPy scalar of a literal as a value of a PTX type."""
    value, dtype = operand.value, bits_dtype(kind)
    if kind == "pred":
        return np.bool_(value != 0)
    size = SIZES[kind]
    if kind in _FLOATS and isinstance(value, float):
        with np.errstate(over="ignore"):
            raw = {2: np.float16, 4: np.float32, 8: np.float64}[size](value).tobytes()
        return np.frombuffer(raw, dtype)[0]
    if isinstance(value, float):
        if operand.bits is None or operand.bits != 8 * size:
            raise TwofourError(f"expected a literal of type .{kind}", instruction.location)
        return np.frombuffer(struct.pack("<f" if size == 4 else "<d", value), dtype)[0]
    if kind in ("f32", "f64"):
        return immediate(instruction, Immediate(float(value)), kind)
    value &= (1 << 8 * size) - 1
    if kind[0] == "s" and value >> (8 * size - 1):
        value -= 1 << 8 * size
    return dtype(value)


def integer_of(operand: Operand) -> int | None:
    """The integer that an operand says, None for operands of another kind."""
    is_integer = isinstance(operand, Immediate) and isinstance(operand.value, int)
    return operand.value if is_integer else None


def assign(target: np.ndarray, value: Value | int, active: Active) -> None:
    """Write values over all lanes, in the active ones."""
    np.copyto(target, value, where=active.mask, casting="unsafe")


def put(target: np.ndarray, values: np.ndarray, active: Active) -> None:
    """Write values of the active lanes only."""
    if active.lanes is None:
        np.copyto(target, values, casting="unsafe")
    else:
        target[active.lanes] = values


def over_lanes(array: Value, active: Active) -> np.ndarray:
    """The active lanes' values of an operand."""
    if not isinstance(array, np.ndarray):
        return np.full(active.count, array)
    return array if active.lanes is None else array[active.lanes]


def pair(operand: Operand) -> tuple[Operand, Operand | None]:
    """`a|b` as (a, b), and `a` as (a, None)."""
    return (operand.first, operand.second) if isinstance(operand, Pair) else (operand, None)


def _register_array(size: int, lanes: int) -> np.ndarray:
    if size == 16:
        return np.zeros((lanes, 2), np.uint64)
    return np.zeros(lanes, _REGISTER_TYPES[size])
