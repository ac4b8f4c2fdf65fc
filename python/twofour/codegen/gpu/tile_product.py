# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The product of a block tile: A times the inputs of eight tiles at a time, on tensor cores.

Groups of eight tiles go to warps. A, its metadata and the offsets of inputs stay in registers where
they fit; otherwise they are read from tables step by step, for several groups at once.
"""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from twofour.codegen.gpu.block_code import BlockCode
from twofour.codegen.gpu.code import Index
from twofour.codegen.gpu.matrix_ops import MatrixOps, i32
from twofour.codegen.rolled_loops import keep_rolled
from twofour.layout.block_layout import MATRIX, MAX_RESIDENT
from twofour.mlir import arith, ir, llvm, memref, nvvm, scf, vector

# Layout, shape and elements of stmatrix.
_TRANSPOSED = ("mma_layout<col>", "ld_st_matrix_shape<m = 8, n = 8>", "ld_st_matrix_elt_type<b16>")
_OPAQUE = "mov.b32 {$w0}, {$r0};"


@dataclass(frozen=True)
class _Step:
    """Operands of one step along K: A by row block (None where it is zero), metadata, pointers.

    The pointers are to this lane's elements of B for the warp's first group, in the first stage.
    """

    a: list[list[list[ir.Value]] | None]
    metadata: list[ir.Value | None]
    inputs: list[ir.Value]


class TileProduct:
    """Emits the product: constant + A B, with A scaled by 2^`scale` while it is formed."""

    def __init__(self, block: BlockCode, ops: MatrixOps, constant: float, scale: int):
        self.block, self.code, self.layout = block, block.code, block.layout
        self.ops, self.constant, self.scale = ops, constant, scale
        self.used = set(self.layout.used_blocks())
        self._make_tables()
        self.warp_places = self._warp_places()
        self.output_places = (
            self._matrix_places() if self.layout.stores_matrices else self._output_places()
        )
        strides = self.layout.input_strides
        self.base_in = self.code.add(
            self._group_place(block.quad, strides), self.code.dot(self.warp_places, strides)
        )
        self.resident = self._fits_registers()
        steps = range(self.layout.steps) if self.resident else ()
        self.steps = [self._read_step(step) for step in steps]

    def emit(self, stage: Index, staging: Index = 0) -> None:
        """Multiply all groups of this warp, from the halo tile at `stage` into that at `staging`.

        Both count elements.
        """
        layout = self.layout
        extents = [p * g for p, g in zip(layout.operator.tile, layout.group, strict=True)]
        batch = layout.batch(self.resident)

        def along(axis: int, places: list[Index]) -> None:
            if axis == self.block.rank:
                self._batch(stage, staging, places, range(0, batch * extents[-1], extents[-1]))
                return
            step = extents[axis] * (batch if axis == self.block.rank - 1 else 1)
            end = layout.groups[axis] * extents[axis]
            self._loop(end, step, lambda place: along(axis + 1, [*places, place]))

        along(0, [])

    def _loop(self, end: int, step: int, body: Callable[[Index], None]) -> None:
        """`body(i)` for i = 0, step, ... below end, in a loop that stays one."""
        if end <= step:
            body(0)
            return
        code = self.code
        loop = scf.ForOp(code.value(0), code.value(end), code.value(step))
        keep_rolled(loop)
        with ir.InsertionPoint(loop.body):
            body(loop.induction_variable)
            scf.yield_([])

    def _fits_registers(self) -> bool:
        """Whether the operands of all steps stay in registers."""
        fragment = self.layout.fragment
        words = 2 if self.ops.operands == "f64" else 1
        registers = self.registers * words + fragment.sparse
        offsets = self.layout.steps * fragment.b_row.shape[1]
        return len(self.used) * registers + offsets <= MAX_RESIDENT

    def _make_tables(self) -> None:
        """Tables of A, metadata and offsets by step."""
        layout, fragment = self.layout, self.layout.fragment
        blocks = [(b, s) for s in range(layout.steps) for b in range(layout.row_blocks)]
        operands = [fragment.operands(np.ldexp(layout.block(b, s), self.scale)) for b, s in blocks]
        values = np.stack([self.ops.packed(a) for a, _ in operands])
        self.registers = values.shape[-1]
        self.a_table = self.block.table("values", values, self.ops.register)
        if fragment.sparse:
            metadata = np.stack([words for _, words in operands]).view(np.int32)
            self.metadata_table = self.block.table("metadata", metadata, i32())
        offsets = layout.input_offsets().reshape(layout.steps, fragment.k)
        # By four elements, then by lane of a quad: what a warp reads at once is contiguous.
        elements = min(4, fragment.b_row.shape[1])
        lanes = offsets[:, fragment.b_row[:4]].reshape(layout.steps, 4, -1, elements)
        by_lane = np.ascontiguousarray(lanes.transpose(0, 2, 1, 3).astype(np.int32))
        self.offset_table = self.block.table("input_offsets", by_lane, i32())

    def _read_step(self, step: Index) -> _Step:
        """Read the operands of a step from the tables."""
        code, layout = self.code, self.layout
        a, metadata = [], []
        for block in range(layout.row_blocks):
            if isinstance(step, int) and (block, step) not in self.used:
                a.append(None)
                metadata.append(None)
                continue
            number = code.value(code.add(code.mul(step, layout.row_blocks), block))
            kind = ir.VectorType.get([self.registers], self.ops.register)
            at = [number, self.block.lane, code.value(0)]
            aligned = min(16, self.registers * (8 if self.ops.operands == "f64" else 4))
            whole = vector.load(kind, self.a_table, at, alignment=aligned)
            registers = [
                vector.extract(whole, [], ir.DenseI64ArrayAttr.get([i]))
                for i in range(self.registers)
            ]
            a.append(self.ops.a_parts(registers))
            metadata.append(
                memref.load(self.metadata_table, [number, self.block.lane])
                if layout.fragment.sparse
                else None
            )
        return _Step(a, metadata, self._read_inputs(step))

    def _read_inputs(self, step: Index) -> list[ir.Value]:
        """Where this lane finds its elements of B of a step, for the warp's first group."""
        code, block, inputs = self.code, self.block, []
        _, parts, _, elements = self.offset_table.type.shape
        kind = ir.VectorType.get([elements], i32())
        for part in range(parts):
            at = [code.value(step), code.value(part), self.block.place, code.value(0)]
            loaded = vector.load(kind, self.offset_table, at, alignment=4 * elements)
            for i in range(elements):
                offset = vector.extract(loaded, [], ir.DenseI64ArrayAttr.get([i]))
                place = code.add(self.base_in, arith.index_castui(ir.IndexType.get(), offset))
                inputs.append(block.further(block.halo_pointer, place))
        return inputs

    def _group_place(self, tile: Index, strides: Sequence[int]) -> Index:
        """Where tile number `tile` of a group begins in the halo tile."""
        steps = [t * s for t, s in zip(self.layout.operator.tile, strides, strict=True)]
        return self.code.dot(self._group_coordinates(tile), steps)

    def _staged_place(self, tile: Index) -> Index:
        """Where it begins in the staging tile."""
        code, layout = self.code, self.layout
        *outer, last = self._group_coordinates(tile)
        patch = layout.operator.tile
        steps = [t * s for t, s in zip(patch[:-1], layout.output_strides[:-1], strict=True)]
        place = code.dot(outer, steps)
        # A box is as wide as so many tiles, and boxes follow each other.
        tiles = layout.output_width // patch[-1]
        if tiles < layout.group[-1]:
            box = tiles * patch[-1] * layout.output_base_strides[-1]
            place = code.add(place, code.mul(code.div(last, tiles), box))
            last = code.rem(last, tiles)
        return code.add(place, code.mul(last, patch[-1]))

    def _group_coordinates(self, tile: Index) -> list[Index]:
        """The place of tile number `tile` in a group: each axis takes some of its bits."""
        code, coordinates = self.code, []
        for extent in reversed(self.layout.group):
            coordinates.append(code.rem(tile, extent))
            tile = code.div(tile, extent)
        return coordinates[::-1]

    def _warp_places(self) -> list[Index]:
        """The first output of this warp in the block tile, per axis."""
        code, layout, number, places = self.code, self.layout, self.block.warp, []
        for axis in range(self.block.rank - 1, -1, -1):
            extent = layout.tile[axis] // layout.warps[axis]
            places.append(code.mul(code.rem(number, layout.warps[axis]), extent))
            number = code.div(number, layout.warps[axis])
        return places[::-1]

    def _matrix_places(self) -> list[ir.Value]:
        """Where the row of a matrix goes whose address this lane gives to stmatrix, by row block.

        Lanes give the rows of four matrices: the upper and the lower half of C of one group, and of
        the next one. Rows of the transposed matrices are tiles.
        """
        code, layout, block, lane = self.code, self.layout, self.block, self.block.lane
        places = block.table("output_offsets", layout.output_offsets().astype(np.int32), i32())
        half = code.rem(code.div(lane, MATRIX), 2)
        group = code.mul(code.div(lane, 2 * MATRIX), self._group_columns())
        tile = self._staged_place(code.rem(lane, MATRIX))
        found = []
        for number in range(layout.row_blocks):
            row = code.add(code.mul(half, MATRIX), number * layout.fragment.m)
            offset = arith.index_castui(ir.IndexType.get(), memref.load(places, [code.value(row)]))
            found.append(block.further(block.staging_pointer, code.add(offset, tile, group)))
        return found

    def _group_columns(self) -> int:
        """From one group to the next one in a row of the staging tile."""
        layout = self.layout
        return layout.operator.tile[-1] * layout.group[-1] * layout.output_base_strides[-1]

    def _output_places(self) -> list[list[tuple[ir.Value, ir.Value | None]]]:
        """Where this lane leaves its elements of C, by row block, and whether they are outputs.

        The pointers are into the first staging tile, for the group at its start.
        """
        code, layout, fragment = self.code, self.layout, self.layout.fragment
        rows = layout.row_blocks * fragment.m
        offsets = np.zeros(rows, np.int32)
        offsets[: layout.outputs] = layout.output_offsets()
        places = self.block.table("output_offsets", offsets, i32())
        index = ir.IndexType.get()
        found = []
        for block in range(layout.row_blocks):
            by_element = []
            for element in range(fragment.c_row.shape[1]):
                first = block * fragment.m + int(fragment.c_row[0, element])
                row = code.add(self.block.quad, first)
                offset = arith.index_castui(index, memref.load(places, [code.value(row)]))
                tile = code.add(code.mul(self.block.place, 2), int(fragment.c_tile[0, element]))
                place = code.add(offset, self._staged_place(tile))
                valid = None
                if first + 8 > layout.outputs:
                    valid = code.less(row, layout.outputs)
                pointer = self.block.further(self.block.staging_pointer, place)
                by_element.append((pointer, valid))
            found.append(by_element)
        return found

    def _batch(
        self, stage: Index, staging: Index, places: list[Index], columns: Sequence[int]
    ) -> None:
        """Multiply groups: `columns` further on than a place, relative to the warp's first one."""
        code, layout = self.code, self.layout
        elements = layout.fragment.c_row.shape[1]
        # Sums that are scaled up have no room for a constant that is large beside the weights.
        start = self._number(0.0 if self.scale else self.constant)
        count = layout.row_blocks * elements
        sums = [[start] * count for _ in columns]
        base = code.add(stage, code.dot(places, layout.input_strides))
        # LLVM would carry an address of every input through the loops, if it knew about the base.
        base = nvvm.inline_ptx([i32()], [self.block.word(base)], [], _OPAQUE)
        if self.resident:
            for step in self.steps:
                sums = self._multiply(step, base, columns, sums)
        else:
            flat = [x for total in sums for x in total]
            loop = scf.ForOp(code.value(0), code.value(layout.steps), code.value(1), flat)
            # Unrolled, the tables would be read before the march, into more registers than exist.
            keep_rolled(loop)
            with ir.InsertionPoint(loop.body):
                step = self._read_step(loop.induction_variable)
                sums = self._multiply(step, base, columns, _parts(loop.inner_iter_args, count))
                scf.yield_([x for total in sums for x in total])
            sums = _parts(loop.results, count)
        outputs = [code.add(p, w) for p, w in zip(places, self.warp_places, strict=True)]
        base = code.add(staging, code.dot(outputs, layout.output_base_strides))
        further = [column * layout.output_base_strides[-1] for column in columns]
        if layout.stores_matrices:
            for number in range(0, len(columns), 2):
                for block, place in enumerate(self.output_places):
                    parts = [_parts(total, elements)[block] for total in sums[number : number + 2]]
                    at = self.block.further(self.block.further(place, base), further[number])
                    self._store_matrices(at, [x for part in parts for x in part])
            return
        for more, total in zip(further, sums, strict=True):
            for block, part in enumerate(_parts(total, elements)):
                self._stage(base, more, block, part)

    def _multiply(
        self, step: _Step, base: Index, columns: Sequence[int], sums: list[list[ir.Value]]
    ) -> list[list[ir.Value]]:
        """The sums of all row blocks of groups after one step."""
        block = self.block
        inputs = [block.further(x, base) for x in step.inputs]
        elements = self.layout.fragment.c_row.shape[1]
        results = []
        for column, total in zip(columns, sums, strict=True):
            loaded = [llvm.load(block.element, block.further(x, column)) for x in inputs]
            b = self.ops.split(loaded)
            parts = zip(step.a, step.metadata, _parts(total, elements), strict=True)
            after = [c if a is None else self.ops.multiply(a, b, c, m) for a, m, c in parts]
            results.append([x for part in after for x in part])
        return results

    def _stage(self, base: Index, further: int, block: int, sums: list[ir.Value]) -> None:
        """Leave the sums of a row block in the staging tile, `further` beyond `base`."""
        code = self.code
        for value, (place, valid) in zip(sums, self.output_places[block], strict=True):
            value = self._scaled_back(value)
            if self.block.element != self.ops.accumulation:
                value = arith.truncf(self.block.element, value)

            def store(value: ir.Value = value, place: ir.Value = place) -> None:
                at = self.block.further(self.block.further(place, base), further)
                llvm.store(value, at)

            if valid is None:
                store()
            else:
                code.when(valid, store)

    def _store_matrices(self, at: ir.Value, sums: list[ir.Value]) -> None:
        """Leave the sums of a row block of one group or two in the staging tile."""
        scaled = [self._scaled_back(x) for x in sums]
        pairs = [
            vector.from_elements(ir.VectorType.get([2], x.type), [x, y])
            for x, y in zip(scaled[::2], scaled[1::2], strict=True)
        ]
        stored, word = ir.VectorType.get([2], self.block.element), ir.VectorType.get([1], i32())
        words = [vector.bitcast(word, arith.truncf(stored, pair)) for pair in pairs]
        first = ir.DenseI64ArrayAttr.get([0])
        registers = [vector.extract(word, [], first) for word in words]
        nvvm.stmatrix(at, registers, *(ir.Attribute.parse(f"#nvvm.{x}") for x in _TRANSPOSED))

    def _scaled_back(self, value: ir.Value) -> ir.Value:
        if self.scale:
            value = arith.mulf(value, self._number(math.ldexp(1.0, -self.scale)))
            if self.constant:
                value = arith.addf(value, self._number(self.constant))
        return value

    def _number(self, value: float) -> ir.Value:
        kind = self.ops.accumulation
        return self.code.constants.get(
            ("number", value), lambda: arith.ConstantOp(kind, float(value)).result
        )


def _parts(values: Sequence[ir.Value], count: int) -> list[list[ir.Value]]:
    """The values in parts of so many."""
    return [list(values[n : n + count]) for n in range(0, len(values), count)]
