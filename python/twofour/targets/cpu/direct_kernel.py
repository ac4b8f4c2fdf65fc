# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""CPU kernels for weighted sums: blocks of rows times vectors along the innermost axis.

Every input vector of a block of rows is loaded once and feeds all rows that use it. This is the
outer product of a column of weights and an input vector, without the products that are zero. The
terms of an output (see row_sums) are added from the lowest offset to the highest by fused
multiply-adds, whatever the block, so that vectors and remainders give the same bits; so does the
sparse route where terms are single points.
"""

import itertools
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import reduce

from twofour.mlir import arith, func, ir, math, memref, scf, vector
from twofour.runtime.page_offset import CACHE_LINE
from twofour.targets.cpu.elements import ElementCode
from twofour.targets.cpu.kernel_abi import (
    EntryConstants,
    kernel_function,
    shifted,
    strided_loop,
    view_type,
)
from twofour.targets.cpu.register_tile import RegisterTile, arithmetic, choose_tile
from twofour.targets.cpu.row_sums import Offset, Rows, Signed, Step, sum_rows, terms_of
from twofour.targets.cpu.vector_unit import VectorUnit

# Rows of two axes that are stored past the caches side by side: memory serves several better than
# one. In three axes the rows of so many planes are too many.
ROWS_PAST_CACHES = 4


@dataclass(frozen=True)
class Terms:
    """The terms of one input: out[x] += sum_i weights[i] * in[x + offsets[i]]."""

    offsets: Sequence[Offset]
    weights: Sequence[float]

    @property
    def reach_lo(self) -> Offset:
        return tuple(-min(column) for column in zip(*self.offsets, strict=True))


@dataclass(frozen=True)
class DirectKernel:
    """What a kernel computes: constant + addend + the terms of each input, in this order.

    With `has_addend` the last input is the addend, read at the output point. With `reassociate`
    points of a row that have the same weight are added first.
    """

    name: str
    inputs: Sequence[Terms]
    constant: float = 0.0
    has_addend: bool = False
    reassociate: bool = False

    @property
    def rank(self) -> int:
        return len(self.inputs[0].offsets[0])

    def rows(self, count: int) -> Rows:
        """So many rows, along the last axis but one; where there is none, one."""
        terms = [terms_of(t.offsets, t.weights, self.reassociate) for t in self.inputs]
        return sum_rows(terms, self.rank, count if self.rank > 1 else 1)

    def work(self, unit: VectorUnit) -> float:
        """Multiply-adds that take as long as the arithmetic of an output in its fastest block."""
        return arithmetic(self.rows(self.tile(unit).rows))

    def tile(self, unit: VectorUnit, past_caches: bool = False) -> RegisterTile:
        """The block that is fastest on a vector unit."""
        return choose_tile(self.rows, self.rank, unit, past_caches)


def build_direct_kernel(
    kernel: DirectKernel,
    element: ir.Type,
    unit: VectorUnit,
    tile: RegisterTile | None = None,
    nontemporal: bool = False,
    rows_of: Callable[[int], Rows] | None = None,
) -> func.FuncOp:
    """Insert the kernel's function at the current insertion point.

    `tile` is the block of outputs, the one for the vector unit where it is None. With `nontemporal`
    whole cache lines are stored past the caches, of every row from another column on, since rows
    are aligned differently; the element must then be one of f32 and f64. `rows_of(n)` says what is
    added to n rows in which order, for every output in the same one; the kernel's own otherwise.
    """
    inputs = len(kernel.inputs) + kernel.has_addend
    views = [view_type(kernel.rank, element)] * (inputs + 1)
    function = kernel_function(kernel.name, views, inputs)
    with ir.InsertionPoint(function.entry_block):
        chosen = tile or kernel.tile(unit, nontemporal)
        size = chosen.vector_bytes or unit.bytes
        if nontemporal:
            # Lines that caches hold a part of must not be stored past them: that takes far longer.
            chosen = replace(chosen, rows=1, vectors=max(chosen.vectors, CACHE_LINE // size))
        code = ElementCode(element, size)
        rows_of = rows_of or kernel.rows
        _Emitter(kernel, code, chosen, function.entry_block, nontemporal, rows_of).emit()
        func.ReturnOp([])
    return function


@dataclass(frozen=True)
class _Width:
    """How much of a row is summed up at once: vectors of some lanes, the last ones masked.

    With `nontemporal` they are stored past the caches.
    """

    vectors: int
    lanes: int
    mask: ir.Value | None = None
    nontemporal: bool = False


@dataclass(frozen=True)
class _Products:
    """Sums of vectors, each from points on of one of a block's vectors, and what to do with them.

    `added` are products: of which of the sums, in which row and vector of the block they are added,
    and the weight.
    """

    read: list[tuple[int, tuple[Signed, ...]]]
    added: list[tuple[int, int, int, float]]


def _rows_of_inputs(steps: Sequence[Step]) -> Iterator[list[Step]]:
    """Runs of steps that read one row of inputs from its begin to its end."""
    run: list[Step] = []
    for step in steps:
        if run and not (step.first[:-1] == run[-1].first[:-1] and step.first > run[-1].first):
            yield run
            run = []
        run.append(step)
    yield run


class _Emitter:
    def __init__(
        self,
        kernel: DirectKernel,
        code: ElementCode,
        tile: RegisterTile,
        entry: ir.Block,
        nontemporal: bool,
        rows_of: Callable[[int], Rows],
    ):
        self.rows_of = rows_of
        self.kernel, self.code, self.tile = kernel, code, tile
        self.nontemporal = nontemporal
        arguments = list(entry.arguments)
        count = len(kernel.inputs)
        self.inputs = arguments[:count]
        self.addend = arguments[count] if kernel.has_addend else None
        self.output, self.begin, self.end = arguments[-3:]
        self.constants = EntryConstants(entry)

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
            self._plane_past_caches(begin, end)
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
        """All blocks of some rows, then what they leave of each row.

        What is left has a loop over rows of its own: loops that are not entered would cost a short
        row as much as a block.
        """
        start, stop = self._extent(self.kernel.rank - 1)
        done = self._end_of_blocks(start, stop)
        rows = self.rows_of(self.tile.rows)
        whole = strided_loop(
            self.constants,
            first,
            last,
            self.tile.rows,
            lambda row: self._along(rows, [*bases, row], start, done, self._block),
        )
        left = arith.cmpi(arith.CmpIPredicate.ne, done, stop)
        for row in scf.for_(arith.select(left, first, whole), last, self.constants.index(1)):
            has_blocks = arith.cmpi(arith.CmpIPredicate.slt, row, whole)
            self._rest([*bases, row], arith.select(has_blocks, done, start), stop)
            scf.yield_([])

    def _plane_past_caches(self, first: ir.Value, last: ir.Value) -> None:
        """Some rows side by side, then those that are left one by one."""
        start, stop = self._extent(1)

        def several(row: ir.Value) -> None:
            rows = [shifted(self.constants, [row], [n]) for n in range(ROWS_PAST_CACHES)]
            self._side_by_side(rows, start, stop)

        whole = strided_loop(self.constants, first, last, ROWS_PAST_CACHES, several)
        for row in scf.for_(whole, last, self.constants.index(1)):
            self._side_by_side([[row]], start, stop)
            scf.yield_([])

    def _side_by_side(self, rows: list[list[ir.Value]], begin: ir.Value, end: ir.Value) -> None:
        """Rows of outputs, a block of each in turn, those past the caches from whole lines on."""
        row, starts = self.rows_of(1), [begin] * len(rows)
        if self.nontemporal:
            starts = [self._aligned_from(bases, begin, end) for bases in rows]
            for bases, start in zip(rows, starts, strict=True):
                self._masked(row, bases, begin, start)
        if len(rows) > 1:
            size = self.constants.index(self.tile.vectors * self.code.lanes)
            longest = arith.subi(end, reduce(arith.maxsi, starts))
            together = arith.subi(longest, arith.remsi(longest, size))
            for place in scf.for_(self.constants.index(0), together, size):
                for bases, start in zip(rows, starts, strict=True):
                    self._emit_block(row, [*bases, arith.addi(start, place)], self._block)
                scf.yield_([])
            starts = [arith.addi(start, together) for start in starts]
        for bases, start in zip(rows, starts, strict=True):
            done = self._end_of_blocks(start, end)
            self._along(row, bases, start, done, self._block)
            self._rest(bases, done, end)

    @property
    def _block(self) -> _Width:
        return _Width(self.tile.vectors, self.code.lanes, nontemporal=self.nontemporal)

    def _end_of_blocks(self, begin: ir.Value, end: ir.Value) -> ir.Value:
        """Where the last whole block of a row ends."""
        size = self.constants.index(self.tile.vectors * self.code.lanes)
        # Signed: LLVM rewrites unsigned remainders in every address, and compiles thrice as long.
        return arith.subi(end, arith.remsi(arith.subi(end, begin), size))

    def _rest(self, bases: list[ir.Value], begin: ir.Value, end: ir.Value) -> None:
        """What blocks leave of a row: single vectors, and its last points."""
        row, lanes = self.rows_of(1), self.code.lanes
        if self.tile.rows * self.tile.vectors > 1:
            begin = self._along(row, bases, begin, end, _Width(1, lanes))
        if self.code.is_maskable:
            self._masked(row, bases, begin, end)
        else:
            self._along(row, bases, begin, end, _Width(1, 1))

    def _along(
        self, rows: Rows, bases: list[ir.Value], begin: ir.Value, end: ir.Value, width: _Width
    ) -> ir.Value:
        """Blocks of some width one after the other; returns where they end."""
        return strided_loop(
            self.constants,
            begin,
            end,
            width.vectors * width.lanes,
            lambda base: self._emit_block(rows, [*bases, base], width),
        )

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
            self._emit_block(rows, [*bases, base], _Width(1, lanes, mask))
            scf.yield_([])

    def _products(self, steps: Sequence[Step], rows: int, width: _Width) -> Iterator[_Products]:
        """All products of a block, in an order that is that of the steps for every sum.

        Where several sums of a row use a vector as it is, it is read once and used at once: LLVM
        would read it once, too, and keep it on the stack in between. Sums of a single row would
        wait for each other then.
        """
        vectors = range(width.vectors)
        for run in _rows_of_inputs(steps):
            uses: dict[int, list[tuple[int, Step]]] = {}
            for step, place in itertools.product(run, vectors):
                column = step.first[-1] + place * width.lanes
                uses.setdefault(column, []).append((place, step))
            alone = all(len(step.points) == 1 for step in run)
            if rows > 1 and alone and len(uses) < len(run) * width.vectors:
                for column in sorted(uses):
                    first, step = uses[column][0]
                    yield _Products(
                        [(first, step.points)],
                        [
                            (0, row, place, weight)
                            for place, step in uses[column]
                            for row, weight in step.weights
                        ],
                    )
            else:
                for step in run:
                    yield _Products(
                        [(place, step.points) for place in vectors],
                        [(v, row, v, w) for row, w in step.weights for v in vectors],
                    )

    def _emit_block(self, rows: Rows, bases: list[ir.Value], width: _Width) -> None:
        """Some vectors of every row."""
        places = [[*bases[:-1], base] for base in self._columns(bases[-1], width)]
        sums = [[self._start(at, output, width) for at in places] for output in rows.outputs]
        for view, terms, steps in zip(self.inputs, self.kernel.inputs, rows.inputs, strict=True):
            for group in self._products(steps, len(rows.outputs), width):
                values = [
                    self._sum_of(view, places[place], points, terms.reach_lo, width)
                    for place, points in group.read
                ]
                for read, row, place, weight in group.added:
                    total = sums[row][place]
                    sums[row][place] = self._added(weight, values[read], total, width)
        for output, totals in zip(rows.outputs, sums, strict=True):
            for at, total in zip(places, totals, strict=True):
                self._write(total, shifted(self.constants, at, output), width)

    def _sum_of(
        self,
        view: ir.Value,
        at: list[ir.Value],
        points: Sequence[Signed],
        reach_lo: Offset,
        width: _Width,
    ) -> ir.Value:
        """The sum of inputs, from points on that are relative to an output at `at`."""
        total = None
        for point, sign in points:
            shift = [p + lo for p, lo in zip(point, reach_lo, strict=True)]
            value = self._read(view, at, shift, width)
            if total is None:
                total = value
            else:
                total = arith.addf(total, value) if sign > 0 else arith.subf(total, value)
        return total

    def _added(
        self, number: float, value: ir.Value, total: ir.Value | None, width: _Width
    ) -> ir.Value:
        weight = self._number(number, width)
        return arith.mulf(weight, value) if total is None else math.fma(weight, value, total)

    def _columns(self, base: ir.Value, width: _Width) -> list[ir.Value]:
        """Where the vectors of a row begin."""
        steps = range(0, width.vectors * width.lanes, width.lanes)
        return [shifted(self.constants, [base], [step])[0] for step in steps]

    def _start(self, at: list[ir.Value], output: Offset, width: _Width) -> ir.Value | None:
        """The number that a sum starts from, or None for nothing."""
        total = self._number(self.kernel.constant, width) if self.kernel.constant else None
        if self.addend is not None:
            value = self._read(self.addend, at, output, width)
            total = value if total is None else arith.addf(value, total)
        return total

    def _read(
        self, view: ir.Value, at: list[ir.Value], shift: Sequence[int], width: _Width
    ) -> ir.Value:
        place = shifted(self.constants, at, shift)
        if width.lanes == 1:
            return self.code.widen(memref.load(view, place), 1)
        kind = ir.VectorType.get([width.lanes], self.code.storage)
        if width.mask is None:
            value = vector.load(kind, view, place)
        else:
            nothing = self.constants.get("nothing", lambda: self.code.zero(width.lanes))
            value = vector.maskedload(kind, view, place, width.mask, nothing)
        return self.code.widen(value, width.lanes)

    def _write(self, total: ir.Value, place: list[ir.Value], width: _Width) -> None:
        result = self.code.narrow(total, width.lanes)
        if width.lanes == 1:
            memref.store(result, self.output, place)
        elif width.nontemporal:
            alignment = self.code.vector_bytes
            vector.store(result, self.output, place, nontemporal=True, alignment=alignment)
        elif width.mask is None:
            vector.store(result, self.output, place)
        else:
            vector.maskedstore(self.output, place, width.mask, result)

    def _number(self, value: float, width: _Width) -> ir.Value:
        return self.constants.get(
            ("number", value, width.lanes), lambda: self.code.constant(value, width.lanes)
        )
