# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Kernels that stream rows of inputs through sparse tensor cores, without shared memory.

A warp advances along the slowest axis (see layout.stream). A, its metadata, the sums of the rows of
outputs that are not complete and the rows of inputs that were read ahead stay in registers:

    read the first rows of inputs
    for the first `depth` rows:         they meet the first rows of outputs only
        multiply; read one row more
    for all rows but the last:          unrolled, until sums are in the registers they began in
        multiply; read one row more; write the row of outputs that is complete
    for the last `depth` rows:          they complete a row each, and begin none
        multiply; write

With several levels, a row of outputs that is complete is a row of inputs of the next level: eight
neighbours are those of two lanes, four shuffles away. Outputs at the ends of a strip, which would
need inputs of other strips, are not written.

A product leaves lane (g, t) with outputs g and g + 8 of tiles 2t and 2t + 1; `movmatrix` transposes
pairs of them, so that it writes four neighbouring outputs of tile g with one access.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from twofour.layout.block import SECTOR
from twofour.layout.fragments import LANES, SPARSE_16
from twofour.layout.stream import STRIP, StreamLayout, metadata_words
from twofour.mlir import arith, gpu, ir, llvm, memref, nvvm, scf, vector
from twofour.targets.cpu.kernel_abi import view_type
from twofour.targets.gpu.code import Index
from twofour.targets.gpu.kernel_abi import BlockShape, gpu_function, table
from twofour.targets.gpu.lowering import LOOP_ANNOTATION, NO_UNROLLING
from twofour.targets.gpu.matrix_ops import MatrixOps, i32
from twofour.targets.gpu.strip import ACCESS, WRITTEN, Strip

_TRANSPOSE = "movmatrix.sync.aligned.m8n8.trans.b16 {$w0}, {$r0};"


@dataclass(frozen=True)
class StreamKernel:
    """A kernel: constant + A B, A scaled by 2^`scale` so that its type can hold it.

    `element` is the spelling of the type in memory, f16 or bf16.
    """

    name: str
    layout: StreamLayout
    ops: MatrixOps
    element: str
    constant: float = 0.0
    scale: int = 0

    @property
    def launch(self) -> BlockShape:
        """How the kernel is launched."""
        layout = self.layout
        return BlockShape(
            layout.threads, layout.tile, layout.march, SECTOR, resident=layout.resident
        )


def build_stream_kernel(kernel: StreamKernel) -> gpu.GPUFuncOp:
    """Insert the kernel's function and tables at the current insertion point."""
    view = view_type(kernel.layout.rank, ir.Type.parse(kernel.element))
    function = gpu_function(kernel.name, [view, view], 1, kernel.launch)
    entry = function.regions[0].blocks[0]
    with ir.InsertionPoint(entry):
        stream = _Stream(kernel, entry)
        stream.strip.when_working(stream.march)
        gpu.ReturnOp([])
    return function


@dataclass
class _State:
    """What a warp carries from step to step.

    `sums` holds, for each level, the rows of outputs that are begun, the oldest first: by row along
    the axis between, four numbers each. `queue` holds the words of the fragments of B that were
    read, the next one first. `source` is where the row of inputs lies that the next fragment is
    read from, `target` where the next row of outputs is written, `step` the number of the step.
    """

    sums: list[list[list[list[ir.Value]]]]
    queue: list[list[ir.Value]]
    source: Index
    target: Index
    step: Index

    def values(self) -> list[Index]:
        """All of it, as a loop carries it."""
        sums = [x for level in self.sums for row in level for numbers in row for x in numbers]
        words = [x for fragment in self.queue for x in fragment]
        return [*sums, *words, self.source, self.target, self.step]

    def like(self, values: Sequence[ir.Value]) -> "_State":
        """A state of the same shape from what `values` of it became."""
        left = iter(values)
        sums = [
            [[[next(left) for _ in numbers] for numbers in row] for row in level]
            for level in self.sums
        ]
        queue = [[next(left) for _ in fragment] for fragment in self.queue]
        return _State(sums, queue, *left)


class _Stream:
    """Emits the march of a warp."""

    def __init__(self, kernel: StreamKernel, entry: ir.Block):
        self.kernel, self.layout, self.ops = kernel, kernel.layout, kernel.ops
        self.element = ir.Type.parse(kernel.element)
        self.strip = Strip(kernel.layout, self.element, entry)
        self.code = self.strip.code
        self._read_tables()

    def _read_tables(self) -> None:
        """A and its metadata, in registers."""
        code, name = self.code, self.kernel.name
        words, numbers = metadata_words(self.layout)
        metadata = table(f"{name}_metadata", words.view(np.int32), i32())
        loaded = [
            memref.load(metadata, [code.value(n), self.strip.lane]) for n in range(len(words))
        ]
        self.metadata = [loaded[number] for number in numbers]
        blocks = [np.ldexp(block, self.kernel.scale) for block in self.layout.blocks]
        packed = np.stack([self.ops.packed(SPARSE_16.operands(block)[0]) for block in blocks])
        values = table(f"{name}_values", packed, i32())
        kind = ir.VectorType.get([packed.shape[-1]], i32())
        self.a = []
        for number in range(len(blocks)):
            at = [code.value(number), self.strip.lane, code.value(0)]
            self.a.append(
                self.ops.a_parts(_elements(vector.load(kind, values, at, alignment=ACCESS)))
            )

    def march(self, is_inside: bool) -> None:
        """Advance from the first step to the last."""
        self.is_inside = is_inside
        code, layout, steps = self.code, self.layout, self.strip.steps
        depth, levels = layout.depth, layout.levels
        self.last = code.add(steps, levels * depth - 1)
        state = self._begin()
        for number in range(levels * depth):
            # A level begins when the one before it completes its first row.
            self._step(state, min(levels, number // depth + 1), begins=True, checked=True)
        full = code.maximum(code.sub(steps, depth), 0)
        # Steps whose fragments can be read ahead without asking whether their rows exist.
        sure = code.maximum(code.sub(steps, max(depth, layout.steps_ahead + 1)), 0)
        rounds = code.div(sure, layout.unroll)
        state = self._loop(state, rounds, layout.unroll, checked=False)
        left = code.sub(full, code.mul(rounds, layout.unroll))
        state = self._loop(state, left, 1, checked=True)
        for number in range(depth):
            row = self._step(state, levels, begins=False, checked=True, steps_left=depth - number)
            # A march of less than `depth` steps has fewer rows of outputs.
            self._write(state, row, code.less(number, steps) if number else None)

    def _begin(self) -> _State:
        """Read the first fragments."""
        levels = [[] for _ in range(self.layout.levels)]
        state = _State(levels, [], self.strip.begin_of_inputs(), self.strip.begin_of_outputs(), 0)
        for number in range(self.layout.stages - 1):
            self._read(state, number, checked=True)
        return state

    def _loop(self, state: _State, rounds: Index, steps: int, checked: bool) -> _State:
        """`rounds` times so many steps, each of which completes a row of outputs."""
        code = self.code
        begin = [code.value(value) for value in state.values()]
        loop = scf.ForOp(code.value(0), code.value(rounds), code.value(1), begin)
        loop.attributes[LOOP_ANNOTATION] = ir.Attribute.parse(NO_UNROLLING)
        with ir.InsertionPoint(loop.body):
            inner = state.like(list(loop.inner_iter_args))
            for _ in range(steps):
                row = self._step(inner, self.layout.levels, begins=True, checked=checked)
                self._write(inner, row)
            scf.yield_([code.value(value) for value in inner.values()])
        return state.like(list(loop.results))

    def _step(
        self,
        state: _State,
        levels: int,
        begins: bool,
        checked: bool,
        steps_left: int | None = None,
    ) -> list[ir.Value] | None:
        """Multiply the fragments of a step into the rows of outputs that they meet.

        The step `begins` a row of outputs of each of the first `levels` levels, or the march is
        about to end: of the `steps_left` from this one on, all fragments have been read or will be.
        Returns the row of outputs of the last level that is complete, None where there is none.
        """
        layout = self.layout
        newest = self._begin_row(state.sums[0], begins)
        for number, fragment in enumerate(layout.reads):
            self._multiply(state.sums[0], newest, fragment, state.queue.pop(0))
            ahead = number + layout.stages - 1
            if steps_left is None or ahead < steps_left * len(layout.reads):
                self._read(state, ahead, checked)
        state.step = self.code.add(state.step, 1)
        row = self._completed(state.sums[0], begins)
        for level in range(1, levels):
            newest = self._begin_row(state.sums[level], begins)
            for fragment in layout.reads:
                words = self._shuffled(row[fragment[0]], fragment[1])
                self._multiply(state.sums[level], newest, fragment, words)
            row = self._completed(state.sums[level], begins)
        return row

    def _begin_row(self, sums: list, begins: bool) -> int:
        """The number of the row of outputs that meets its first row of inputs now."""
        if not begins:
            # The march is about to end: that row would be beyond the last.
            return self.layout.depth
        first = self._number(0.0 if self.kernel.scale else self.kernel.constant)
        sums.append([[first] * 4 for _ in range(self.layout.rows)])
        return len(sums) - 1

    def _completed(self, sums: list, begins: bool) -> list[list[ir.Value]] | None:
        """The oldest row of outputs as words, where it is complete."""
        if begins and len(sums) <= self.layout.depth:
            return None
        return [self._words(numbers) for numbers in sums.pop(0)]

    def _multiply(
        self, sums: list, newest: int, fragment: tuple[int, int], words: list[ir.Value]
    ) -> None:
        """Multiply a fragment by all blocks of A that it meets."""
        layout, (between, start) = self.layout, fragment
        pair = ir.VectorType.get([2], self.element)
        b = [llvm.bitcast(pair, word) for word in words]
        for term in layout.terms:
            row, y = newest - (term.along - layout.first), between - term.across
            if start != term.start or not (0 <= row < len(sums) and 0 <= y < layout.rows):
                continue
            sums[row][y] = self.ops.multiply(
                self.a[term.block], [b], sums[row][y], self.metadata[term.block]
            )

    def _shuffled(self, words: list[ir.Value], start: int) -> list[ir.Value]:
        """A fragment of B of a complete row: eight neighbours are those of two lanes."""
        code = self.code
        first = code.div(code.add(self.strip.lane_in, start, STRIP), WRITTEN)
        width = code.constants.get(("shuffle", 0), lambda: arith.ConstantOp(i32(), LANES).result)
        found = []
        for lane in (first, code.add(first, 1)):
            place = arith.index_cast(i32(), code.value(code.rem(lane, LANES)))
            for word in words:
                found.append(gpu.shuffle(word, place, width, gpu.ShuffleMode.IDX)[0])
        return found

    def _read(self, state: _State, number: int, checked: bool) -> None:
        """Read fragment `number`, counted from the first of the current step."""
        code, reads = self.code, self.layout.reads
        later, place = divmod(number, len(reads))
        step = code.add(state.step, later)
        state.queue.append(self.strip.read(reads[place], state.source, step, self.is_inside))
        if place < len(reads) - 1:
            return
        following = code.add(state.source, self.strip.pitch_in)
        if checked:
            # Beyond the last row the last one is read again.
            following = code.select(code.less(step, self.last), following, state.source)
        state.source = following

    def _write(
        self, state: _State, row: list[list[ir.Value]], condition: ir.Value | None = None
    ) -> None:
        """Write a row of outputs."""
        code, layout = self.code, self.layout
        outputs = [self._outputs(words) for words in row]
        target = state.target
        number = code.sub(state.step, layout.levels * layout.depth + 1)
        state.target = code.add(target, self.strip.pitch_out)

        def write() -> None:
            self.strip.write(outputs, target, number, self.is_inside)

        if condition is None:
            write()
        else:
            code.when(condition, write)

    def _words(self, sums: list[ir.Value]) -> list[ir.Value]:
        """Four neighbouring outputs of this lane, as two words."""
        kernel = self.kernel
        if kernel.scale:
            factor = self._number(math.ldexp(1.0, -kernel.scale))
            sums = [arith.mulf(x, factor) for x in sums]
            if kernel.constant:
                sums = [arith.addf(x, self._number(kernel.constant)) for x in sums]
        words = []
        for two in (sums[:2], sums[2:]):
            numbers = vector.from_elements(ir.VectorType.get([2], two[0].type), two)
            rounded = arith.truncf(ir.VectorType.get([2], self.element), numbers)
            word = vector.bitcast(ir.VectorType.get([1], i32()), rounded)
            words.append(nvvm.inline_ptx([i32()], _elements(word), [], _TRANSPOSE))
        return words

    def _outputs(self, words: list[ir.Value]) -> ir.Value:
        """Two words as they are stored."""
        pair = vector.from_elements(ir.VectorType.get([2], i32()), words)
        return vector.bitcast(ir.VectorType.get([WRITTEN], self.element), pair)

    def _number(self, value: float) -> ir.Value:
        return self.code.constants.get(
            ("number", value), lambda: arith.ConstantOp(ir.F32Type.get(), float(value)).result
        )


def _elements(values: ir.Value) -> list[ir.Value]:
    """The elements of a vector."""
    (count,) = values.type.shape
    return [vector.extract(values, [], ir.DenseI64ArrayAttr.get([n])) for n in range(count)]
