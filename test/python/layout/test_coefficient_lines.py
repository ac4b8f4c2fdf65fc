# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Coefficient lines: scatter form, minimal covers against brute force, the paper's examples."""

import itertools
from collections import Counter

import numpy as np
import pytest

from outer_cases import box, random_stencil, star
from twofour.errors import TwofourError
from twofour.layout.coefficient_lines import (
    MAX_EXTENT,
    OPTIONS,
    Line,
    cover,
    minimal_cover,
    scatter,
    unit,
)


def test_scatter_coefficients_are_the_reversed_matrix():
    """Equation 5, C^s = J C^g J, on a matrix without symmetry."""
    gather = np.arange(1.0, 10).reshape(3, 3)
    offsets = [(i - 1, j - 1) for i in range(3) for j in range(3)]
    terms = scatter(offsets, gather.reshape(-1))
    reversal = np.eye(3)[::-1]
    found = np.array([terms[i - 1, j - 1] for i in range(3) for j in range(3)]).reshape(3, 3)
    np.testing.assert_array_equal(found, reversal @ gather @ reversal)


def test_scatter_leaves_out_zeros_and_ascends():
    terms = scatter([(0, 1), (2, 0), (1, 1)], [1.0, 0.0, 3.0])
    assert list(terms.items()) == [((-1, -1), 3.0), ((0, -1), 1.0)]


@pytest.mark.parametrize("option", OPTIONS)
@pytest.mark.parametrize("rank", [2, 3])
def test_covers_hold_every_weight_once(rank, option):
    rng = np.random.default_rng(11)
    for _ in range(100):
        terms = scatter(*random_stencil(rng, rank))
        found = Counter()
        for line in cover(terms, option):
            assert line.weights[0] and line.weights[-1]
            for offset, weight in line.terms():
                if weight:
                    assert weight == terms[offset]
                    found[offset] += 1
        assert found == Counter(list(terms))


def fewest_lines(points, keys) -> int:
    """The size of the smallest set of lines over all points, by trying all sets.

    `keys` maps a point to the lines through it.
    """
    candidates = sorted({key for point in points for key in keys(point)})
    for size in itertools.count(1):
        for chosen in itertools.combinations(candidates, size):
            if all(any(key in chosen for key in keys(point)) for point in points):
                return size


@pytest.mark.parametrize("option", ["orthogonal", "diagonal"])
def test_minimal_covers_equal_brute_force(option):
    rng = np.random.default_rng(300)
    if option == "orthogonal":

        def keys(point):
            return ("column", point[0]), ("row", point[1])
    else:

        def keys(point):
            return ("diagonal", point[0] - point[1]), ("anti", point[0] + point[1])

    for _ in range(300):
        extents = rng.integers(1, 6, 2) if option == "orthogonal" else rng.integers(1, 5, 2)
        pattern = rng.random(extents) < rng.choice([0.2, 0.4, 0.7])
        points = [tuple(int(x) for x in point) for point in np.argwhere(pattern)] or [(0, 0)]
        lines = cover(dict.fromkeys(points, 1.0), option)
        assert len(lines) == fewest_lines(points, keys)


def test_minimal_covers_prefer_the_row_axis():
    """All rows and all columns are both minimal for a box; rows need no transposition."""
    terms = scatter(*box(2, 2))
    lines = minimal_cover(terms, unit(2, 0), unit(2, 1))
    assert {line.direction for line in lines} == {(1, 0)}


@pytest.mark.parametrize("radius", [1, 2, 3])
def test_lines_of_the_tables(radius):
    """Tables 1 and 2: how many lines of each direction, and where they start."""

    def directions(rank, option):
        lines = cover(scatter(*star(rank, radius)), option)
        return Counter(line.direction for line in lines)

    r = radius
    assert directions(2, "parallel") == {(1, 0): 2 * r + 1}
    assert directions(2, "orthogonal") == {(1, 0): 1, (0, 1): 1}
    assert directions(3, "parallel") == {(0, 1, 0): 4 * r + 1}
    assert directions(3, "orthogonal") == {(0, 1, 0): 1, (0, 0, 1): 1, (1, 0, 0): 1}
    assert directions(3, "hybrid") == {(0, 1, 0): 2 * r + 1, (0, 0, 1): 1}


def test_x_shape_by_its_diagonals():
    """Equation 15: C^g_00 is the last weight of the diagonal in scatter form."""
    offsets = [(-1, -1), (-1, 1), (0, 0), (1, -1), (1, 1)]
    lines = cover(scatter(offsets, [1.0, 2.0, 3.0, 4.0, 5.0]), "diagonal")
    assert lines == (
        Line((1, -1), (-1, 1), (4.0, 0.0, 2.0)),
        Line((1, 1), (-1, -1), (5.0, 3.0, 1.0)),
    )
    assert len(cover(scatter(offsets, [1.0, 2.0, 3.0, 4.0, 5.0]), "orthogonal")) == 3


def test_single_weights_follow_the_diagonals_beside_them():
    """One sweep is enough: a line of one weight has no direction of its own."""
    terms = scatter([(-1, -1), (0, 0), (1, 1), (0, 2)], [1.0, 2.0, 3.0, 4.0])
    assert {line.direction for line in cover(terms, "diagonal")} == {(1, 1)}
    assert {line.direction for line in cover({(0, 5): 1.0}, "diagonal")} == {(1, 0)}


@pytest.mark.parametrize("rank", [1, 4])
def test_other_ranks_are_refused(rank):
    with pytest.raises(TwofourError, match=f"expected a stencil of rank 2 or 3 .*got rank {rank}"):
        cover({(0,) * rank: 1.0}, "parallel")


def test_stencils_without_weights_are_refused():
    with pytest.raises(TwofourError, match="expected at least one weight"):
        cover(scatter([(0, 1)], [0.0]), "parallel")


def test_far_offsets_are_refused():
    assert cover({(0, 0): 1.0, (0, MAX_EXTENT - 1): 1.0}, "parallel")
    with pytest.raises(TwofourError, match=f"at most {MAX_EXTENT} points .*on axis 0"):
        cover({(0, 0): 1.0, (10**9, 0): 1.0}, "parallel")
