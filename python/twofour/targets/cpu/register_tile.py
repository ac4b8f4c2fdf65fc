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
# Rows of input that two rows of output read, as a part of what they would read one by one: with
# less in common, several rows at once are slower.
IN_COMMON = 0.7
# Sums of a tile where memory is waited for: larger ones let go of lines before they are read again.
FEW_SUMS = 4
# Tiles are unrolled; beyond this many multiply-adds in one they only cost compile time.
MAX_MULTIPLY_ADDS = 650

# What a core starts in a cycle: multiply-adds, loads, stores, and instructions of all kinds.
MULTIPLY_ADDS, LOADS, STORES, INSTRUCTIONS = 2, 2, 1, 5
# Some loads of vectors that are not aligned lie in two lines of the cache.
UNALIGNED = 1.2
# Registers for a weight and a vector on its way.
SPARE = 2
# Chains of multiply-adds that keep a core busy, and how much of the lack of them shows. Tiles
# overlap as far as their instructions are within the window.
CHAINS, LACK, WINDOW = 8, 0.4, 128
# Instructions that a tile takes besides.
LOOP = 4
# Rows that a tile may read and write before they cost, and what each further one does.
STREAMS, STREAM_COST = 6, 0.02
# How much of the work beside the longest shows: it overlaps, but not all of it.
OVERLAP = 0.1


@dataclass(frozen=True)
class RegisterTile:
    """Outputs that are summed up together: rows, times vectors along the innermost axis."""

    rows: int
    vectors: int


Offset = tuple[int, ...]


def choose_tile(
    inputs: Sequence[tuple[Sequence[Offset], Sequence[float]]],
    unit: VectorUnit,
    past_caches: bool = False,
) -> RegisterTile:
    """The tile that takes fewest cycles for terms (offsets, weights) of each input.

    `past_caches` says that the outputs are stored past the caches.
    """
    rank = len(inputs[0][0][0])
    tiles = [
        RegisterTile(rows, vectors)
        for rows in (ROWS if rank > 1 else (1,))
        for vectors in VECTORS
        if _fits(inputs, RegisterTile(rows, vectors), unit)
        and not (past_caches and rows * vectors > FEW_SUMS)
    ]
    return min(
        tiles or [RegisterTile(1, 1)],
        key=lambda tile: (round(_cycles(inputs, tile, unit), 6), tile.rows * tile.vectors),
    )


def _streams(inputs, rows: int) -> int:
    """The rows of input that so many rows of output read."""
    read = {
        (number, *offset[:-2], (offset[-2] if len(offset) > 1 else 0) + row)
        for number, (offsets, _) in enumerate(inputs)
        for offset in offsets
        for row in range(rows)
    }
    return len(read)


def _fits(inputs, tile: RegisterTile, unit: VectorUnit) -> bool:
    """Whether sums and vectors fit into registers, the code is short and rows share inputs."""
    terms = sum(len(weights) for _, weights in inputs)
    if tile.rows > 1 and _streams(inputs, 2) > IN_COMMON * 2 * _streams(inputs, 1):
        return False
    held = tile.rows * tile.vectors + tile.vectors + SPARE
    return held <= unit.registers and terms * tile.rows * tile.vectors <= MAX_MULTIPLY_ADDS


def _cycles(inputs, tile: RegisterTile, unit: VectorUnit) -> float:
    """Cycles for a vector of outputs."""
    outputs = tile.rows * tile.vectors
    terms = points = 0
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
    crowded = 1 + STREAM_COST * max(0, _streams(inputs, tile.rows) + tile.rows - STREAMS)
    return (max(work) + OVERLAP * sum(work)) * crowded / outputs
