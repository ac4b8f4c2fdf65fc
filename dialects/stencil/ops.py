# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Operations on fields and temps, and within applies.

Names, operand order and attribute names are those of xDSL's `stencil` dialect. One thing differs:
`stencil.apply` has no operands; its region captures temps and scalars from above, because operands
of a Python-defined variadic op would all need the same type.
"""

from collections.abc import Sequence
from typing import Any

from twofour.box import Box
from twofour.dialects.stencil.types import (
    BoundsAttr,
    FieldType,
    GridType,
    ResultType,
    Stencil,
    TempType,
)
from twofour.mlir import ext, ir
from twofour.mlir_support import VerificationFailure, enclosing, expect, int_tuple, verifier


def check_outside(op) -> None:
    """Regions of applies compute one point: no op on whole grids stands in one."""
    expect(
        enclosing(op.operation, ApplyOp.OPERATION_NAME) is None,
        "expected to be outside of 'stencil.apply'",
    )


def enclosing_apply(op) -> "ApplyOp":
    """The `stencil.apply` around an op, through any other region op.

    Raises VerificationFailure where there is none, or one without results.
    """
    parent = enclosing(op.operation, ApplyOp.OPERATION_NAME)
    expect(parent is not None, "expected to be inside 'stencil.apply'")
    # An apply is verified after the ops in its region.
    expect(len(parent.results) > 0, "expected an apply with results around it")
    return parent.opview


def check_same_grid(first: GridType, second: GridType) -> None:
    """Both grids have one rank and one element type."""
    expect(first.rank == second.rank, f"expected rank {first.rank}, got rank {second.rank}")
    expect(
        first.element_type == second.element_type,
        lambda: f"expected element type {first.element_type}, got {second.element_type}",
    )


def check_covers(outer: Box | None, inner: Box | None, what: str) -> None:
    """The outer bounds, called `what`, hold the inner ones, as far as both are known."""
    if outer is not None and inner is not None:
        expect(outer.contains(inner), lambda: f"expected {what} to cover {inner}, got {outer}")


class LoadOp(Stencil.Operation, name="load"):
    """The value that a field holds now, on the bounds of the temp; later stores leave it alone."""

    field: ext.Operand[FieldType]
    result: ext.Result[TempType]

    @verifier
    def verify_region_invariants(op):
        check_outside(op)
        field, temp = op.operands[0].type, op.results[0].type
        check_same_grid(field, temp)
        check_covers(field.box, temp.box, "the field's bounds")


class StoreOp(Stencil.Operation, name="store"):
    """Write a temp to a field on `bounds`; the rest of the field is left alone."""

    temp: ext.Operand[TempType]
    field: ext.Operand[FieldType]
    bounds: BoundsAttr

    @verifier
    def verify_region_invariants(op):
        check_outside(op)
        temp, field = op.operands[0].type, op.operands[1].type
        check_same_grid(field, temp)
        box = op.bounds.box
        expect(box.rank == field.rank, lambda: f"expected bounds of rank {field.rank}, got {box}")
        check_covers(field.box, box, "the field's bounds")
        check_covers(temp.box, box, "the temp's bounds")


class CastOp(Stencil.Operation, name="cast"):
    """Give bounds to a field whose bounds are unknown."""

    field: ext.Operand[FieldType]
    result: ext.Result[FieldType]

    @verifier
    def verify_region_invariants(op):
        check_outside(op)
        source, target = op.operands[0].type, op.results[0].type
        check_same_grid(source, target)
        if source.box is not None and target.box is not None:
            expect(
                source.box == target.box, lambda: f"expected bounds {source.box}, got {target.box}"
            )


def _check_memory(memory: ir.Type, field: FieldType) -> None:
    expect(isinstance(memory, ir.MemRefType), lambda: f"expected a memref, got {memory}")
    memref = ir.MemRefType(memory)
    expect(memref.rank == field.rank, lambda: f"expected rank {field.rank}, got {memory}")
    expect(
        memref.element_type == field.element_type,
        lambda: f"expected element type {field.element_type}, got {memory}",
    )
    if field.box is not None and memref.has_static_shape:
        expect(
            tuple(memref.shape) == field.box.extents,
            lambda: f"expected extents {field.box.extents}, got {memory}",
        )


class ExternalLoadOp(Stencil.Operation, name="external_load"):
    """View a memref as a field."""

    source: ext.Operand[Any]
    result: ext.Result[FieldType]

    @verifier
    def verify_region_invariants(op):
        check_outside(op)
        _check_memory(op.operands[0].type, op.results[0].type)


class ExternalStoreOp(Stencil.Operation, name="external_store"):
    """Copy a field to a memref (nothing when the field is a view of it)."""

    field: ext.Operand[FieldType]
    target: ext.Operand[Any]

    @verifier
    def verify_region_invariants(op):
        check_outside(op)
        _check_memory(op.operands[1].type, op.operands[0].type)


class BufferOp(Stencil.Operation, name="buffer", traits=[ext.Pure]):
    """The same temp, materialised in memory: no pass composes across it."""

    temp: ext.Operand[TempType]
    result: ext.Result[TempType]

    @verifier
    def verify_region_invariants(op):
        check_outside(op)
        check_same_grid(op.operands[0].type, op.results[0].type)
        check_covers(op.operands[0].type.box, op.results[0].type.box, "the temp's bounds")


class ApplyOp(Stencil.Operation, name="apply", traits=[ext.Pure]):
    """Compute every point of its results by one run of the region, ended by `stencil.return`.

    The results share bounds and element type; their bounds are the domain of the iteration.
    """

    res: Sequence[ext.Result[TempType]]
    body: ext.Region

    @classmethod
    def build(cls, types: Sequence[ir.Type], **kwargs) -> "ApplyOp":
        """An apply with an empty block; keyword arguments are those of `ir.Operation.create`."""
        op = ir.Operation.create(cls.OPERATION_NAME, results=list(types), regions=1, **kwargs)
        op.regions[0].blocks.append()
        return op.opview

    @property
    def block(self) -> ir.Block:
        return self.regions[0].blocks[0]

    @property
    def domain(self) -> Box | None:
        return self.results[0].type.box

    @property
    def rank(self) -> int:
        return self.results[0].type.rank

    @verifier
    def verify_region_invariants(op):
        check_outside(op)
        expect(len(op.results) > 0, "expected at least one result, got none")
        blocks = list(op.regions[0].blocks)
        expect(len(blocks) == 1, f"expected one block, got {len(blocks)}")
        expect(
            len(blocks[0].arguments) == 0,
            f"expected no block arguments (values are captured), got {len(blocks[0].arguments)}",
        )
        operations = list(blocks[0].operations)
        expect(
            len(operations) > 0 and operations[-1].operation.name == ReturnOp.OPERATION_NAME,
            "expected a region that ends with 'stencil.return'",
        )


class AccessOp(Stencil.Operation, name="access", traits=[ext.Pure]):
    """The element of a temp at `offset` from the current point.

    `offset_mapping` reads a temp of lower rank: entry d is the axis of the apply that axis d of the
    temp follows (strictly increasing).
    """

    temp: ext.Operand[TempType]
    result: ext.Result[Any]
    offset: ir.DenseI64ArrayAttr

    @property
    def offset_tuple(self) -> tuple[int, ...]:
        return tuple(self.offset)

    @property
    def axes(self) -> tuple[int, ...]:
        """The axis of the apply that each axis of the temp follows."""
        if "offset_mapping" in self.attributes:
            return int_tuple(self.attributes["offset_mapping"], "offset_mapping")
        return tuple(range(len(self.offset)))

    @verifier
    def verify_region_invariants(op):
        apply = enclosing_apply(op)
        temp, rank = op.operands[0].type, apply.rank
        offset = int_tuple(op.offset, "offset")
        bounds, own_rank, element = temp.box, temp.rank, temp.element_type
        expect(
            len(offset) == own_rank, f"expected an offset of rank {own_rank}, got {list(offset)}"
        )
        expect(
            op.results[0].type == element,
            lambda: f"expected result type {element}, got {op.results[0].type}",
        )
        if "offset_mapping" in op.attributes:
            axes = op.axes
            expect(
                len(axes) == own_rank
                and all(a < b for a, b in zip(axes, axes[1:]))  # noqa: B905 - neighbours
                and all(0 <= a < rank for a in axes),
                f"expected {own_rank} strictly increasing axes below {rank} in offset_mapping, "
                f"got {list(axes)}",
            )
        else:
            expect(
                own_rank == rank,
                f"expected a temp of rank {rank} or an offset_mapping, got rank {own_rank}",
            )
        if (domain := apply.domain) is not None:
            needed = domain.project(op.axes).reach([offset])
            check_covers(bounds, needed, "the temp's bounds")


class IndexOp(Stencil.Operation, name="index", traits=[ext.Pure]):
    """The coordinate of the current point on axis `dim`, plus entry `dim` of `offset`."""

    result: ext.Result[ir.IndexType]
    dim: ir.IntegerAttr
    offset: ir.DenseI64ArrayAttr

    @verifier
    def verify_region_invariants(op):
        apply = enclosing_apply(op)
        offset = int_tuple(op.offset, "offset")
        expect(
            len(offset) == apply.rank,
            f"expected an offset of rank {apply.rank}, got {list(offset)}",
        )
        expect(
            0 <= op.dim.value < apply.rank,
            f"expected a dim below {apply.rank}, got {op.dim.value}",
        )


class StoreResultOp(Stencil.Operation, name="store_result", traits=[ext.Pure]):
    """The value of the current point, as `!stencil.result`."""

    value: ext.Operand[Any]
    result: ext.Result[ResultType]

    @verifier
    def verify_region_invariants(op):
        expected = op.results[0].type.element_type
        expect(
            op.operands[0].type == expected,
            lambda: f"expected a value of type {expected}, got {op.operands[0].type}",
        )


class ReturnOp(Stencil.Operation, name="return", traits=[ir.IsTerminatorTrait]):
    """End of an apply's region: one value for each of its results."""

    vals: Sequence[ext.Operand[Any]]

    @classmethod
    def build(cls, values: Sequence[ir.Value], **kwargs) -> "ReturnOp":
        return ir.Operation.create(cls.OPERATION_NAME, operands=list(values), **kwargs).opview

    @verifier
    def verify_region_invariants(op):
        parent = op.operation.parent
        expect(
            parent is not None and parent.operation.name == ApplyOp.OPERATION_NAME,
            "expected to end the region of 'stencil.apply'",
        )
        results = parent.operation.results
        expect(
            len(op.operands) == len(results),
            f"expected {len(results)} values, got {len(op.operands)}",
        )
        for value, result in zip(op.operands, results, strict=True):
            got = value.type
            if isinstance(got, ResultType):
                got = got.element_type
            expected = result.type.element_type
            if got != expected:
                raise VerificationFailure(f"expected a value of type {expected}, got {got}")
