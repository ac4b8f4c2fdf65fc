# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Tiles of outputs that stay in registers while all terms are added to them.

A tile is a few rows high and a few vectors wide. Every input vector is loaded once for all rows
that use it, and every weight once for all vectors of a row, if not all stay in registers. Its sums
are the chains of multiply-adds that a core has to overlap; its rows are streams that the caches
have to keep apart.
"""

from collections.abc import Callable
from dataclasses import dataclass

from twofour.targets.cpu.row_sums import Rows
from twofour.targets.cpu.vector_unit import VectorUnit

# Powers of two: what is left of a row or of the rows takes longer.
ROWS, VECTORS = (1, 2, 4), (1, 2, 4)
# Rows of input that two rows of output read, as a part of what they would read one by one: with
# less in common, several rows at once are slower.
IN_COMMON = 0.7
# Tiles are unrolled; beyond this many multiply-adds in one they only cost compile time.
MAX_MULTIPLY_ADDS = 700

# What a core starts in a cycle: multiply-adds, those and additions, loads, stores, and instructions
# of all kinds.
MULTIPLY_ADDS, ARITHMETIC, LOADS, STORES, INSTRUCTIONS = 2, 3, 2, 1, 5
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


def choose_tile(
    rows_of: Callable[[int], Rows], rank: int, unit: VectorUnit, past_caches: bool = False
) -> RegisterTile:
    """The tile that takes fewest cycles, where `rows_of(n)` is what is added to n rows.

    `past_caches` says that the outputs are stored past the caches, one row after the other.
    """
    works = {1: _Work.of(rows_of(1))}
    if rank > 1 and not past_caches:
        several = {rows: _Work.of(rows_of(rows)) for rows in ROWS[1:]}
        near = several[2].streams <= IN_COMMON * 2 * works[1].streams
        for rows, work in several.items():
            if near or work.additions < rows * works[1].additions:
                works[rows] = work
    tiles = [
        RegisterTile(rows, vectors)
        for rows, work in works.items()
        for vectors in VECTORS
        if work.fits(vectors, unit)
    ]
    return min(
        tiles or [RegisterTile(1, 1)],
        key=lambda tile: (
            round(works[tile.rows].cycles(tile.vectors, unit), 6),
            tile.rows * tile.vectors,
        ),
    )


def arithmetic(rows: Rows) -> float:
    """Multiply-adds that take as long as all arithmetic of an output."""
    return _Work.of(rows).arithmetic / len(rows.outputs)


@dataclass(frozen=True)
class _Work:
    """What rows of one vector each take: multiply-adds and additions, and what they read.

    `vectors` are vectors of input, `weights` different ones, and `streams` rows of input.
    """

    rows: int
    multiply_adds: int
    additions: int
    vectors: int
    weights: int
    streams: int

    @classmethod
    def of(cls, rows: Rows) -> "_Work":
        steps = [(number, step) for number, steps in enumerate(rows.inputs) for step in steps]
        points = {(number, point) for number, step in steps for point, _ in step.points}
        return cls(
            len(rows.outputs),
            sum(len(step.weights) for _, step in steps),
            sum(len(step.points) - 1 for _, step in steps),
            len(points),
            len({weight for _, step in steps for _, weight in step.weights}),
            len({(number, point[:-1]) for number, point in points}),
        )

    @property
    def arithmetic(self) -> float:
        """Multiply-adds that take as long as these and the additions beside them."""
        both = (self.multiply_adds + self.additions) * MULTIPLY_ADDS / ARITHMETIC
        return max(self.multiply_adds, both)

    def fits(self, vectors: int, unit: VectorUnit) -> bool:
        """Whether sums and vectors fit into registers, and the code is short."""
        held = self.rows * vectors + vectors + SPARE
        unrolled = (self.multiply_adds + self.additions) * vectors
        return held <= unit.registers and unrolled <= MAX_MULTIPLY_ADDS

    def cycles(self, vectors: int, unit: VectorUnit) -> float:
        """Cycles for a vector of outputs, with so many vectors a row."""
        outputs = self.rows * vectors
        multiply_adds, additions = self.multiply_adds * vectors, self.additions * vectors
        stay = self.weights + outputs + vectors <= unit.registers
        loads, weights = self.vectors * vectors, 0 if stay else self.multiply_adds
        instructions = multiply_adds + additions + loads + weights + outputs + LOOP
        chains = outputs * max(1, WINDOW / instructions)
        lack = 1 + LACK * max(0, CHAINS / chains - 1)
        work = (
            self.arithmetic * vectors / MULTIPLY_ADDS * lack,
            (UNALIGNED * loads + weights) / LOADS,
            outputs / STORES,
            instructions / INSTRUCTIONS,
        )
        crowded = 1 + STREAM_COST * max(0, self.streams + self.rows - STREAMS)
        return (max(work) + OVERLAP * sum(work)) * crowded / outputs
