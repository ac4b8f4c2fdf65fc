# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Who is timed after whom."""

from collections import Counter
from itertools import pairwise

import pytest

from twofour.bench.turns import in_turn


@pytest.mark.parametrize("count", range(1, 9))
def test_everybody_comes_after_everybody_else_equally_often(count):
    each = 1 + count % 2
    after = Counter()
    for number in range(each * count):
        order = in_turn(range(count), number)
        assert sorted(order) == list(range(count))
        after.update(pairwise(order))
    assert len(after) == count * (count - 1)
    assert set(after.values()) <= {each}


def test_nobody_is_behind_the_same_one_in_most_rounds():
    for count in range(4, 9):
        after = Counter(pair for n in range(9) for pair in pairwise(in_turn(range(count), n)))
        assert max(after.values()) <= 4


def test_no_contestants():
    assert in_turn([], 3) == []
