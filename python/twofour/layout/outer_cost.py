# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Instructions of a schedule of outer products, and the choices that need the fewest.

The model counts the instructions of whole blocks, each as one: outer products, loads of
coefficients and inputs, splices, rows into and columns out of transpositions, rows of tiles to and
from memory, and two for each step of a loop over input rows or columns. Addresses and what the
memory delivers are not in it.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, fields
from fractions import Fraction

from twofour.layout.coefficient_lines import OPTIONS, Line, Offset, cover
from twofour.layout.outer_schedule import (
    Affine,
    Block,
    ColumnSegment,
    RowSegment,
    Schedule,
    Sweep,
    Transposition,
    blocks,
    plane_axis,
    registers,
    schedule,
    smallest_length,
    splice_span,
)


@dataclass(frozen=True)
class Counts:
    """Instructions of one block of a sweep, as functions of the vector length.

    Attributes:
        outer_products: the counts of Tables 1 and 2 are these, divided by the tiles of a block.
        coefficient_loads: each coefficient vector once an input row (or column).
        input_loads: vectors of the input for lines along the row axis.
        splices: vectors made from two loaded ones.
        transposed_rows: rows of the input, loaded into matrix registers.
        column_reads: columns read back from them.
        tile_loads: rows of tiles that a later sweep adds to.
        tile_stores: rows of finished tiles.
        loop_steps: input rows, and columns of transpositions.
    """

    outer_products: Affine
    coefficient_loads: Affine
    input_loads: Affine
    splices: Affine
    transposed_rows: Affine
    column_reads: Affine
    tile_loads: Affine
    tile_stores: Affine
    loop_steps: Affine

    def total(self) -> Affine:
        """All instructions; a step of a loop takes two."""
        return sum((getattr(self, f.name) for f in fields(self)), self.loop_steps)


def _sum(segments: Sequence, steps: Callable[[RowSegment | ColumnSegment], int]) -> Affine:
    """The sum over segments of their length times the instructions of one step."""
    return sum(((s.stop - s.start) * steps(s) for s in segments), Affine(0))


def _products(segment: RowSegment | ColumnSegment) -> int:
    return sum(len(vector.products) for vector in segment.vectors)


def _lines(segment: RowSegment | ColumnSegment) -> int:
    return len({product.line for vector in segment.vectors for product in vector.products})


def _splices(segment: RowSegment) -> int:
    return sum(v.shift != splice_span(segment, v.plane)[0] for v in segment.vectors)


def _input_loads(segment: RowSegment, by: str, columns: int) -> int:
    if by == "load":
        return len(segment.vectors)
    spans = [splice_span(segment, plane) for plane in {v.plane for v in segment.vectors}]
    return sum(columns + (low < high) for low, high in spans)


def _transposed_rows(transposition: Transposition, columns: int) -> Affine:
    return Affine(0, columns + (transposition.reach > 0))


def counts(sweep: Sweep, by: str, later: bool) -> Counts:
    """The instructions of one block; `later` sweeps add to what is already stored."""
    ui, uk = sweep.block.unroll
    columns = [segment for t in sweep.transpositions for segment in t.segments]
    spliced = sweep.rows if by == "splice" else ()
    return Counts(
        outer_products=_sum([*sweep.rows, *columns], _products),
        coefficient_loads=_sum([*sweep.rows, *columns], _lines),
        input_loads=_sum(sweep.rows, lambda segment: _input_loads(segment, by, uk)),
        splices=_sum(spliced, _splices),
        transposed_rows=sum((_transposed_rows(t, uk) for t in sweep.transpositions), Affine(0)),
        column_reads=_sum(columns, lambda segment: len(segment.vectors)),
        tile_loads=Affine(0, ui * uk if later else 0),
        tile_stores=Affine(0, ui * uk),
        loop_steps=_sum([*sweep.rows, *columns], lambda _: 1),
    )


def instructions_per_tile(plan: Schedule, n: int) -> Fraction:
    """Instructions for n x n outputs, at a vector length of n elements."""
    total = Fraction(0)
    for index, sweep in enumerate(plan.sweeps):
        ui, uk = sweep.block.unroll
        total += Fraction(counts(sweep, plan.by, index > 0).total().at(n), ui * uk)
    return total


def _fitting_unrolls(block: Block, extents: Sequence[int | None], n: int) -> tuple[int, int]:
    """The greatest ui and uk for a domain; extents may be unknown (None)."""
    axis = plane_axis(len(extents), block.row_axis)
    planes = 1 if axis is None else extents[axis]
    columns = None if extents[-1] is None else max(1, extents[-1] // n)
    return (planes or 64, columns or 64)


def best_blocks(
    lines: Sequence[Line], limit: int, n: int, extents: Sequence[int | None]
) -> tuple[Block, ...]:
    """The sweeps of a cover, each unrolled by powers of two so that it needs fewest instructions.

    Args:
        lines: a cover.
        limit: matrix registers of the machine.
        n: the vector length in elements for which instructions are counted.
        extents: outputs along each axis, None where unknown; blocks are no larger, and a domain
            narrower than n outputs counts as n.
    """
    powers = [2**k for k in range(7)]
    chosen = []
    for block in blocks(lines, (1, 1)):
        most = _fitting_unrolls(block, extents, n)
        best = None
        for uk in powers:
            for ui in powers:
                candidate = Block(block.row_axis, block.skew, (ui, uk), block.lines)
                if ui > most[0] or uk > most[1] or registers(candidate, lines) > limit:
                    continue
                price = instructions_per_tile(schedule(lines, [candidate]), n)
                # Among equals the widest: its rows are longest in memory.
                best = min(best or (price, -uk, candidate), (price, -uk, candidate), key=_price)
        chosen.append(best[2] if best else block)
    return tuple(chosen)


def _price(candidate: tuple) -> tuple:
    return candidate[:2]


def best_cover(
    terms: Mapping[Offset, float], limit: int, n: int, extents: Sequence[int | None]
) -> tuple[str, tuple[Line, ...]]:
    """The option with the fewest instructions of a tile, and its lines; among equals the first.

    Arguments are those of `best_blocks`, and the scatter terms of the stencil. An option that needs
    longer vectors than n is not taken, except where all do.

    Raises:
        TwofourError: a rank other than 2 and 3.
    """

    def price(lines: tuple[Line, ...]) -> tuple[bool, Fraction]:
        plan = schedule(lines, best_blocks(lines, limit, n, extents))
        return smallest_length(plan) > n, instructions_per_tile(plan, n)

    covers = {option: cover(terms, option) for option in OPTIONS}
    option = min(covers, key=lambda name: price(covers[name]))
    return option, covers[option]
