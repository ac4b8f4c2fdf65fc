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
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from twofour.layout.block import COPY_BYTES, SECTOR, BlockLayout
from twofour.layout.fragments import LANES
from twofour.mlir import arith, gpu, ir, memref, nvgpu, nvvm, scf, vector
from twofour.targets.cpu.kernel_abi import view_type
from twofour.targets.gpu.code import Index, IndexCode, conjunction
from twofour.targets.gpu.kernel_abi import (
    CONSTANT,
    LaunchShape,
    gpu_function,
    shared_type,
    table,
    workgroup,
)
from twofour.targets.gpu.matrix_ops import MatrixOps, i32

# 32-bit registers that A, metadata and offsets may occupy for the whole kernel.
MAX_RESIDENT = 64
# Groups whose sums are kept while A and the offsets of a step are read from tables.
MAX_BATCH = 4


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
    def launch(self) -> LaunchShape:
        """How the kernel is launched."""
        layout = self.layout
        tile = (math.prod(layout.tile),) if layout.folded else layout.tile
        return LaunchShape(layout.threads, tile, layout.march, SECTOR, layout.shared_bytes)


def build_tensor_kernel(kernel: TensorKernel) -> gpu.GPUFuncOp:
    """Insert the kernel's function and tables at the current insertion point."""
    view = view_type(len(kernel.reach_lo), ir.Type.parse(kernel.element))
    function = gpu_function(kernel.name, [view, view], 1, kernel.launch)
    entry = function.regions[0].blocks[0]
    with ir.InsertionPoint(entry):
        _Emitter(kernel, entry).emit()
        gpu.ReturnOp([])
    return function


@dataclass(frozen=True)
class _Global:
    """An array as one row of elements from the block's view of the domain.

    Element `dot(coordinates, strides)` of `flat` is the point at these coordinates of the domain;
    `sizes` are the extents that may be touched per axis.
    """

    flat: ir.Value
    sizes: list[Index]
    strides: list[Index]


@dataclass(frozen=True)
class _Step:
    """Operands of one step along K: A by row block (None where it is zero), metadata, offsets."""

    a: list[list[list[ir.Value]] | None]
    metadata: list[ir.Value | None]
    offsets: list[Index]


class _Emitter:
    def __init__(self, kernel: TensorKernel, entry: ir.Block):
        self.kernel, self.layout, self.ops = kernel, kernel.layout, kernel.ops
        self.code = IndexCode(entry)
        self.element = ir.Type.parse(kernel.element)
        self.input, self.output = entry.arguments
        self.copy = COPY_BYTES // self.layout.itemsize
        self.rank = len(self.layout.tile)
        self.used = set(self.layout.used_blocks())

    def emit(self) -> None:
        code, layout = self.code, self.layout
        thread = gpu.thread_id(gpu.Dimension.x)
        self.warp, self.lane = code.div(thread, LANES), code.rem(thread, LANES)
        self.quad, self.place = code.div(self.lane, 4), code.rem(self.lane, 4)
        self.source, self.target = self._views()
        self.origin, self.end = self._block_origin()
        self._shared()
        self.step_tables()
        count = code.ceil_div(code.sub(self.end, self.origin[0]), layout.tile[0])
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
        self._compute(stages[0])
        gpu.barrier()
        if not ahead:
            self._copy_ahead(index, 1, count, stages[0])
        self._write_tile(self._row(index))
        scf.yield_(stages[1:] + stages[:1])

    def _row(self, index: Index) -> Index:
        """The first row of axis 0 of a tile of this block's march."""
        return self.code.add(self.origin[0], self.code.mul(index, self.layout.tile[0]))

    def _copy_ahead(self, index: Index, ahead: int, count: Index, stage: Index) -> None:
        """Begin to copy the halo tile `ahead` of tile `index`, where the march goes that far."""
        code = self.code
        tile = code.add(index, ahead)
        if isinstance(tile, int) and tile == 0:
            self._copy_tile(self._row(tile), stage)
        else:
            code.when(code.less(tile, count), lambda: self._copy_tile(self._row(tile), stage))
        # Groups are counted, so every tile has one, an empty one beyond the end.
        nvvm.cp_async_commit_group()

    def _views(self) -> tuple[_Global, _Global]:
        """Input and output from the first point of the domain on."""
        code, layout = self.code, self.layout
        lo = self.kernel.reach_lo
        views = []
        for view, is_input in ((self.input, True), (self.output, False)):
            base, offset, *rest = memref.extract_strided_metadata(view)
            rank = len(lo)
            sizes, strides = list(rest[:rank]), list(rest[rank:])
            if is_input:
                # From the first point that a patch reads to the first point of the domain.
                offset = code.add(offset, code.dot(lo[:-1], strides[:-1]), lo[-1])
                sizes = [code.sub(s, low) for s, low in zip(sizes, lo, strict=True)]
            if layout.folded:
                # Segments of the only axis, as rows that overlap in memory.
                strides = [layout.tile[1], 1]
                sizes = [code.ceil_div(sizes[0], layout.tile[1]), sizes[0]]
            unknown = ir.ShapedType.get_dynamic_stride_or_offset()
            kind = ir.MemRefType.get(
                [ir.ShapedType.get_dynamic_size()],
                self.element,
                ir.StridedLayoutAttr.get(unknown, [1]),
            )
            flat = memref.reinterpret_cast(
                kind,
                base,
                [code.value(offset)],
                [code.value(2**62)],
                [],
                [unknown],
                [ir.ShapedType.get_dynamic_size()],
                [1],
            )
            views.append(_Global(flat, sizes, [*strides[:-1], 1]))
        return views[0], views[1]

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

    def _shared(self) -> None:
        code, layout = self.code, self.layout
        whole = ir.MemRefType.get(
            [ir.ShapedType.get_dynamic_size()],
            ir.IntegerType.get_signless(8),
            memory_space=workgroup(),
        )
        memory = gpu.dynamic_shared_memory(whole)
        size = layout.stages * layout.input_elements
        self.halo = memref.view(shared_type(size, self.element), memory, code.value(0), [])
        self.staging = memref.view(
            shared_type(layout.output_elements, self.element),
            memory,
            code.value(size * layout.itemsize),
            [],
        )

    # Rows.

    def _each_row(self, extents: Sequence[int], name: str, body) -> None:
        """`body(coordinates)` for this warp's rows of a tile of `extents` rows."""
        code, count = self.code, math.prod(extents)
        warps = self.layout.threads // LANES
        coordinates = None
        if len(extents) > 1:
            places = np.indices(extents, dtype=np.int32).reshape(len(extents), -1).T
            coordinates = self._table(name, places, i32(), CONSTANT)

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

        code.loop(self.warp, count, warps, row)

    def _table(self, name: str, values: np.ndarray, element: ir.Type, space: int = 1) -> ir.Value:
        key = ("table", name)

        def make() -> ir.Value:
            return table(f"{self.kernel.name}_{name}", values, element, space)

        return self.code.constants.get(key, make)

    def _each_chunk(self, elements: int, skipped: int, body) -> None:
        """`body(column)` for this lane's chunks of a row of `elements`.

        Lanes count from `skipped` elements before the row on.
        """
        code = self.code
        width = LANES * self.copy
        for start in range(-skipped, elements, width):
            column = code.add(code.mul(self.lane, self.copy), start)
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

    def _copy_tile(self, row: Index, stage: Index) -> None:
        """Begin to copy the halo tile whose first output is in row `row` of axis 0."""
        code, layout, source = self.code, self.layout, self.source
        limit = source.sizes[-1]

        def copy_row(places: list[Index]) -> None:
            at = [
                code.add(origin, place, -lo)
                for origin, place, lo in zip(
                    [row, *self.origin[1:]], places, layout.reach_lo[:-1], strict=False
                )
            ]
            inside = conjunction(
                [code.less(x, size) for x, size in zip(at, source.sizes, strict=False)]
            )
            start = code.add(code.dot(at, source.strides[:-1]), self.origin[-1], -layout.lead)
            into = code.add(stage, code.dot(places, layout.input_strides[:-1]))
            first = code.mul(at[0], layout.tile[1]) if layout.folded else self.origin[-1]
            left = code.sub(limit, code.add(first, -layout.lead))

            def copy(column: Index) -> None:
                valid = arith.andi(inside, code.less(column, left))
                elements = arith.select(valid, code.value(self.copy), code.value(0))
                offset = arith.select(valid, code.add(start, column), code.value(0))
                nvgpu.device_async_copy(
                    self.halo,
                    [code.add(into, column)],
                    source.flat,
                    [offset],
                    self.copy,
                    src_elements=elements,
                    bypass_l1=True,
                )

            self._each_chunk(layout.row, layout.skipped, copy)

        self._each_row(layout.halo_rows, "halo_rows", copy_row)

    def _write_tile(self, row: Index) -> None:
        """Write the staging tile to the rows of axis 0 from `row` on."""
        code, layout, target = self.code, self.layout, self.target
        chunk = ir.VectorType.get([self.copy], self.element)

        def write_row(places: list[Index]) -> None:
            at = [
                code.add(origin, place)
                for origin, place in zip([row, *self.origin[1:]], places, strict=False)
            ]
            inside = conjunction(
                [code.less(x, size) for x, size in zip(at, target.sizes, strict=False)]
            )
            start = code.add(code.dot(at, target.strides[:-1]), self.origin[-1])
            staged = code.dot(places, layout.output_strides[:-1])
            first = code.mul(at[0], layout.tile[1]) if layout.folded else self.origin[-1]
            left = code.sub(target.sizes[-1], first)

            def write(column: Index) -> None:
                whole = code.less(code.add(column, self.copy - 1), left)
                place, offset = code.add(staged, column), code.add(start, column)
                branch = scf.IfOp(whole, has_else=True)
                with ir.InsertionPoint(branch.then_block):
                    values = vector.load(
                        chunk, self.staging, [code.value(place)], alignment=COPY_BYTES
                    )
                    vector.store(values, target.flat, [code.value(offset)], alignment=COPY_BYTES)
                    scf.yield_([])
                with ir.InsertionPoint(branch.else_block):
                    code.loop(0, code.sub(left, column), 1, lambda i: single(place, offset, i))
                    scf.yield_([])

            def single(place: Index, offset: Index, i: Index) -> None:
                value = memref.load(self.staging, [code.value(code.add(place, i))])
                memref.store(value, target.flat, [code.value(code.add(offset, i))])

            code.when(inside, lambda: self._each_chunk(layout.tile[-1], 0, write))

        self._each_row(layout.tile[:-1], "output_rows", write_row)

    # Matrix instructions.

    @cached_property
    def resident(self) -> bool:
        """Whether the operands of all steps stay in registers."""
        fragment = self.layout.fragment
        words = 2 if self.ops.operands == "f64" else 1
        elements = 2 if self.layout.itemsize == 2 else 1
        registers = fragment.a_row.shape[1] // elements * words * self.ops.parts
        registers += fragment.sparse
        offsets = self.layout.steps * fragment.b_row.shape[1]
        return len(self.used) * registers + offsets <= MAX_RESIDENT

    def step_tables(self) -> None:
        """Tables of A, metadata and offsets by step, and what of them stays in registers."""
        code, layout, fragment = self.code, self.layout, self.layout.fragment
        blocks = [(b, s) for s in range(layout.steps) for b in range(layout.row_blocks)]
        operands = [
            fragment.operands(np.ldexp(layout.block(b, s), self.kernel.scale)) for b, s in blocks
        ]
        values = np.stack([self.ops.packed(a) for a, _ in operands])
        self.registers = values.shape[-1]
        self.a_table = self._table("values", values, self.ops.register)
        if fragment.sparse:
            metadata = np.stack([words for _, words in operands]).view(np.int32)
            self.metadata_table = self._table("metadata", metadata, i32())
        offsets = layout.input_offsets().reshape(layout.steps, fragment.k)
        # By four elements, then by lane of a quad: what a warp reads at once is contiguous.
        elements = min(4, fragment.b_row.shape[1])
        lanes = offsets[:, fragment.b_row[:4]].reshape(layout.steps, 4, -1, elements)
        by_lane = np.ascontiguousarray(lanes.transpose(0, 2, 1, 3).astype(np.int32))
        self.offset_table = self._table("input_offsets", by_lane, i32())
        self.output_places = self._output_places()
        self.warp_places = self._warp_places()
        self.base_in = code.add(
            self._group_place(self.quad, layout.input_strides),
            code.dot(self.warp_places, layout.input_strides),
        )
        self.steps = None
        if self.resident:
            self.steps = [self._read_step(step) for step in range(layout.steps)]

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
            at = [number, self.lane, code.value(0)]
            aligned = min(16, self.registers * (8 if self.ops.operands == "f64" else 4))
            whole = vector.load(kind, self.a_table, at, alignment=aligned)
            registers = [
                vector.extract(whole, [], ir.DenseI64ArrayAttr.get([i]))
                for i in range(self.registers)
            ]
            a.append(self.ops.a_parts(registers))
            metadata.append(
                memref.load(self.metadata_table, [number, self.lane])
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
            at = [code.value(step), code.value(part), self.place, code.value(0)]
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
        for axis in range(self.rank - 1, -1, -1):
            extent = layout.group[axis]
            step = layout.operator.tile[axis] * strides[axis]
            place = code.add(place, code.mul(code.rem(tile, extent), step))
            tile = code.div(tile, extent)
        return place

    def _warp_places(self) -> list[Index]:
        """The first output of this warp in the block tile, per axis."""
        code, layout, number, places = self.code, self.layout, self.warp, []
        for axis in range(self.rank - 1, -1, -1):
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
        places = self._table("output_offsets", offsets, i32())
        index = ir.IndexType.get()
        found = []
        for block in range(layout.row_blocks):
            by_element = []
            for element in range(fragment.c_row.shape[1]):
                first = block * fragment.m + int(fragment.c_row[0, element])
                row = code.add(self.quad, first)
                offset = arith.index_castui(index, memref.load(places, [code.value(row)]))
                tile = code.add(code.mul(self.place, 2), int(fragment.c_tile[0, element]))
                place = code.add(offset, self._group_place(tile, layout.output_strides))
                valid = None
                if first + 8 > layout.outputs:
                    valid = code.less(row, layout.outputs)
                by_element.append((place, valid))
            found.append(by_element)
        return found

    def _compute(self, stage: Index) -> None:
        """Multiply all groups of this warp, from the halo tile at `stage` into the staging tile."""
        layout = self.layout
        extents = [p * g for p, g in zip(layout.operator.tile, layout.group, strict=True)]
        batch = 1 if self.resident else math.gcd(layout.groups[-1], MAX_BATCH)

        def along(axis: int, places: list[Index]) -> None:
            if axis == self.rank:
                last = range(0, batch * extents[-1], extents[-1])
                self._batch(stage, [[*places[:-1], self.code.add(places[-1], x)] for x in last])
                return
            step = extents[axis] * (batch if axis == self.rank - 1 else 1)
            end = layout.groups[axis] * extents[axis]
            self.code.loop(0, end, step, lambda place: along(axis + 1, [*places, place]))

        along(0, [])

    def _batch(self, stage: Index, groups: list[list[Index]]) -> None:
        """Multiply the groups at these places, relative to the warp's first one."""
        code, layout = self.code, self.layout
        elements = layout.fragment.c_row.shape[1]
        start = self._number(np.ldexp(self.kernel.constant, self.kernel.scale))
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
            memref.load(self.halo, [self.code.value(self.code.add(base, offset))])
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
            if self.kernel.scale:
                value = arith.mulf(value, self._number(math.ldexp(1.0, -self.kernel.scale)))
            if self.element != self.ops.accumulation:
                value = arith.truncf(self.element, value)
            at = [code.value(code.add(base, place))]

            def store(value=value, at=at) -> None:
                memref.store(value, self.staging, at)

            if valid is None:
                store()
            else:
                code.when(valid, store)

    def _number(self, value: float) -> ir.Value:
        kind = self.ops.accumulation
        return self.code.constants.get(
            ("number", value), lambda: arith.ConstantOp(kind, float(value)).result
        )
