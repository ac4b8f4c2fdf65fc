# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Loops over the outputs of a CPU kernel, in blocks of rows times vectors.

What computes a block says nothing of how many there are, and these loops nothing of what is
computed: kernels of weighted sums and of any other region share them.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property, partial, reduce

from twofour.codegen.cpu.kernel_abi import EntryConstants, shifted, strided_loop
from twofour.codegen.cpu.lanes import Width
from twofour.codegen.cpu.read_ahead import ReadAhead, claim_lines
from twofour.codegen.cpu.register_tile import MANY_ROWS, RegisterTile
from twofour.codegen.cpu.row_sums import Rows, RowsOf
from twofour.mlir import arith, ir, memref, scf, vector
from twofour.runtime.page_offset import CACHE_LINE

# Rows of two axes that are stored past the caches side by side: memory serves several better than
# one. In three axes the rows of so many planes are too many.
ROWS_PAST_CACHES = 4


@dataclass(kw_only=True)
class BlockLoops:
    """The loops of a kernel, at the insertion point, over a `range` of the outermost axis.

    `block(rows, bases, width)` emits a block: `rows` is what `rows_of(n)` returns for n rows (and,
    where rows are summed up in pairs, the parity of the first one), `bases` the place of its first
    output. Outputs have one shape and element type, and a vector holds `lanes` of them. With
    `nontemporal` whole cache lines are stored past the caches, of every row from another column on,
    since rows are aligned differently; of several outputs only if they are aligned alike. With
    `claims` the lines of a block are asked for before it is computed.
    """

    block: Callable[[Rows, list[ir.Value], Width], None]
    rows_of: RowsOf
    tile: RegisterTile
    lanes: int
    is_maskable: bool
    outputs: Sequence[ir.Value]
    range: tuple[ir.Value, ir.Value]
    constants: EntryConstants
    nontemporal: bool = False
    ahead: ReadAhead | None = None
    claims: bool = False

    def emit(self) -> None:
        if not self.nontemporal or len(self.outputs) == 1:
            self._loops(0, [])
            return
        branch = scf.IfOp(self._are_aligned_alike(), has_else=True)
        with ir.InsertionPoint(branch.then_block):
            self._loops(0, [])
            scf.yield_([])
        with ir.InsertionPoint(branch.else_block):
            replace(self, nontemporal=False)._loops(0, [])
            scf.yield_([])

    @property
    def _rank(self) -> int:
        return self.outputs[0].type.rank

    @cached_property
    def _paired(self) -> bool:
        return bool(self.rows_of(1).shared)

    def _loops(self, axis: int, bases: list[ir.Value]) -> None:
        """The loops over rows, from an axis on."""
        begin, end = self._extent(axis)
        innermost = self._rank - 1
        if axis == innermost:
            self._side_by_side([bases], begin, end)
        elif axis == innermost - 1 and not self.nontemporal:
            self._plane(bases, begin, end)
        elif axis == innermost - 1 == 0:
            self._plane_nontemporal(begin, end)
        elif axis == innermost - 2 and self.tile.planes > 1:
            self._planes(bases, begin, end)
        else:
            for base in scf.for_(begin, end, self.constants.index(1)):
                self._loops(axis + 1, [*bases, base])
                scf.yield_([])

    def _extent(self, axis: int) -> tuple[ir.Value, ir.Value]:
        """The outputs along an axis."""
        if axis == 0:
            return self.range
        return self.constants.index(0), memref.dim(self.outputs[0], self.constants.index(axis))

    def _planes(self, bases: list[ir.Value], first: ir.Value, last: ir.Value) -> None:
        """Some planes at once, then those that are left one by one, in higher blocks."""
        tile, (begin, end) = self.tile, self._extent(self._rank - 2)
        alone = replace(self, tile=replace(tile, planes=1, rows=max(tile.planes, tile.rows)))
        whole = strided_loop(
            self.constants,
            first,
            last,
            tile.planes,
            lambda plane: self._plane([*bases, plane], begin, end),
        )
        strided_loop(
            self.constants,
            whole,
            last,
            1,
            lambda plane: alone._plane([*bases, plane], begin, end),
        )

    def _plane(self, bases: list[ir.Value], first: ir.Value, last: ir.Value) -> None:
        """All blocks of some rows, what these leave of the same rows, then the rows that are left.

        What is left has a loop over rows of its own: loops that are not entered would cost a short
        row as much as a block. Large arrays have long rows, of which little is left: several at
        once would only take registers from the blocks.
        """
        start, stop = self._extent(self._rank - 1)
        done = self._end_of_blocks(start, stop)
        first = self._odd_row(
            first, last, lambda row: self._short(self._row(1), [*bases, row], start, stop)
        )
        rows = self._rows(self.tile.rows)
        whole = strided_loop(
            self.constants,
            first,
            last,
            self.tile.rows,
            lambda row: self._along(rows, [*bases, row], start, done, self._width),
        )

        left = arith.cmpi(arith.CmpIPredicate.ne, done, stop)
        together = self.tile.rows if self.ahead is None else 1
        strided_loop(
            self.constants,
            arith.select(left, first, whole),
            whole,
            together,
            lambda row: self._rest(self._rows(together), [*bases, row], done, stop),
        )
        if self.tile.rows > 1:
            self._in_runs(
                whole,
                last,
                lambda count, row: self._short(self._rows(count), [*bases, row], start, stop),
            )

    def _plane_nontemporal(self, first: ir.Value, last: ir.Value) -> None:
        """Some rows side by side, then those that are left."""
        start, stop = self._extent(1)

        def several(count: int, row: ir.Value) -> None:
            rows = [shifted(self.constants, [row], [n]) for n in range(count)]
            self._side_by_side(rows, start, stop)

        first = self._odd_row(
            first, last, lambda row: self._side_by_side([[row]], start, stop, parity=1)
        )
        together = partial(several, ROWS_PAST_CACHES)
        whole = strided_loop(self.constants, first, last, ROWS_PAST_CACHES, together)
        self._in_runs(whole, last, several)

    def _odd_row(
        self, first: ir.Value, last: ir.Value, sweep: Callable[[ir.Value], None]
    ) -> ir.Value:
        """The first row where it is an odd one and rows are paired; returns the row after it."""
        if not self._paired:
            return first
        odd = arith.addi(first, arith.remsi(first, self.constants.index(2)))
        begin = arith.minsi(odd, last)
        for row in scf.for_(first, begin, self.constants.index(1)):
            sweep(row)
            scf.yield_([])
        return begin

    def _in_runs(
        self, first: ir.Value, last: ir.Value, sweep: Callable[[int, ir.Value], None]
    ) -> None:
        """Few rows: eights of them, pairs where rows are paired, then single ones."""
        counts = (MANY_ROWS,) * (self.tile.rows > MANY_ROWS) + (2,) * self._paired + (1,)
        for count in counts:
            first = strided_loop(self.constants, first, last, count, partial(sweep, count))

    def _rows(self, count: int) -> Rows:
        """So many rows, in each of the tile's planes."""
        planes = self.tile.planes if self._rank > 2 else 1
        return self.rows_of(count, planes=planes) if planes > 1 else self.rows_of(count)

    def _row(self, number: int) -> Rows:
        """A row that is summed up alone, so many rows from an even one."""
        return self.rows_of(1, number % 2) if self._paired else self.rows_of(1)

    def _side_by_side(
        self, rows: list[list[ir.Value]], begin: ir.Value, end: ir.Value, parity: int = 0
    ) -> None:
        """Rows of outputs, a block of each in turn, those past the caches from whole lines on."""
        numbered = [(self._row(parity + n), bases) for n, bases in enumerate(rows)]
        starts = [begin] * len(rows)
        if self.nontemporal:
            starts = [self._aligned_from(bases, begin, end) for bases in rows]
            for (row, bases), start in zip(numbered, starts, strict=True):
                self._masked(row, bases, begin, start)
        if len(rows) > 1:
            size = self.constants.index(self.tile.vectors * self.lanes)
            longest = arith.subi(end, reduce(arith.maxsi, starts))
            together = arith.subi(longest, arith.remsi(longest, size))
            for place in scf.for_(self.constants.index(0), together, size):
                for (row, bases), start in zip(numbered, starts, strict=True):
                    self.block(row, [*bases, arith.addi(start, place)], self._width)
                scf.yield_([])
            starts = [arith.addi(start, together) for start in starts]
        for (row, bases), start in zip(numbered, starts, strict=True):
            done = self._end_of_blocks(start, end)
            self._along(row, bases, start, done, self._width)
            self._rest(row, bases, done, end)

    @property
    def _width(self) -> Width:
        return Width(self.tile.vectors, self.lanes, nontemporal=self.nontemporal)

    def _end_of_blocks(self, begin: ir.Value, end: ir.Value) -> ir.Value:
        """Where the last whole block of a row ends."""
        size = self.constants.index(self.tile.vectors * self.lanes)
        # Signed: LLVM rewrites unsigned remainders in every address, and compiles thrice as long.
        return arith.subi(end, arith.remsi(arith.subi(end, begin), size))

    def _rest(self, rows: Rows, bases: list[ir.Value], begin: ir.Value, end: ir.Value) -> None:
        """What blocks leave of some rows: less than one of them."""
        if self.tile.vectors > 1:
            self._short(rows, bases, begin, end)
        else:
            self._last(rows, bases, begin, end)

    def _short(self, rows: Rows, bases: list[ir.Value], begin: ir.Value, end: ir.Value) -> None:
        """A part of some rows by single vectors, and its last points."""
        begin = self._along(rows, bases, begin, end, Width(1, self.lanes))
        self._last(rows, bases, begin, end)

    def _last(self, rows: Rows, bases: list[ir.Value], begin: ir.Value, end: ir.Value) -> None:
        """Fewer points of some rows than a vector holds."""
        if self.is_maskable:
            self._masked(rows, bases, begin, end)
        else:
            self._along(rows, bases, begin, end, Width(1, 1))

    def _along(
        self, rows: Rows, bases: list[ir.Value], begin: ir.Value, end: ir.Value, width: Width
    ) -> ir.Value:
        """Blocks of some width one after the other; returns where they end."""
        return strided_loop(
            self.constants,
            begin,
            end,
            width.vectors * width.lanes,
            lambda base: self._emit_ahead(rows, [*bases, base], width),
        )

    def _emit_ahead(self, rows: Rows, bases: list[ir.Value], width: Width) -> None:
        """A block, and the prefetches for later ones."""
        points = width.vectors * width.lanes
        if width.lanes > 1 and self.ahead is not None:
            self.ahead.emit(rows.outputs, bases, points)
        elif width.lanes > 1 and self.claims and not self.nontemporal:
            claim_lines(self.outputs, rows.outputs, bases, points, self.constants)
        self.block(rows, bases, width)

    def _aligned_from(self, bases: list[ir.Value], begin: ir.Value, end: ir.Value) -> ir.Value:
        """The first point from `begin` on, or the end, at which a cache line of outputs begins."""
        place, strides = self._place(self.outputs[0])
        for at, stride in zip([*bases, begin], strides, strict=True):
            place = arith.addi(place, arith.muli(at, stride))
        whole = self._line
        skipped = arith.remui(arith.subi(whole, arith.remui(place, whole)), whole)
        return arith.minsi(arith.addi(begin, skipped), end)

    @property
    def _itemsize(self) -> int:
        return self.outputs[0].type.element_type.width // 8

    @property
    def _line(self) -> ir.Value:
        """The outputs in a cache line."""
        return self.constants.index(CACHE_LINE // self._itemsize)

    def _place(self, output: ir.Value) -> tuple[ir.Value, list[ir.Value]]:
        """Where an output begins, counted in elements from address 0, and its strides."""
        metadata = memref.ExtractStridedMetadataOp(output).results
        pointer = memref.extract_aligned_pointer_as_index(output)
        first = arith.divui(pointer, self.constants.index(self._itemsize))
        return arith.addi(first, metadata[1]), list(metadata[2 + self._rank :])

    def _are_aligned_alike(self) -> ir.Value:
        """Whether lines of all outputs begin at the same points."""
        first, *others = ([place, *strides] for place, strides in map(self._place, self.outputs))
        apart = [
            arith.remui(arith.subi(one, other), self._line)
            for numbers in others
            for one, other in zip(first, numbers, strict=True)
        ]
        alike = reduce(arith.ori, apart)
        return arith.cmpi(arith.CmpIPredicate.eq, alike, self.constants.index(0))

    def _masked(self, rows: Rows, bases: list[ir.Value], begin: ir.Value, end: ir.Value) -> None:
        """The points between two of some rows, vector by vector under a mask."""
        lanes = self.lanes
        kind = ir.VectorType.get([lanes], ir.IntegerType.get_signless(1))
        for base in scf.for_(begin, end, self.constants.index(lanes)):
            mask = vector.create_mask(kind, [arith.subi(end, base)])
            self.block(rows, [*bases, base], Width(1, lanes, mask))
            scf.yield_([])
