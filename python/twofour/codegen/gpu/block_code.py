# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The start of a tensor-core kernel: who a thread is, where its block works, and its memory."""

import numpy as np

from twofour.codegen.gpu.code import Index, IndexCode
from twofour.codegen.gpu.flat_array import FlatArray, flat_array
from twofour.codegen.gpu.kernel_abi import GLOBAL, shared_type, table, workgroup
from twofour.codegen.gpu.matrix_ops import i32
from twofour.layout.block_layout import COPY_BYTES, BlockLayout
from twofour.layout.fragments import LANES
from twofour.mlir import arith, gpu, ir, llvm, memref

# What stands for an index in the constant indices of getelementptr.
DYNAMIC = -(2**31)


def shared_address(memory: ir.Value) -> ir.Value:
    """Where a part of shared memory begins, 32 bits."""
    return arith.index_cast(i32(), memref.extract_aligned_pointer_as_index(memory))


def shared_pointer(memory: ir.Value) -> ir.Value:
    """The same, as a pointer."""
    return llvm.inttoptr(ir.Type.parse("!llvm.ptr<3>"), shared_address(memory))


class BlockCode:
    """What all parts of a kernel share, emitted at the insertion point.

    Attributes:
        name: of the kernel; tables are named after it.
        layout: the work of the block.
        element: the type in memory.
        copy: elements of 16 bytes.
        code: index arithmetic.
        warp, lane: of this thread; quad, place: its row of four lanes, and its place there.
        source, target: input and output.
        origin: the first point of the block per axis; end: where its march along axis 0 ends.
        halo, staging: parts of shared memory: all halo tiles, and all staging tiles.
        halo_pointer, staging_pointer: where they begin.
    """

    def __init__(
        self,
        name: str,
        layout: BlockLayout,
        element: ir.Type,
        entry: ir.Block,
        reach_lo: tuple[int, ...],
    ):
        self.name, self.layout, self.element = name, layout, element
        self.copy = COPY_BYTES // layout.itemsize
        self.rank = len(layout.tile)
        self.code = IndexCode(entry)
        thread = gpu.thread_id(gpu.Dimension.x)
        self.warp, self.lane = self.code.div(thread, LANES), self.code.rem(thread, LANES)
        self.quad, self.place = self.code.div(self.lane, 4), self.code.rem(self.lane, 4)
        source, target = entry.arguments
        self.source = self._flat(source, reach_lo)
        self.target = self._flat(target, (0,) * len(reach_lo))
        self.origin, self.end = self._block_origin()
        self.halo, self.staging = self._shared()
        self.halo_pointer, self.staging_pointer = map(shared_pointer, (self.halo, self.staging))

    def table(
        self, name: str, values: np.ndarray, element: ir.Type, space: int = GLOBAL
    ) -> ir.Value:
        """A table of the kernel, made once; see kernel_abi.table."""
        return self.code.constants.get(
            ("table", name), lambda: table(f"{self.name}_{name}", values, element, space)
        )

    def word(self, number: Index) -> ir.Value:
        """A number of 32 bits, as shared memory is addressed by."""
        number = self.code.value(number)
        return number if number.type == i32() else arith.index_cast(i32(), number)

    def further(self, pointer: ir.Value, elements: Index) -> ir.Value:
        """A pointer to shared memory, so many elements further on."""
        if isinstance(elements, int) and not elements:
            return pointer
        number = self.word(elements)
        dynamic = ir.DenseI32ArrayAttr.get([DYNAMIC])
        return llvm.getelementptr(pointer.type, pointer, [number], dynamic, self.element, None)

    def row_of(self, tile: Index) -> Index:
        """The first row of axis 0 of a tile of this block's march."""
        return self.code.add(self.origin[0], self.code.mul(tile, self.layout.tile[0]))

    def _flat(self, view: ir.Value, reach_lo: tuple[int, ...]) -> FlatArray:
        """A view that begins `reach_lo` before the domain, from the domain's first point on."""
        array = flat_array(self.code, view, reach_lo)
        if not self.layout.folded:
            return array
        # Segments of the only axis, as rows that overlap in memory.
        (size,), width = array.sizes, self.layout.tile[1]
        sizes = [self.code.ceil_div(size, width), size]
        return FlatArray(array.flat, array.begin, sizes, [width, 1])

    def _block_origin(self) -> tuple[list[Index], Index]:
        """The first point of the block, and where its march along axis 0 ends."""
        code, layout = self.code, self.layout
        number, origin = gpu.block_id(gpu.Dimension.x), [0] * self.rank
        for axis in range(self.rank - 1, 0, -1):
            if not layout.folded:
                blocks = code.ceil_div(self.target.sizes[axis], layout.tile[axis])
                origin[axis] = code.mul(code.rem(number, blocks), layout.tile[axis])
                number = code.div(number, blocks)
        march = layout.tile[0] * layout.march
        origin[0] = code.mul(number, march)
        return origin, code.minimum(code.add(origin[0], march), self.target.sizes[0])

    def _shared(self) -> tuple[ir.Value, ir.Value]:
        code, layout = self.code, self.layout
        unknown = ir.ShapedType.get_dynamic_size()
        byte = ir.IntegerType.get_signless(8)
        memory = gpu.dynamic_shared_memory(
            ir.MemRefType.get([unknown], byte, memory_space=workgroup())
        )
        size = layout.stages * layout.stage_elements
        begin = code.value(size * layout.itemsize)
        staging = shared_type(layout.stagings * layout.staging_elements, self.element)
        return (
            memref.view(shared_type(size, self.element), memory, code.value(0), []),
            memref.view(staging, memory, begin, []),
        )
