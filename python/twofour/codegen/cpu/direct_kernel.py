# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""CPU kernels for weighted sums: blocks of rows times vectors along the innermost axis.

Every input vector of a block of rows is loaded once and feeds all rows that use it. This is the
outer product of a column of weights and an input vector, without the products that are zero. The
terms of an output (see row_sums and row_pairs) are added in one order by fused multiply-adds,
whatever the block, so that vectors and remainders give the same bits; so does the sparse route
where terms are single points.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property, partial

from twofour.codegen.cpu.block_loops import BlockLoops
from twofour.codegen.cpu.elements import ElementCode
from twofour.codegen.cpu.kernel_abi import (
    IN_PLACE_ATTRIBUTE,
    PAST_CACHES_ATTRIBUTE,
    EntryConstants,
    kernel_function,
    view_type,
)
from twofour.codegen.cpu.looped_block import LoopedBlock, make_weight_tables
from twofour.codegen.cpu.looped_tile import choose_looped_tile
from twofour.codegen.cpu.read_ahead import ReadAhead
from twofour.codegen.cpu.register_tile import (
    RegisterTile,
    arithmetic,
    choose_rows,
    choose_tile,
    multiply_adds,
)
from twofour.codegen.cpu.row_block import KernelViews, RowBlock
from twofour.codegen.cpu.row_pairs import pair_terms, sum_row_pairs
from twofour.codegen.cpu.row_sums import (
    Offset,
    RowsOf,
    Term,
    are_many_in_planes,
    is_box_that_differs,
    sum_rows,
    terms_of,
)
from twofour.codegen.cpu.term_loops import are_added_in_loops, code_size, loops_over
from twofour.codegen.cpu.vector_unit import VectorUnit
from twofour.mlir import func, ir
from twofour.reach import reach_of
from twofour.runtime.page_offset import CACHE_LINE

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
        return reach_of(self.offsets)[0]

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

    @cached_property
    def terms(self) -> list[tuple[Term, ...]]:
        """What is added to an output, for each input in its order but where columns decide it."""
        return [terms_of(t.offsets, t.weights, self.reassociate) for t in self.inputs]

    @cached_property
    def is_looped(self) -> bool:
        """Whether terms are so many that they are added in loops."""
        return are_added_in_loops(self.terms, self.rank)

    def rows_of(self, unit: VectorUnit) -> RowsOf:
        """How rows along the last axis but one are summed up on a vector unit."""
        terms = self.terms
        one_by_one = partial(sum_rows, terms, self.rank)
        if not self.reassociate or self.rank == 1 or self.is_looped:
            return one_by_one
        is_in_columns = is_box_that_differs if self.rank == 2 else are_many_in_planes
        if unit.core.by_columns and all(map(is_in_columns, terms)):
            return partial(one_by_one, by_columns=True)
        if self.rank > 2 or not unit.adds_beside:
            return one_by_one
        paired = [pair_terms(of_input) for of_input in terms]
        if not any(of_input.pairs for of_input in paired):
            return one_by_one
        return choose_rows(one_by_one, partial(sum_row_pairs, paired), unit)

    def in_pairs(self, unit: VectorUnit) -> bool:
        """Whether rows are summed up in pairs on a vector unit."""
        return bool(self.rows_of(unit)(1).shared)

    def waits_for_memory(self, element: ir.Type, unit: VectorUnit) -> bool:
        """Whether sweeps of arrays larger than the caches have a kernel of their own."""
        terms = sum(len(terms.weights) for terms in self.inputs)
        if self.rank > unit.nontemporal_axes:
            return terms <= MOST_TERMS_IN_PLANES
        return terms <= MOST_TERMS and isinstance(element, ir.F32Type | ir.F64Type)

    def work(self, unit: VectorUnit) -> float:
        """Multiply-adds that take as long as an output does in its fastest block."""
        if self.is_looped:
            return arithmetic(self.rows_of(unit), self._looped_tile(unit), unit)
        return multiply_adds(self.rows_of(unit), self.rank, unit)

    def tile(self, unit: VectorUnit, lanes: int, past_caches: bool = False) -> RegisterTile:
        """The block that is fastest on a vector unit whose registers hold so many elements."""
        if self.is_looped:
            return self._looped_tile(unit)
        return choose_tile(self.rows_of(unit), self.rank, unit, lanes, past_caches)

    def _looped_tile(self, unit: VectorUnit) -> RegisterTile:
        def code_of(rows: int) -> int:
            return code_size(loops_over(sum_rows(self.terms, self.rank, rows), self.terms))

        return choose_looped_tile(code_of, self.rank, unit)


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
    arguments = [view_type(kernel.rank, element)] * (inputs + 1)
    function = kernel_function(kernel.name, arguments, inputs)
    function.attributes[IN_PLACE_ATTRIBUTE] = ir.UnitAttr.get()
    if past_caches:
        function.attributes[PAST_CACHES_ATTRIBUTE] = ir.UnitAttr.get()
    is_looped = rows_of is None and kernel.is_looped
    rows_of = rows_of or kernel.rows_of(unit)
    chosen = tile or kernel.tile(unit, ElementCode(element, unit.bytes).lanes, past_caches)
    size = chosen.vector_bytes or unit.bytes
    nontemporal = past_caches and kernel.rank <= unit.nontemporal_axes
    if past_caches and tile is not None:
        chosen = replace(chosen, rows=1, planes=1)
    if nontemporal:
        # Lines that caches hold a part of must not be stored past them: that takes far longer.
        chosen = replace(chosen, vectors=max(chosen.vectors, CACHE_LINE // size))
    elif rows_of(1).shared:
        chosen = replace(chosen, rows=chosen.rows + chosen.rows % 2)
    code = ElementCode(element, size)
    tables = make_weight_tables(kernel.name, kernel.terms, code) if is_looped else []
    with ir.InsertionPoint(function.entry_block):
        constants = EntryConstants(function.entry_block)
        views = _views(kernel, function.arguments)
        block = RowBlock(views, kernel.constant, code, constants)
        if is_looped:
            block = LoopedBlock(views, kernel.constant, code, constants, kernel.terms, tables)
        reads_ahead = past_caches and not nontemporal and not unit.core.claims
        BlockLoops(
            block=block.emit,
            rows_of=rows_of,
            tile=chosen,
            lanes=code.lanes,
            is_maskable=code.is_maskable,
            outputs=[views.output],
            range=tuple(function.arguments[-2:]),
            constants=constants,
            nontemporal=nontemporal,
            ahead=_read_ahead(kernel, views, constants) if reads_ahead else None,
            claims=unit.core.claims,
        ).emit()
        func.ReturnOp([])
    return function


def _views(kernel: DirectKernel, arguments: Sequence[ir.Value]) -> KernelViews:
    *inputs, output, _, _ = arguments
    addend = inputs.pop() if kernel.has_addend else None
    reaches = [terms.reach_lo for terms in kernel.inputs]
    return KernelViews(list(zip(inputs, reaches, strict=True)), addend, output)


def _read_ahead(kernel: DirectKernel, views: KernelViews, constants: EntryConstants) -> ReadAhead:
    """Prefetches of the last row that an output reads in each input."""
    reads = [
        (view, terms.last_row) for (view, _), terms in zip(views.inputs, kernel.inputs, strict=True)
    ]
    if views.addend is not None:
        reads.append((views.addend, (0,) * kernel.rank))
    return ReadAhead(reads, [views.output], constants)
