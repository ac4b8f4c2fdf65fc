# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Generated code in terms of scalable vectors and matrix tiles: types, lengths, loops over slices.

One binary serves every vector length: n, the number of elements of a vector, is a value of the
program, and so is every index that depends on it.
"""

from collections.abc import Callable, Sequence

from twofour.codegen.cpu.kernel_abi import EntryConstants
from twofour.mlir import arith, ir, llvm, memref, scf, vector

# The architecture allows vectors of 16 to 256 bytes.
MIN_VECTOR_BYTES = 16
MAX_VECTOR_BYTES = 256


def element_bytes(element: ir.Type) -> int:
    return 8 if isinstance(element, ir.F64Type) else 4


class ScalableCode:
    """Emits operations on vectors of n elements and on tiles of n x n, in one function."""

    def __init__(self, element: ir.Type, entry: ir.Block):
        self.element = element
        self.constants = EntryConstants(entry)
        self.shortest = MIN_VECTOR_BYTES // element_bytes(element)
        self.longest = self.longest_of(element)
        self.vector_type = ir.VectorType.get([self.shortest], element, scalable=[True])
        self.mask_type = ir.VectorType.get(
            [self.shortest], ir.IntegerType.get_signless(1), scalable=[True]
        )
        self.tile_type = ir.VectorType.get([self.shortest] * 2, element, scalable=[True, True])

    @staticmethod
    def longest_of(element: ir.Type) -> int:
        """The most elements that a vector of any machine holds."""
        return MAX_VECTOR_BYTES // element_bytes(element)

    @property
    def n(self) -> ir.Value:
        return self.vectors(1)

    def index(self, value: int) -> ir.Value:
        return self.constants.index(value)

    def vectors(self, count: int) -> ir.Value:
        """The index `count` * n."""
        if count == 0:
            return self.index(0)
        return self.constants.get(("vectors", count), lambda: self._length(count))

    def _length(self, count: int) -> ir.Value:
        scale = arith.ConstantOp(ir.IndexType.get(), self.shortest * count).result
        return arith.muli(vector.vscale(), scale)

    def affine(self, constant: int, count: int = 0) -> ir.Value:
        """The index `constant` + `count` * n."""

        def make() -> ir.Value:
            return arith.addi(
                self._length(count), arith.ConstantOp(ir.IndexType.get(), constant).result
            )

        if constant == 0 or count == 0:
            return self.vectors(count) if constant == 0 else self.index(constant)
        return self.constants.get(("affine", constant, count), make)

    def add(self, base: ir.Value, constant: int, count: int = 0) -> ir.Value:
        """`base` + `constant` + `count` * n."""
        if constant:
            base = arith.addi(base, self.index(constant))
        return arith.addi(base, self.vectors(count)) if count else base

    def kept_vectors(self, count: int) -> ir.Value:
        """The index `count` * n, made once and kept in a register."""
        if count == 0:
            return self.kept_index(0)
        return self.constants.get(("kept", count), lambda: _kept(self._length(count)))

    def kept_index(self, value: int) -> ir.Value:
        """An index made once and kept in a register."""

        def make() -> ir.Value:
            return _kept(arith.ConstantOp(ir.IndexType.get(), value).result)

        return self.constants.get(("kept index", value), make)

    def splat(self, value: float) -> ir.Value:
        """A vector of one number."""

        def make() -> ir.Value:
            number = ir.FloatAttr.get(self.element, value)
            splat = ir.DenseElementsAttr.get_splat(self.vector_type, number)
            return arith.ConstantOp(self.vector_type, splat).result

        return self.constants.get(("splat", value), make)

    def first(self, count: ir.Value) -> ir.Value:
        """The mask of the first `count` elements: of all where there are no more than that."""
        return vector.create_mask(self.mask_type, [count])

    @property
    def all(self) -> ir.Value:
        """The mask of all elements."""
        # Constants stand in front of those made before them, and so cannot use them.
        return self.constants.get("all", lambda: self.first(self._length(1)))

    def load(self, view: ir.Value, at: Sequence[ir.Value]) -> ir.Value:
        return vector.load(self.vector_type, view, at)

    def zero_tile(self) -> ir.Value:
        zero = ir.FloatAttr.get(self.element, 0.0)
        attribute = ir.DenseElementsAttr.get_splat(self.tile_type, zero)
        return arith.ConstantOp(self.tile_type, attribute).result

    def outer_product(self, rows: ir.Value, columns: ir.Value, tile: ir.Value) -> ir.Value:
        """The tile plus rows[i] * columns[j] in place (i, j)."""
        kind = ir.Attribute.parse("#vector.kind<add>")
        return vector.outerproduct(self.tile_type, rows, columns, acc=tile, kind=kind)

    def empty_tile(self) -> ir.Value:
        """A tile of unknown values."""
        return ir.Operation.create("arm_sme.get_tile", results=[self.tile_type]).results[0]

    def elements_from(self, view: ir.Value, at: Sequence[ir.Value]) -> ir.Value:
        """The elements of a view from a place on, as a view of rank 1.

        Tiles are loaded and stored at a register plus a register: LLVM, which would rather add the
        two, is kept from it by an address that it does not see through.
        """
        metadata = list(memref.ExtractStridedMetadataOp(view).results)
        (base, offset, size), strides = metadata[:3], metadata[-len(at) :]
        for place, stride in zip(at, strides, strict=True):
            offset = arith.addi(offset, arith.muli(place, stride))
        unknown = ir.ShapedType.get_dynamic_size()
        layout = ir.StridedLayoutAttr.get(unknown, [1])
        kind = ir.MemRefType.get([unknown], self.element, layout)
        return memref.ReinterpretCastOp(
            kind, base, [_kept(offset)], [size], [], [unknown], [unknown], [1]
        ).result

    def splice(self, first: ir.Value, second: ir.Value, start: int) -> ir.Value:
        """Elements `start` to `start` + n - 1 of two vectors, one after the other."""
        # llvm.vector.splice allows no more than the elements of the shortest vector.
        position = arith.ConstantOp(ir.IntegerType.get_signless(32), start).result
        return llvm.call_intrinsic(
            self.vector_type,
            f"llvm.aarch64.sve.ext.nxv{self.shortest}{self.element}",
            [first, second, position],
            [],
            [],
        )

    def load_slice(
        self,
        tile: ir.Value,
        slice_index: ir.Value,
        view: ir.Value,
        at: Sequence[ir.Value],
        mask: ir.Value | None = None,
    ) -> ir.Value:
        """The tile with row `slice_index` read from memory."""
        return ir.Operation.create(
            "arm_sme.load_tile_slice",
            results=[self.tile_type],
            operands=[view, mask or self.all, tile, *at, slice_index],
        ).results[0]

    def store_slice(
        self, tile: ir.Value, slice_index: ir.Value, view: ir.Value, at: Sequence[ir.Value]
    ) -> None:
        """Write row `slice_index` of the tile to memory."""
        ir.Operation.create(
            "arm_sme.store_tile_slice", operands=[tile, slice_index, self.all, view, *at]
        )

    def column(self, tile: ir.Value, slice_index: ir.Value) -> ir.Value:
        """Column `slice_index` of the tile."""
        return ir.Operation.create(
            "arm_sme.extract_tile_slice",
            results=[self.vector_type],
            operands=[tile, slice_index],
            attributes={"layout": ir.Attribute.parse("#arm_sme.layout<vertical>")},
        ).results[0]

    def slices(
        self,
        end: ir.Value,
        body: Callable[[ir.Value, list[ir.Value]], Sequence[ir.Value] | None],
        carried: Sequence[ir.Value] = (),
        begin: int = 0,
    ) -> list[ir.Value]:
        """A loop over slices of tiles.

        No iteration may see the number of its slice as a constant: LLVM 22 makes an instruction of
        that which does not exist.
        """
        return self.loop(self.kept_index(begin), end, body, carried)

    def loop(
        self,
        begin: ir.Value,
        end: ir.Value,
        body: Callable[[ir.Value, list[ir.Value]], Sequence[ir.Value] | None],
        carried: Sequence[ir.Value] = (),
        step: ir.Value | None = None,
    ) -> list[ir.Value]:
        """`carried = body(i, carried)` for i = begin, begin + step, ...; the last of it."""
        op = scf.ForOp(begin, end, step or self.index(1), list(carried))
        with ir.InsertionPoint(op.body):
            scf.yield_(body(op.induction_variable, list(op.inner_iter_args)) or [])
        return list(op.results)


def _kept(value: ir.Value) -> ir.Value:
    """The same index; LLVM does not see what it is, and so cannot make it again in every loop."""
    word = ir.IntegerType.get_signless(64)
    known = arith.index_cast(word, value)
    hidden = llvm.inline_asm(word, [known], "", "=r,0")
    return arith.index_cast(ir.IndexType.get(), hidden)
