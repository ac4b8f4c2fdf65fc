# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""`stencil-convert-element-type`: run a program with another element type.

Every value of the program's one float type `T` becomes one of type `to`: fields, temps, constants
and scalars, so `f64` code can be run in `f32` or with 16-bit storage. Constants are rounded to the
new type. A program that mixes float types is refused: which of them is meant cannot be known. So
are scatter sums and what becomes of them.
"""

import math
from collections.abc import Iterable
from dataclasses import dataclass
from typing import ClassVar, Literal

from twofour.dialects.stencil.linear_ops import accumulation_type, round_weight
from twofour.dialects.stencil.outer_ops import BlockSumOp, LineSumOp, OuterSumOp, ScatterSumOp
from twofour.dialects.stencil.traversal import LINEAR_OPS
from twofour.dialects.stencil.types import GridType, ResultType
from twofour.mlir import ir
from twofour.mlir_support import error_at, nested_ops
from twofour.passes import ModulePass

_OUTER_OPS = tuple(op.OPERATION_NAME for op in (ScatterSumOp, LineSumOp, BlockSumOp, OuterSumOp))
_KINDS = {"f16": ir.F16Type, "bf16": ir.BF16Type, "f32": ir.F32Type, "f64": ir.F64Type}


class _Converter:
    def __init__(self, old: ir.Type, new: ir.Type):
        self.old, self.new = old, new

    def type(self, kind: ir.Type) -> ir.Type:
        """The converted type; types that do not mention the old float type stay."""
        if kind == self.old:
            return self.new
        if isinstance(kind, GridType) and kind.element_type == self.old:
            return type(kind).of(kind.box or kind.rank, self.new)
        if isinstance(kind, ResultType) and kind.element_type == self.old:
            return ResultType.get(self.new)
        if isinstance(kind, ir.MemRefType) and kind.element_type == self.old:
            return ir.MemRefType.get(kind.shape, self.new, kind.layout, kind.memory_space)
        if isinstance(kind, ir.VectorType) and kind.element_type == self.old:
            scalable = kind.scalable_dims if kind.scalable else None
            return ir.VectorType.get(kind.shape, self.new, scalable=scalable)
        if isinstance(kind, ir.RankedTensorType) and kind.element_type == self.old:
            return ir.RankedTensorType.get(kind.shape, self.new, kind.encoding)
        if isinstance(kind, ir.FunctionType):
            return ir.FunctionType.get(
                [self.type(t) for t in kind.inputs], [self.type(t) for t in kind.results]
            )
        return kind

    def op(self, op) -> None:
        for result in op.results:
            result.set_type(self.type(result.type))
        for region in op.regions:
            for block in region.blocks:
                for argument in block.arguments:
                    argument.set_type(self.type(argument.type))
        name = op.operation.name
        if name == "func.func":
            op.attributes["function_type"] = ir.TypeAttr.get(self.type(op.type))
        elif name == "arith.constant" and isinstance(op.attributes["value"], ir.FloatAttr):
            value = op.attributes["value"]
            if value.type == self.old:
                op.attributes["value"] = self._constant(value.value, op)
        elif name == "arith.constant":
            op.attributes["value"] = self._constants(op.attributes["value"], op)
        elif name == "memref.global":
            op.attributes["type"] = ir.TypeAttr.get(self.type(op.attributes["type"].value))
            if "initial_value" in op.attributes:
                op.attributes["initial_value"] = self._constants(op.attributes["initial_value"], op)
        elif name in _OUTER_OPS:
            # A weight that vanishes would have no place in these forms.
            raise error_at(op, "expected element types to be converted before stencil-to-scatter")
        elif name in LINEAR_OPS:
            weights = self._rounded(op.attributes["weights"])
            if not any(weights):
                raise error_at(op, f"expected a weight in the range of {self.new}, got none")
            op.attributes["weights"] = weights
            if "constant" in op.attributes:
                (constant,) = self._rounded([op.attributes["constant"].value])
                op.attributes["constant"] = ir.FloatAttr.get_f64(constant)
            for matrix in ("matrix", "values"):
                if matrix in op.attributes:
                    rows = map(self._rounded, op.attributes[matrix])
                    op.attributes[matrix] = ir.ArrayAttr.get(list(rows))

    def _constant(self, value: float, op) -> ir.FloatAttr:
        rounded = ir.FloatAttr.get(self.new, value)
        if math.isfinite(value) and not math.isfinite(rounded.value):
            raise error_at(op, f"expected a constant in the range of {self.new}, got {value}")
        return rounded

    def _constants(self, values: ir.Attribute, op) -> ir.Attribute:
        """The rounded numbers, where these are numbers of the old type."""
        if not isinstance(values, ir.DenseFPElementsAttr):
            return values
        kind = self.type(values.type)
        if kind == values.type:
            return values
        rounded = [self._constant(value, op) for value in values]
        return ir.DenseElementsAttr.get(rounded, kind)

    def _rounded(self, weights: Iterable[float]) -> ir.DenseF64ArrayAttr:
        """Weights as numbers of the accumulation type."""
        kind = accumulation_type(self.new)
        return ir.DenseF64ArrayAttr.get([round_weight(w, kind) for w in weights])


def float_types(module) -> dict[ir.Type, object]:
    """The float types of a module's values and grids, each with the first op that has it."""
    found: dict[ir.Type, object] = {}
    for op in nested_ops(module):
        values = list(op.results)
        for region in op.regions:
            for block in region.blocks:
                values += list(block.arguments)
        for value in values:
            kind = value.type
            element = kind.element_type if isinstance(kind, GridType) else kind
            if isinstance(element, ir.FloatType):
                found.setdefault(element, op)
    return found


def _float_type(module) -> ir.Type | None:
    """The one float type of a module; raises TwofourError for several."""
    found = float_types(module)
    if len(found) > 1:
        names = " and ".join(sorted(map(str, found)))
        raise error_at(list(found.values())[-1], f"expected one float type, got {names}")
    return next(iter(found), None)


@dataclass(frozen=True)
class ConvertElementTypePass(ModulePass):
    """Run a program of one float type with another: fields, temps and constants change type."""

    name: ClassVar[str] = "stencil-convert-element-type"
    to: Literal["f16", "bf16", "f32", "f64"] = "f32"

    def run(self, module: ir.Operation) -> None:
        old, new = _float_type(module), _KINDS[self.to].get()
        if old is None or old == new:
            return
        converter = _Converter(old, new)
        with module.location:
            for op in nested_ops(module):
                converter.op(op)
