# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Integer instructions as functions of Python integers, and operands for them."""

import itertools
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from snippet import Snippet

INTEGERS = "s16 u16 s32 u32 s64 u64"


def width(kind: str) -> int:
    return int(kind[1:])


def decoded(bits: int, kind: str) -> int:
    """The integer of a type like s32 or u16 (b32 counts as unsigned)."""
    bits &= (1 << width(kind)) - 1
    return bits - (1 << width(kind)) if kind[0] == "s" and bits >> width(kind) - 1 else bits


def encoded(number: int, kind: str) -> int:
    return number & (1 << width(kind)) - 1


def limits(kind: str) -> tuple[int, int]:
    """The least and the greatest integer of a type."""
    bits = width(kind)
    return (-(1 << bits - 1), (1 << bits - 1) - 1) if kind[0] == "s" else (0, (1 << bits) - 1)


def edges(bits: int) -> list[int]:
    top, full = 1 << bits - 1, (1 << bits) - 1
    return [0, 1, 2, bits - 1, bits, bits + 1, full, full - 1, top, top - 1, top + 1]


def tuples(kinds: Sequence[str], seed: int, count: int = 512) -> list[np.ndarray]:
    """Bit patterns for operands of those types: combinations of edges, then random ones."""
    generator = np.random.default_rng(seed)
    combinations = list(itertools.product(*(edges(width(kind)) for kind in kinds)))
    if len(combinations) > count // 2:
        chosen = generator.choice(len(combinations), count // 2, replace=False)
        combinations = [combinations[i] for i in chosen]
    columns = []
    for position, kind in enumerate(kinds):
        bits = width(kind)
        column = generator.integers(0, 1 << bits, count, dtype=np.uint64)
        # Numbers of every length.
        column >>= generator.integers(0, bits, count).astype(np.uint64)
        column[: len(combinations)] = [c[position] for c in combinations]
        columns.append(column.astype(f"u{bits // 8}"))
    return columns


@dataclass(frozen=True)
class Case:
    """An instruction `opcode d, a, b ...` and the function of integers that it computes."""

    opcode: str
    inputs: tuple[str, ...]
    output: str
    function: Callable[..., int]
    target: str = "sm_80"

    @property
    def snippet(self) -> Snippet:
        operands = ", ".join(["%o0", *(f"%i{i}" for i in range(len(self.inputs)))])
        return Snippet(
            f"{self.opcode} {operands};",
            tuple(f"b{width(kind)}" for kind in self.inputs),
            (f"b{width(self.output)}",),
            self.target,
        )


def every(template: str, kinds: str, function, arity: int = 2, **more) -> list[Case]:
    """One case for each type, whose operands and result have that type."""
    return [
        Case(template.format(kind), (kind,) * arity, kind, function, **more)
        for kind in kinds.split()
    ]


def check(case: Case, columns: list[np.ndarray]) -> None:
    (found,) = case.snippet(*columns)
    for row in zip(*(column.tolist() for column in columns), found.tolist(), strict=True):
        operands = [decoded(bits, kind) for bits, kind in zip(row, case.inputs, strict=False)]
        expected = encoded(int(case.function(*operands)), case.output)
        assert row[-1] == expected, (operands, row[-1], expected)
