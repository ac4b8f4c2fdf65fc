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
# Tiles are unrolled; beyond this many multiply-adds in one they only cost compile time.
MAX_MULTIPLY_ADDS = 700

# What a core starts in a cycle: multiply-adds, those and additions, loads and stores.
MULTIPLY_ADDS, ARITHMETIC, LOADS, STORES = 2, 3, 2, 1
# Registers for a weight and a vector on its way.
SPARE = 2


@dataclass(frozen=True)
class Core:
    """What measuring showed of a core.

    `in_common`: rows of input that two rows of output read, as a part of what they would read one
    by one; with less in common, several rows at once are slower. `instructions`: of all kinds that
    start in a cycle. `unaligned`, `unaligned_halves`: loads that are not aligned take so much
    longer, since they lie in two lines of the cache; the latter where a core loads a register by
    halves. `chains` of multiply-adds keep a core busy, and `lack` is how much of the lack of them
    shows; tiles overlap as far as their instructions are within the `window`. `loop`: instructions
    that a tile takes besides. `streams`: rows that a tile may read and write before each further
    one costs `stream_cost`. `overlap`: how much of the work beside the longest shows. `stores`:
    how much longer than others they take.
    """

    in_common: float = 0.7
    instructions: float = 5
    unaligned: float = 1.2
    unaligned_halves: float = 1.2
    chains: float = 8
    lack: float = 0.4
    window: int = 128
    loop: float = 4
    streams: float = 6
    stream_cost: float = 0.02
    overlap: float = 0.1
    stores: float = 1


# Fitted to an AMD EPYC of family 25, model 1 (Zen 3), assumed for others but Zen 4.
CORE = Core()
# Fitted to an AMD EPYC of family 25, model 17 (Zen 4).
ZEN_4 = Core(
    in_common=1,
    instructions=4.2,
    unaligned=1.7,
    unaligned_halves=1.9,
    chains=11,
    lack=0.47,
    window=370,
    loop=2.5,
    streams=13,
    stream_cost=0.015,
    overlap=0.33,
    stores=1.5,
)


@dataclass(frozen=True)
class RegisterTile:
    """Outputs that are summed up together: rows, times vectors along the innermost axis.

    `vector_bytes` are those of a vector, None for whole registers.
    """

    rows: int
    vectors: int
    vector_bytes: int | None = None


def choose_tile(
    rows_of: Callable[[int], Rows], rank: int, unit: VectorUnit, past_caches: bool = False
) -> RegisterTile:
    """The tile that takes fewest cycles, where `rows_of(n)` is what is added to n rows.

    `past_caches` says that the outputs are stored past the caches, every row by itself.
    """
    core = ZEN_4 if unit.halved else CORE
    works = {1: _Work.of(rows_of(1))}
    if rank > 1 and not past_caches:
        several = {rows: _Work.of(rows_of(rows)) for rows in ROWS[1:]}
        near = several[2].streams <= core.in_common * 2 * works[1].streams
        for rows, work in several.items():
            if near or work.additions < rows * works[1].additions:
                works[rows] = work
    tiles = [
        RegisterTile(rows, vectors, size)
        for rows, work in works.items()
        for size in ((None, unit.bytes // 2) if unit.halved else (None,))
        for vectors in VECTORS
        if work.fits(vectors, unit)
    ]

    def cycles(tile: RegisterTile) -> tuple[float, int]:
        halves = 2 if unit.halved and tile.vector_bytes is None else 1
        taken = works[tile.rows].cycles(tile.vectors, unit, core, halves)
        return round(taken / halves, 6), tile.rows * tile.vectors

    return min(tiles or [RegisterTile(1, 1)], key=cycles)


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

    def cycles(self, vectors: int, unit: VectorUnit, core: Core, halves: int) -> float:
        """Cycles for a vector of outputs, with so many vectors a row of so many halves each."""
        outputs = self.rows * vectors
        multiply_adds, additions = self.multiply_adds * vectors, self.additions * vectors
        stay = self.weights + outputs + vectors <= unit.registers
        loads, weights = self.vectors * vectors, 0 if stay else self.multiply_adds
        unaligned = core.unaligned_halves if halves > 1 else core.unaligned
        instructions = multiply_adds + additions + loads + weights + outputs + core.loop
        chains = outputs * max(1, core.window / instructions)
        lack = 1 + core.lack * max(0, core.chains / halves / chains - 1)
        work = (
            halves * self.arithmetic * vectors / MULTIPLY_ADDS * lack,
            halves * (unaligned * loads + weights) / LOADS,
            halves * core.stores * outputs / STORES,
            instructions / core.instructions,
        )
        crowded = 1 + core.stream_cost * max(0, self.streams + self.rows - core.streams)
        return (max(work) + core.overlap * sum(work)) * crowded / outputs
