# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""CPU kernels for weighted sums: blocks of rows times vectors along the innermost axis.

Every input vector of a block of rows is loaded once and feeds all rows that use it. This is the
outer product of a column of weights and an input vector, without the products that are zero. The
terms of an output (see row_sums and row_pairs) are added in one order by fused multiply-adds,
whatever the block, so that vectors and remainders give the same bits; so does the sparse route
where terms are single points.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import partial, reduce

from twofour.mlir import arith, func, ir, memref, scf, vector
from twofour.runtime.page_offset import CACHE_LINE
from twofour.targets.cpu.elements import ElementCode
from twofour.targets.cpu.kernel_abi import (
    IN_PLACE_ATTRIBUTE,
    EntryConstants,
    kernel_function,
    shifted,
    strided_loop,
    view_type,
)
from twofour.targets.cpu.read_ahead import ReadAhead
from twofour.targets.cpu.register_tile import (
    RegisterTile,
    choose_rows,
    choose_tile,
    multiply_adds,
)
from twofour.targets.cpu.row_block import KernelViews, RowBlock, Width
from twofour.targets.cpu.row_pairs import pair_terms, sum_row_pairs
from twofour.targets.cpu.row_sums import Offset, Rows, RowsOf, sum_rows, terms_of
from twofour.targets.cpu.vector_unit import VectorUnit

# Rows of two axes that are stored past the caches side by side: memory serves several better than
# one. In three axes the rows of so many planes are too many.
ROWS_PAST_CACHES = 4
# Sums of more terms take longer than memory does: of rows that are stored past the caches, and of
# those of planes, where several rows at once are more streams than are fetched ahead.
MOST_TERMS, MOST_TERMS_IN_PLANES = 16, 64


@dataclass(frozen=True)
class Terms:
    """The terms of one input: out[x] += sum_i weights[i] * in[x + offsets[i]]."""

    offsets: Sequence[Offset]
    weights: Sequence[float]

    @property
    def reach_lo(self) -> Offset:
        return tuple(-min(column) for column in zip(*self.offsets, strict=True))

    @property
    def last_row(self) -> Offset:
        """Where in a view of the input the last row begins that an output reads."""
        row = max(at[:-1] for at in self.offsets)
        return tuple(at + lo for at, lo in zip((*row, 0), self.reach_lo, strict=True))


@dataclass(frozen=True)
class DirectKernel:
    """What a kernel computes: constant + addend + the terms of each input, in this order.

    With `has_addend` the last input is the addend, read at the output point. With `reassociate`
    points of a row that have the same weight are added first, and rows are summed up in pairs where
    that is faster.
    """

    name: str
    inputs: Sequence[Terms]
    constant: float = 0.0
    has_addend: bool = False
    reassociate: bool = False

    @property
    def rank(self) -> int:
        return len(self.inputs[0].offsets[0])

    def rows_of(self, unit: VectorUnit) -> RowsOf:
        """How rows along the last axis but one are summed up on a vector unit."""
        terms = [terms_of(t.offsets, t.weights, self.reassociate) for t in self.inputs]
        one_by_one = partial(sum_rows, terms, self.rank)
        if not (self.reassociate and self.rank == 2 and unit.adds_beside):
            return one_by_one
        paired = [pair_terms(of_input) for of_input in terms]
        if not any(of_input.pairs for of_input in paired):
            return one_by_one
        return choose_rows(one_by_one, partial(sum_row_pairs, paired), unit)

    def in_pairs(self, unit: VectorUnit) -> bool:
        """Whether rows are summed up in pairs on a vector unit."""
        return bool(self.rows_of(unit)(1).shared)

    def waits_for_memory(self, element: ir.Type, unit: VectorUnit) -> bool:
        """Whether sweeps of arrays larger than the caches are better made row by row."""
        terms = sum(len(terms.weights) for terms in self.inputs)
        if self.rank > unit.nontemporal_axes:
            return terms <= MOST_TERMS_IN_PLANES
        return terms <= MOST_TERMS and isinstance(element, ir.F32Type | ir.F64Type)

    def work(self, unit: VectorUnit) -> float:
        """Multiply-adds that take as long as an output does in its fastest block."""
        return multiply_adds(self.rows_of(unit), self.rank, unit)

    def tile(self, unit: VectorUnit, lanes: int, past_caches: bool = False) -> RegisterTile:
        """The block that is fastest on a vector unit whose registers hold so many elements."""
        return choose_tile(self.rows_of(unit), self.rank, unit, lanes, past_caches)


def build_direct_kernel(
    kernel: DirectKernel,
    element: ir.Type,
    unit: VectorUnit,
    tile: RegisterTile | None = None,
    past_caches: bool = False,
    rows_of: RowsOf | None = None,
) -> func.FuncOp:
    """Insert the kernel's function at the current insertion point.

    `tile` is the block of outputs, the one for the vector unit where it is None; its rows are even
    in number where they are summed up in pairs. With `past_caches` the kernel is for arrays larger
    than the caches: few rows are summed up at once, a given tile's one by one, and where the vector
    unit says so, whole cache lines of them are stored past the caches, of every row from another
    column on, since rows are aligned differently; the element must then be one of f32 and f64.
    `rows_of(n)` says what is added to n rows in which order, for every output in the same one; the
    kernel's own otherwise.
    """
    inputs = len(kernel.inputs) + kernel.has_addend
    views = [view_type(kernel.rank, element)] * (inputs + 1)
    function = kernel_function(kernel.name, views, inputs)
    function.attributes[IN_PLACE_ATTRIBUTE] = ir.UnitAttr.get()
    with ir.InsertionPoint(function.entry_block):
        rows_of = rows_of or kernel.rows_of(unit)
        chosen = tile or kernel.tile(unit, ElementCode(element, unit.bytes).lanes, past_caches)
        size = chosen.vector_bytes or unit.bytes
        nontemporal = past_caches and kernel.rank <= unit.nontemporal_axes
        if past_caches and tile is not None:
            chosen = replace(chosen, rows=1)
        if nontemporal:
            # Lines that caches hold a part of must not be stored past them: that takes far longer.
            chosen = replace(chosen, vectors=max(chosen.vectors, CACHE_LINE // size))
        elif rows_of(1).shared:
            chosen = replace(chosen, rows=chosen.rows + chosen.rows % 2)
        code = ElementCode(element, size)
        ahead = past_caches and not nontemporal
        _Loops(kernel, code, chosen, function.entry_block, nontemporal, ahead, rows_of).emit()
        func.ReturnOp([])
    return function


class _Loops:
    """The loops of a kernel over blocks of rows."""

    def __init__(
        self,
        kernel: DirectKernel,
        code: ElementCode,
        tile: RegisterTile,
        entry: ir.Block,
        nontemporal: bool,
        ahead: bool,
        rows_of: RowsOf,
    ):
        self.rows_of, self.paired = rows_of, bool(rows_of(1).shared)
        self.kernel, self.code, self.tile = kernel, code, tile
        self.nontemporal = nontemporal
        self.constants = EntryConstants(entry)
        *inputs, self.output, self.begin, self.end = entry.arguments
        addend = inputs.pop() if kernel.has_addend else None
        reaches = [terms.reach_lo for terms in kernel.inputs]
        views = KernelViews(list(zip(inputs, reaches, strict=True)), addend, self.output)
        self._emit = RowBlock(views, kernel.constant, code, self.constants).emit
        self._ahead = None
        if ahead:
            last = [terms.last_row for terms in kernel.inputs]
            reads = list(zip(inputs, last, strict=True))
            if addend is not None:
                reads.append((addend, (0,) * kernel.rank))
            self._ahead = ReadAhead(reads, self.output, code, self.constants)

    def emit(self) -> None:
        self._loops(0, [])

    def _loops(self, axis: int, bases: list[ir.Value]) -> None:
        """The loops over rows, from an axis on."""
        begin, end = self._extent(axis)
        innermost = self.kernel.rank - 1
        if axis == innermost:
            self._side_by_side([bases], begin, end)
        elif axis == innermost - 1 and not self.nontemporal:
            self._plane(bases, begin, end)
        elif axis == innermost - 1 == 0:
            self._plane_nontemporal(begin, end)
        else:
            for base in scf.for_(begin, end, self.constants.index(1)):
                self._loops(axis + 1, [*bases, base])
                scf.yield_([])

    def _extent(self, axis: int) -> tuple[ir.Value, ir.Value]:
        """The outputs along an axis."""
        if axis == 0:
            return self.begin, self.end
        return self.constants.index(0), memref.dim(self.output, self.constants.index(axis))

    def _plane(self, bases: list[ir.Value], first: ir.Value, last: ir.Value) -> None:
        """All blocks of some rows, what these leave of the same rows, then the rows that are left.

        What is left has a loop over rows of its own: loops that are not entered would cost a short
        row as much as a block. Large arrays have long rows, of which little is left: several at
        once would only take registers from the blocks.
        """
        start, stop = self._extent(self.kernel.rank - 1)
        done = self._end_of_blocks(start, stop)
        first = self._odd_row(
            first, last, lambda row: self._rest(self._row(1), [*bases, row], start, stop)
        )
        rows = self.rows_of(self.tile.rows)
        whole = strided_loop(
            self.constants,
            first,
            last,
            self.tile.rows,
            lambda row: self._along(rows, [*bases, row], start, done, self._block),
        )

        left = arith.cmpi(arith.CmpIPredicate.ne, done, stop)
        together = self.tile.rows if self._ahead is None else 1
        strided_loop(
            self.constants,
            arith.select(left, first, whole),
            whole,
            together,
            lambda row: self._rest(self.rows_of(together), [*bases, row], done, stop),
        )
        self._in_runs(
            whole,
            last,
            lambda count, row: self._rest(self.rows_of(count), [*bases, row], start, stop),
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
        if not self.paired:
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
        """Few rows: pairs of them where rows are paired, then single ones."""
        for count in (2, 1) if self.paired else (1,):
            first = strided_loop(self.constants, first, last, count, partial(sweep, count))

    def _row(self, number: int) -> Rows:
        """A row that is summed up alone, so many rows from an even one."""
        return self.rows_of(1, number % 2) if self.paired else self.rows_of(1)

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
            size = self.constants.index(self.tile.vectors * self.code.lanes)
            longest = arith.subi(end, reduce(arith.maxsi, starts))
            together = arith.subi(longest, arith.remsi(longest, size))
            for place in scf.for_(self.constants.index(0), together, size):
                for (row, bases), start in zip(numbered, starts, strict=True):
                    self._emit(row, [*bases, arith.addi(start, place)], self._block)
                scf.yield_([])
            starts = [arith.addi(start, together) for start in starts]
        for (row, bases), start in zip(numbered, starts, strict=True):
            done = self._end_of_blocks(start, end)
            self._along(row, bases, start, done, self._block)
            self._rest(row, bases, done, end)

    @property
    def _block(self) -> Width:
        return Width(self.tile.vectors, self.code.lanes, nontemporal=self.nontemporal)

    def _end_of_blocks(self, begin: ir.Value, end: ir.Value) -> ir.Value:
        """Where the last whole block of a row ends."""
        size = self.constants.index(self.tile.vectors * self.code.lanes)
        # Signed: LLVM rewrites unsigned remainders in every address, and compiles thrice as long.
        return arith.subi(end, arith.remsi(arith.subi(end, begin), size))

    def _rest(self, rows: Rows, bases: list[ir.Value], begin: ir.Value, end: ir.Value) -> None:
        """What blocks leave of some rows: single vectors, and the last points."""
        lanes = self.code.lanes
        if self.tile.rows * self.tile.vectors > 1:
            begin = self._along(rows, bases, begin, end, Width(1, lanes))
        if self.code.is_maskable:
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
        if self._ahead is not None and width.lanes > 1:
            self._ahead.emit(rows.outputs, bases, width.vectors * width.lanes)
        self._emit(rows, bases, width)

    def _aligned_from(self, bases: list[ir.Value], begin: ir.Value, end: ir.Value) -> ir.Value:
        """The first point from `begin` on, or the end, at which a cache line of outputs begins."""
        rank = self.kernel.rank
        itemsize = self.code.vector_bytes // self.code.lanes
        metadata = memref.ExtractStridedMetadataOp(self.output).results
        place = metadata[1]
        for at, stride in zip([*bases, begin], metadata[2 + rank :], strict=True):
            place = arith.addi(place, arith.muli(at, stride))
        pointer = memref.extract_aligned_pointer_as_index(self.output)
        place = arith.addi(place, arith.divui(pointer, self.constants.index(itemsize)))
        whole = self.constants.index(CACHE_LINE // itemsize)
        skipped = arith.remui(arith.subi(whole, arith.remui(place, whole)), whole)
        return arith.minsi(arith.addi(begin, skipped), end)

    def _masked(self, rows: Rows, bases: list[ir.Value], begin: ir.Value, end: ir.Value) -> None:
        """The points between two of some rows, vector by vector under a mask."""
        lanes = self.code.lanes
        kind = ir.VectorType.get([lanes], ir.IntegerType.get_signless(1))
        for base in scf.for_(begin, end, self.constants.index(lanes)):
            mask = vector.create_mask(kind, [arith.subi(end, base)])
            self._emit(rows, [*bases, base], Width(1, lanes, mask))
            scf.yield_([])
