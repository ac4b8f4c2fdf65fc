# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The product of a block tile: A times the inputs of eight tiles at a time, on tensor cores.

Groups of eight tiles go to warps. A, its metadata and the offsets of inputs stay in registers where
they fit; otherwise they are read from tables step by step, for several groups at once.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from twofour.layout.block import MAX_BATCH, MAX_RESIDENT
from twofour.mlir import arith, ir, memref, scf, vector
from twofour.targets.gpu.block_code import BlockCode
from twofour.targets.gpu.code import Index
from twofour.targets.gpu.lowering import LOOP_ANNOTATION, NO_UNROLLING
from twofour.targets.gpu.matrix_ops import MatrixOps, i32


@dataclass(frozen=True)
class _Step:
    """Operands of one step along K: A by row block (None where it is zero), metadata, offsets."""

    a: list[list[list[ir.Value]] | None]
    metadata: list[ir.Value | None]
    offsets: list[Index]


class TileProduct:
    """Emits the product: constant + A B, with A scaled by 2^`scale` while it is formed."""

    def __init__(self, block: BlockCode, ops: MatrixOps, constant: float, scale: int):
        self.block, self.code, self.layout = block, block.code, block.layout
        self.ops, self.constant, self.scale = ops, constant, scale
        self.used = set(self.layout.used_blocks())
        self._make_tables()
        self.warp_places = self._warp_places()
        self.output_places = self._output_places()
        strides = self.layout.input_strides
        self.base_in = self.code.add(
            self._group_place(block.quad, strides), self.code.dot(self.warp_places, strides)
        )
        self.resident = self._fits_registers()
        steps = range(self.layout.steps) if self.resident else ()
        self.steps = [self._read_step(step) for step in steps]

    def emit(self, stage: Index) -> None:
        """Multiply all groups of this warp, from the halo tile at `stage` into the staging tile."""
        layout = self.layout
        extents = [p * g for p, g in zip(layout.operator.tile, layout.group, strict=True)]
        batch = 1 if self.resident else math.gcd(layout.groups[-1], MAX_BATCH)

        def along(axis: int, places: list[Index]) -> None:
            if axis == self.block.rank:
                last = range(0, batch * extents[-1], extents[-1])
                self._batch(stage, [[*places[:-1], self.code.add(places[-1], x)] for x in last])
                return
            step = extents[axis] * (batch if axis == self.block.rank - 1 else 1)
            end = layout.groups[axis] * extents[axis]
            self.code.loop(0, end, step, lambda place: along(axis + 1, [*places, place]))

        along(0, [])

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
        return _Step(a, metadata, self._read_offsets(step))

    def _read_offsets(self, step: Index) -> list[Index]:
        """Where this lane finds its elements of B of a step, for the warp's first group."""
        code, offsets = self.code, []
        _, parts, _, elements = self.offset_table.type.shape
        kind = ir.VectorType.get([elements], i32())
        for part in range(parts):
            at = [code.value(step), code.value(part), self.block.place, code.value(0)]
            loaded = vector.load(kind, self.offset_table, at, alignment=4 * elements)
            for i in range(elements):
                offset = vector.extract(loaded, [], ir.DenseI64ArrayAttr.get([i]))
                offsets.append(
                    code.add(self.base_in, arith.index_castui(ir.IndexType.get(), offset))
                )
        return offsets

    def _group_place(self, tile: Index, strides: Sequence[int]) -> Index:
        """Where tile number `tile` of a group begins: each axis takes some of its bits."""
        code, layout, place = self.code, self.layout, 0
        for axis in range(self.block.rank - 1, -1, -1):
            extent = layout.group[axis]
            step = layout.operator.tile[axis] * strides[axis]
            place = code.add(place, code.mul(code.rem(tile, extent), step))
            tile = code.div(tile, extent)
        return place

    def _warp_places(self) -> list[Index]:
        """The first output of this warp in the block tile, per axis."""
        code, layout, number, places = self.code, self.layout, self.block.warp, []
        for axis in range(self.block.rank - 1, -1, -1):
            extent = layout.tile[axis] // layout.warps[axis]
            places.append(code.mul(code.rem(number, layout.warps[axis]), extent))
            number = code.div(number, layout.warps[axis])
        return places[::-1]

    def _output_places(self) -> list[list[tuple[Index, ir.Value | None]]]:
        """Where this lane leaves its elements of C, by row block, and whether they are outputs."""
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
                place = code.add(offset, self._group_place(tile, layout.output_strides))
                valid = None
                if first + 8 > layout.outputs:
                    valid = code.less(row, layout.outputs)
                by_element.append((place, valid))
            found.append(by_element)
        return found

    def _batch(self, stage: Index, groups: list[list[Index]]) -> None:
        """Multiply the groups at these places, relative to the warp's first one."""
        code, layout = self.code, self.layout
        elements = layout.fragment.c_row.shape[1]
        # Sums that are scaled up have no room for a constant that is large beside the weights.
        start = self._number(0.0 if self.scale else self.constant)
        count = layout.row_blocks * elements
        sums = [[start] * count for _ in groups]
        bases = [code.add(stage, code.dot(g, layout.input_strides)) for g in groups]
        if self.resident:
            for step in self.steps:
                sums = [
                    self._multiply(step, base, total)
                    for base, total in zip(bases, sums, strict=True)
                ]
        else:
            flat = [x for total in sums for x in total]
            loop = scf.ForOp(code.value(0), code.value(layout.steps), code.value(1), flat)
            # Unrolled, the tables would be read before the march, into more registers than exist.
            loop.attributes[LOOP_ANNOTATION] = ir.Attribute.parse(NO_UNROLLING)
            with ir.InsertionPoint(loop.body):
                step = self._read_step(loop.induction_variable)
                carried = list(loop.inner_iter_args)
                results = []
                for number, base in enumerate(bases):
                    total = carried[number * count : (number + 1) * count]
                    results += self._multiply(step, base, total)
                scf.yield_(results)
            final = list(loop.results)
            sums = [final[n * count : (n + 1) * count] for n in range(len(groups))]
        for group, total in zip(groups, sums, strict=True):
            places = [code.add(g, w) for g, w in zip(group, self.warp_places, strict=True)]
            base = code.dot(places, layout.output_strides)
            for block in range(layout.row_blocks):
                self._stage(base, block, total[block * elements : (block + 1) * elements])

    def _multiply(self, step: _Step, base: Index, sums: list[ir.Value]) -> list[ir.Value]:
        """The sums of all row blocks after one step."""
        loaded = [
            memref.load(self.block.halo, [self.code.value(self.code.add(base, offset))])
            for offset in step.offsets
        ]
        b = self.ops.split(loaded)
        elements = self.layout.fragment.c_row.shape[1]
        results = []
        for block, (a, metadata) in enumerate(zip(step.a, step.metadata, strict=True)):
            c = sums[block * elements : (block + 1) * elements]
            results += c if a is None else self.ops.multiply(a, b, c, metadata)
        return results

    def _stage(self, base: Index, block: int, sums: list[ir.Value]) -> None:
        """Leave the sums of a row block in the staging tile."""
        code = self.code
        for value, (place, valid) in zip(sums, self.output_places[block], strict=True):
            if self.scale:
                value = arith.mulf(value, self._number(math.ldexp(1.0, -self.scale)))
                if self.constant:
                    value = arith.addf(value, self._number(self.constant))
            if self.block.element != self.ops.accumulation:
                value = arith.truncf(self.block.element, value)
            at = [code.value(code.add(base, place))]

            def store(value=value, at=at) -> None:
                memref.store(value, self.block.staging, at)

            if valid is None:
                store()
            else:
                code.when(valid, store)

    def _number(self, value: float) -> ir.Value:
        kind = self.ops.accumulation
        return self.code.constants.get(
            ("number", value), lambda: arith.ConstantOp(kind, float(value)).result
        )
