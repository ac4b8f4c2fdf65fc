# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The outer products of one block of outputs, whose tiles stay in matrix registers throughout."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from twofour.codegen.sme.code import ScalableCode
from twofour.layout.outer_schedule import (
    Affine,
    ColumnSegment,
    RowSegment,
    Schedule,
    Sweep,
    Transposition,
    plane_axis,
    splice_span,
)
from twofour.mlir import arith, ir

Tile = tuple[int, int]


@dataclass(frozen=True)
class Fields:
    """What a kernel reads and writes, as memrefs of the same rank.

    Point x of the target is point x + halo of the source; `tables` holds the padded table of each
    coefficient line. The sum of a point starts from that of the addend, where there is one, and
    includes `constant`.
    """

    source: ir.Value
    target: ir.Value
    addend: ir.Value | None
    constant: float
    halo: Sequence[int]
    tables: Sequence[ir.Value]


class BlockCode:
    """Emits the code of a sweep's block whose first output stands at `origin` in the target."""

    def __init__(
        self,
        code: ScalableCode,
        plan: Schedule,
        sweep: Sweep,
        fields: Fields,
        origin: Sequence[ir.Value],
    ):
        self.code, self.plan, self.sweep, self.fields = code, plan, sweep, fields
        self.origin = origin
        self.row_axis, self.skew = sweep.block.row_axis, sweep.block.skew
        self.plane_axis = plane_axis(len(origin), self.row_axis)
        planes, vectors = sweep.block.unroll
        self.names: list[Tile] = [(i, u) for i in range(planes) for u in range(vectors)]

    def emit(self) -> None:
        tiles = self._start()
        for segment in self.sweep.rows:
            tiles = self._row_segment(segment, tiles)
        for transposition in self.sweep.transpositions:
            tiles = self._transposition(transposition, tiles)
        self._store(tiles)

    def _affine(self, bound: Affine) -> ir.Value:
        return self.code.affine(bound.constant, bound.scale)

    def _place(self, plane: int, row: ir.Value, column: int, halo: Sequence[int]) -> list[ir.Value]:
        """The indices of a place in the block, `column` elements from its first; halo added."""
        code, at = self.code, list(self.origin)
        if self.plane_axis is not None:
            at[self.plane_axis] = code.add(at[self.plane_axis], plane + halo[self.plane_axis])
        at[self.row_axis] = code.add(arith.addi(at[self.row_axis], row), halo[self.row_axis])
        at[-1] = code.add(at[-1], column + halo[-1])
        if self.skew:
            at[-1] = (arith.addi if self.skew > 0 else arith.subi)(at[-1], row)
        return at

    def _input(self, plane: int, row: ir.Value, column: int, vectors: int) -> list[ir.Value]:
        *outer, last = self._place(plane, row, column, self.fields.halo)
        return [*outer, self.code.add(last, 0, vectors)]

    def _outputs(self, view: ir.Value, row: ir.Value) -> list[ir.Value]:
        """A row of the output from the block's first column on, or of the addend; one a plane."""
        halo = [0] * len(self.origin)
        places = [self._place(i, row, 0, halo) for i in range(self.sweep.block.unroll[0])]
        return [self.code.elements_from(view, at) for at in places]

    def _by_name(self, tiles: Sequence[ir.Value]) -> Iterator[tuple[ir.Value, Tile]]:
        return zip(tiles, self.names, strict=True)

    def _start(self) -> list[ir.Value]:
        code, addend = self.code, self.fields.addend
        if addend is None:
            return [code.zero_tile() for _ in self.names]

        def load(row: ir.Value, tiles: list[ir.Value]) -> list[ir.Value]:
            addends = self._outputs(addend, row)
            return [
                code.load_slice(tile, row, addends[i], [code.kept_vectors(u)])
                for tile, (i, u) in self._by_name(tiles)
            ]

        return code.slices(code.n, load, [code.empty_tile() for _ in self.names])

    def _store(self, tiles: list[ir.Value]) -> None:
        code = self.code
        if self.fields.constant:
            # Last, since tiles that start alike would be taken for one, and copied.
            ones, constants = code.splat(1.0), code.splat(self.fields.constant)
            tiles = [code.outer_product(ones, constants, tile) for tile in tiles]

        def store(row: ir.Value, _: list[ir.Value]) -> None:
            outputs = self._outputs(self.fields.target, row)
            for tile, (i, u) in self._by_name(tiles):
                code.store_slice(tile, row, outputs[i], [code.kept_vectors(u)])

        code.slices(code.n, store)

    def _window(self, line: int, place: ir.Value) -> ir.Value:
        """The coefficients of a line for input row or column `place`."""
        first = self.code.longest - 1 - self.plan.lines[line].first
        start = arith.subi(self.code.kept_index(first), place)
        return self.code.load(self.fields.tables[line], [start])

    def _row_segment(self, segment: RowSegment, tiles: list[ir.Value]) -> list[ir.Value]:
        code = self.code

        def products(row: ir.Value, tiles: list[ir.Value]) -> list[ir.Value]:
            lines = sorted({p.line for vector in segment.vectors for p in vector.products})
            windows = {line: self._window(line, row) for line in lines}
            inputs = _Inputs(self, segment, row)
            sums = dict(zip(self.names, tiles, strict=True))
            for vector in segment.vectors:
                value = inputs.read(vector.plane, vector.column, vector.shift)
                for product in vector.products:
                    total = sums[product.tile]
                    sums[product.tile] = code.outer_product(windows[product.line], value, total)
            return list(sums.values())

        return code.loop(self._affine(segment.start), self._affine(segment.stop), products, tiles)

    def _transposition(self, transposition: Transposition, tiles: list[ir.Value]) -> list[ir.Value]:
        vectors = self.sweep.block.unroll[1]
        empty = [self.code.empty_tile() for _ in range(vectors)]
        matrices = self._matrices(transposition, range(vectors), empty)
        phase = 0
        for segment in transposition.segments:
            if segment.phase > phase:
                phase = segment.phase
                # In the register of the first, which is of no more use.
                first, *others = matrices
                columns = transposition.reach
                matrices = others + self._matrices(transposition, [vectors], [first], columns)
            tiles = self._column_segment(transposition, segment, matrices, tiles)
        return tiles

    def _matrices(
        self,
        transposition: Transposition,
        numbers: Sequence[int],
        registers: list[ir.Value],
        columns: int | None = None,
    ) -> list[ir.Value]:
        """Transposed matrices: inputs as they lie in memory, whole or the first columns of them."""
        code = self.code
        mask = None if columns is None else code.first(code.index(columns))

        def load(row: ir.Value, parts: list[ir.Value]) -> list[ir.Value]:
            source = code.add(row, transposition.row)
            at = self._input(transposition.plane, source, transposition.column, 0)
            inputs = code.elements_from(self.fields.source, at)
            return [
                code.load_slice(part, row, inputs, [code.kept_vectors(number)], mask)
                for part, number in zip(parts, numbers, strict=True)
            ]

        return code.slices(code.n, load, registers)

    def _column_segment(
        self,
        transposition: Transposition,
        segment: ColumnSegment,
        matrices: list[ir.Value],
        tiles: list[ir.Value],
    ) -> list[ir.Value]:
        """The products of a segment; `matrices` are those that the vectors read, in order."""
        code = self.code

        # Columns count from the first of the phase's matrices.
        offset = Affine(0, segment.phase)
        begin, end = segment.start - offset, segment.stop - offset

        def products(column: ir.Value, tiles: list[ir.Value]) -> list[ir.Value]:
            lines = sorted({p.line for vector in segment.vectors for p in vector.products})
            place = code.add(column, transposition.column, segment.phase)
            windows = {line: self._window(line, place) for line in lines}
            sums = dict(zip(self.names, tiles, strict=True))
            for vector in segment.vectors:
                value = code.column(matrices[vector.column], column)
                for product in vector.products:
                    total = sums[product.tile]
                    sums[product.tile] = code.outer_product(value, windows[product.line], total)
            return list(sums.values())

        return code.slices(self._affine(end), products, tiles, begin.constant)


class _Inputs:
    """The input vectors of one row, each made once: by loads, or from two loaded ones by splices.

    A spliced vector consists of elements of two neighbours, which lie at the plane's least shift.
    """

    def __init__(self, block: BlockCode, segment: RowSegment, row: ir.Value):
        self.block, self.segment, self.row = block, segment, row
        self.made: dict[tuple[int, int, int], ir.Value] = {}

    def read(self, plane: int, column: int, shift: int) -> ir.Value:
        key = plane, column, shift
        if key not in self.made:
            low, high = splice_span(self.segment, plane)
            vectors = self.block.sweep.block.unroll[1]
            spliced = self.block.plan.by == "splice" and shift > low
            # Elements past those that the last vector needs may not exist.
            if spliced and column + 1 < vectors:
                first, second = (self.read(plane, c, low) for c in (column, column + 1))
                self.made[key] = self.block.code.splice(first, second, shift - low)
            else:
                at = self.block._input(plane, self.row, shift, column)
                self.made[key] = self.block.code.load(self.block.fields.source, at)
        return self.made[key]
