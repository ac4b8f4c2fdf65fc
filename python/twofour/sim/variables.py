# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Declarations of variables in memory, with their initialisers, and the sizes of PTX types."""

import re

import numpy as np

from twofour.errors import SourceLocation, TwofourError
from twofour.sim.literals import parse_number
from twofour.sim.ptx import Relocation, Variable

SIZES = {
    **{f"{c}{bits}": bits // 8 for c in "bus" for bits in (8, 16, 32, 64)},
    **{"f16": 2, "bf16": 2, "f16x2": 4, "bf16x2": 4, "f32": 4, "f64": 8, "b128": 16},
}

# The simulator's own limit, beyond what shared and constant memory hold.
MAX_BYTES = 2**30

_VARIABLE = re.compile(
    r"\.(global|const|shared|local)((?:\s*\.(?:align\s+\d+|attribute\([^)]*\)|v[248]))*)\s+\.(\w+)"
    r"\s+([\w$%.]+)\s*((?:\[\s*\d*\s*\])*)\s*(?:=\s*(.*))?\Z",
    re.S,
)
_ADDRESS = re.compile(r"(?:generic\(\s*([\w$]+)\s*\)|([A-Za-z_$][\w$]*))\s*(?:\+\s*(\d+))?\Z")


def parse_variable(text: str, location: SourceLocation) -> Variable:
    """The variable that a declaration (without `;`) declares."""
    match = _VARIABLE.match(text)
    if not match or match.group(3) not in SIZES:
        raise TwofourError(f"expected a variable, got {text[:60]!r}", location)
    space, attributes, kind, name, dimensions, initialiser = match.groups()
    vector = re.search(r"\.v([248])", attributes)
    element = SIZES[kind] * (int(vector.group(1)) if vector else 1)
    alignment = re.search(r"\.align\s+(\d+)", attributes)
    size: int | None = element
    for extent in re.findall(r"\[\s*(\d*)\s*\]", dimensions):
        size = None if extent == "" or size is None else size * int(extent)
    if size is not None and size > MAX_BYTES:
        raise TwofourError(
            f"expected a variable of at most {MAX_BYTES} bytes, got {size}", location
        )
    initial, relocations = b"", ()
    if initialiser is not None:
        initial, relocations = _initial(initialiser, kind, location)
        size = len(initial) if size is None else size
        initial = initial.ljust(size, b"\0")
    elif size is None and space != "shared":
        raise TwofourError(f"expected an extent for {name}", location)
    aligned = int(alignment.group(1)) if alignment else element
    if aligned & (aligned - 1) or aligned == 0:
        raise TwofourError(f"expected an alignment of a power of two, got {aligned}", location)
    return Variable(
        name,
        space,
        aligned,
        size,
        initial,
        relocations,
    )


def _initial(
    text: str, kind: str, location: SourceLocation
) -> tuple[bytes, tuple[Relocation, ...]]:
    data, relocations = bytearray(), []
    for part in text.replace("{", " ").replace("}", " ").split(","):
        part = part.strip()
        if not part:
            continue
        number = parse_number(part)
        address = _ADDRESS.match(part)
        if number is not None:
            data += _pack(number.value, kind, location)
        elif address and SIZES[kind] == 8:
            name = address.group(1) or address.group(2)
            addend = int(address.group(3) or 0)
            relocations.append(Relocation(len(data), name, addend, address.group(1) is not None))
            data += bytes(8)
        else:
            raise TwofourError(f"expected a constant, got {part!r}", location)
    return bytes(data), tuple(relocations)


def _pack(value: int | float, kind: str, location: SourceLocation) -> bytes:
    floating = {"f16": np.float16, "f32": np.float32, "f64": np.float64}.get(kind)
    if floating is not None:
        with np.errstate(over="ignore"):
            return floating(value).tobytes()
    if isinstance(value, float):
        raise TwofourError(f"expected an integer for .{kind}, got {value}", location)
    size = SIZES[kind]
    return (value & ((1 << 8 * size) - 1)).to_bytes(size, "little")
