# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Whether coefficient lines, their blocks and a schedule compute a stencil, in exact arithmetic."""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from fractions import Fraction

from twofour.layout.coefficient_lines import Line, Offset, unit
from twofour.layout.outer_schedule import (
    Affine,
    Block,
    ColumnSegment,
    Product,
    RowSegment,
    Schedule,
    Sweep,
    Transposition,
    line_shape,
    plane_axis,
    row_direction,
    smallest_length,
)

Stencil = dict[Offset, Fraction]
# More would take the verifier too long; no machine has as many.
MAX_TILES = 64
MAX_LENGTH = 1024
# The sums of outputs by tile (i, u) and by place along an axis of the tile.
Sums = dict[tuple[int, int, int], Stencil]


class ScheduleFault(Exception):
    """What a schedule should have held, and what it holds: 'expected ..., got ...'."""


def stencil_of(lines: Sequence[Line]) -> Stencil:
    """The gather offsets and exact weights that lines add up to; zero sums are left out."""
    total: dict[Offset, Fraction] = defaultdict(Fraction)
    for line in lines:
        for offset, weight in line.terms():
            total[tuple(-s for s in offset)] += Fraction(weight)
    return {offset: weight for offset, weight in total.items() if weight}


def difference(got: Stencil, expected: Mapping[Offset, float]) -> str | None:
    """None for equal stencils, else one line; weights of 0 do not count."""
    for offset in sorted(got.keys() | expected.keys()):
        have, want = got.get(offset, Fraction(0)), expected.get(offset, 0.0)
        if have != Fraction(want):
            return f"expected weight {want} at offset {list(offset)}, got {float(have)}"
    return None


def check_lines(lines: Sequence[Line], expected: Mapping[Offset, float]) -> str | None:
    """None when the lines are well formed and add up to the stencil, else one line."""
    rank = len(next(iter(expected)))
    directions = {unit(rank, axis) for axis in range(rank)}
    directions |= {unit(rank, rank - 2, skew) for skew in (1, -1)}
    for line in lines:
        if line.direction not in directions:
            return (
                "expected lines along an axis or a diagonal of the last two axes, "
                f"got direction {list(line.direction)}"
            )
    return difference(stencil_of(lines), expected)


def check_blocks(blocks: Sequence[Block], lines: Sequence[Line]) -> str | None:
    """None when every line is in one block of its shape, else one line."""
    rank = len(lines[0].direction)
    taken = sorted(k for block in blocks for k in block.lines)
    if taken != list(range(len(lines))):
        return f"expected each of {len(lines)} lines in one block, got {taken}"
    for block in blocks:
        if not block.lines:
            return "expected blocks with lines, got one without"
        if min(block.unroll) < 1 or (rank == 2 and block.unroll[0] != 1):
            return (
                "expected positive unroll factors, 1 for planes in rank 2, "
                f"got {list(block.unroll)}"
            )
        if math.prod(block.unroll) > MAX_TILES:
            return f"expected at most {MAX_TILES} tiles in a block, got {list(block.unroll)}"
        for k in block.lines:
            shape = line_shape(lines[k])
            if shape != (block.row_axis, block.skew):
                return (
                    f"expected row axis {shape[0]} and skew {shape[1]} for line {k}, "
                    f"got {block.row_axis} and {block.skew}"
                )
    return None


def _require(condition: bool, message: str) -> None:
    if not condition:
        raise ScheduleFault(message)


def _steps(segment: RowSegment | ColumnSegment, n: int) -> range:
    _require(
        {segment.start.scale, segment.stop.scale} <= {0, 1},
        "expected bounds c or n + c, got another multiple of n",
    )
    _require(
        bool(segment.vectors) and all(vector.products for vector in segment.vectors),
        "expected segments with products, got one without",
    )
    return range(segment.start.at(n), segment.stop.at(n))


def _consecutive(segments: Sequence[RowSegment | ColumnSegment]) -> None:
    for before, after in zip(segments, segments[1:]):  # noqa: B905 - neighbours
        _require(
            before.stop == after.start,
            f"expected a segment from {_spell(before.stop)} on, got {_spell(after.start)}",
        )


def _check_extent(transposition: Transposition) -> None:
    """All columns that are loaded are used: others need not exist in memory."""
    segments, stop = transposition.segments, Affine(transposition.reach, 1)
    _require(bool(segments), "expected segments in a transposition, got none")
    _require(
        segments[0].start == Affine(0) and segments[-1].stop == stop,
        f"expected a transposition from step 0 to {_spell(stop)}, "
        f"got {_spell(segments[0].start)} to {_spell(segments[-1].stop)}",
    )


def _spell(bound: Affine) -> str:
    return f"n + {bound.constant}" if bound.scale else f"{bound.constant}"


def _check_product(
    product: Product, sweep: Sweep, lines: Sequence[Line], direction: Offset, p: int, n: int
) -> None:
    k, (i, u) = product.line, product.tile
    ui, uk = sweep.block.unroll
    _require(0 <= i < ui and 0 <= u < uk, f"expected a tile of {ui} x {uk}, got {(i, u)}")
    _require(k in sweep.block.lines, f"expected a line of the block, got {k}")
    _require(
        lines[k].direction == direction,
        f"expected direction {list(direction)} for line {k}, got {list(lines[k].direction)}",
    )
    # Where a line has no weight for the tile, the input need not exist in memory.
    low, high = -lines[k].last, n - lines[k].first
    _require(low <= p < high, f"expected line {k} from {low} to {high} for n = {n}, got {p}")


def _check_plane(plane: int, axis: int | None) -> None:
    _require(axis is not None or plane == 0, f"expected plane 0 in rank 2, got {plane}")


def _exact_weights(lines: Sequence[Line]) -> list[list[tuple[int, Fraction]]]:
    """For each line its weights that are not 0, by place."""
    return [[(k, Fraction(w)) for k, w in enumerate(line.weights) if w] for line in lines]


def _add(
    sums: Sums,
    where: tuple[int, int],
    weights: Sequence[tuple[int, Fraction]],
    place: int,
    n: int,
    offset: Callable[[int], Offset],
) -> None:
    """Scatter one product: output `place` + k gets weight k, for the n outputs of the tile."""
    for k, weight in weights:
        if 0 <= place + k < n:
            sums[(*where, place + k)][offset(place + k)] += weight


def _row_sums(plan: Schedule, sweep: Sweep, n: int) -> Sums:
    """What the row segments add to each row q of each tile."""
    rank, block = len(plan.lines[0].direction), sweep.block
    axis, skew = plane_axis(rank, block.row_axis), block.skew
    sums: Sums = defaultdict(lambda: defaultdict(Fraction))
    weights = _exact_weights(plan.lines)
    _consecutive(sweep.rows)
    for segment in sweep.rows:
        for p in _steps(segment, n):
            for vector in segment.vectors:
                _check_plane(vector.plane, axis)
                for product in vector.products:
                    _check_product(product, sweep, plan.lines, row_direction(rank, block), p, n)
                    line, (i, u) = plan.lines[product.line], product.tile

                    def offset(q, vector=vector, i=i, u=u, p=p):
                        found = [0] * rank
                        found[block.row_axis] = p - q
                        found[-1] = (vector.column - u) * n + vector.shift + skew * (p - q)
                        if axis is not None:
                            found[axis] = vector.plane - i
                        return tuple(found)

                    first = line.start[block.row_axis]
                    _add(sums, product.tile, weights[product.line], p + first, n, offset)
    return sums


def _column_sums(plan: Schedule, sweep: Sweep, n: int) -> Sums:
    """What the transpositions add to each column t of each tile."""
    rank, block = len(plan.lines[0].direction), sweep.block
    axis = plane_axis(rank, block.row_axis)
    uk = block.unroll[1]
    sums: Sums = defaultdict(lambda: defaultdict(Fraction))
    weights = _exact_weights(plan.lines)
    _require(not (sweep.transpositions and block.skew), "expected no transposition where skewed")
    for transposition in sweep.transpositions:
        _check_plane(transposition.plane, axis)
        _consecutive(transposition.segments)
        _check_extent(transposition)
        for segment in transposition.segments:
            _require(segment.phase in (0, 1), f"expected phase 0 or 1, got {segment.phase}")
            for q in _steps(segment, n):
                for vector in segment.vectors:
                    matrix, at = vector.column + segment.phase, q - segment.phase * n
                    width = n if matrix < uk else transposition.reach
                    _require(
                        0 <= at < width,
                        f"expected a column below {width} of matrix {matrix}, got {at} at n = {n}",
                    )
                    column = transposition.column + matrix * n + at
                    p = transposition.column + q
                    for product in vector.products:
                        _check_product(product, sweep, plan.lines, unit(rank, rank - 1), p, n)
                        line, (i, u) = plan.lines[product.line], product.tile

                        def offset(t, i=i, u=u, transposition=transposition, column=column):
                            found = [0] * rank
                            found[block.row_axis] = transposition.row
                            found[-1] = column - (u * n + t)
                            if axis is not None:
                                found[axis] = transposition.plane - i
                            return tuple(found)

                        place = p + line.start[-1]
                        _add(sums, product.tile, weights[product.line], place, n, offset)
    return sums


def _common(sums: Sums, sweep: Sweep, n: int, what: str) -> Stencil:
    """The stencil that the sums of a sweep have in common."""
    ui, uk = sweep.block.unroll
    found = None
    for where in ((i, u, k) for i in range(ui) for u in range(uk) for k in range(n)):
        got = {offset: w for offset, w in sums.get(where, {}).items() if w}
        found = got if found is None else found
        if got == found:
            continue
        for offset in sorted(got.keys() | found.keys()):
            have, want = got.get(offset, Fraction(0)), found.get(offset, Fraction(0))
            _require(
                have == want,
                f"expected weight {float(want)} at offset {list(offset)} of {what} {where[2]} of "
                f"tile {where[:2]} for n = {n}, got {float(have)}",
            )
    return found or {}


def check_schedule(plan: Schedule, expected: Mapping[Offset, float]) -> str | None:
    """None when a schedule computes the stencil at every output, else one line.

    All bounds are affine in n, and their order is that of the least n: so what holds at the two
    shortest vector lengths that can run the schedule holds for all longer ones.
    """
    if message := check_blocks([sweep.block for sweep in plan.sweeps], plan.lines):
        return message
    least = smallest_length(plan)
    if least > MAX_LENGTH:
        return f"expected a schedule for vectors of at most {MAX_LENGTH} elements, got {least}"
    for n in (least, least + 1):
        total: dict[Offset, Fraction] = defaultdict(Fraction)
        try:
            for sweep in plan.sweeps:
                for sums, what in (
                    (_row_sums(plan, sweep, n), "row"),
                    (_column_sums(plan, sweep, n), "column"),
                ):
                    for offset, weight in _common(sums, sweep, n, what).items():
                        total[offset] += weight
        except ScheduleFault as fault:
            return str(fault)
        if message := difference({o: w for o, w in total.items() if w}, expected):
            return message
    return None
