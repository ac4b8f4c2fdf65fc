# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Tiles of outputs that stay in registers while all terms are added to them.

A tile is a few rows high and a few vectors wide. Every input vector is loaded once for all rows
that use it, and every weight once for all vectors of a row, if not all stay in registers. Its sums
are the chains of multiply-adds that a core has to overlap; its rows are streams that the caches
have to keep apart.
"""

import math
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass

from twofour.codegen.cpu.core import Core
from twofour.codegen.cpu.row_sums import Rows, RowsOf
from twofour.codegen.cpu.vector_unit import VectorUnit
from twofour.errors import TwofourError
from twofour.runtime.tiles.costs import MULTIPLY_ADDS as NOMINAL_BYTES

# Powers of two: what is left of a row or of the rows takes longer.
ROWS, VECTORS = (1, 2, 4, 8), (1, 2, 4)
# Eight rows are one vector wide.
MANY_ROWS = 8
# Rows of sums of so many points that go column by column: of eight, the multiply-adds of a sum come
# so soon after each other that they wait. They may unroll to more.
MOST_ROWS, TALL_POINTS, MAX_TALL = 16, 36, 800
# Sums of fewer points are short.
MANY_POINTS = 12
# Vectors that several rows of a short sum may read at once in three axes: seven points of two rows
# read 12, of four rows 22.
FEW_VECTORS = 20
# Tiles are unrolled: beyond so many multiply-adds in one they mostly cost compile time. So few
# outputs are added up in any case, since fewer would wait for themselves: half as many where points
# of several planes are added first, which takes longest to compile.
MAX_MULTIPLY_ADDS, FEW_OUTPUTS = 512, 8
# Rows of several planes are four, not two, where that takes no more than this part of the time:
# there is more to read at once.
WORTH_FOUR_ROWS = 0.9

# What a core starts in a cycle: multiply-adds, loads and stores.
MULTIPLY_ADDS, LOADS, STORES = 2, 2, 1
# Registers for a weight and a vector on its way.
SPARE = 2
# Rows are summed up in pairs where that takes no more than this part of the time: it rounds more.
WORTH_PAIRS = 0.95


@dataclass(frozen=True)
class RegisterTile:
    """Outputs that are summed up together: rows, times vectors along the innermost axis.

    `vector_bytes` are those of a vector, None for whole registers. There are so many rows in each
    of some `planes` along the last axis but two.
    """

    rows: int
    vectors: int
    vector_bytes: int | None = None
    planes: int = 1


def given_tile(numbers: Sequence[int]) -> RegisterTile:
    """The tile of rows and vectors, or of planes, rows and vectors.

    Raises TwofourError for other numbers.
    """
    if not 2 <= len(numbers) <= 3 or min(numbers) < 1:
        raise TwofourError(f"expected tile=[PLANES,]ROWS,VECTORS of at least 1, got {[*numbers]}")
    if math.prod(numbers) > MAX_MULTIPLY_ADDS:
        raise TwofourError(
            f"expected a tile of at most {MAX_MULTIPLY_ADDS} vectors, got {[*numbers]}"
        )
    *planes, rows, vectors = numbers
    return RegisterTile(rows, vectors, planes=math.prod(planes))


# Sums of so many multiply-adds, boxes of three axes with weights that differ, are faster in this
# tile where arrays do not fit the caches: wider ones read too much at once.
DENSE, DENSE_TILE, IN_COMMON = 20, RegisterTile(4, 1), 0.7
# Beside those, sums of so many take no longer than their lines take to come.
MOST_ALONE = 32


def choose_tile(
    rows_of: RowsOf, rank: int, unit: VectorUnit, lanes: int, past_caches: bool = False
) -> RegisterTile:
    """The tile that takes fewest cycles, where `rows_of(n)` is what is added to n rows.

    A whole register holds `lanes` elements: vectors along the only axis read the same where points
    lie so far apart. `past_caches` says that arrays do not fit the caches, and rows are summed up
    one by one, but for long sums of rows of planes that share most of what they read, or where
    rows of several planes are summed up together.
    """
    if past_caches and rank > unit.nontemporal_axes and unit.core.planes == 1:
        return _of_far_planes(rows_of, unit)
    return _fastest(rows_of, rank, unit, past_caches, lanes)[1]


def _of_far_planes(rows_of: RowsOf, unit: VectorUnit) -> RegisterTile:
    """The tile for rows of planes that do not stay in the caches, of one plane."""
    one, two = (_Work.of(rows_of(rows)) for rows in (1, 2))
    if one.multiply_adds >= DENSE and two.streams <= IN_COMMON * 2 * one.streams:
        return DENSE_TILE
    if one.multiply_adds <= MOST_ALONE:
        # It leaves no rest of a row, which would be another pass over the plane.
        return RegisterTile(1, 1, unit.bytes // 2)
    return RegisterTile(1, 2)


def choose_rows(one_by_one: RowsOf, in_pairs: RowsOf, unit: VectorUnit) -> RowsOf:
    """How rows of two axes are summed up: in pairs only where that is clearly faster."""
    (alone, _), (paired, _) = (_fastest(rows_of, 2, unit) for rows_of in (one_by_one, in_pairs))
    return in_pairs if paired <= WORTH_PAIRS * alone else one_by_one


def multiply_adds(rows_of: RowsOf, rank: int, unit: VectorUnit) -> float:
    """Multiply-adds that take as long as an output does in its fastest tile, from the caches.

    They are those of a core that does NOMINAL_BYTES of them a cycle. Where the model has no scale,
    they take as long as the arithmetic alone.
    """
    core = unit.core
    # Narrow tiles of planes take as long as wide ones; the model is right about these.
    cycles, tile = _fastest(rows_of, min(rank, 2) if core.narrow else rank, unit)
    if core.scale is not None:
        # Of a register, or of half of one.
        return cycles * core.scale * NOMINAL_BYTES / (unit.bytes // (1 + unit.halved))
    return arithmetic(rows_of, tile, unit)


def arithmetic(rows_of: RowsOf, tile: RegisterTile, unit: VectorUnit) -> float:
    """Multiply-adds that take as long as the arithmetic of an output in a tile."""
    return _Work.of(rows_of(tile.rows)).arithmetic(unit.core) / tile.rows


def _fastest(
    rows_of: RowsOf,
    rank: int,
    unit: VectorUnit,
    past_caches: bool = False,
    lanes: int | None = None,
) -> tuple[float, RegisterTile]:
    """The cycles of a vector of outputs, and the tile.

    Without `lanes` vectors are believed to read nothing in common.
    """
    core = unit.core
    if core.planes > 1 and rank > 2:
        return _of_several_planes(rows_of, unit, past_caches)
    works = _works(rows_of, rank, unit, past_caches)
    narrow = core.narrow and rank > 2
    sizes = (None, unit.bytes // 2) if unit.halved else (None,)
    if narrow and works[1].is_short:
        sizes = sizes[1:]
    tiles = [
        RegisterTile(rows, vectors, size)
        for rows, work in works.items()
        for size in sizes
        for vectors in ((1,) if narrow or rows >= MANY_ROWS or work.is_by_columns else VECTORS)
        if work.fits(vectors, unit) and (vectors == 1 or rows * vectors <= core.outputs)
    ]

    def cycles(tile: RegisterTile) -> float:
        halves = 2 if unit.halved and tile.vector_bytes is None else 1
        part = lanes and lanes * (tile.vector_bytes or unit.bytes) // unit.bytes
        taken = works[tile.rows].cycles(tile.vectors, unit, core, halves, part)
        return round(taken / halves, 6)

    best = min(
        tiles or [RegisterTile(min(works), 1)],
        key=lambda tile: (cycles(tile), tile.rows * tile.vectors),
    )
    return cycles(best), best


def _of_several_planes(
    rows_of: RowsOf, unit: VectorUnit, past_caches: bool
) -> tuple[float, RegisterTile]:
    """The cycles of a vector of outputs, and the tile: rows of several planes where they fit.

    Past the caches it is a row of each plane, since what is between two of them is far. What
    unrolls to too much are rows of one plane.
    """
    planes = unit.core.planes
    one, two, four = (RegisterTile(rows, 1, planes=planes) for rows in (1, 2, 4))
    tiles = [one if past_caches else two, *(RegisterTile(rows, 1) for rows in (8, 4, 2, 1))]
    works = {tile: _Work.of(rows_of(tile.rows, planes=tile.planes)) for tile in tiles}
    best = next((tile for tile in tiles if works[tile].fits(1, unit, tile.planes)), tiles[-1])
    taken = works[best].cycles(1, unit, unit.core, 1)
    if best == two and works[two].by_columns:
        work = _Work.of(rows_of(four.rows, planes=planes))
        cycles = work.cycles(1, unit, unit.core, 1)
        if work.fits(1, unit, planes) and cycles <= WORTH_FOUR_ROWS * taken:
            return cycles, four
    return taken, best


def _works(rows_of: RowsOf, rank: int, unit: VectorUnit, past_caches: bool) -> dict[int, "_Work"]:
    """The numbers of rows that a tile may have, and what they take."""
    core, one = unit.core, _Work.of(rows_of(1))
    if rank == 1 or past_caches:
        return {1: one}
    if core.narrow and rank > 2 and one.is_short:
        return _short_works(rows_of, one)
    eight = core.eight_rows is not None and one.vectors >= core.eight_rows
    works = {rows: _Work.of(rows_of(rows)) for rows in ROWS if rows < MANY_ROWS or eight}
    if one.sums > 1:
        return {rows: work for rows, work in works.items() if rows % 2 == 0}
    if one.is_by_columns and one.vectors >= TALL_POINTS:
        works[MOST_ROWS] = _Work.of(rows_of(MOST_ROWS))
    near = works[2].streams <= core.in_common * 2 * one.streams
    if core.alone_on_diagonals and works[2].streams < 2 * one.streams:
        near = near and works[max(works)].vectors < max(works) * one.vectors
    return {
        rows: work
        for rows, work in works.items()
        if rows == 1 or near or work.additions < rows * one.additions
    }


def _short_works(rows_of: RowsOf, one: "_Work") -> dict[int, "_Work"]:
    """The numbers of rows of planes that a short sum may be formed for."""
    two, four = (_Work.of(rows_of(rows)) for rows in (2, 4))
    if two.streams == 2 * one.streams:
        return {1: one}
    return {1: one, 2: two} | ({4: four} if four.vectors <= FEW_VECTORS else {})


@dataclass(frozen=True)
class _Work:
    """What rows of one vector each take: multiply-adds and additions, and what they read.

    `sums` are those of rows and those that rows share. `vectors` are vectors of input, `streams`
    rows of it. `weights` are different ones that are in use at a time, `operands` the vectors of
    one place that are: with differences one more. `places` are the points of each input along the
    only axis, none where there are more axes.
    """

    rank: int
    rows: int
    sums: int
    multiply_adds: int
    additions: int
    vectors: int
    weights: int
    streams: int
    operands: int
    places: tuple[frozenset[int], ...]
    by_columns: bool

    @classmethod
    def of(cls, rows: Rows) -> "_Work":
        steps = [(number, step) for number, steps in enumerate(rows.inputs) for step in steps]
        added = {(n, points) for n, step in steps for points in (step.points, step.minus) if points}
        points = {(number, point) for number, sum_of in added for point, _ in sum_of}
        in_use = defaultdict(set)
        for number, step in steps:
            in_use[(number, step.first[-1]) if rows.by_columns else None].update(
                weight for _, weight in step.weights
            )
        return cls(
            len(rows.outputs[0]),
            len(rows.outputs),
            len(rows.outputs) + len(rows.shared),
            sum(len(step.weights) for _, step in steps),
            sum(len(sum_of) - 1 for _, sum_of in added)
            + sum(bool(step.minus) for _, step in steps)
            + sum(map(len, rows.shared)),
            len(points),
            max(len(weights) for weights in in_use.values()),
            len({(number, point[:-1]) for number, point in points}),
            2 if rows.shared else 1,
            tuple(
                frozenset(at for of_input, (*row, at) in points if of_input == number and not row)
                for number in range(len(rows.inputs))
            ),
            rows.by_columns,
        )

    @property
    def is_by_columns(self) -> bool:
        """Whether single rows are summed up column by column: weights are read again in each."""
        return self.by_columns and self.sums == self.rows

    @property
    def is_short(self) -> bool:
        """Of a single row: whether it is the sum of few points."""
        return self.vectors < MANY_POINTS

    def arithmetic(self, core: Core) -> float:
        """Multiply-adds that take as long as these and the additions beside them."""
        both = (self.multiply_adds + self.additions) * MULTIPLY_ADDS / core.arithmetic
        return max(self.multiply_adds, both)

    def fits(self, vectors: int, unit: VectorUnit, planes: int = 1) -> bool:
        """Whether sums and vectors fit into registers, and the code is short."""
        held = (self.sums + self.operands) * vectors + SPARE
        unrolled = (self.multiply_adds + self.additions) * vectors
        few = FEW_OUTPUTS // 2 if self.additions and self.rank > 2 else FEW_OUTPUTS
        is_few = planes == 1 and self.rows * vectors <= few
        most = MAX_TALL if self.rows == MOST_ROWS else MAX_MULTIPLY_ADDS
        return held <= unit.registers and (is_few or unrolled <= most)

    def loads(self, vectors: int, lanes: int | None) -> int:
        """Loads of a tile of so many vectors, of so many elements each where that is known."""
        if lanes is None or not any(self.places):
            return self.vectors * vectors
        begins = range(0, vectors * lanes, lanes)
        return sum(len({at + begin for at in of for begin in begins}) for of in self.places)

    def cycles(
        self, vectors: int, unit: VectorUnit, core: Core, halves: int, lanes: int | None = None
    ) -> float:
        """Cycles for a vector of outputs, with so many vectors a row of so many halves each."""
        outputs, sums = self.rows * vectors, self.sums * vectors
        multiply_adds, additions = self.multiply_adds * vectors, self.additions * vectors
        held = self.weights + sums + self.operands * vectors + core.reserved
        stay = held <= unit.registers
        loads, weights = self.loads(vectors, lanes), 0 if stay else self.multiply_adds
        if halves > 1:
            unaligned = core.unaligned_halves
        else:
            alone = vectors == 1 and any(self.places)
            unaligned = core.unaligned_alone if alone else core.unaligned
        instructions = multiply_adds + additions + loads + weights + outputs + core.loop
        chains = sums * max(1, core.window / instructions)
        lack = 1 + core.lack * max(0, core.chains / halves / chains - 1)
        work = (
            halves * self.arithmetic(core) * vectors / MULTIPLY_ADDS * lack,
            halves * (unaligned * loads + weights) / LOADS,
            halves * core.stores * outputs / STORES,
            instructions / core.instructions,
        )
        crowded = 1 + core.stream_cost * max(0, self.streams + self.rows - core.streams)
        return (max(work) + core.overlap * sum(work)) * crowded / outputs
