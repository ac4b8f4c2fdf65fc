# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Which points of the output a thread of a plain kernel computes.

The lanes of a warp take neighbouring points of the innermost axis, so that their accesses touch
neighbouring addresses whatever the alignment of the rows. A thread computes several points: rows of
the next axis, which share what they read, or points that lie a whole block apart when there is one
axis only. Where rows are aligned, they may be a vector of neighbouring points instead.
"""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from twofour.codegen.gpu.code import Index, IndexCode, conjunction
from twofour.codegen.gpu.kernel_abi import BlockShape
from twofour.mlir import arith, gpu, ir, memref, scf

THREADS = 256
COLUMNS, FEW_COLUMNS = 64, 32


@dataclass(frozen=True)
class PointGrid:
    """Threads of a block per axis, and the number of points of each thread along `axis`.

    With `vectors` these are neighbours on the innermost axis.
    """

    rank: int
    points: int = 1
    vectors: bool = False

    @property
    def threads(self) -> tuple[int, ...]:
        """Threads of a block per axis."""
        if self.rank == 1:
            return (THREADS,)
        if self.vectors or (self.rank > 2 and self.points > 1):
            # Rows of one plane: of four planes acoustic waves of order 8 in f64 took 1.08 times as
            # long on an H200.
            return (*(1,) * (self.rank - 2), THREADS // FEW_COLUMNS, FEW_COLUMNS)
        groups = THREADS // COLUMNS
        if self.rank == 2:
            return (groups, COLUMNS)
        return (*(1,) * (self.rank - 3), 2, groups // 2, COLUMNS)

    @property
    def axis(self) -> int:
        """The axis along which a thread has several points."""
        return self.rank - 1 if self.vectors else max(self.rank - 2, 0)

    @property
    def shifts(self) -> list[tuple[int, ...]]:
        """The points of a thread, relative to its first one."""
        return [self._shift(number) for number in range(self.points)]

    def _shift(self, number: int) -> tuple[int, ...]:
        return tuple(number * self.step * (axis == self.axis) for axis in range(self.rank))

    @property
    def step(self) -> int:
        """The distance of a thread's points."""
        return self.threads[0] if self.rank == 1 and not self.vectors else 1

    def launch(self, itemsize: int) -> BlockShape:
        """How a kernel of these threads is launched."""
        tile = list(self.threads)
        tile[self.axis] *= self.points
        alignment = self.points * itemsize if self.vectors else itemsize
        return BlockShape(math.prod(self.threads), tuple(tile), 1, alignment)

    def emit(
        self,
        code: IndexCode,
        output: ir.Value,
        body: Callable[[list[Index], Sequence[tuple[int, ...]]], None],
    ) -> None:
        """`body(point, shifts)` for the points point + shifts of this thread that exist.

        All points of a thread at once, or one by one where some lie outside of `output`.
        """
        sizes = [memref.dim(output, code.value(axis)) for axis in range(self.rank)]
        point = self._first_point(code, sizes)
        inside = [
            code.less(at, size)
            for axis, (at, size) in enumerate(zip(point, sizes, strict=True))
            if self.threads[axis] > 1 and (axis != self.axis or self.points == 1)
        ]

        def along() -> None:
            axis, step, end = self.axis, self.step, sizes[self.axis]
            if self.points == 1:
                body(point, self.shifts)
                return
            last = code.add(point[axis], (self.points - 1) * step)

            def one(at: Index) -> None:
                body([*point[:axis], at, *point[axis + 1 :]], [self._shift(0)])

            branch = scf.IfOp(code.less(last, end), has_else=True)
            with ir.InsertionPoint(branch.then_block):
                body(point, self.shifts)
                scf.yield_([])
            with ir.InsertionPoint(branch.else_block):
                code.loop(point[axis], end, step, one)
                scf.yield_([])

        condition = conjunction(inside)
        if condition is None:
            along()
        else:
            code.when(condition, along)

    def _first_point(self, code: IndexCode, sizes: Sequence[ir.Value]) -> list[Index]:
        """The first point of this thread."""
        index, word = ir.IndexType.get(), ir.IntegerType.get_signless(32)
        tile = self.launch(1).tile
        number = arith.index_castui(word, gpu.block_id(gpu.Dimension.x))
        thread = gpu.thread_id(gpu.Dimension.x)
        point: list[Index] = [0] * self.rank
        for axis in range(self.rank - 1, -1, -1):
            block = number
            if axis > 0:
                # The number of blocks has 32 bits, and divisions of 64 bits are slow.
                blocks = arith.index_castui(word, code.ceil_div(sizes[axis], tile[axis]))
                block = arith.remui(number, blocks)
                number = arith.divui(number, blocks)
            place = code.rem(thread, self.threads[axis]) if axis > 0 else thread
            thread = code.div(thread, self.threads[axis])
            per_thread = self.points if axis == self.axis and self.step == 1 else 1
            point[axis] = code.add(
                code.mul(arith.index_castui(index, block), tile[axis]),
                code.mul(place, per_thread),
            )
        return point
