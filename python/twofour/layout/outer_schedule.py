# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The order of outer products that computes a block of output tiles (Stencil Matrixization, 4).

A tile is n x n outputs over (row axis, vector axis) in one matrix register; n is the vector length
in elements, known at run time only, so every bound here is affine in n. A block is ui x uk tiles,
ui along the plane axis (the third axis, if there is one) and uk along the vector axis. Positions
are relative to the block's first output: tile (i, u) holds plane i, rows 0 to n-1, and in row q the
columns u*n + skew*q to u*n + skew*q + n-1.

A sweep visits all blocks of the output once. A schedule is one sweep for each tile shape and skew
that its lines need; every sweep after the first adds to what the one before stored.

Every product adds (coefficients) x (inputs) to a tile, both vectors of n elements:

* For a line along the row axis, at input row p, the coefficients are a column of the tile, and the
  inputs lie in plane i - s_plane, row p, from column u*n + shift + skew*p on.
* For a line along the vector axis, at p = input column - u*n, the inputs are a column of the tile,
  namely the n rows from -s_row on, and the coefficients a row.

In both cases the coefficients are elements N-1-p-first to N-1-p-first+n-1 of the line's table: N-1
zeros, the line's weights, N-1 zeros, with N the largest n there is (equations 11 and 12).
Input columns come from a transposition in matrix registers: rows in, columns out (section 4.1).
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise

from twofour.errors import TwofourError
from twofour.layout.coefficient_lines import Line, unit

# Lines whose rows lie farther apart than the shortest vectors are lengthened by zeros: else those
# vectors could not run the schedule.
SHORTEST = 8


@dataclass(frozen=True)
class Affine:
    """scale * n + constant, in elements."""

    constant: int
    scale: int = 0

    def at(self, n: int) -> int:
        return self.scale * n + self.constant

    def __add__(self, other: Affine) -> Affine:
        return Affine(self.constant + other.constant, self.scale + other.scale)

    def __sub__(self, other: Affine) -> Affine:
        return Affine(self.constant - other.constant, self.scale - other.scale)

    def __mul__(self, factor: int) -> Affine:
        return Affine(self.constant * factor, self.scale * factor)


@dataclass(frozen=True)
class Block:
    """The tiles that one sweep computes together.

    Attributes:
        row_axis: the axis of the tiles' rows: rank - 2, or 0 for lines along axis 0 in rank 3.
        skew: columns by which each row of a tile starts after the row before: 0, or 1 and -1 for
            diagonal and anti-diagonal lines.
        unroll: (ui, uk), tiles along the plane axis and along the vector axis; ui = 1 in rank 2.
        lines: indices of the sweep's lines, ascending.
    """

    row_axis: int
    skew: int
    unroll: tuple[int, int]
    lines: tuple[int, ...]


@dataclass(frozen=True)
class Product:
    """One outer product: the line whose coefficients it takes, and the tile (i, u) it adds to."""

    line: int
    tile: tuple[int, int]


@dataclass(frozen=True)
class RowVector:
    """An input vector and its products: plane `plane`, from column column*n + shift + skew*p on."""

    plane: int
    column: int
    shift: int
    products: tuple[Product, ...]


@dataclass(frozen=True)
class RowSegment:
    """Input rows `start` <= p < `stop`, in all of which the same lines are active."""

    start: Affine
    stop: Affine
    vectors: tuple[RowVector, ...]


@dataclass(frozen=True)
class ColumnVector:
    """An input column and its products: of transposed matrix `column` (+ 1 in phase 1)."""

    column: int
    products: tuple[Product, ...]


@dataclass(frozen=True)
class ColumnSegment:
    """Steps `start` <= q < `stop` of a transposition, at p = transposition.column + q.

    The input column of vector u is column q - phase*n of transposed matrix u + phase.
    """

    start: Affine
    stop: Affine
    phase: int
    vectors: tuple[ColumnVector, ...]


@dataclass(frozen=True)
class Transposition:
    """Input columns of one plane and one range of rows.

    Transposed matrix v, 0 <= v <= uk, holds rows row to row+n-1 of plane `plane` and the columns
    column + v*n to column + v*n + n-1; of matrix uk only the first `reach` columns are used (none
    may exist in memory after them), and it takes the register of matrix 0, which phase 1 does not
    use. `reach` is 0 where no matrix uk is needed.
    """

    plane: int
    row: int
    column: int
    reach: int
    segments: tuple[ColumnSegment, ...]


@dataclass(frozen=True)
class Sweep:
    """One visit of every block: first all row segments, then all transpositions."""

    block: Block
    rows: tuple[RowSegment, ...]
    transpositions: tuple[Transposition, ...]


@dataclass(frozen=True)
class Schedule:
    """All outer products of a stencil.

    Attributes:
        lines: the coefficient lines; some may be longer than in the cover, by zeros.
        sweeps: in order; each after the first adds to the result of the one before.
        by: how a sweep gets row vectors of several shifts: `load`, each from memory, or `splice`,
            from two neighbouring vectors at the plane's least shift (section 4.3).
    """

    lines: tuple[Line, ...]
    sweeps: tuple[Sweep, ...]
    by: str = "load"


def plane_axis(rank: int, row_axis: int) -> int | None:
    """The axis along which a block has ui planes; None in rank 2."""
    return next((axis for axis in range(rank - 1) if axis != row_axis), None)


def is_column_line(line: Line) -> bool:
    """Whether a line runs along the vector axis."""
    return line.axis == len(line.direction) - 1


def line_shape(line: Line) -> tuple[int, int]:
    """(row axis, skew) of the tiles that a line can add to."""
    rank = len(line.direction)
    if is_column_line(line):
        return rank - 2, 0
    return line.axis, line.direction[-1]


def plane_of(line: Line, row_axis: int) -> int:
    """The line's scatter offset on the plane axis; 0 in rank 2."""
    axis = plane_axis(len(line.direction), row_axis)
    return 0 if axis is None else line.start[axis]


def shift_of(line: Line) -> int:
    """Where the input vectors of a line along the row axis start, after the tile's columns."""
    return line.direction[-1] * line.first - line.start[-1]


def registers(block: Block, lines: Sequence[Line]) -> int:
    """Matrix registers that a block takes: its tiles, and one a column for transpositions."""
    ui, uk = block.unroll
    transposes = any(is_column_line(lines[k]) for k in block.lines)
    return ui * uk + (uk if transposes else 0)


def blocks(lines: Sequence[Line], unroll: tuple[int, int]) -> tuple[Block, ...]:
    """The sweeps that a cover needs, all with one unroll (ui, uk).

    Raises:
        TwofourError: an unroll below 1, or several planes in rank 2.
    """
    if min(unroll) < 1:
        raise TwofourError(f"expected positive unroll factors, got {list(unroll)}")
    rank = len(lines[0].direction)
    if rank == 2 and unroll[0] != 1:
        raise TwofourError(f"expected one plane of tiles in rank 2, got {unroll[0]}")
    shapes = defaultdict(list)
    for index, line in enumerate(lines):
        shapes[line_shape(line)].append(index)
    # The tiles over the last two axes come first, straight ones before skewed ones.
    order = sorted(shapes, key=lambda shape: (rank - 2 - shape[0], abs(shape[1]), shape))
    return tuple(Block(*shape, unroll, tuple(shapes[shape])) for shape in order)


def lengthened(
    lines: Sequence[Line], chosen: Iterable[Block], shortest: int = SHORTEST
) -> tuple[Line, ...]:
    """The lines, with zeros before those along the row axis that begin far after another's end.

    Then in every sweep each such line's input rows begin before any other's end, for vectors of
    `shortest` elements and more.
    """
    result = list(lines)
    for block in chosen:
        rows = [k for k in block.lines if not is_column_line(lines[k])]
        bound = min((lines[k].last for k in rows), default=0) + shortest
        for k in rows:
            line, zeros = lines[k], max(0, lines[k].first - bound)
            start = tuple(s - zeros * d for s, d in zip(line.start, line.direction, strict=True))
            result[k] = replace(line, start=start, weights=(0.0,) * zeros + line.weights)
    return tuple(result)


def _cuts(starts: Iterable[int], stops: Iterable[int]) -> list[tuple[Affine, Affine]]:
    """The segments between bounds `start` and n + `stop`."""
    bounds = [Affine(c) for c in sorted(set(starts))] + [Affine(c, 1) for c in sorted(set(stops))]
    return list(pairwise(bounds))


def _active(start: int, stop: int, segment: tuple[Affine, Affine]) -> bool:
    """Whether the steps from `start` to n + `stop` hold a segment of _cuts."""
    low, high = segment
    return (low.scale == 1 or start <= low.constant) and (high.scale == 0 or high.constant <= stop)


def _row_vectors(lines: Sequence[Line], active: Sequence[int], block: Block) -> list[RowVector]:
    """Algorithm 1: by plane, by shift, by column, each vector scattered to all its tiles."""
    ui, uk = block.unroll
    targets = defaultdict(list)
    for k in active:
        plane = plane_of(lines[k], block.row_axis)
        for i in range(ui):
            targets[i - plane, shift_of(lines[k])].append((k, i))
    return [
        RowVector(plane, u, shift, tuple(Product(k, (i, u)) for k, i in targets[plane, shift]))
        for plane, shift in sorted(targets)
        for u in range(uk)
    ]


def _row_segments(lines: Sequence[Line], block: Block) -> list[RowSegment]:
    chosen = [k for k in block.lines if not is_column_line(lines[k])]
    segments = []
    for low, high in _cuts((-lines[k].last for k in chosen), (-lines[k].first for k in chosen)):
        active = [k for k in chosen if _active(-lines[k].last, -lines[k].first, (low, high))]
        segments.append(RowSegment(low, high, tuple(_row_vectors(lines, active, block))))
    return segments


def _transpositions(lines: Sequence[Line], block: Block) -> list[Transposition]:
    """One for each input plane and range of rows, with all lines that read it."""
    ui, uk = block.unroll
    readers = defaultdict(list)
    for k in block.lines:
        if is_column_line(lines[k]):
            for i in range(ui):
                plane = i - plane_of(lines[k], block.row_axis)
                readers[plane, -lines[k].start[block.row_axis]].append((k, i))
    found = []
    for (plane, row), targets in sorted(readers.items()):
        last = max(lines[k].last for k, _ in targets)
        steps = {k: (last - lines[k].last, last - lines[k].first) for k, _ in targets}
        segments = []
        for low, high in _cuts(
            (a for a, _ in steps.values()), (0, *(b for _, b in steps.values()))
        ):
            vectors = tuple(
                ColumnVector(
                    u,
                    tuple(
                        Product(k, (i, u)) for k, i in targets if _active(*steps[k], (low, high))
                    ),
                )
                for u in range(uk)
            )
            segments.append(ColumnSegment(low, high, low.scale, vectors))
        reach = max(stop for _, stop in steps.values())
        found.append(Transposition(plane, row, -last, reach, tuple(segments)))
    return found


def schedule(
    lines: Sequence[Line], chosen: Sequence[Block], by: str = "load", shortest: int = SHORTEST
) -> Schedule:
    """The outer products of a cover in the order of Algorithm 1.

    Its lines along the row axis can be run by vectors of `shortest` elements and more.
    """
    lines = lengthened(lines, chosen, shortest)
    return Schedule(
        lines,
        tuple(
            Sweep(block, tuple(_row_segments(lines, block)), tuple(_transpositions(lines, block)))
            for block in chosen
        ),
        by,
    )


def row_direction(rank: int, block: Block) -> tuple[int, ...]:
    """The direction of the lines whose coefficients are columns of the block's tiles."""
    return unit(rank, block.row_axis, block.skew)


def splice_span(segment: RowSegment, plane: int) -> tuple[int, int]:
    """(least shift, greatest shift) of the vectors of a plane in a row segment."""
    shifts = [vector.shift for vector in segment.vectors if vector.plane == plane]
    return min(shifts), max(shifts)


def smallest_length(plan: Schedule) -> int:
    """The least n that can run a schedule.

    Shorter vectors would change the order of segments, need more transposed matrices, or, where
    vectors are spliced, more than two vectors for one.
    """
    least = 1
    for sweep in plan.sweeps:
        segments = [*sweep.rows, *(s for t in sweep.transpositions for s in t.segments)]
        for segment in segments:
            if segment.start.scale < segment.stop.scale:
                least = max(least, segment.start.constant - segment.stop.constant)
        least = max(least, *(t.reach for t in sweep.transpositions), 1)
        if plan.by == "splice":
            for segment in sweep.rows:
                for plane in {vector.plane for vector in segment.vectors}:
                    low, high = splice_span(segment, plane)
                    least = max(least, high - low)
    return least
