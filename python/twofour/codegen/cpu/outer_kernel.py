# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""CPU kernels from scheduled outer products: the vectors of a tile are its rows.

A processor without matrix registers holds a tile of n x n outputs in n vectors. An outer product is
then one multiply-add a row, and those whose coefficient is zero, which is known, are left out.
"""

from collections.abc import Iterator

from twofour.codegen.cpu.register_tile import RegisterTile
from twofour.codegen.cpu.row_sums import Rows, Step
from twofour.codegen.cpu.vector_unit import VectorUnit
from twofour.errors import TwofourError
from twofour.layout.coefficient_lines import Line
from twofour.layout.outer_schedule import Schedule, is_column_line, smallest_length


def check_schedule(plan: Schedule, rank: int) -> None:
    """Raise TwofourError for a schedule that needs more than rows of vectors."""
    parallel, plane = "stencil-select-cover{option=parallel}", "stencil-block{unroll=1,N}"
    if len(plan.sweeps) != 1:
        raise TwofourError(
            f"expected one sweep over the output, got {len(plan.sweeps)}; {parallel}"
        )
    (sweep,) = plan.sweeps
    if any(is_column_line(plan.lines[k]) for k in sweep.block.lines):
        raise TwofourError(f"expected lines along the row axis alone; {parallel}")
    if sweep.block.row_axis != rank - 2 or sweep.block.skew:
        raise TwofourError(f"expected tiles over the last two axes, not skewed; {parallel}")
    if sweep.block.unroll[0] != 1:
        raise TwofourError(f"expected one plane of tiles, got {sweep.block.unroll[0]}; {plane}")


def register_tile(plan: Schedule, n: int, unit: VectorUnit) -> RegisterTile:
    """The tile of a checked schedule for vectors of n elements.

    Raises TwofourError where vectors are too short for it, or it takes more registers than there
    are.
    """
    least = smallest_length(plan)
    if n < least:
        raise TwofourError(f"expected vectors of at least {least} elements, got {n}")
    tile = RegisterTile(n, plan.sweeps[0].block.unroll[1])
    needed = tile.rows * tile.vectors + tile.vectors + 1
    if needed > unit.registers:
        raise TwofourError(
            f"expected at most {unit.registers} vector registers, got {needed} for "
            f"{tile.vectors} tiles of {n} rows"
        )
    return tile


def scheduled_rows(plan: Schedule, rank: int, n: int, count: int) -> Rows:
    """What a checked schedule for vectors of n elements adds to the first `count` rows of a tile.

    Every row gets its terms in the same order, whatever the count.
    """
    outputs = [(0,) * (rank - 2) + (row, 0) for row in range(count)]
    steps = []
    for segment in plan.sweeps[0].rows:
        for p in range(segment.start.at(n), segment.stop.at(n)):
            # The other tiles get the same from vectors further on.
            for vector in (v for v in segment.vectors if v.column == 0):
                products = (_window(plan.lines[x.line], p, count) for x in vector.products)
                weights = sorted(item for window in products for item in window)
                if weights:
                    point = (vector.plane, p, vector.shift)
                    steps.append(Step(((point[3 - rank :], 1),), weights))
    return Rows(outputs, [steps])


def _window(line: Line, p: int, count: int) -> Iterator[tuple[int, float]]:
    """The rows to which input row p adds something by a line, and the weights."""
    for row in range(count):
        place = row - p - line.first
        if 0 <= place < len(line.weights) and line.weights[place]:
            yield row, line.weights[place]
