# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""What plain kernels that march cost (targets.gpu.rolling_kernel)."""

from collections.abc import Sequence

from twofour.cost.costs import Costs
from twofour.cost.counts import Counts
from twofour.cost.march import Work, march_costs, march_counts
from twofour.layout.rolling import RollingLayout

EDGE_READ = 2  # where a lane finds inputs that exist


def rolling_costs(
    layout: RollingLayout, shape: Sequence[int], element: str, multiprocessors: int | None = None
) -> Costs:
    """The costs of one launch on an output of `shape`, of fields of `element`.

    The blocks are those that a device with so many multiprocessors would be given.
    """
    kind = "f64" if element == "f64" else "f32"
    of_row = {kind: layout.strip * len(layout.terms)}
    return march_costs(layout, _work(layout), shape, multiprocessors, fma=of_row)


def rolling_counts(layout: RollingLayout, shape: Sequence[int]) -> Counts:
    """The counters of one launch on an output of `shape`, of as many blocks as the layout asks."""
    return march_counts(layout, _work(layout), shape)


def _work(layout: RollingLayout) -> Work:
    narrow = layout.itemsize == 2
    return Work(
        # Two numbers of 16 bits are one conversion.
        row=layout.written // 2 if narrow else 0,
        added=layout.written * len(layout.terms),
        edge_read=EDGE_READ,
        # Words become halves, and those numbers.
        unpacked=1.5 * layout.used if narrow else 0,
    )
