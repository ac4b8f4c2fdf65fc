# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""`nm-crush`: duplicates crush (SparStencil, section 3.1, figure 4).

A patch operator of one output and P inputs becomes one of a whole tile of outputs. Inputs that
several outputs of the tile share appear once, so A becomes a staircase: for a 1-D stencil of three
points and `tile=4`

    [a b c]   ->   [a b c . . .]
                   [. a b c . .]
                   [. . a b c .]
                   [. . . a b c]

Columns that no output uses are dropped.
"""

import math
from dataclasses import dataclass
from typing import ClassVar

from twofour.dialects.nm.ops import PatchMatmulOp
from twofour.dialects.stencil.linear_ops import linear_terms
from twofour.errors import TwofourError
from twofour.layout.crush import crush
from twofour.layout.search import best_tile
from twofour.mlir import ir
from twofour.mlir_support import error_at, nested_ops, replace_op
from twofour.passes import ModulePass

# Rows of A: 16 or 32 fill the fragments of `mma.sp`.
MAX_OUTPUTS = 4096


@dataclass(frozen=True)
class CrushPass(ModulePass):
    """Merge a tile of outputs into one patch operator without duplicate inputs.

    `tile` holds the outputs along each axis, slowest first. Without it, the tile of 16 or 32
    outputs that needs the fewest `mma.sp` instructions is searched for each operator.
    """

    name: ClassVar[str] = "nm-crush"
    tile: tuple[int, ...] | None = None

    def __post_init__(self):
        if self.tile is not None and min(self.tile) < 1:
            raise TwofourError(f"expected a tile of positive extents, got {list(self.tile)}")

    def run(self, module: ir.Operation) -> None:
        for op in nested_ops(module, PatchMatmulOp.OPERATION_NAME):
            offsets, weights, _ = linear_terms(op)
            rank = len(offsets[0])
            tile = self.tile
            if tile is None:
                tile = best_tile(offsets, weights)[0]
            if len(tile) != rank:
                raise error_at(op, f"expected a tile of {rank} positive extents, got {list(tile)}")
            if math.prod(tile) > MAX_OUTPUTS:
                raise error_at(
                    op, f"expected a tile of at most {MAX_OUTPUTS} outputs, got {list(tile)}"
                )
            with ir.InsertionPoint(op):
                crushed = PatchMatmulOp.build(op, crush(offsets, weights, tile), loc=op.location)
            replace_op(op, crushed)
