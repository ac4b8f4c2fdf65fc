# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Tiles of outputs that stay in registers while all terms are added to them.

A tile is a few rows high and a few vectors wide. Every input vector is loaded once for all rows
that use it, and every weight once for all vectors of a row, if not all stay in registers. Its sums
are the chains of multiply-adds that a core has to overlap; its rows are streams that the caches
have to keep apart.
"""

from collections.abc import Sequence
from dataclasses import dataclass

from twofour.targets.cpu.vector_unit import VectorUnit

# Powers of two: what is left of a row or of the rows takes longer.
ROWS, VECTORS = (1, 2, 4), (1, 2, 4)
# Sums of few terms wait for memory: rows that are written at once gain little there, and hold each
# other up where they lie about a page apart. So many rows for sums of up to so many terms.
MOST_ROWS = ((8, 1), (16, 2))
# Tiles are unrolled; beyond this many multiply-adds in one they only cost compile time.
MAX_MULTIPLY_ADDS = 512

# What a core starts in a cycle: multiply-adds, loads, stores, and instructions of all kinds.
MULTIPLY_ADDS, LOADS, STORES, INSTRUCTIONS = 2, 2, 1, 5
# Some loads of vectors that are not aligned lie in two lines of the cache.
UNALIGNED = 1.4
# Registers for a weight and a vector on its way.
SPARE = 2
# Chains of multiply-adds that keep a core busy, and how much of the lack of them shows. Tiles
# overlap as far as their instructions are within the window.
CHAINS, LACK, WINDOW = 8, 0.25, 128
# Instructions that a tile takes besides.
LOOP = 4
# Rows of input that a tile may read before they cost, and what each further one does.
STREAMS, STREAM_COST = 12, 0.03
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
    """Whether the sums and input vectors fit into registers, and rows and code are few."""
    terms = sum(len(weights) for _, weights in inputs)
    if any(terms <= few and tile.rows > rows for few, rows in MOST_ROWS):
        return False
    held = tile.rows * tile.vectors + tile.vectors + SPARE
    return held <= unit.registers and terms * tile.rows * tile.vectors <= MAX_MULTIPLY_ADDS


def _cycles(inputs, tile: RegisterTile, unit: VectorUnit) -> float:
    """Cycles for a vector of outputs."""
    outputs = tile.rows * tile.vectors
    terms = points = streams = 0
    distinct = set()
    for offsets, weights in inputs:
        read = {
            (*offset[:-2], (offset[-2] if len(offset) > 1 else 0) + row, offset[-1])
            for offset in offsets
            for row in range(tile.rows)
        }
        terms += len(weights)
        distinct.update(weights)
        points += len(read)
        streams += len({point[:-1] for point in read})
    stay = len(distinct) + outputs + tile.vectors <= unit.registers
    vectors, weights = points * tile.vectors, 0 if stay else terms * tile.rows
    instructions = terms * outputs + vectors + weights + outputs + LOOP
    chains = outputs * max(1, WINDOW / instructions)
    work = (
        terms * outputs / MULTIPLY_ADDS * (1 + LACK * max(0, CHAINS / chains - 1)),
        (UNALIGNED * vectors + weights) / LOADS,
        outputs / STORES,
        instructions / INSTRUCTIONS,
    )
    crowded = 1 + STREAM_COST * max(0, streams - STREAMS)
    return (max(work) + OVERLAP * sum(work)) * crowded / outputs
