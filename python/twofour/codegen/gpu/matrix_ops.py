# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Matrix instructions on registers: operands as fragments hold them, and C += A B."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from twofour.layout.fragments import Fragment
from twofour.mlir import arith, ir, llvm, nvvm, vector
from twofour.runtime.dtypes import ELEMENT_TYPES, to_storage


def i32() -> ir.Type:
    """The type of 32-bit registers."""
    return ir.IntegerType.get_signless(32)


# Weights between these and the largest f32 number would be rounded to infinity.
_LARGEST = {"bf16": (2 - 2.0**-7) * 2.0**127, "tf32": (2 - 2.0**-10) * 2.0**127}


def operands_of(arithmetic: str) -> tuple[str, int]:
    """The type of operands for f16, bf16, tf32, f32 or f64, and the parts of a number.

    f32 is the sum of two parts of tf32.
    """
    return ("tf32", 2) if arithmetic == "f32" else (arithmetic, 1)


def _tf32_bits(values: np.ndarray) -> np.ndarray:
    """Numbers rounded to tf32, to nearest with ties away, as f32 bit patterns (uint32)."""
    bits = values.astype(np.float32).view(np.uint32)
    return (bits + np.uint32(0x1000)) & np.uint32(0xFFFFE000)


@dataclass(frozen=True)
class MatrixOps:
    """The instructions of one fragment for operands of f16, bf16, tf32 or f64.

    With `parts` = 2, numbers of f32 are the sum of two of tf32, and C += A B takes three
    instructions: what is left out is below 2^-21 of a product.
    """

    fragment: Fragment
    operands: str
    parts: int = 1

    @property
    def accumulation(self) -> ir.Type:
        """The type of elements of C."""
        return ir.F64Type.get() if self.operands == "f64" else ir.F32Type.get()

    @property
    def register(self) -> ir.Type:
        """The type of a register of A and B as tables hold it."""
        return ir.F64Type.get() if self.operands == "f64" else i32()

    def packed(self, elements: np.ndarray) -> np.ndarray:
        """Elements of A, float64 (32, elements), as registers: (32, registers) int32 or float64.

        The registers of the second part follow those of the first.
        """
        if self.operands == "f64":
            return elements
        largest = _LARGEST.get(self.operands, np.inf)
        rounded = np.clip(elements, -largest, largest)
        if self.operands == "tf32":
            high = _tf32_bits(rounded)
            parts = [high]
            if self.parts == 2:
                # The rest counts from what f32 holds, as that of B does.
                rest = elements.astype(np.float32) - high.view(np.float32)
                parts.append(_tf32_bits(rest))
            return np.hstack(parts).view(np.int32)
        halves = to_storage(rounded, ELEMENT_TYPES[self.operands]).view(np.uint16)
        return np.ascontiguousarray(halves).view(np.uint32).view(np.int32)

    def split(self, loaded: Sequence[ir.Value]) -> list[list[ir.Value]]:
        """Loaded elements of B as the registers of its parts."""
        if self.operands == "f64":
            return [list(loaded)]
        if self.operands == "tf32":
            high = [nvvm.convert_float_to_tf32(x, rnd=_rounding(), results=[i32()]) for x in loaded]
            if self.parts == 1:
                return [high]
            rest = [
                arith.subf(x, arith.bitcast(ir.F32Type.get(), h))
                for x, h in zip(loaded, high, strict=True)
            ]
            low = [nvvm.convert_float_to_tf32(x, rnd=_rounding(), results=[i32()]) for x in rest]
            return [high, low]
        kind = ir.VectorType.get([2], loaded[0].type)
        pairs = zip(loaded[::2], loaded[1::2], strict=True)
        return [[vector.from_elements(kind, list(pair)) for pair in pairs]]

    def a_parts(self, registers: Sequence[ir.Value]) -> list[list[ir.Value]]:
        """The registers of A, read from a table, as operands of each part."""
        if self.operands in ("f16", "bf16"):
            element = ir.F16Type.get() if self.operands == "f16" else ir.BF16Type.get()
            kind = ir.VectorType.get([2], element)
            registers = [llvm.bitcast(kind, register) for register in registers]
        count = len(registers) // self.parts
        return [list(registers[i * count : (i + 1) * count]) for i in range(self.parts)]

    def multiply(
        self,
        a: list[list[ir.Value]],
        b: list[list[ir.Value]],
        c: Sequence[ir.Value],
        metadata: ir.Value | None,
    ) -> list[ir.Value]:
        """C + A B, the small products first."""
        for i, j in [(1, 0), (0, 1), (0, 0)] if self.parts == 2 else [(0, 0)]:
            c = self._multiply(a[i], b[j], c, metadata)
        return list(c)

    def _multiply(
        self, a: list[ir.Value], b: list[ir.Value], c: Sequence[ir.Value], metadata: ir.Value | None
    ) -> list[ir.Value]:
        fragment = self.fragment
        results = llvm.StructType.get_literal([self.accumulation] * len(c))
        shape = ir.Attribute.parse(f"#nvvm.shape<m = {fragment.m}, n = 8, k = {fragment.k}>")
        # The parser infers these; the verifier of an op that was built aborts without them.
        kind = ir.Attribute.parse(f"#nvvm.mma_type<{self.operands}>")
        types = {"multiplicand_a_ptx_type": kind, "multiplicand_b_ptx_type": kind}
        if self.operands == "bf16":
            # The instruction takes pairs of bf16 as words.
            a, b = ([llvm.bitcast(i32(), x) for x in registers] for registers in (a, b))
        if fragment.sparse:
            zero = llvm.mlir_constant(ir.IntegerAttr.get(i32(), 0))
            d = nvvm.mma_sp_sync(
                results, shape, a, b, c, metadata, zero, ordered_metadata=True, **types
            )
        else:
            row = ir.Attribute.parse("#nvvm.mma_layout<row>")
            column = ir.Attribute.parse("#nvvm.mma_layout<col>")
            d = nvvm.mma_sync(results, shape, row, column, a, b, c, **types)
        return [
            llvm.extractvalue(self.accumulation, d, ir.DenseI64ArrayAttr.get([i]))
            for i in range(len(c))
        ]


def _rounding() -> ir.Attribute:
    return ir.Attribute.parse("#nvvm.fp_rnd_mode<rna>")
