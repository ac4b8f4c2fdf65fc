# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Kernels that multiply patch operators on tensor cores (SparStencil, section 3.3).

A block marches along axis 0, one block tile after another, in three stages: asynchronous copies of
the halo tile into shared memory, matrix instructions on values gathered from it by offset tables,
and coalesced rows of results. With several halo tiles in shared memory the next ones are copied
while this one is multiplied.

    for every block tile:
        copy the next halo tile                 rows to warps, 16 bytes a lane
        wait for this halo tile; barrier
        for every group of eight tiles:         groups to warps
            for every step along K:             A, metadata and offsets from registers or tables
                load B by the offsets of this lane; C += A B
            store C into the staging tile
        barrier
        write the staging tile                  rows to warps, 16 bytes a lane

Where there is a copy engine, it moves the tiles (bulk_march).
"""

import math
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial

from twofour.codegen.cpu.kernel_abi import view_type
from twofour.codegen.gpu.block_code import BlockCode
from twofour.codegen.gpu.bulk_march import BulkMarch
from twofour.codegen.gpu.code import Index
from twofour.codegen.gpu.kernel_abi import BlockShape, MapShape, gpu_function
from twofour.codegen.gpu.matrix_ops import MatrixOps
from twofour.codegen.gpu.tile_product import TileProduct
from twofour.codegen.gpu.tile_rows import TileRows
from twofour.layout.block_layout import SECTOR, BlockLayout
from twofour.mlir import gpu, ir, nvvm, scf


@dataclass(frozen=True)
class TensorKernel:
    """A kernel: constant + A B, A scaled by 2^`scale` so that its type can hold it.

    `reach_lo` is minus the smallest offset per axis of the arrays; `element` is the spelling of the
    type in memory.
    """

    name: str
    layout: BlockLayout
    ops: MatrixOps
    element: str
    reach_lo: tuple[int, ...]
    constant: float = 0.0
    scale: int = 0

    @property
    def launch(self) -> BlockShape:
        """How the kernel is launched."""
        layout = self.layout
        tile = (math.prod(layout.tile),) if layout.folded else layout.tile
        maps = ()
        if layout.bulk:
            maps = (
                MapShape(0, layout.lead - self.reach_lo[-1], layout.input_box),
                MapShape(1, 0, layout.output_box),
            )
        return BlockShape(
            layout.threads, tile, layout.march, SECTOR, layout.shared_bytes, maps=maps
        )


def build_tensor_kernel(kernel: TensorKernel) -> gpu.GPUFuncOp:
    """Insert the kernel's function and tables at the current insertion point."""
    view = view_type(len(kernel.reach_lo), ir.Type.parse(kernel.element))
    function = gpu_function(kernel.name, [view, view], 1, kernel.launch)
    entry = function.regions[0].blocks[0]
    with ir.InsertionPoint(entry):
        march = BulkMarch if kernel.layout.bulk else _March
        element = ir.Type.parse(kernel.element)
        block = BlockCode(kernel.name, kernel.layout, element, entry, kernel.reach_lo)
        product = partial(TileProduct, block, kernel.ops, kernel.constant, kernel.scale)
        march(block, product).emit()
        gpu.ReturnOp([])
    return function


class _March:
    """The march of a block along axis 0, with copies that run ahead of the product."""

    def __init__(self, block: BlockCode, product: Callable[[], TileProduct]):
        self.block, self.code, self.layout = block, block.code, block.layout
        self.rows, self.product = TileRows(block), product()

    def emit(self) -> None:
        code, layout, block = self.code, self.layout, self.block
        count = code.ceil_div(code.sub(block.end, block.origin[0]), layout.tile[0])
        stages = [code.value(n * layout.input_elements) for n in range(layout.stages)]
        for ahead in range(max(1, layout.stages - 1)):
            self._copy_ahead(0, ahead, count, stages[ahead])
        loop = scf.ForOp(code.value(0), count, code.value(1), stages)
        with ir.InsertionPoint(loop.body):
            self._block_tile(loop, count)

    def _block_tile(self, loop: scf.ForOp, count: Index) -> None:
        layout = self.layout
        index, stages = loop.induction_variable, list(loop.inner_iter_args)
        ahead = layout.stages - 1
        if ahead:
            # The last stage held the tile before this one.
            self._copy_ahead(index, ahead, count, stages[-1])
        nvvm.cp_async_wait_group(ahead)
        gpu.barrier()
        self.product.emit(stages[0])
        gpu.barrier()
        if not ahead:
            self._copy_ahead(index, 1, count, stages[0])
        self.rows.write(self.block.row_of(index))
        scf.yield_(stages[1:] + stages[:1])

    def _copy_ahead(self, index: Index, ahead: int, count: Index, stage: Index) -> None:
        """Begin to copy the halo tile `ahead` of tile `index`, where the march goes that far."""
        code = self.code
        tile = code.add(index, ahead)
        if isinstance(tile, int) and tile == 0:
            self.rows.copy(self.block.row_of(tile), stage)
        else:
            code.when(
                code.less(tile, count), lambda: self.rows.copy(self.block.row_of(tile), stage)
            )
        # Groups are counted, so every tile has one, an empty one beyond the end.
        nvvm.cp_async_commit_group()
