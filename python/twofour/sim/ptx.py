# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The syntax tree of a PTX module: what the parser makes and the simulator executes."""

from dataclasses import dataclass, field

from twofour.errors import SourceLocation


@dataclass(frozen=True)
class Register:
    """A declared register or a special one (`%tid.x`)."""

    name: str


@dataclass(frozen=True)
class Negated:
    """A predicate operand that is read inverted: `!%p1`."""

    register: Register


@dataclass(frozen=True)
class Immediate:
    """A literal. `bits` is 32 for `0f...`, 64 for `0d...`, None for other numbers."""

    value: int | float
    bits: int | None = None


@dataclass(frozen=True)
class Symbol:
    """The address of a variable, or the value of a parameter where an address is expected."""

    name: str
    offset: int = 0


@dataclass(frozen=True)
class Address:
    """A memory operand `[base+offset]`; `coordinates` holds the second part of `[map, {x, y}]`."""

    base: "Register | Symbol | Immediate"
    offset: int = 0
    coordinates: "Vector | None" = None


@dataclass(frozen=True)
class Vector:
    """A brace-enclosed list of operands."""

    elements: tuple


@dataclass(frozen=True)
class Pair:
    """Two destinations `%p|%q`."""

    first: "Operand"
    second: "Operand"


@dataclass(frozen=True)
class Label:
    """The target of a branch, or the name of a `.branchtargets` list."""

    name: str


Operand = Register | Negated | Immediate | Symbol | Address | Vector | Pair | Label


def spelled(operand: Operand) -> str:
    """An operand in a message: its name, or its kind where it has none."""
    if isinstance(operand, Register | Symbol | Label):
        return operand.name
    return type(operand).__name__.lower()


@dataclass(frozen=True)
class Instruction:
    """One instruction: `@[!]guard root.modifier... operands;`."""

    root: str
    modifiers: tuple[str, ...]
    operands: tuple[Operand, ...]
    guard: Register | Negated | None
    location: SourceLocation

    @property
    def opcode(self) -> str:
        """The instruction's name with all its modifiers."""
        return ".".join((self.root, *self.modifiers))


@dataclass(frozen=True)
class Relocation:
    """An address in an initialiser, 8 bytes at `offset`; `generic` of whatever space it is in."""

    offset: int
    symbol: str
    addend: int
    generic: bool


@dataclass(frozen=True)
class Variable:
    """A variable outside of registers. `size` is None for `.extern .shared` arrays."""

    name: str
    space: str
    alignment: int
    size: int | None
    initial: bytes = b""
    relocations: tuple[Relocation, ...] = ()


@dataclass(frozen=True)
class Parameter:
    """A kernel parameter: `kind` as in `u64`; `size` in bytes (an array of `.b8` has more)."""

    name: str
    kind: str
    size: int
    alignment: int
    offset: int


@dataclass(eq=False)
class Kernel:
    """A `.entry`: its body is a list of instructions and a map from labels to indices into it."""

    name: str
    module: "Module"
    location: SourceLocation
    parameters: list[Parameter]
    directives: dict[str, tuple[int, ...]] = field(default_factory=dict)
    registers: dict[str, str] = field(default_factory=dict)
    variables: dict[str, Variable] = field(default_factory=dict)
    body: list[Instruction] = field(default_factory=list)
    labels: dict[str, int] = field(default_factory=dict)
    branch_targets: dict[str, tuple[str, ...]] = field(default_factory=dict)


@dataclass(eq=False)
class Module:
    """A PTX file."""

    name: str
    text: str
    version: str = ""
    target: str = ""
    address_size: int = 64
    globals: dict[str, Variable] = field(default_factory=dict)
    kernels: dict[str, Kernel] = field(default_factory=dict)
