# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The parts that a domain is cut into, which tiles are made of."""

import itertools
from collections.abc import Sequence

from twofour.runtime.tiles.steps import POINTS, Blocks, Geometry

# Most rows that kernels compute at once, but for a few kernels that compute twice as many.
ROWS = 8
# Parts may be fewer for the sake of whole blocks, but no fewer than this part of them; from so many
# on their sizes may differ.
FEWER_PARTS, MANY_PARTS = 2 / 3, 16


def most_parts(geometry: Geometry, axis: int) -> int:
    """How many parts an axis of the interior may have: none is shorter than the reach of a step.

    What lies beyond an end depends on cells within a reach of it.
    """
    reach = max(1, geometry.below[axis] + geometry.above[axis])
    return max(1, geometry.interior.shape[axis] // reach)


def cut(
    geometry: Geometry, extents: Sequence[int], blocks: Blocks = POINTS
) -> list[list[tuple[int, int]]]:
    """Cut the interior into parts of about `extents` points an axis, of about one size.

    Long rows are cut between blocks, and many of them, or of their planes, such that those computed
    at once leave nothing. There are no more than `most_parts`.
    """
    last = geometry.rank - 1
    at_once = {last: blocks.points, last - 1: ROWS, last - 2: geometry.planes}
    parts = []
    for axis, wanted in enumerate(extents):
        lower, upper = geometry.interior.lower[axis], geometry.interior.upper[axis]
        extent = upper - lower
        least = max(1, geometry.below[axis] + geometry.above[axis])
        size = at_once.get(axis, 1)
        count = min(-(-extent // max(1, wanted)), most_parts(geometry, axis))
        # Rounded to whole blocks, parts are shorter by less than one. Few of them that are little
        # more than a block would be of sizes too different for threads to share.
        rounded = extent // (least + size - 1)
        fewer = min(count, rounded)
        even = extent // count >= 2 * size or count >= MANY_PARTS
        rounds = fewer >= FEWER_PARTS * count and even
        count = fewer if rounds else count
        bounds = [lower + extent * part // count for part in range(count + 1)]
        if rounds:
            # Blocks of points begin cache lines of the array, others begin with the interior.
            first = 0 if axis == last else lower
            bounds[1:-1] = [b + size // 2 - (b + size // 2 - first) % size for b in bounds[1:-1]]
        parts.append(list(itertools.pairwise(bounds)))
    return parts
