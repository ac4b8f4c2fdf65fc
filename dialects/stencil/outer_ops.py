# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Operations of the stencil dialect that stencil matrixization refines step by step.

See Stencil Matrixization, sections 3 and 4. Each is a `stencil.weighted_sum` in another form: it
carries the offsets and weights that it must compute, and its verifier recovers them exactly from
that form. The order in which products are added is that of the form; elements that only weights of
zero reach take part, so an input that is not finite may spread over a whole tile.
"""

from twofour.dialects.stencil.linear_ops import check_linear_op, linear_attributes, linear_terms
from twofour.dialects.stencil.outer_attributes import (
    blocks_attribute,
    blocks_of,
    lines_attribute,
    lines_of,
    sweeps_attribute,
    sweeps_of,
)
from twofour.dialects.stencil.types import Stencil, TempType
from twofour.layout.coefficient_lines import OPTIONS, Line, Offset
from twofour.layout.outer_check import (
    check_blocks,
    check_lines,
    check_schedule,
    difference,
    stencil_of,
)
from twofour.layout.outer_schedule import Block, Schedule, smallest_length
from twofour.mlir import ext, ir
from twofour.mlir_support import expect, index_rows, int_rows, int_tuple, verifier


def _create(name: str, like, form: dict[str, ir.Attribute], **kwargs) -> ir.OpView:
    """The linear op `like` (operands, result type, stencil) in another form."""
    return ir.Operation.create(
        name,
        results=[like.results[0].type],
        operands=list(like.operands),
        attributes=form | linear_attributes(*linear_terms(like)),
        **kwargs,
    ).opview


def _stencil(op) -> dict[Offset, float]:
    """The weights by gather offset, after checking what all linear ops share."""
    offsets, weights = check_linear_op(op)
    rows = [tuple(row) for row in offsets.tolist()]
    return dict(zip(rows, weights.tolist(), strict=True))


def _no_failure(failure: str | None) -> None:
    expect(failure is None, failure or "")


class ScatterSumOp(Stencil.Operation, name="scatter_sum", traits=[ext.Pure]):
    """A weighted sum in scatter form: source[x] adds scatter_weights[i] * source[x] to the result
    at x + scatter_offsets[i] (Stencil Matrixization, equations 3 to 5).

    Weights of 0 are left out, and the offsets ascend.
    """

    source: ext.Operand[TempType]
    result: ext.Result[TempType]
    scatter_offsets: ir.ArrayAttr
    scatter_weights: ir.DenseF64ArrayAttr
    offsets: ir.ArrayAttr
    weights: ir.DenseF64ArrayAttr
    addend: ext.Operand[TempType] | None = None

    @classmethod
    def build(cls, like, terms: dict[Offset, float], **kwargs) -> "ScatterSumOp":
        """The linear op `like` by its weights by scatter offset."""
        form = {
            "scatter_offsets": index_rows(terms),
            "scatter_weights": ir.DenseF64ArrayAttr.get(list(terms.values())),
        }
        return _create(cls.OPERATION_NAME, like, form, **kwargs)

    def terms(self) -> dict[Offset, float]:
        """The weights of a verified op by scatter offset."""
        offsets = [int_tuple(row, "scatter_offsets") for row in self.scatter_offsets]
        return dict(zip(offsets, self.scatter_weights, strict=True))

    @verifier
    def verify_region_invariants(op):
        expected = _stencil(op)
        rank = op.results[0].type.rank
        rows = [tuple(row) for row in int_rows(op.scatter_offsets, rank, "offsets").tolist()]
        expect(
            isinstance(op.scatter_weights, ir.DenseF64ArrayAttr),
            lambda: f"expected scatter_weights as 'array<f64: ...>', got {op.scatter_weights}",
        )
        weights = list(op.scatter_weights)
        expect(
            len(rows) == len(weights), f"expected {len(weights)} scatter_offsets, got {len(rows)}"
        )
        expect(
            rows == sorted(set(rows)),
            lambda: f"expected ascending scatter_offsets, got {op.scatter_offsets}",
        )
        for weight in weights:
            expect(
                weight != 0 and abs(weight) < float("inf"),
                f"expected finite scatter_weights that are not zero, got {weight}",
            )
        lines = [Line((1,) * rank, row, (w,)) for row, w in zip(rows, weights, strict=True)]
        _no_failure(difference(stencil_of(lines), expected))


class LineSumOp(Stencil.Operation, name="line_sum", traits=[ext.Pure]):
    """A weighted sum as coefficient lines (Stencil Matrixization, section 3.3).

    Line k holds weights[k] at scatter offset start + k * direction; all lines together hold the
    stencil. `option` is the cover that they are.
    """

    source: ext.Operand[TempType]
    result: ext.Result[TempType]
    lines: ir.ArrayAttr
    option: ir.StringAttr
    offsets: ir.ArrayAttr
    weights: ir.DenseF64ArrayAttr
    addend: ext.Operand[TempType] | None = None

    @classmethod
    def build(cls, like, lines: tuple[Line, ...], option: str, **kwargs) -> "LineSumOp":
        """The linear op `like` by these lines."""
        form = {"lines": lines_attribute(lines), "option": ir.StringAttr.get(option)}
        return _create(cls.OPERATION_NAME, like, form, **kwargs)

    def cover(self) -> tuple[Line, ...]:
        """The lines of a verified op."""
        return lines_of(self.lines, self.results[0].type.rank)

    @verifier
    def verify_region_invariants(op):
        _check_form(op)


def _check_form(op) -> tuple[tuple[Line, ...], dict[Offset, float]]:
    """Check that the lines of an op add up to its stencil, and return both."""
    expected = _stencil(op)
    rank = op.results[0].type.rank
    expect(rank in (2, 3), f"expected rank 2 or 3 for coefficient lines, got {rank}")
    expect(
        op.option.value in OPTIONS,
        lambda: f"expected option as {', '.join(OPTIONS)}, got {op.option}",
    )
    lines = lines_of(op.lines, rank)
    _no_failure(check_lines(lines, expected))
    return lines, expected


class BlockSumOp(Stencil.Operation, name="block_sum", traits=[ext.Pure]):
    """A weighted sum as lines, and the blocks of output tiles that they add to.

    A tile is n x n outputs over (row axis, vector axis), in one matrix register; n is the vector
    length. Each block is one sweep over the output: `unroll` tiles along the plane axis and along
    the vector axis at a time, whose rows start `skew` columns after each other.
    """

    source: ext.Operand[TempType]
    result: ext.Result[TempType]
    blocks: ir.ArrayAttr
    lines: ir.ArrayAttr
    option: ir.StringAttr
    offsets: ir.ArrayAttr
    weights: ir.DenseF64ArrayAttr
    addend: ext.Operand[TempType] | None = None

    @classmethod
    def build(cls, like: LineSumOp, blocks: tuple[Block, ...], **kwargs) -> "BlockSumOp":
        """The lines of `like` in these blocks."""
        form = {"blocks": blocks_attribute(blocks), "lines": like.lines, "option": like.option}
        return _create(cls.OPERATION_NAME, like, form, **kwargs)

    def cover(self) -> tuple[Line, ...]:
        """The lines of a verified op."""
        return lines_of(self.lines, self.results[0].type.rank)

    def tiling(self) -> tuple[Block, ...]:
        """The blocks of a verified op."""
        return blocks_of(self.blocks)

    @verifier
    def verify_region_invariants(op):
        lines, _ = _check_form(op)
        _no_failure(check_blocks(blocks_of(op.blocks), lines))


class OuterSumOp(Stencil.Operation, name="outer_sum", traits=[ext.Pure]):
    """A weighted sum as outer products in their order (Stencil Matrixization, section 4.3).

    `sweeps` holds, for each block, the segments of input rows and the transpositions, and in them
    every product. Bounds are affine in the vector length n. `by` says how vectors of several shifts
    are made: `load` or `splice`. Vectors shorter than `smallest_length` cannot run it.
    """

    source: ext.Operand[TempType]
    result: ext.Result[TempType]
    sweeps: ir.ArrayAttr
    lines: ir.ArrayAttr
    option: ir.StringAttr
    by: ir.StringAttr
    smallest_length: ir.IntegerAttr
    offsets: ir.ArrayAttr
    weights: ir.DenseF64ArrayAttr
    addend: ext.Operand[TempType] | None = None

    @classmethod
    def build(cls, like, plan: Schedule, **kwargs) -> "OuterSumOp":
        """The block or outer sum `like` by this schedule."""
        i64 = ir.IntegerType.get_signless(64)
        form = {
            "sweeps": sweeps_attribute(plan.sweeps),
            "lines": lines_attribute(plan.lines),
            "option": like.option,
            "by": ir.StringAttr.get(plan.by),
            "smallest_length": ir.IntegerAttr.get(i64, smallest_length(plan)),
        }
        return _create(cls.OPERATION_NAME, like, form, **kwargs)

    def plan(self) -> Schedule:
        """The schedule of a verified op."""
        lines = lines_of(self.lines, self.results[0].type.rank)
        return Schedule(lines, sweeps_of(self.sweeps), self.by.value)

    @verifier
    def verify_region_invariants(op):
        lines, expected = _check_form(op)
        expect(
            op.by.value in ("load", "splice"), f"expected by as load or splice, got {op.by.value}"
        )
        plan = Schedule(lines, sweeps_of(op.sweeps), op.by.value)
        least, got = smallest_length(plan), op.smallest_length.value
        expect(least == got, f"expected a smallest_length of {least}, got {got}")
        _no_failure(check_schedule(plan, expected))
