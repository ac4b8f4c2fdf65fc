# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Tiles of outputs that stay in registers while all terms are added to them.

A tile is a few rows high and a few vectors wide. Every input vector is loaded once for all rows
that use it, and every weight once for all vectors of a row, if it does not stay in a register.
"""

from collections.abc import Sequence
from dataclasses import dataclass

from twofour.targets.cpu.vector_unit import VectorUnit

# Powers of two: what is left of a row or of the rows takes longer.
ROWS, VECTORS = (1, 2, 4, 8), (1, 2, 4)
# Tiles are unrolled; beyond this many multiply-adds in one they only cost compile time.
MAX_MULTIPLY_ADDS = 512

# What a core starts in a cycle: multiply-adds, loads, stores, and instructions of all kinds.
MULTIPLY_ADDS, LOADS, STORES, INSTRUCTIONS = 2, 2, 1, 5
# Every second load of a vector that is not aligned lies in two lines of the cache.
UNALIGNED = 1.5
# Registers for a weight and a vector on its way.
SPARE = 2
# How much of the work beside the longest shows: it overlaps, but not all of it.
OVERLAP = 0.1


@dataclass(frozen=True)
class RegisterTile:
    """Outputs that are summed up together: rows, times vectors along the innermost axis."""

    rows: int
    vectors: int


Offset = tuple[int, ...]


def choose_tile(
    inputs: Sequence[tuple[Sequence[Offset], Sequence[float]]], unit: VectorUnit
) -> RegisterTile:
    """The tile that takes fewest cycles for terms (offsets, weights) of each input."""
    rank = len(inputs[0][0][0])
    tiles = [
        RegisterTile(rows, vectors)
        for rows in (ROWS if rank > 1 else (1,))
        for vectors in VECTORS
        if _fits(inputs, RegisterTile(rows, vectors), unit)
    ]
    return min(
        tiles or [RegisterTile(1, 1)],
        key=lambda tile: (round(_cycles(inputs, tile, unit), 6), tile.rows * tile.vectors),
    )


def _fits(inputs, tile: RegisterTile, unit: VectorUnit) -> bool:
    """Whether the sums and input vectors fit into registers, and the code is short."""
    terms = sum(len(weights) for _, weights in inputs)
    held = tile.rows * tile.vectors + tile.vectors + SPARE
    return held <= unit.registers and terms * tile.rows * tile.vectors <= MAX_MULTIPLY_ADDS


def _cycles(inputs, tile: RegisterTile, unit: VectorUnit) -> float:
    """Cycles for a vector of outputs."""
    outputs = tile.rows * tile.vectors
    multiply_adds = points = uses = 0
    weights_used = set()
    for offsets, weights in inputs:
        uses += len(weights) * tile.rows
        multiply_adds += len(weights) * outputs
        weights_used.update(weights)
        points += len(
            {
                (*offset[:-2], offset[-2] + row if len(offset) > 1 else 0, offset[-1])
                for offset in offsets
                for row in range(tile.rows)
            }
        )
    stay = len(weights_used) + outputs + tile.vectors <= unit.registers
    loads = UNALIGNED * points * tile.vectors + (0 if stay else uses)
    instructions = multiply_adds + points * tile.vectors + (0 if stay else uses) + outputs + 4
    work = (
        multiply_adds / MULTIPLY_ADDS,
        loads / LOADS,
        outputs / STORES,
        instructions / INSTRUCTIONS,
    )
    return (max(work) + OVERLAP * sum(work)) / outputs
