# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The reach of offsets, and the halo that they ask for."""

import pytest

from twofour.box import Box
from twofour.reach import halo_of, reach_of

CASES = {
    "both sides": ([(-1, 0), (0, 2), (0, -3)], ((1, 3), (0, 2)), ((1, 3), (0, 2))),
    "above only": ([(2,), (5,)], ((-2,), (5,)), ((0,), (5,))),
    "below only": ([(-2,), (-5,)], ((5,), (-2,)), ((5,), (0,))),
    "the point itself": ([(0, 0, 0)], ((0, 0, 0),) * 2, ((0, 0, 0),) * 2),
}


@pytest.mark.parametrize("offsets, reach, halo", CASES.values(), ids=CASES)
def test_reach_and_halo(offsets, reach, halo):
    assert reach_of(offsets) == reach
    assert halo_of(offsets) == halo


def test_boxes_grow_by_the_reach_of_accesses():
    assert Box((0, 0), (8, 9)).reach([(-1, 2), (3, 1)]) == Box((-1, 1), (11, 11))


@pytest.mark.parametrize("offsets", [[], [(1,)], [(1, 2, 3)]])
def test_boxes_refuse_offsets_of_another_rank(offsets):
    with pytest.raises(ValueError, match="zip"):
        Box((0, 0), (8, 9)).reach(offsets)


def test_offsets_of_several_ranks_are_refused():
    with pytest.raises(ValueError, match="zip"):
        reach_of([(0, 0), (1,)])
