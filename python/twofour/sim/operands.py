# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Operands of instructions: registers, literals, addresses, vectors, pairs, labels."""

import re
from dataclasses import dataclass

from twofour.errors import SourceLocation, TwofourError
from twofour.sim.literals import parse_number
from twofour.sim.ptx import (
    Address,
    Immediate,
    Kernel,
    Label,
    Negated,
    Operand,
    Pair,
    Register,
    Symbol,
    Vector,
)
from twofour.sim.special import SPECIAL_REGISTERS

IDENTIFIER = re.compile(r"[A-Za-z_$%][\w$]*(?:\.[\w]+)?\Z")
_ADDRESS = re.compile(r"([^+\-\s]+)\s*(?:([+-])\s*(.+))?\Z", re.S)


@dataclass(frozen=True)
class Context:
    """Where an operand stands: `names` are those that the scope renames, `branch` says that the
    instruction takes labels.
    """

    kernel: Kernel
    names: dict[str, str]
    location: SourceLocation
    branch: bool

    def error(self, message: str) -> TwofourError:
        return TwofourError(message, self.location)


def parse_operand(text: str, context: Context) -> Operand:
    """The operand that `text` spells. Raises TwofourError at the place of the instruction."""
    if not text:
        raise context.error("expected an operand")
    if text[0] == "{":
        elements = split(text[1:-1])
        if not elements or text[-1] != "}":
            raise context.error(f"expected a list of operands, got {text!r}")
        return Vector(tuple(parse_operand(element, context) for element in elements))
    if text[0] == "[":
        return _address(text, context)
    if text[0] == "!":
        register = parse_operand(text[1:].strip(), context)
        if not isinstance(register, Register):
            raise context.error(f"expected a predicate register, got {text!r}")
        return Negated(register)
    if "|" in text:
        first, second = (part.strip() for part in text.split("|", 1))
        return Pair(parse_operand(first, context), parse_operand(second, context))
    number = parse_number(text)
    if number is not None:
        return number
    if context.branch and not text.startswith("%"):
        return Label(text)
    if "+" in text:
        name, offset = (part.strip() for part in text.split("+", 1))
        number, base = parse_number(offset), parse_name(name, context)
        if isinstance(base, Symbol) and _is_integer(number):
            return Symbol(base.name, number.value)
        raise context.error(f"expected an operand, got {text!r}")
    return parse_name(text, context)


def parse_name(text: str, context: Context) -> Register | Symbol | Immediate:
    """A register, or the address of a variable."""
    text = context.names.get(text, text)
    registers = context.kernel.registers
    if text in registers or text == "_" or text in SPECIAL_REGISTERS:
        return Register(text)
    if text.startswith("%"):
        raise context.error(f"undeclared register {text}")
    if text == "WARP_SZ":
        return Immediate(32)
    if IDENTIFIER.match(text):
        return Symbol(text)
    raise context.error(f"expected an operand, got {text!r}")


def _address(text: str, context: Context) -> Address:
    parts = split(text[1:-1])
    match = _ADDRESS.match(parts[0]) if text.endswith("]") and 1 <= len(parts) <= 2 else None
    if not match:
        raise context.error(f"expected an address, got {text!r}")
    name, sign, amount = match.groups()
    offset = parse_number(amount.strip()) if amount else Immediate(0)
    coordinates = parse_operand(parts[1], context) if len(parts) == 2 else None
    base = parse_number(name) or parse_name(name, context)
    if not _is_integer(offset) or isinstance(base, Immediate) and not _is_integer(base):
        raise context.error(f"expected an address, got {text!r}")
    if coordinates is not None and not isinstance(coordinates, Vector):
        raise context.error(f"expected an address, got {text!r}")
    return Address(base, -offset.value if sign == "-" else offset.value, coordinates)


def _is_integer(number: Immediate | None) -> bool:
    return number is not None and isinstance(number.value, int)


def split(text: str) -> list[str]:
    """The parts of a list, separated by commas outside of braces and brackets."""
    if not text or text.isspace():
        return []
    if "{" not in text and "[" not in text:
        return [part.strip() for part in text.split(",")]
    parts, depth, start = [], 0, 0
    for index, character in enumerate(text):
        if character in "{[":
            depth += 1
        elif character in "}]":
            depth -= 1
        elif character == "," and depth == 0:
            parts.append(text[start:index].strip())
            start = index + 1
    parts.append(text[start:].strip())
    return parts
