# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Kernels that stream rows of inputs through sparse tensor cores, without shared memory.

A warp marches along the slowest axis (targets.gpu.march_kernel); A and its metadata stay in
registers. A product leaves lane (g, t) with outputs g and g + 8 of tiles 2t and 2t + 1; `movmatrix`
transposes pairs of them, so that it writes four neighbouring outputs of tile g with one access. Of
a level that passes its rows on, the transposed words are half of the next fragment of tile g.
"""

import math
from dataclasses import dataclass, field

import numpy as np

from twofour.codegen.gpu.kernel_abi import table
from twofour.codegen.gpu.march_kernel import MarchEmitter, MarchKernel, build_march_kernel
from twofour.codegen.gpu.matrix_ops import MatrixOps, i32
from twofour.codegen.gpu.vector_access import elements
from twofour.layout.fragments import LANES, SPARSE_16
from twofour.layout.march import ACCESS, Meeting
from twofour.layout.stream import HALO_REGISTERS, TILE_LANES, StreamLayout, metadata_words
from twofour.mlir import arith, gpu, ir, llvm, memref, nvvm, vector

_TRANSPOSE = "movmatrix.sync.aligned.m8n8.trans.b16 {$w0}, {$r0};"


@dataclass(frozen=True)
class StreamKernel(MarchKernel):
    """A kernel: constant + A B, A scaled by 2^`scale` so that its type can hold it.

    `element` is f16 or bf16.
    """

    layout: StreamLayout
    ops: MatrixOps = field(kw_only=True)
    scale: int = 0


def build_stream_kernel(kernel: StreamKernel) -> gpu.GPUFuncOp:
    """Insert the kernel's function and tables at the current insertion point."""
    return build_march_kernel(kernel, lambda entry: _Stream(kernel, entry))


class _Stream(MarchEmitter):
    """Multiplies fragments of B by blocks of A."""

    def __init__(self, kernel: StreamKernel, entry: ir.Block):
        super().__init__(kernel.layout, kernel.element, entry, masked=True)
        self.kernel, self.ops = kernel, kernel.ops
        self._read_tables()
        if self.layout.exchanged:
            self._find_neighbour()

    def _find_neighbour(self) -> None:
        """Lanes that have the upper half of their tile get that of the tile before, others the
        lower half of the tile after.
        """
        code, lane = self.code, self.strip.lane
        self.is_upper = code.less(0, code.rem(lane, 2))
        further = code.select(self.is_upper, LANES - TILE_LANES, TILE_LANES)
        neighbour = code.rem(code.add(lane, further), LANES)
        self.neighbour = arith.index_cast(i32(), code.value(neighbour))
        self.nothing = arith.ConstantOp(i32(), 0).result

    def _read_tables(self) -> None:
        """A and its metadata, in registers."""
        code, name = self.code, self.kernel.name
        words, numbers = metadata_words(self.layout)
        metadata = table(f"{name}_metadata", words.view(np.int32), i32())
        loaded = [
            memref.load(metadata, [code.value(n), self.strip.lane]) for n in range(len(words))
        ]
        self.metadata = [loaded[number] for number in numbers]
        blocks = [np.ldexp(block, self.kernel.scale) for block in self.layout.matrices]
        packed = np.stack([self.ops.packed(SPARSE_16.operands(block)[0]) for block in blocks])
        values = table(f"{name}_values", packed, i32())
        kind = ir.VectorType.get([packed.shape[-1]], i32())
        self.a = []
        for number in range(len(blocks)):
            at = [code.value(number), self.strip.lane, code.value(0)]
            self.a.append(
                self.ops.a_parts(elements(vector.load(kind, values, at, alignment=ACCESS)))
            )

    def start(self) -> list[ir.Value]:
        return [self._number(0.0 if self.kernel.scale else self.kernel.constant)] * 4

    def unpack(self, words: list[ir.Value]) -> list[ir.Value]:
        pair = ir.VectorType.get([2], self.element)
        return [llvm.bitcast(pair, word) for word in words]

    def contribute(
        self, meeting: Meeting, values: list[ir.Value], sums: list[ir.Value], level: int
    ) -> list[ir.Value]:
        for term in self.kernel.layout.terms:
            if term.meeting == meeting:
                number = self.kernel.layout.matrix(term, level)
                sums = self.ops.multiply(self.a[number], [values], sums, self.metadata[number])
        return sums

    def passed(self, words: list[ir.Value], start: int) -> list[ir.Value]:
        exchanged = self.layout.exchanged
        if not exchanged:
            return super().passed(words, start)
        halo = {}
        for register, (upper, lower) in zip(HALO_REGISTERS, (words[::-1], words), strict=True):
            if register in exchanged:
                sent = arith.select(self.is_upper, upper, lower)
                halo[register] = self.of_lane(sent, self.neighbour)
            else:
                halo[register] = self.nothing
        first, last = HALO_REGISTERS
        return [halo[first], *words, halo[last]]

    def complete(self, sums: list[ir.Value]) -> list[ir.Value]:
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
            words.append(nvvm.inline_ptx([i32()], elements(word), [], _TRANSPOSE))
        return words

    def _number(self, value: float) -> ir.Value:
        return self.code.constants.get(
            ("number", value), lambda: arith.ConstantOp(ir.F32Type.get(), float(value)).result
        )
