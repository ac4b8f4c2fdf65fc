# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Short last axes along which a step reads nothing: channels of an image, layers, an ensemble.

Rows of so few cells would take their time to begin and to end. In a C-contiguous array such an axis
folds into the one before it: n x c cells are one row of n * c, offsets along n are c times as far
apart, and so are the cells of a halo. No cell is read or written that was not before.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace

from twofour.reach import Reach
from twofour.runtime.boundary import AxisBoundary
from twofour.runtime.box import Box
from twofour.runtime.page_offset import CACHE_LINE

# Bytes of a row from which on it is as fast by itself: if it ends within a cache line, and if not.
RAGGED_ROW, EVEN_ROW = 512, 192


@dataclass(frozen=True)
class Folding:
    """The last `axes` axes, of `cells` cells, are folded into the one before them.

    There is one before them, so there are more axes than that.
    """

    axes: int
    cells: int

    def extents(self, extents: Sequence[int]) -> tuple[int, ...]:
        """What extents, coordinates or offsets that are zero along the last axes become."""
        *kept, last = extents[: -self.axes]
        return (*kept, last * self.cells)

    def box(self, box: Box) -> Box:
        """A box that holds the last axes as a whole."""
        return Box(self.extents(box.lower), self.extents(box.upper))

    def boundary(self, boundary: Sequence[AxisBoundary]) -> tuple[AxisBoundary, ...]:
        """The boundary of the axes that are left."""
        *kept, last = boundary[: -self.axes]
        return (*kept, replace(last, group=last.group * self.cells))


def folding_of(
    shape: Sequence[int], interior: Box | None, reach: Reach, itemsize: int
) -> Folding | None:
    """The axes to fold of an array, None where there are none.

    Of an array that holds its halo, `interior` is what is updated.
    """
    axes = 0
    for axis in reversed(range(1, len(shape))):
        row = math.prod(shape[axis:]) * itemsize
        short = 0 < row < (RAGGED_ROW if row % CACHE_LINE else EVEN_ROW)
        whole = interior is None or (interior.lower[axis], interior.upper[axis]) == (0, shape[axis])
        if any(side[axis] for side in reach) or not short or not whole:
            break
        axes += 1
    return Folding(axes, math.prod(shape[-axes:])) if axes else None
