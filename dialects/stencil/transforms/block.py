# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""`stencil-block`: blocks of output tiles in matrix registers (Stencil Matrixization, section 4.2).

    %r = "stencil.line_sum"(%t) {lines = [...], ...} : ...

becomes, with `unroll=8` in two dimensions,

    %r = "stencil.block_sum"(%t) {lines = [...], blocks = [
      {row_axis = 0, skew = 0, unroll = [1, 8], lines = [0, 1, 2]}], ...} : ...

Lines that add to tiles of another shape (along axis 0 in three dimensions, or diagonals) get a
block of their own: the output is visited once more, and each visit adds to the one before.
"""

from dataclasses import dataclass
from typing import ClassVar

from twofour.dialects.stencil.outer_machine import (
    check_vector_bits,
    extents,
    matrix_registers,
    vector_length,
)
from twofour.dialects.stencil.outer_ops import BlockSumOp, LineSumOp
from twofour.errors import TwofourError
from twofour.layout.outer_cost import best_blocks
from twofour.layout.outer_schedule import Block, blocks, registers
from twofour.mlir import ir
from twofour.mlir_support import error_at, nested_ops, replace_op
from twofour.passes import ModulePass


def _check_registers(op: LineSumOp, block: Block, limit: int) -> None:
    ui, uk = block.unroll
    needed = registers(block, op.cover())
    if needed > limit:
        spare = f" and {needed - ui * uk} for transpositions" if needed > ui * uk else ""
        raise error_at(
            op, f"expected at most {limit} matrix registers, got {ui * uk} for tiles{spare}"
        )


@dataclass(frozen=True)
class BlockPass(ModulePass):
    """Choose the tiles of the output that are held in matrix registers together.

    `unroll`: tiles along the vector axis in rank 2; along the plane axis (the axis that a tile does
    not span) and along the vector axis in rank 3. Without it, the powers of two that need the
    fewest instructions for vectors of `vector-bits` bits, in blocks no larger than the output.
    `registers`: the matrix registers that there are, for tiles and for transpositions, which take
    as many as a block has tiles along the vector axis; 8 for f64 and 4 for f32 if not given, as in
    Arm SME.
    """

    name: ClassVar[str] = "stencil-block"
    unroll: tuple[int, ...] | None = None
    registers: int | None = None
    vector_bits: int = 512

    def __post_init__(self):
        check_vector_bits(self.vector_bits)
        if self.registers is not None and self.registers < 1:
            raise TwofourError(f"expected at least one matrix register, got {self.registers}")
        if self.unroll is not None and min(self.unroll) < 1:
            raise TwofourError(f"expected positive unroll factors, got {list(self.unroll)}")

    def run(self, module: ir.Operation) -> None:
        for op in nested_ops(module, LineSumOp.OPERATION_NAME):
            limit = matrix_registers(op) if self.registers is None else self.registers
            chosen = self._blocks(op, limit)
            for block in chosen:
                _check_registers(op, block, limit)
            with ir.InsertionPoint(op):
                blocked = BlockSumOp.build(op, chosen, loc=op.location)
            replace_op(op, blocked)

    def _blocks(self, op: LineSumOp, limit: int) -> tuple[Block, ...]:
        if self.unroll is None:
            n = vector_length(op, self.vector_bits)
            return best_blocks(op.cover(), limit, n, extents(op))
        rank = op.results[0].type.rank
        if len(self.unroll) != rank - 1:
            raise error_at(
                op, f"expected {rank - 1} unroll factors in rank {rank}, got {list(self.unroll)}"
            )
        try:
            return blocks(op.cover(), (1, *self.unroll)[-2:])
        except TwofourError as error:
            raise error_at(op, error.message) from None
