# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Rows of a block tile: copied into shared memory before, written to memory after multiplying.

Rows go to warps, 16 bytes of a row to a lane.
"""

import math
from collections.abc import Callable, Sequence

import numpy as np

from twofour.codegen.gpu.block_code import BlockCode
from twofour.codegen.gpu.code import Index, conjunction
from twofour.codegen.gpu.kernel_abi import CONSTANT
from twofour.codegen.gpu.matrix_ops import i32
from twofour.layout.block_layout import COPY_BYTES
from twofour.layout.fragments import LANES
from twofour.mlir import arith, ir, memref, nvgpu, scf, vector


class TileRows:
    """Emits the copies of halo tiles and the writes of staging tiles."""

    def __init__(self, block: BlockCode):
        self.block, self.code, self.layout = block, block.code, block.layout

    def copy(self, row: Index, stage: Index) -> None:
        """Begin to copy the halo tile whose first output is in row `row` of axis 0."""
        code, layout, block, source = self.code, self.layout, self.block, self.block.source
        limit = source.sizes[-1]

        def copy_row(places: list[Index]) -> None:
            at = [
                code.add(origin, place, -lo)
                for origin, place, lo in zip(
                    [row, *block.origin[1:]], places, layout.reach_lo[:-1], strict=False
                )
            ]
            # Segments of a folded axis end where `left` says so, even beyond its last point: a
            # reach above may be negative.
            inside = conjunction(
                []
                if layout.folded
                else [code.less(x, size) for x, size in zip(at, source.sizes, strict=False)]
            )
            start = code.add(code.dot(at, source.strides[:-1]), block.origin[-1], -layout.lead)
            into = code.add(stage, code.dot(places, layout.input_strides[:-1]))
            first = code.mul(at[0], layout.tile[1]) if layout.folded else block.origin[-1]
            left = code.sub(limit, code.add(first, -layout.lead))

            def copy_chunk(column: Index) -> None:
                within = code.less(column, left)
                valid = within if inside is None else arith.andi(inside, within)
                # The rest of a chunk is zero: what lies beyond the reach may be NaN.
                most = code.minimum(code.sub(left, column), block.copy)
                elements = arith.select(valid, most, code.value(0))
                offset = arith.select(valid, code.add(start, column), code.value(0))
                nvgpu.device_async_copy(
                    block.halo,
                    [code.add(into, column)],
                    source.flat,
                    [offset],
                    block.copy,
                    src_elements=elements,
                    bypass_l1=True,
                )

            self._each_chunk(layout.row, layout.skipped, copy_chunk)

        self._each_row(layout.halo_rows, "halo_rows", copy_row)

    def write(self, row: Index) -> None:
        """Write the staging tile to the rows of axis 0 from `row` on."""
        code, layout, block, target = self.code, self.layout, self.block, self.block.target
        chunk = ir.VectorType.get([block.copy], block.element)

        def write_row(places: list[Index]) -> None:
            at = [
                code.add(origin, place)
                for origin, place in zip([row, *block.origin[1:]], places, strict=False)
            ]
            inside = conjunction(
                [code.less(x, size) for x, size in zip(at, target.sizes, strict=False)]
            )
            start = code.add(code.dot(at, target.strides[:-1]), block.origin[-1])
            staged = code.dot(places, layout.output_strides[:-1])
            first = code.mul(at[0], layout.tile[1]) if layout.folded else block.origin[-1]
            left = code.sub(target.sizes[-1], first)

            def write_chunk(column: Index) -> None:
                whole = code.less(code.add(column, block.copy - 1), left)
                place, offset = code.add(staged, column), code.add(start, column)
                branch = scf.IfOp(whole, has_else=True)
                with ir.InsertionPoint(branch.then_block):
                    values = vector.load(
                        chunk, block.staging, [code.value(place)], alignment=COPY_BYTES
                    )
                    vector.store(values, target.flat, [code.value(offset)], alignment=COPY_BYTES)
                    scf.yield_([])
                with ir.InsertionPoint(branch.else_block):
                    code.loop(0, code.sub(left, column), 1, lambda i: single(place, offset, i))
                    scf.yield_([])

            def single(place: Index, offset: Index, i: Index) -> None:
                value = memref.load(block.staging, [code.value(code.add(place, i))])
                memref.store(value, target.flat, [code.value(code.add(offset, i))])

            code.when(inside, lambda: self._each_chunk(layout.tile[-1], 0, write_chunk))

        self._each_row(layout.tile[:-1], "output_rows", write_row)

    def _each_row(self, extents: Sequence[int], name: str, body: Callable) -> None:
        """`body(coordinates)` for this warp's rows of a tile of `extents` rows."""
        code, count = self.code, math.prod(extents)
        warps = self.layout.threads // LANES
        coordinates = None
        if len(extents) > 1:
            places = np.indices(extents, dtype=np.int32).reshape(len(extents), -1).T
            coordinates = self.block.table(name, places, i32(), CONSTANT)

        def row(number: Index) -> None:
            if coordinates is None:
                body([number])
                return
            index = ir.IndexType.get()
            body(
                [
                    arith.index_castui(index, memref.load(coordinates, [number, code.value(axis)]))
                    for axis in range(len(extents))
                ]
            )

        code.loop(self.block.warp, count, warps, row)

    def _each_chunk(self, elements: int, skipped: int, body: Callable) -> None:
        """`body(column)` for this lane's chunks of a row of `elements`.

        Lanes count from `skipped` elements before the row on.
        """
        code = self.code
        width = LANES * self.block.copy
        for start in range(-skipped, elements, width):
            column = code.add(code.mul(self.block.lane, self.block.copy), start)
            limits = []
            if start < 0:
                limits.append(code.less(-1, column))
            if start + width > elements:
                limits.append(code.less(column, elements))
            inside = conjunction(limits)
            if inside is None:
                body(column)
            else:
                code.when(inside, lambda column=column: body(column))
