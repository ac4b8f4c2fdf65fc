# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The strip of a warp: where it lies, how its rows of inputs are read and its outputs written.

A lane reads neighbouring inputs with one access of 16 bytes, and writes neighbouring outputs with
another (layout.march). A strip inside the array needs no checks; at its edges only those inputs are
read that exist, and outputs are written one by one.
"""

from collections.abc import Callable

import numpy as np

from twofour.codegen.gpu.code import Index, IndexCode, conjunction
from twofour.codegen.gpu.flat_array import address_word, flat_array
from twofour.codegen.gpu.matrix_ops import i32
from twofour.codegen.gpu.vector_access import load_words, words_of
from twofour.layout.fragments import LANES
from twofour.layout.march import March
from twofour.mlir import arith, gpu, ir, memref, nvvm, scf, vector


class Strip:
    """Emits the reads and writes of a warp's strip, at the insertion point.

    Attributes:
        code: index arithmetic.
        lane: of this thread.
        lane_in, lane_out: its first input and its first output, from those of the strip.
        y, first_row: the first row of outputs on the axis between, of the warp and of all warps
            that read together.
        first: the first step of the march; steps: how many there are.
        pitch_in, pitch_out: elements from one step to the next.
    """

    def __init__(self, layout: March, element: ir.Type, entry: ir.Block, masked: bool):
        """With `masked` inputs that no output reads are replaced by zeros."""
        self.layout, self.element, self.masked = layout, element, masked
        self.word = words_of(element, layout.itemsize)[0]
        self.code = IndexCode(entry)
        source, target = entry.arguments
        self.source = flat_array(self.code, source, layout.input_lo)
        self.target = flat_array(self.code, target, (0,) * layout.rank)
        self._find_lane()
        self._find_place()

    def _find_lane(self) -> None:
        code, thread = self.code, gpu.thread_id(gpu.Dimension.x)
        self.warp, self.lane = code.div(thread, LANES), code.rem(thread, LANES)
        layout, group = self.layout, self.layout.group
        tile, place = code.div(self.lane, group), code.rem(self.lane, group)
        begin = code.mul(tile, group * layout.written)
        self.lane_in = code.add(begin, code.mul(place, layout.chunk))
        self.lane_out = code.add(begin, code.mul(place, layout.written))

    def _find_place(self) -> None:
        """The strip's first output: `x` on the last axis, `y` on the one between.

        With several levels the outputs at both ends of the strip are not written.
        """
        code, layout, sizes = self.code, self.layout, self.target.sizes
        number, blocks = gpu.block_id(gpu.Dimension.x), gpu.grid_dim(gpu.Dimension.x)
        self.y = self.first_row = 0
        if layout.rank == 1:
            width = layout.tile[0]
            self.pitch_in = self.pitch_out = width
            self.x, count = code.mul(self.warp, layout.width), code.ceil_div(sizes[0], width)
        else:
            strips = code.ceil_div(sizes[-1], layout.tile[-1])
            number, block = code.split(number, strips)
            blocks, _ = code.split(blocks, strips)
            self.x = code.mul(block, layout.tile[-1])
            if layout.rank == 2:
                self.x = code.add(self.x, code.mul(self.warp, layout.width))
            else:
                bands = code.ceil_div(sizes[1], layout.tile[1])
                number, block = code.split(number, bands)
                blocks, _ = code.split(blocks, bands)
                self.y = code.mul(code.add(code.mul(block, layout.warps), self.warp), layout.rows)
                self.first_row = code.mul(block, layout.tile[1]) if layout.ring else self.y
            self.pitch_in, self.pitch_out = self.source.strides[0], self.target.strides[0]
            count = sizes[0]
        self.x = code.add(self.x, -layout.trimmed[0])
        # The blocks of a strip share the steps evenly, however many there are.
        march = code.div(code.add(count, blocks, -1), blocks)
        self.first = code.mul(number, march)
        self.steps = code.minimum(code.sub(count, self.first), march)

    def when_working(self, body: Callable[[bool], None]) -> None:
        """`body(inside)` where the strip has outputs; `inside` where all it touches exists."""
        code, layout = self.code, self.layout
        begin, end = self._column(0), code.add(self._column(code.sub(self.steps, 1)), layout.strip)
        lo, hi = layout.trimmed
        working = [
            code.less(0, self.steps),
            code.less(code.add(begin, lo), self.target.sizes[-1]),
        ]
        inside = [
            code.less(-layout.input_lo[-1] - 1, code.add(begin, layout.first_start)),
            code.less(code.add(end, layout.beyond - 1), self.source.sizes[-1]),
            code.less(code.add(end, -hi - 1), self.target.sizes[-1]),
        ]
        if layout.rank == 3:
            # Warps that share a ring are at work, and inside, together.
            rows = layout.tile[1] if layout.ring else layout.rows
            last_row = code.add(self.first_row, rows - 1)
            working.append(code.less(self.first_row, self.target.sizes[1]))
            inside.append(code.less(last_row, self.target.sizes[1]))

        def work() -> None:
            branch = scf.IfOp(conjunction(inside), has_else=True)
            for is_inside, block in ((True, branch.then_block), (False, branch.else_block)):
                with ir.InsertionPoint(block):
                    body(is_inside)
                    scf.yield_([])

        code.when(conjunction(working), work)

    def _column(self, step: Index) -> Index:
        """The first output of a step on the last axis; beyond the last step, that of the last."""
        code = self.code
        if self.layout.rank > 1:
            return self.x
        step = code.minimum(step, code.sub(self.steps, 1))
        return code.add(self.x, code.mul(code.add(self.first, step), self.pitch_in))

    def begin_of_inputs(self) -> Index:
        """Where the first row of inputs lies, in the column of the first output."""
        code = self.code
        row = code.add(self.first, self.layout.levels * self.layout.first)
        between = code.mul(self.first_row, self.source.strides[1]) if self.layout.rank == 3 else 0
        return code.add(code.mul(row, self.pitch_in), between, self.x)

    def begin_of_outputs(self) -> Index:
        """Where the first row of outputs lies, in the column of this lane's first one."""
        code = self.code
        between = code.mul(self.y, self.target.strides[1]) if self.layout.rank == 3 else 0
        return code.add(code.mul(self.first, self.pitch_out), between, self.x, self.lane_out)

    def read(
        self, fragment: tuple[int, int], source: Index, step: Index, is_inside: bool
    ) -> list[ir.Value]:
        """A fragment as this lane's words, of 32 bits or, where those are larger, of one element.

        The first row of inputs of its step begins at `source`.
        """
        across, start = fragment
        row = self.row_at(source, across, is_inside)
        if is_inside:
            return self._load(self.code.add(row, self.lane_in), start)
        if self.layout.rank == 1:
            return self._load_at_ends(row, step, start)
        return self._load_some(row, step, start)

    def row_at(self, source: Index, across: Index, is_inside: bool) -> Index:
        """Where the row begins that lies `across` on the axis between; beyond the end the last."""
        code = self.code
        if self.layout.rank < 3:
            return source
        if not is_inside:
            last = code.sub(code.sub(self.source.sizes[1], 1), self.first_row)
            across = code.minimum(across, last)
        return code.add(source, code.mul(across, self.source.strides[1]))

    def _load(self, place: Index, start: int) -> list[ir.Value]:
        """The words from `start` elements after a place on, by one access.

        It asks the second-level cache for all of 256 bytes.
        """
        beyond = self.layout.itemsize * start
        return load_words(self.address(place), beyond, self.fragment_types, "L2::256B")

    def prefetch(self, source: Index) -> None:
        """Begin to bring a row of inputs that begins at `source` to the second-level cache."""
        address = self.address(self.code.add(source, self.lane_in))
        nvvm.inline_ptx([], [address], [], "prefetch.global.L2 [{$r0}];")

    def address(self, place: Index) -> ir.Value:
        """The address of an element of the inputs, 64 bits."""
        place = self.source.address(self.code, place, self.layout.itemsize)
        return address_word(self.code, place)

    def _load_at_ends(self, row: Index, step: Index, start: int) -> list[ir.Value]:
        """Loads for the steps of a march along the only axis, of which some meet an end."""
        code, layout = self.code, self.layout
        x = code.add(self._column(step), start)
        inside = conjunction(
            [
                code.less(-layout.input_lo[-1] - 1, x),
                code.less(code.add(x, layout.strip + layout.overhang - 1), self.source.sizes[-1]),
            ]
        )
        branch = scf.IfOp(inside, self.fragment_types, has_else=True)
        with ir.InsertionPoint(branch.then_block):
            scf.yield_(self._load(code.add(row, self.lane_in), start))
        with ir.InsertionPoint(branch.else_block):
            scf.yield_(self._load_some(row, step, start))
        return list(branch.results)

    @property
    def fragment_types(self) -> list[ir.Type]:
        """The types of a lane's words of a fragment."""
        return words_of(self.element, self.layout.itemsize)

    def _load_some(self, row: Index, step: Index, start: int) -> list[ir.Value]:
        """Inputs of this lane; any numbers, or zero, where no output of the array reads them."""
        place = self.existing(self.code.add(self.lane_in, start), step)
        return self.without_missing(self._load(self.code.add(row, place), 0), start, step)

    def existing(self, place: Index, step: Index) -> Index:
        """The place of a chunk in its row, or that of one that exists where no output reads it."""
        code = self.code
        low, high = self._existing_inputs(place, step)
        # The first chunk of the row that an output reads exists.
        chunk, lo = self.layout.chunk, self.layout.input_lo[-1]
        other = code.sub(-lo // chunk * chunk, self._column(step))
        return code.select(code.less(low, high), place, other)

    def without_missing(self, words: list[ir.Value], start: int, step: Index) -> list[ir.Value]:
        """This lane's words of a fragment; if masked, zeros for inputs that no output reads."""
        if not self.masked:
            return words
        low, high = self._existing_inputs(self.code.add(self.lane_in, start), step)
        return [arith.andi(word, self._mask(low, high, n)) for n, word in enumerate(words)]

    def _existing_inputs(self, place: Index, step: Index) -> tuple[ir.Value, ir.Value]:
        """Of the chunk at a place of its row, the first input that exists, and the end of those."""
        code = self.code
        x = code.add(self._column(step), place)
        low = self._clamped(code.sub(-self.layout.input_lo[-1], x))
        return low, self._clamped(code.sub(self.source.sizes[-1], x))

    def _clamped(self, number: Index) -> ir.Value:
        return self.code.minimum(self.code.maximum(number, 0), self.layout.chunk)

    def _mask(self, low: ir.Value, high: ir.Value, word: int) -> ir.Value:
        """The bits of word `word` that hold inputs low, ..., high - 1."""
        code, mask = self.code, None
        for half in range(2):
            number = 2 * word + half
            valid = conjunction([code.less(low, number + 1), code.less(number, high)])
            bits = arith.select(valid, self._word(0xFFFF << 16 * half), self._word(0))
            mask = bits if mask is None else arith.ori(mask, bits)
        return mask

    def _word(self, bits: int) -> ir.Value:
        signed = int(np.uint32(bits).view(np.int32))
        return self.code.constants.get(
            ("word", bits), lambda: arith.ConstantOp(i32(), signed).result
        )

    def write(self, outputs: list[ir.Value], target: Index, step: Index, is_inside: bool) -> None:
        """Write this lane's outputs of a step, a vector for each row along the axis between."""
        lo, hi = self.layout.trimmed
        if lo + hi == 0:
            self._write_rows(outputs, target, step, is_inside)
            return
        complete = conjunction(
            [
                self.code.less(lo - 1, self.lane_out),
                self.code.less(self.lane_out, self.layout.strip - hi),
            ]
        )
        self.code.when(complete, lambda: self._write_rows(outputs, target, step, is_inside))

    def _write_rows(
        self, outputs: list[ir.Value], target: Index, step: Index, is_inside: bool
    ) -> None:
        code, layout = self.code, self.layout
        for number, values in enumerate(outputs):
            stride = self.target.strides[1] if layout.rank == 3 else 0
            place = code.add(target, code.mul(number, stride))
            if is_inside:
                self._store(values, place)
                continue

            def write(values: ir.Value = values, place: Index = place) -> None:
                self._write_some(values, place, step)

            if layout.rank == 3:
                code.when(code.less(code.add(self.y, number), self.target.sizes[1]), write)
            else:
                write()

    def _store(self, values: ir.Value, place: Index) -> None:
        size = self.layout.written * self.layout.itemsize
        vector.store(values, self.target.flat, [self.code.value(place)], alignment=size)

    def _write_some(self, values: ir.Value, place: Index, step: Index) -> None:
        """Write those outputs of this lane that the array has."""
        code, written = self.code, self.layout.written
        left = code.sub(self.target.sizes[-1], code.add(self._column(step), self.lane_out))

        def one(number: int) -> None:
            value = vector.extract(values, [], ir.DenseI64ArrayAttr.get([number]))
            memref.store(value, self.target.flat, [code.value(code.add(place, number))])

        branch = scf.IfOp(code.less(written - 1, left), has_else=True)
        with ir.InsertionPoint(branch.then_block):
            self._store(values, place)
            scf.yield_([])
        with ir.InsertionPoint(branch.else_block):
            for number in range(written - 1):
                code.when(code.less(number, left), lambda number=number: one(number))
            scf.yield_([])
