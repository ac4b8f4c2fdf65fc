# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Plain GPU kernels that march: every input is read once a warp and added to rolling sums.

The terms of an output are added from the lowest offset to the highest by fused multiply-adds, as by
the other plain kernels and, without reassociation, the CPU's, so that all give the same bits.
"""

from dataclasses import dataclass

from twofour.codegen.gpu.march_kernel import MarchEmitter, MarchKernel, build_march_kernel
from twofour.codegen.gpu.vector_access import elements, unpack_words
from twofour.layout.march import Meeting
from twofour.layout.rolling import RollingLayout
from twofour.mlir import arith, gpu, ir, llvm, vector


@dataclass(frozen=True)
class RollingKernel(MarchKernel):
    """A kernel: constant + the terms of its layout, on fields of `element`."""

    layout: RollingLayout


def build_rolling_kernel(kernel: RollingKernel) -> gpu.GPUFuncOp:
    """Insert the kernel's function at the current insertion point."""
    return build_march_kernel(kernel, lambda entry: _Rolling(kernel, entry))


class _Rolling(MarchEmitter):
    """Adds the numbers of a fragment, one by one."""

    def __init__(self, kernel: RollingKernel, entry: ir.Block):
        super().__init__(kernel.layout, kernel.element, entry, masked=False)
        self.kernel = kernel
        self.accumulation = self.element if kernel.element == "f64" else ir.F32Type.get()

    def start(self) -> list[ir.Value | None]:
        constant = self.kernel.constant
        return [self._number(constant) if constant else None] * self.layout.written

    def unwanted(self) -> list[ir.Value]:
        return [self._number(0.0)] * self.layout.written

    def unpack(self, words: list[ir.Value]) -> list[ir.Value]:
        values = unpack_words(words, self.element)
        if self.strip.word == self.element:
            return values
        return [arith.extf(self.accumulation, value) for value in values]

    def contribute(
        self, meeting: Meeting, values: list[ir.Value], sums: list[ir.Value | None], level: int
    ) -> list[ir.Value | None]:
        sums = list(sums)
        for (along, across, x), weight in self.kernel.layout.terms:
            if (along, across) != meeting[:2]:
                continue
            for place, total in enumerate(sums):
                at = x + place - meeting.start
                if not 0 <= at < len(values):
                    continue
                factor, value = self._number(weight), values[at]
                # `math.fma` would become the call of a library.
                sums[place] = (
                    arith.mulf(factor, value)
                    if total is None
                    else llvm.intr_fma(factor, value, total)
                )
        return sums

    def complete(self, sums: list[ir.Value]) -> list[ir.Value]:
        if self.strip.word == self.element:
            return sums
        kind = ir.VectorType.get([len(sums)], self.element)
        numbers = vector.from_elements(ir.VectorType.get([len(sums)], self.accumulation), sums)
        words = ir.VectorType.get([len(sums) // 2], self.strip.word)
        return elements(vector.bitcast(words, arith.truncf(kind, numbers)))

    def _number(self, value: float) -> ir.Value:
        return self.code.constants.get(
            ("number", value), lambda: arith.ConstantOp(self.accumulation, value).result
        )
