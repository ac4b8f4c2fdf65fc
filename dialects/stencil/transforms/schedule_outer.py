# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""`stencil-schedule-outer`: all outer products in order (Stencil Matrixization, Algorithm 1).

    %r = "stencil.block_sum"(%t) {lines = [...], blocks = [...], ...} : ...

becomes

    %r = "stencil.outer_sum"(%t) {by = "load", smallest_length = 1, lines = [...], sweeps = [
      {row_axis = 0, skew = 0, unroll = [1, 2], lines = [0, 1, 2], transpositions = [], rows = [
        {start = [-1, 0], stop = [1, 1], products = [[2, 0, 0, 0, -1], [2, 0, 1, 0, -1], ...]}]}],
      ...} : ...

For input rows -1 <= p < n + 1, line 2 and the input vector shifted by -1 add to tile (0, 0), and so
on: an input vector is loaded once and scattered to all tiles it reaches, and the coefficients of a
row serve all tiles. Where lines begin and end at different rows, each segment has those active in
it.
"""

from dataclasses import dataclass
from typing import ClassVar

from twofour.dialects.stencil.outer_ops import BlockSumOp, OuterSumOp
from twofour.errors import TwofourError
from twofour.layout.outer_schedule import SHORTEST, schedule
from twofour.mlir import ir
from twofour.mlir_support import nested_ops, replace_op
from twofour.passes import ModulePass


@dataclass(frozen=True)
class ScheduleOuterPass(ModulePass):
    """List the outer products of every block sum, grouped by the input vectors that they share.

    Vectors of `shortest` elements and more can run it, but for covers with lines along the vector
    axis, which may need longer ones: lines along the row axis that lie far apart are lengthened by
    zeros.
    """

    name: ClassVar[str] = "stencil-schedule-outer"
    shortest: int = SHORTEST

    def __post_init__(self):
        if self.shortest < 1:
            raise TwofourError(f"expected vectors of at least 1 element, got {self.shortest}")

    def run(self, module: ir.Operation) -> None:
        for op in nested_ops(module, BlockSumOp.OPERATION_NAME):
            with ir.InsertionPoint(op):
                plan = schedule(op.cover(), op.tiling(), shortest=self.shortest)
                scheduled = OuterSumOp.build(op, plan, loc=op.location)
            replace_op(op, scheduled)
