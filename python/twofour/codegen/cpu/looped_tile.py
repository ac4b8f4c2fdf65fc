# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The block of outputs that stays in registers while long sums are added to it in loops.

In each turn every row takes a weight from the table, and every vector of a row one from the
inputs, which mostly lies in two lines of the cache.
"""

from collections.abc import Callable

from twofour.codegen.cpu.register_tile import ROWS, SPARE, RegisterTile
from twofour.codegen.cpu.vector_unit import VectorUnit

# Vectors of a row: of the only axis, whose rows are alone, and of others.
ALONE, SEVERAL = (8, 4, 2, 1), (3, 2, 1)
# So many operations may have code.
MAX_CODE = 4096
# Loads that are not aligned count so much.
UNALIGNED = 2


def choose_looped_tile(code_of: Callable[[int], int], rank: int, unit: VectorUnit) -> RegisterTile:
    """The tile that loads least for a multiply-add; n rows take code of `code_of(n)` operations."""
    rows, vectors = (ROWS, SEVERAL) if rank > 1 else ((1,), ALONE)
    tiles = (RegisterTile(count, width) for count in rows for width in vectors)

    def loads(tile: RegisterTile) -> float:
        return (tile.rows + UNALIGNED * tile.vectors) / (tile.rows * tile.vectors)

    def fits(tile: RegisterTile) -> bool:
        held = (tile.rows + 1) * tile.vectors + SPARE
        return held <= unit.registers and code_of(tile.rows) * tile.vectors <= MAX_CODE

    # Code of many rows is long to make: the best tile first.
    return next(filter(fits, sorted(tiles, key=loads)), RegisterTile(1, 1))
