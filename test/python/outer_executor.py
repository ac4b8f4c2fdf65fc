# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Runs a schedule of outer products on arrays, for any vector length, and counts what it does.

It takes the schedule literally: each vector is read where the schedule says, an element that may
not exist in memory is NaN, and reading beyond the stencil's own reach is an error.
"""

import itertools
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np

from twofour.layout.outer_schedule import Schedule, Sweep, plane_axis, splice_span

LONGEST = 256


@dataclass
class Machine:
    """One run: input with its halo, output, vector length, and counters by sweep."""

    plan: Schedule
    source: np.ndarray
    halo: Sequence[int]
    domain: Sequence[int]
    n: int
    counts: list[Counter] = field(default_factory=list)

    def __post_init__(self):
        self.tables = [
            np.concatenate([np.zeros(LONGEST - 1), line.weights, np.zeros(LONGEST - 1)])
            for line in self.plan.lines
        ]

    def run(self) -> np.ndarray:
        """The output; NaN where a sweep has no whole block."""
        result = np.zeros(self.domain)
        for sweep in self.plan.sweeps:
            self.counts.append(Counter())
            covered = np.full(self.domain, np.nan)
            for origin in self.origins(sweep):
                self.block(sweep, origin, result, covered)
            result = covered
        return result

    def origins(self, sweep: Sweep):
        rank, block, n = len(self.domain), sweep.block, self.n
        ui, uk = block.unroll
        step = [ui] * rank
        step[block.row_axis], step[-1] = n, uk * n
        last = self.domain[-1] // n * n
        return itertools.product(
            *(range(0, self.domain[axis], step[axis]) for axis in range(rank - 1)),
            range(-2 * n, last + 2 * n, step[-1]) if block.skew else range(0, last, step[-1]),
        )

    def vector(self, block, origin, plane, row, column, width=None) -> np.ndarray:
        """`n` input elements along the vector axis; NaN after the first `width`."""
        at = list(origin)
        at[block.row_axis] += row
        at[-1] += column
        if (axis := plane_axis(len(at), block.row_axis)) is not None:
            at[axis] += plane
        at = [x + h for x, h in zip(at, self.halo, strict=True)]
        width = self.n if width is None else width
        assert all(0 <= x < e for x, e in zip(at, self.source.shape, strict=True))
        assert at[-1] + width <= self.source.shape[-1], "read beyond the stencil's reach"
        found = np.full(self.n, np.nan)
        found[:width] = self.source[tuple(at[:-1])][at[-1] : at[-1] + width]
        return found

    def coefficients(self, line: int, p: int) -> np.ndarray:
        start = LONGEST - 1 - p - self.plan.lines[line].first
        assert start >= 0
        window = self.tables[line][start : start + self.n]
        assert len(window) == self.n
        return window

    def block(self, sweep: Sweep, origin, result, covered) -> None:
        (ui, uk), n, block = sweep.block.unroll, self.n, sweep.block
        places = {}
        for i, u, q in itertools.product(range(ui), range(uk), range(n)):
            at = list(origin)
            at[block.row_axis] += q
            at[-1] += u * n + block.skew * q
            if (axis := plane_axis(len(at), block.row_axis)) is not None:
                at[axis] += i
            places[i, u, q] = at
            if not all(0 <= x < e for x, e in zip(at, self.domain, strict=True)):
                return
            if at[-1] + n > self.domain[-1]:
                return
        tiles = {
            (i, u): np.array(
                [result[tuple(places[i, u, q][:-1])][places[i, u, q][-1] :][:n] for q in range(n)]
            )
            for i, u in itertools.product(range(ui), range(uk))
        }
        self.counts[-1]["blocks"] += 1
        self.counts[-1]["tile_stores"] += len(places)
        self.counts[-1]["tile_loads"] += len(places) if len(self.counts) > 1 else 0
        for segment in sweep.rows:
            for p in range(segment.start.at(n), segment.stop.at(n)):
                self.row(sweep, origin, segment, p, tiles)
        for transposition in sweep.transpositions:
            self.transpose(sweep, origin, transposition, tiles)
        for (i, u, q), at in places.items():
            target = covered[tuple(at[:-1])][at[-1] : at[-1] + n]
            assert np.isnan(target).all(), "a tile is stored twice"
            target[:] = tiles[i, u][q]

    def row(self, sweep, origin, segment, p, tiles) -> None:
        counts, block, n = self.counts[-1], sweep.block, self.n
        counts["loop_steps"] += 1
        counts["coefficient_loads"] += len(
            {product.line for vector in segment.vectors for product in vector.products}
        )
        memory = {}

        def load(plane, column, shift, width=None):
            if (plane, column, shift) not in memory:
                counts["input_loads"] += 1
                start = column * n + shift + block.skew * p
                memory[plane, column, shift] = self.vector(block, origin, plane, p, start, width)
            return memory[plane, column, shift]

        spliced = {}
        for vector in segment.vectors:
            low, high = splice_span(segment, vector.plane)
            if self.plan.by == "load" or vector.shift == low:
                inputs = load(vector.plane, vector.column, vector.shift)
            else:
                left = load(vector.plane, vector.column, low)
                last = vector.column + 1 == block.unroll[1]
                right = load(vector.plane, vector.column + 1, low, high - low if last else None)
                key = vector.plane, vector.column, vector.shift
                if key not in spliced:
                    counts["splices"] += 1
                    spliced[key] = np.concatenate([left, right])[vector.shift - low :][:n]
                inputs = spliced[key]
            for product in vector.products:
                counts["outer_products"] += 1
                tiles[product.tile] += np.outer(self.coefficients(product.line, p), inputs)

    def transpose(self, sweep, origin, transposition, tiles) -> None:
        counts, block, n = self.counts[-1], sweep.block, self.n
        uk = block.unroll[1]

        def matrix(v, width):
            counts["transposed_rows"] += n
            rows = [
                self.vector(
                    block,
                    origin,
                    transposition.plane,
                    transposition.row + q,
                    transposition.column + v * n,
                    width,
                )
                for q in range(n)
            ]
            return np.array(rows)

        held = {v: matrix(v, n) for v in range(uk)}
        phase = 0
        for segment in transposition.segments:
            if segment.phase != phase:
                phase = segment.phase
                del held[0]
                held[uk] = matrix(uk, transposition.reach)
            for q in range(segment.start.at(n), segment.stop.at(n)):
                p = transposition.column + q
                counts["loop_steps"] += 1
                used = set()
                for vector in segment.vectors:
                    assert vector.products
                    counts["column_reads"] += 1
                    column = held[vector.column + phase][:, q - phase * n]
                    for product in vector.products:
                        used.add(product.line)
                        counts["outer_products"] += 1
                        tiles[product.tile] += np.outer(column, self.coefficients(product.line, p))
                counts["coefficient_loads"] += len(used)
