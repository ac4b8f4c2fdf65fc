# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""`stencil.weighted_sum`, and what all ops on offsets and weights have in common."""

import math
from collections.abc import Iterable, Sequence
from fractions import Fraction

import numpy as np

from twofour.dialects.stencil.ops import check_covers, check_outside, check_same_grid
from twofour.dialects.stencil.types import Stencil, TempType
from twofour.mlir import ext, ir
from twofour.mlir_support import (
    VerificationFailure,
    expect,
    index_rows,
    int_rows,
    int_tuple,
    verifier,
)


def accumulation_type(element: ir.Type) -> type[np.floating]:
    """The type in which sums over elements of a type are formed: float32 for 16-bit types.

    Raises VerificationFailure for element types without one.
    """
    name = str(element)
    expect(name in ("f16", "bf16", "f32", "f64"), f"expected a float element type, got {name}")
    return np.float64 if name == "f64" else np.float32


def round_weight(weight: Fraction | float, kind: type[np.floating]) -> float:
    """The number of the accumulation type nearest to a weight; infinite beyond its range."""
    if abs(weight) > float(np.finfo(kind).max):
        return math.inf if weight > 0 else -math.inf
    rounded = kind(float(weight))
    if Fraction(float(weight)) == weight:
        return float(rounded)
    # Rounding to float64 first may have moved the weight to the middle between two numbers.
    near = [np.nextafter(rounded, kind(-np.inf)), rounded, np.nextafter(rounded, kind(np.inf))]
    return float(min(filter(np.isfinite, near), key=lambda n: abs(Fraction(float(n)) - weight)))


def check_weights(weights: Iterable[float], element: ir.Type) -> None:
    """Weights are finite numbers of the accumulation type, so that no later step rounds them."""
    kind = accumulation_type(element)
    for weight in weights:
        expect(math.isfinite(weight), f"expected finite weights, got {weight}")
        with np.errstate(over="ignore"):
            rounded = float(kind(weight))
        expect(
            rounded == weight,
            f"expected weights representable in {kind.__name__}, got {weight!r}",
        )


def check_linear_op(op) -> tuple[np.ndarray, np.ndarray]:
    """Check the types, `offsets`, `weights` and `constant` that every linear op has.

    Returns the offsets, int64 of shape (terms, rank), and the weights, float64 of shape (terms,).
    """
    check_outside(op)
    for value in (*op.operands, *op.results):
        if not isinstance(value.type, TempType):
            raise VerificationFailure(f"expected a !stencil.temp, got {value.type}")
    source, result = op.operands[0].type, op.results[0].type
    check_same_grid(result, source)
    offsets = int_rows(op.offsets, result.rank, "offsets")
    expect(
        isinstance(op.weights, ir.DenseF64ArrayAttr),
        lambda: f"expected weights as 'array<f64: ...>', got {op.weights}",
    )
    weights = np.array(list(op.weights), dtype=np.float64)
    expect(np.any(weights != 0), "expected at least one weight that is not zero, got none")
    expect(len(offsets) == len(weights), f"expected {len(weights)} offsets, got {len(offsets)}")
    rows = [tuple(row) for row in offsets.tolist()]
    expect(len(set(rows)) == len(rows), lambda: f"expected distinct offsets, got {op.offsets}")
    check_weights(weights.tolist(), result.element_type)
    if "constant" in op.attributes:
        constant = op.attributes["constant"]
        expect(
            isinstance(constant, ir.FloatAttr), lambda: f"expected a float constant, got {constant}"
        )
        check_weights([constant.value], result.element_type)
    if result.box is not None:
        check_covers(source.box, result.box.reach(rows), "the source's bounds")
    if len(op.operands) > 1:
        check_same_grid(result, op.operands[1].type)
        check_covers(op.operands[1].type.box, result.box, "the addend's bounds")
    return offsets, weights


class WeightedSumOp(Stencil.Operation, name="weighted_sum", traits=[ext.Pure]):
    """result[x] = sum_i weights[i] * source[x + offsets[i]] + addend[x] + constant.

    `addend` and `constant` may be absent. Offsets are distinct, slowest axis first. The sum is
    formed in f64 for f64 elements and in f32 for f32, f16 and bf16, from the first term to the
    last by fused multiply-adds, starting from addend + constant.
    """

    source: ext.Operand[TempType]
    result: ext.Result[TempType]
    offsets: ir.ArrayAttr
    weights: ir.DenseF64ArrayAttr
    addend: ext.Operand[TempType] | None = None

    @classmethod
    def build(
        cls,
        result: ir.Type,
        source: ir.Value,
        offsets: Iterable[Sequence[int]],
        weights: Iterable[float],
        *,
        addend: ir.Value | None = None,
        constant: float = 0.0,
        **kwargs,
    ) -> "WeightedSumOp":
        """`offsets` of shape (terms, rank), `weights` of shape (terms,)."""
        return ir.Operation.create(
            cls.OPERATION_NAME,
            results=[result],
            operands=[source] + ([addend] if addend is not None else []),
            attributes=linear_attributes(offsets, weights, constant),
            **kwargs,
        ).opview

    @verifier
    def verify_region_invariants(op):
        check_linear_op(op)


def linear_attributes(
    offsets: Iterable[Sequence[int]], weights: Iterable[float], constant: float = 0.0
) -> dict[str, ir.Attribute]:
    """The attributes of every linear op: `offsets`, `weights`, and `constant` unless it is 0."""
    attributes = {
        "offsets": index_rows(offsets),
        "weights": ir.DenseF64ArrayAttr.get([float(w) for w in weights]),
    }
    if constant:
        attributes["constant"] = ir.FloatAttr.get_f64(constant)
    return attributes


def linear_terms(op) -> tuple[list[tuple[int, ...]], list[float], float]:
    """Offsets, weights and constant of a verified linear op, as plain Python values."""
    offsets = [int_tuple(row, "offsets") for row in op.attributes["offsets"]]
    constant = op.attributes["constant"].value if "constant" in op.attributes else 0.0
    return offsets, list(op.attributes["weights"]), constant


def addend_of(op) -> ir.Value | None:
    """The addend of a linear op, or None."""
    return op.operands[1] if len(op.operands) > 1 else None
