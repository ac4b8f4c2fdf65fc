# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Storage and accumulation types in generated CPU code: constants, widening, narrowing."""

from dataclasses import dataclass, field

import numpy as np

from twofour.codegen.cpu.bf16 import narrow_bf16
from twofour.mlir import arith, ir, memref

VECTOR_BYTES = 64


def global_table(name: str, data: np.ndarray, element: ir.Type) -> ir.MemRefType:
    """Insert a private constant array at the insertion point; returns its type.

    `data` is in the NumPy dtype of the element: int64 for index.
    """
    tensor = ir.RankedTensorType.get(data.shape, element)
    kind = ir.MemRefType.get(data.shape, element)
    value = ir.DenseElementsAttr.get(np.ascontiguousarray(data), type=tensor)
    memref.GlobalOp(name, kind, sym_visibility="private", initial_value=value, constant=True)
    return kind


@dataclass
class ElementCode:
    """Code for elements of one storage type, summed up in f64 (for f64) or f32 (for the rest).

    `lanes` is the number of elements that a vector holds: `vector_bytes` of the accumulation type.
    """

    storage: ir.Type
    vector_bytes: int = VECTOR_BYTES
    accumulation: ir.Type = field(init=False)
    lanes: int = field(init=False)

    def __post_init__(self):
        is_double = isinstance(self.storage, ir.F64Type)
        self.accumulation = self.storage if is_double else ir.F32Type.get()
        self.lanes = self.vector_bytes // (8 if is_double else 4)

    @property
    def accumulation_dtype(self) -> type:
        """NumPy's word for the accumulation type."""
        return np.float64 if isinstance(self.accumulation, ir.F64Type) else np.float32

    @property
    def is_maskable(self) -> bool:
        """Whether processors load and store such elements under a mask: not all do of 16 bits."""
        return self.storage == self.accumulation

    def shaped(self, element: ir.Type, lanes: int) -> ir.Type:
        """`element` itself for one lane, otherwise a vector of it."""
        return element if lanes == 1 else ir.VectorType.get([lanes], element)

    def constant(self, value: float, lanes: int) -> ir.Value:
        """A number of the accumulation type in every lane."""
        scalar = ir.FloatAttr.get(self.accumulation, value)
        kind = self.shaped(self.accumulation, lanes)
        attribute = scalar if lanes == 1 else ir.DenseElementsAttr.get_splat(kind, scalar)
        return arith.ConstantOp(kind, attribute).result

    def zero(self, lanes: int) -> ir.Value:
        """A vector of zeros of the storage type."""
        kind = self.shaped(self.storage, lanes)
        scalar = ir.FloatAttr.get(self.storage, 0.0)
        return arith.ConstantOp(kind, ir.DenseElementsAttr.get_splat(kind, scalar)).result

    def widen(self, value: ir.Value, lanes: int) -> ir.Value:
        """A stored value in the accumulation type, exactly."""
        if self.storage == self.accumulation:
            return value
        return arith.extf(self.shaped(self.accumulation, lanes), value)

    def narrow(self, value: ir.Value, lanes: int) -> ir.Value:
        """A sum in the storage type, rounded to nearest even."""
        if self.storage == self.accumulation:
            return value
        if isinstance(self.storage, ir.BF16Type):
            return narrow_bf16(value)
        return arith.truncf(self.shaped(self.storage, lanes), value)
