# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""What kernels that stream rows through sparse tensor cores cost (targets.gpu.stream_kernel)."""

from collections.abc import Sequence

from twofour.cost.costs import Costs, Mma
from twofour.cost.counts import LANES, Counts
from twofour.cost.march import Work, march_costs, march_counts
from twofour.layout.fragments import TILES
from twofour.layout.stream import StreamLayout, metadata_words

LOADED = 4  # instructions that load a matrix
ON_A_LINE = 14  # more to begin with, where there is one axis
CONVERTED, TRANSPOSED = 2, 2  # of a row of outputs
EDGE_READ = 5  # masks
PLACED = 0.7  # of a row that lies beside others of its step: where it begins


def stream_costs(
    layout: StreamLayout, shape: Sequence[int], operand: str, multiprocessors: int | None = None
) -> Costs:
    """The costs of one launch on an output of `shape`, for operands f16 or bf16.

    The blocks are those that a device with so many multiprocessors would be given.
    """
    kind = Mma(operand, True, 16, TILES, 32)
    of_row = {kind: len(layout.terms)}
    return march_costs(layout, _work(layout), shape, multiprocessors, mma=of_row)


def stream_counts(layout: StreamLayout, shape: Sequence[int]) -> Counts:
    """The counters of one launch on an output of `shape`, of as many blocks as the layout asks."""
    return march_counts(layout, _work(layout), shape, len(layout.terms))


def _work(layout: StreamLayout) -> Work:
    words, _ = metadata_words(layout)
    placed = layout.rank == 3 and not layout.ring
    rows = len({between for between, _ in layout.reads}) if placed else 0
    return Work(
        row=CONVERTED + TRANSPOSED,
        added=len(layout.terms),
        edge_read=EDGE_READ,
        start=LOADED * len(layout.matrices) + ON_A_LINE * (layout.rank == 1),
        unpacked=PLACED * rows,
        passed=len(layout.exchanged),
        transposed=TRANSPOSED,
        moved=4 * layout.levels * layout.rows * (layout.depth + 1),
        table_bytes=LANES * (16 * len(layout.matrices) + 4 * len(words)),
    )
