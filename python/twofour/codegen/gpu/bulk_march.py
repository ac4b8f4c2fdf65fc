# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The march of a block whose tiles the copy engine moves (sm_90: bulk tensor copies).

One thread starts all copies. A halo tile is one box of the input; the engine fills what lies beyond
the input with zeros, and its bytes arrive at the mbarrier of their stage. A staging tile is written
in boxes, too, and the engine leaves out what lies beyond the output, but in units of 16 bytes:
where a row of the output ends within one, its last elements are not in the tensor map, and threads
write them.

    thread 0: make the barriers; begin to copy the first halo tiles, one for each stage
    for every block tile:
        wait at the barrier of its stage
        multiply, from its halo tile into one of two staging tiles
        wait until the other staging tile has been read; fence; barrier of the block
        thread 0: begin to write the staging tile, and to copy a halo tile into this stage
        where rows of the output end here, within a unit: write their last elements

The barrier of the block is needed to have the staging tile complete. It also says that the halo
tile has been read, so that stages need no barriers of their own to say that they are free; and,
since thread 0 has waited before it, that the other staging tile may be filled.
"""

import math
from collections.abc import Callable

from twofour.codegen.gpu.block_code import BlockCode, shared_address
from twofour.codegen.gpu.code import Index, conjunction
from twofour.codegen.gpu.kernel_abi import tensor_map
from twofour.codegen.gpu.matrix_ops import i32
from twofour.codegen.gpu.tile_product import TileProduct
from twofour.layout.block_layout import BARRIER_BYTES
from twofour.mlir import arith, gpu, ir, llvm, memref, nvvm, scf

# How long a try to wait may suspend a thread, in nanoseconds.
WAIT_NANOSECONDS = 10_000_000
# Address spaces of LLVM: shared memory of the block and of its cluster.
SHARED, CLUSTER = 3, 7
# The fence after which the engine sees what a thread has written to shared memory.
_TO_ENGINE = ("proxy_kind<async.shared>", "shared_space<cta>")


class BulkMarch:
    """The march along axis 0; `product` emits what multiplying needs and has not along it."""

    def __init__(self, block: BlockCode, product: Callable[[], TileProduct]):
        self.block, self.code, self.layout = block, block.code, block.layout
        self.make_product = product
        self.input_map, self.output_map = (tensor_map(block.name, n) for n in (0, 1))
        self.thread = gpu.thread_id(gpu.Dimension.x)
        self.leads = arith.cmpi(arith.CmpIPredicate.eq, self.thread, self.code.value(0))
        layout = self.layout
        self.halo, self.staging = (shared_address(x) for x in (block.halo, block.staging))
        staged = layout.stagings * layout.staging_elements * layout.itemsize
        self.barriers = arith.addi(self.staging, _word(staged))
        self._find_rest()

    def _find_rest(self) -> None:
        """Where the rows of the output end in whole units, and whether more of them lies here."""
        code, block = self.code, self.block
        size, first = block.target.sizes[-1], block.origin[-1]
        self.whole = code.sub(size, code.rem(size, block.copy))
        self.writes = code.less(first, self.whole)
        self.has_rest = conjunction(
            [
                code.less(self.whole, size),
                code.less(code.add(first, -1), self.whole),
                code.less(self.whole, code.add(first, self.layout.tile[-1])),
            ]
        )

    def emit(self) -> None:
        """Emit the whole march."""
        code, layout, block = self.code, self.layout, self.block
        count = code.ceil_div(code.sub(block.end, block.origin[0]), layout.tile[0])
        code.when(self.leads, self._make_barriers)
        gpu.barrier()
        code.when(self.leads, lambda: self._begin(count))
        # What it reads of tables is on its way together with the first tiles.
        product = self.make_product()
        zero = arith.ConstantOp(i32(), 0).result
        begin = [zero, zero, zero]
        loop = scf.ForOp(code.value(0), count, code.value(1), begin)
        with ir.InsertionPoint(loop.body):
            tile = loop.induction_variable
            stage, parity, staging = loop.inner_iter_args
            self._block_tile(product, tile, count, stage, parity, staging)
        # Shared memory is gone when the block has ended.
        nvvm.cp_async_bulk_wait_group(0, read=True)

    def _block_tile(
        self,
        product: TileProduct,
        tile: Index,
        count: Index,
        stage: ir.Value,
        parity: ir.Value,
        staging: ir.Value,
    ) -> None:
        layout, code = self.layout, self.code
        index = ir.IndexType.get()
        number, place = (arith.index_castui(index, x) for x in (stage, staging))
        barrier = self._barrier(stage)
        nvvm.mbarrier_try_wait_parity(barrier, parity, _word(WAIT_NANOSECONDS))
        halo = code.mul(number, layout.stage_elements)
        product.emit(halo, code.mul(place, layout.staging_elements))
        nvvm.cp_async_bulk_wait_group(0, read=True)
        kind, space = (ir.Attribute.parse(f"#nvvm.{x}") for x in _TO_ENGINE)
        nvvm.fence_proxy(kind, space=space)
        gpu.barrier()

        def move() -> None:
            code.when(self.writes, lambda: self._write(self.block.row_of(tile), staging))
            following = code.add(tile, layout.stages)
            code.when(
                code.less(following, count),
                lambda: self._copy(self.block.row_of(following), stage, barrier),
            )

        code.when(self.leads, move)
        code.when(self.has_rest, lambda: self._write_rest(self.block.row_of(tile), place))
        last = arith.cmpi(arith.CmpIPredicate.eq, stage, _word(layout.stages - 1))
        one = _word(1)
        scf.yield_(
            [
                arith.select(last, _word(0), arith.addi(stage, one)),
                arith.xori(parity, arith.extui(i32(), last)),
                arith.xori(staging, one),
            ]
        )

    def _make_barriers(self) -> None:
        """Make the barriers of all stages: one thread arrives, and the bytes of a halo tile."""
        for stage in range(self.layout.stages):
            nvvm.mbarrier_init(self._barrier(_word(stage)), _word(1))
        nvvm.fence_mbarrier_init()

    def _begin(self, count: Index) -> None:
        """Begin to copy the first halo tiles."""
        code = self.code
        for stage in range(self.layout.stages):

            def copy(stage: int = stage) -> None:
                number = _word(stage)
                self._copy(self.block.row_of(stage), number, self._barrier(number))

            if stage:
                code.when(code.less(stage, count), copy)
            else:
                copy()

    def _copy(self, row: Index, stage: ir.Value, barrier: ir.Value) -> None:
        """Begin to copy the halo tile whose first output is in row `row` of axis 0."""
        layout = self.layout
        nvvm.mbarrier_arrive_expect_tx(barrier, _word(layout.input_elements * layout.itemsize))
        # The block's own shared memory has the same addresses in that of its cluster.
        into = _pointer(self._address(self.halo, stage, layout.stage_elements), CLUSTER)
        at = self._coordinates([row, *self.block.origin[1:]])
        nvvm.cp_async_bulk_tensor_shared_cluster_global(into, self.input_map, at, barrier, [])

    def _write(self, row: Index, staging: ir.Value) -> None:
        """Begin to write a staging tile to the rows of axis 0 from `row` on."""
        layout = self.layout
        begin = self._address(self.staging, staging, layout.staging_elements)
        *outer, last = self.block.origin[1:]
        for number in range(layout.output_boxes):
            column = number * layout.output_width
            offset = column * layout.output_base_strides[-1] * layout.itemsize
            box = _pointer(arith.addi(begin, _word(offset)))
            at = self._coordinates([row, *outer, self.code.add(last, column)])
            nvvm.cp_async_bulk_tensor_global_shared_cta(self.output_map, box, at)
        nvvm.cp_async_bulk_commit_group()

    def _write_rest(self, row: Index, staging: Index) -> None:
        """Write the last elements of the rows of axis 0 from `row` on, an element a thread."""
        code, block, layout = self.code, self.block, self.layout
        rows, target = math.prod(layout.tile[:-1]), block.target
        first = code.sub(self.whole, block.origin[-1])
        base = code.mul(staging, layout.staging_elements)

        def element(number: Index) -> None:
            left, column = (
                code.div(number, block.copy),
                code.add(first, code.rem(number, block.copy)),
            )
            places = [0] * (block.rank - 1)
            for axis in range(block.rank - 2, -1, -1):
                places[axis] = code.rem(left, layout.tile[axis]) if axis else left
                left = code.div(left, layout.tile[axis])
            at = [
                code.add(origin, place)
                for origin, place in zip([row, *block.origin[1:]], [*places, column], strict=True)
            ]
            inside = [code.less(x, size) for x, size in zip(at, target.sizes, strict=True)]
            width = layout.output_width
            box = code.mul(code.div(column, width), width * layout.output_base_strides[-1])
            staged = code.dot(places, layout.output_strides[:-1])
            place = code.add(base, staged, box, code.rem(column, width))

            def write() -> None:
                value = memref.load(block.staging, [code.value(place)])
                memref.store(value, target.flat, [code.value(code.dot(at, target.strides))])

            code.when(conjunction(inside), write)

        code.loop(self.thread, rows * block.copy, layout.threads, element)

    def _barrier(self, stage: ir.Value) -> ir.Value:
        """The barrier of a stage."""
        return _pointer(_further(self.barriers, stage, BARRIER_BYTES))

    def _address(self, memory: ir.Value, number: ir.Value, elements: int) -> ir.Value:
        """The address of part `number` of a memory of parts of so many elements."""
        return _further(memory, number, elements * self.layout.itemsize)

    def _coordinates(self, at: list[Index]) -> list[ir.Value]:
        """Coordinates as the engine takes them, 32 bits each, the fastest axis first."""
        return [arith.index_cast(i32(), self.code.value(x)) for x in reversed(at)]


def _word(number: int) -> ir.Value:
    return arith.ConstantOp(i32(), number).result


def _further(address: ir.Value, count: ir.Value, size: int) -> ir.Value:
    return arith.addi(address, arith.muli(count, _word(size)))


def _pointer(address: ir.Value, space: int = SHARED) -> ir.Value:
    return llvm.inttoptr(ir.Type.parse(f"!llvm.ptr<{space}>"), address)
