# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Fragments of tensor instructions by the lane maps of the PTX ISA, one element at a time.

`g` and `t` are PTX's groupID (lane / 4) and threadID_in_group (lane % 4), `i` counts a lane's
elements. Fragments are registers [warps, 32, registers], as the kernels load and store them.
"""

from collections.abc import Callable
from fractions import Fraction

import numpy as np

from formats import FORMATS, fraction, rounded

Position = Callable[[int, int, int], tuple[int, int]]

ELEMENT_BITS = {
    **{kind: form.width for kind, form in FORMATS.items()},
    **{"s8": 8, "u8": 8, "s32": 32},
}

# By element bits, rows and columns of the fragment (of the stored columns where A is sparse).
A_POSITIONS: dict[tuple[int, int, int], Position] = {
    (16, 16, 8): lambda g, t, i: (g + 8 * (i // 2), 2 * t + i % 2),
    (16, 16, 16): lambda g, t, i: (g + 8 * (i // 2 % 2), 2 * t + i % 2 + 8 * (i // 4)),
    (32, 16, 4): lambda g, t, i: (g + 8 * i, t),
    (32, 16, 8): lambda g, t, i: (g + 8 * (i % 2), t + 4 * (i // 2)),
    (64, 8, 4): lambda g, t, i: (g, t),
    (64, 16, 4): lambda g, t, i: (g + 8 * i, t),
    (64, 16, 8): lambda g, t, i: (g + 8 * (i % 2), t + 4 * (i // 2)),
    (64, 16, 16): lambda g, t, i: (g + 8 * (i % 2), t + 4 * (i // 2)),
    (8, 8, 16): lambda g, t, i: (g, 4 * t + i),
    (8, 16, 16): lambda g, t, i: (g + 8 * (i // 4), 4 * t + i % 4),
    (8, 16, 32): lambda g, t, i: (g + 8 * (i // 4 % 2), 4 * t + i % 4 + 16 * (i // 8)),
}
# By element bits; whatever the depth, (k, n).
B_POSITIONS: dict[int, Position] = {
    8: lambda g, t, i: (4 * t + i % 4 + 16 * (i // 4), g),
    16: lambda g, t, i: (2 * t + i % 2 + 8 * (i // 2), g),
    32: lambda g, t, i: (t + 4 * i, g),
    64: lambda g, t, i: (t + 4 * i, g),
}


def c_position(g: int, t: int, i: int) -> tuple[int, int]:
    return g + 8 * (i // 2), 2 * t + i % 2


def extents(shape: str) -> tuple[int, int, int]:
    """(m, n, k) of a name like m16n8k32."""
    m, rest = shape[1:].split("n")
    n, k = rest.split("k")
    return int(m), int(n), int(k)


def register_type(kind: str) -> str:
    return "b64" if kind == "f64" else "b32"


def register_count(kind: str, elements: int) -> int:
    """Registers that a lane needs for so many elements."""
    return max(1, elements * min(ELEMENT_BITS[kind], 64) // (64 if kind == "f64" else 32))


def fragment(matrices: np.ndarray, kind: str, position: Position) -> np.ndarray:
    """Registers of matrices [warps, rows, columns] of element bits."""
    warps = len(matrices)
    elements = matrices[0].size // 32
    bits = ELEMENT_BITS[kind]
    registers = np.zeros((warps, 32, register_count(kind, elements)), dtype=np.uint64)
    each = max(1, 32 // bits)
    for lane in range(32):
        for i in range(elements):
            row, column = position(lane // 4, lane % 4, i)
            shift = np.uint64(bits * (i % each))
            registers[:, lane, i // each] |= matrices[:, row, column].astype(np.uint64) << shift
    return registers.astype(np.uint64 if bits == 64 else np.uint32)


def matrices(
    registers: np.ndarray, kind: str, position: Position, rows: int, columns: int
) -> np.ndarray:
    """Element bits [warps, rows, columns] of registers."""
    bits = ELEMENT_BITS[kind]
    each = max(1, 32 // bits)
    found = np.zeros((len(registers), rows, columns), dtype=np.uint64)
    for lane in range(32):
        for i in range(rows * columns // 32):
            row, column = position(lane // 4, lane % 4, i)
            word = registers[:, lane, i // each].astype(np.uint64)
            found[:, row, column] = word >> np.uint64(bits * (i % each))
    return found & np.uint64((1 << bits) - 1)


def value(bits: int, kind: str) -> float:
    """The number of an element's bits, which are those of a finite one."""
    if kind[0] in "su":
        width = int(kind[1:])
        return float(bits - (1 << width) if kind[0] == "s" and bits >> width - 1 else bits)
    return float(fraction(bits, kind))


values = np.vectorize(value, otypes=[np.float64])


def small_integers(generator: np.random.Generator, kind: str, shape: tuple[int, ...]) -> np.ndarray:
    """Element bits of random integers of three bits, which every kind and every sum holds."""
    numbers = generator.integers(0 if kind == "u8" else -7, 8, shape)
    if kind[0] in "su":
        return (numbers & (1 << int(kind[1:])) - 1).astype(np.uint64)
    table = {number: rounded(Fraction(number), kind) for number in range(-7, 8)}
    return np.vectorize(table.__getitem__, otypes=[np.uint64])(numbers)


def random_bits(generator: np.random.Generator, kind: str, shape: tuple[int, ...]) -> np.ndarray:
    """Element bits of random numbers in (-2, 2), all bits of them in use; any integer of 8 bits."""
    if kind in ("s8", "u8"):
        return generator.integers(0, 256, shape, dtype=np.uint64)
    form = FORMATS[kind]
    scale = 1 << form.mantissa + form.padding
    one = ((1 << form.exponent - 1) - 1) * scale
    bits = generator.integers(one - 3 * scale, one + scale, shape, dtype=np.uint64)
    return bits | np.uint64(form.sign) * generator.integers(0, 2, shape, dtype=np.uint64)
