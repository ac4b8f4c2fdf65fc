# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The outputs beside the blocks: sums of terms, a vector at a time, whatever the extents."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from twofour.codegen.sme.block import Fields
from twofour.codegen.sme.code import ScalableCode
from twofour.layout.coefficient_lines import Line, Offset
from twofour.mlir import arith, ir, vector

Range = tuple[ir.Value, ir.Value]


@dataclass(frozen=True)
class RestCode:
    """Emits target[x] = addend[x] + constant + sum_k weight_k * source[x + offset_k] over boxes.

    The terms are those of `lines`.
    """

    code: ScalableCode
    fields: Fields
    lines: Sequence[Line]

    def terms(self) -> list[tuple[Offset, float]]:
        """Gather offsets and weights, ascending."""
        terms = [term for line in self.lines for term in line.terms() if term[1] != 0]
        return sorted((tuple(-s for s in offset), weight) for offset, weight in terms)

    def emit(
        self, outer: Sequence[Range], columns: Callable[[list[ir.Value]], Sequence[Range]]
    ) -> None:
        """All points of a box: ranges of its outer axes, and of the columns at a place on these."""
        code = self.code

        def axis(at: list[ir.Value]) -> None:
            if len(at) < len(outer):
                code.loop(*outer[len(at)], lambda i, _: axis([*at, i]))
                return
            for begin, end in columns(at):
                code.loop(begin, end, lambda i, _, end=end: vectors([*at, i], end), step=code.n)

        def vectors(at: list[ir.Value], end: ir.Value) -> None:
            self._vector(at, code.first(arith.subi(end, at[-1])))

        axis([])

    def _vector(self, at: list[ir.Value], mask: ir.Value) -> None:
        code, fields = self.code, self.fields
        total = code.splat(fields.constant)
        if fields.addend is not None:
            addend = self._read(fields.addend, at, mask)
            total = arith.addf(addend, total) if fields.constant else addend
        for offset, weight in self.terms():
            place = [code.add(i, o + lo) for i, o, lo in zip(at, offset, fields.halo, strict=True)]
            total = vector.fma(code.splat(weight), self._read(fields.source, place, mask), total)
        vector.maskedstore(fields.target, at, mask, total)

    def _read(self, view: ir.Value, at: list[ir.Value], mask: ir.Value) -> ir.Value:
        return vector.maskedload(self.code.vector_type, view, at, mask, self.code.splat(0.0))
