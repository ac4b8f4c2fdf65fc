# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Which axes are folded, and what shapes and boundaries become; results are in test/execution."""

import numpy as np
import pytest

from runtime_reference import source
from twofour.runtime import AxisBoundary
from twofour.runtime.box import Box
from twofour.runtime.tiles.folding import Folding, folding_of

PLANAR = ((1, 2, 0), (1, 0, 0))


@pytest.mark.parametrize(
    ("shape", "reach", "expected"),
    [
        ((40, 50, 3), PLANAR, Folding(1, 3)),
        ((40, 50, 1), PLANAR, Folding(1, 1)),
        # Whole cache lines, and others.
        ((40, 50, 16), PLANAR, Folding(1, 16)),
        ((40, 50, 24), PLANAR, None),
        ((40, 50, 63), PLANAR, Folding(1, 63)),
        ((40, 50, 65), PLANAR, None),
        ((40, 50, 0), PLANAR, None),
        ((40, 50, 3), ((1, 2, 0), (1, 0, 1)), None),
        # All offsets on one side: steps read along the axis.
        ((40, 50, 3), ((1, 2, 1), (1, 0, -1)), None),
        ((40, 6, 3), ((1, 0, 0), (1, 0, 0)), Folding(2, 18)),
        ((40, 60, 3), ((1, 0, 0), (1, 0, 0)), Folding(1, 3)),
        ((40, 6, 3), ((0, 0, 0), (0, 0, 0)), Folding(2, 18)),
        ((40, 6, 3), ((0, 1, 0), (0, 0, 0)), Folding(1, 3)),
        ((7,), ((0,), (0,)), None),
    ],
)
def test_short_last_axes_without_offsets_are_folded(shape, reach, expected):
    assert folding_of(shape, None, reach, itemsize=8) == expected


def test_axes_with_a_halo_are_not_folded():
    whole, within = Box((1, 2, 0), (9, 9, 3)), Box((1, 2, 0), (9, 9, 2))
    assert folding_of((10, 10, 3), whole, PLANAR, itemsize=8) == Folding(1, 3)
    assert folding_of((10, 10, 3), within, PLANAR, itemsize=8) is None


def test_what_extents_boxes_and_boundaries_become():
    folding = Folding(2, 6)
    assert folding.extents((5, 7, 3, 2)) == (5, 42)
    assert folding.extents((-1, 2, 0, 0)) == (-1, 12)
    assert folding.box(Box((1, 2, 0, 0), (4, 5, 3, 2))) == Box((1, 12), (4, 30))
    kept = AxisBoundary("constant", 2.5)
    folded = folding.boundary([kept, AxisBoundary("reflect"), kept, kept])
    assert folded == (kept, AxisBoundary("reflect", group=6))


@pytest.mark.parametrize("mode", ["periodic", "reflect", "nearest"])
@pytest.mark.parametrize("group", [1, 2, 3])
def test_images_are_of_whole_groups(mode, group):
    for extent in (1, 2, 5):
        cells = np.arange(-13, extent * group + 13)
        expected = [group * source(mode, extent, c // group) + c % group for c in cells.tolist()]
        assert AxisBoundary(mode, group=group).sources(extent * group, cells).tolist() == expected
