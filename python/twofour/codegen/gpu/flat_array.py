# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Views as rows of elements, counted from the first point of the domain."""

from collections.abc import Sequence
from dataclasses import dataclass

from twofour.codegen.gpu.code import Index, IndexCode
from twofour.mlir import arith, ir, memref

NO_BOUND = 2**62  # elements; what a flat array holds is bounded by its sizes


@dataclass(frozen=True)
class FlatArray:
    """An array as one row of elements from the first point of the domain.

    Element `dot(coordinates, strides)` of `flat` is the point at these coordinates of the domain;
    `sizes` are the extents from there on that may be touched per axis. The first point is `begin`
    elements from the aligned pointer.
    """

    flat: ir.Value
    begin: Index
    sizes: list[Index]
    strides: list[Index]

    def address(self, code: IndexCode, place: Index, itemsize: int) -> Index:
        """The address of an element."""
        first = memref.extract_aligned_pointer_as_index(self.flat)
        return code.add(first, code.mul(code.add(self.begin, place), itemsize))


def address_word(code: IndexCode, address: Index) -> ir.Value:
    """An address as PTX takes it, in 64 bits."""
    return arith.index_cast(ir.IntegerType.get_signless(64), code.value(address))


def flat_array(code: IndexCode, view: ir.Value, reach_lo: Sequence[int]) -> FlatArray:
    """A view that begins `reach_lo` before the domain; its innermost stride is 1."""
    rank, unknown = view.type.rank, ir.ShapedType.get_dynamic_stride_or_offset()
    base, offset, *rest = memref.extract_strided_metadata(view)
    sizes, strides = list(rest[:rank]), [*rest[rank : 2 * rank - 1], 1]
    offset = code.add(offset, code.dot(reach_lo, strides))
    sizes = [code.sub(size, lo) for size, lo in zip(sizes, reach_lo, strict=True)]
    extent = ir.ShapedType.get_dynamic_size()
    layout = ir.StridedLayoutAttr.get(unknown, [1])
    kind = ir.MemRefType.get([extent], view.type.element_type, layout)
    begin, end = [code.value(offset)], [code.value(NO_BOUND)]
    flat = memref.reinterpret_cast(kind, base, begin, end, [], [unknown], [extent], [1])
    return FlatArray(flat, offset, sizes, strides)
