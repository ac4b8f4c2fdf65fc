# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Which inputs a CPU kernel adds before it multiplies, and in which order it adds terms."""

from collections import Counter
from fractions import Fraction

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from twofour.codegen.cpu.row_sums import MANY_ROWS, WORTHWHILE, sum_rows, terms_of
from twofour.kernels import built_in_kernels

KERNELS = built_in_kernels()


@st.composite
def stencils(draw):
    rank = draw(st.integers(1, 3))
    offset = st.tuples(*[st.integers(-2, 2)] * rank)
    offsets = draw(st.lists(offset, min_size=1, max_size=30, unique=True))
    # Few sizes, so that many points have one in common.
    weights = draw(
        st.lists(
            st.sampled_from((-2.0, -1.0, 0.5, 1.0, 2.0)),
            min_size=len(offsets),
            max_size=len(offsets),
        )
    )
    return offsets, weights


def linear_form(terms):
    """The weight of every point, exactly."""
    found = Counter()
    for term in terms:
        for point, sign in term.points:
            found[point] += sign * Fraction(term.weight)
    return dict(found)


def row_of(point):
    return point[-2] if len(point) > 1 else 0


@settings(deadline=None, max_examples=150, derandomize=True)
@given(stencils(), st.booleans())
def test_terms_are_the_stencil(stencil, reassociate):
    offsets, weights = stencil
    terms = terms_of(offsets, weights, reassociate)
    exact = {at: Fraction(w) for at, w in zip(offsets, weights, strict=True)}
    assert linear_form(terms) == exact
    assert [t.points[0] for t in terms] == sorted(t.points[0] for t in terms)
    for term in terms:
        assert term.points[0][1] == 1
        assert list(term.points) == sorted(term.points)
        assert len({row_of(point) for point, _ in term.points}) == 1
        assert len(term.points) == 1 or reassociate


@settings(deadline=None, max_examples=150, derandomize=True)
@given(stencils())
def test_every_sum_is_shared_by_two_rows_and_spares_operations(stencil):
    terms = terms_of(*stencil, reassociate=True)
    sums = Counter(term.places for term in terms if len(term.points) > 1)
    assert all(uses > 1 for uses in sums.values())
    if sums:
        (steps,) = sum_rows([terms], len(stencil[0][0]), MANY_ROWS).inputs
        operations = sum(len(step.weights) + len(step.points) - 1 for step in steps)
        assert operations <= WORTHWHILE * MANY_ROWS * len(stencil[0])


@settings(deadline=None, max_examples=150, derandomize=True)
@given(stencils(), st.booleans(), st.integers(1, 4), st.integers(1, 4), st.booleans())
def test_every_row_adds_its_terms_in_their_order(stencil, reassociate, count, planes, by_columns):
    rank = len(stencil[0][0])
    terms = terms_of(*stencil, reassociate)
    rows = sum_rows([terms], rank, count, planes, by_columns)
    assert rows.by_columns == by_columns
    if by_columns:
        terms = sorted(terms, key=lambda term: term.points[0][0][-1])
    (steps,) = rows.inputs
    assert len(steps) == len({step.points for step in steps})
    places = {1: [(0,)], 2: [(row, 0) for row in range(count)]}
    places[3] = [(plane, *place) for plane in range(planes) for place in places[2]]
    assert rows.outputs == places[rank]
    for number, output in enumerate(rows.outputs):
        added = [
            (step.points, weight) for step in steps for row, weight in step.weights if row == number
        ]
        shifted = [
            (
                tuple((tuple(a + b for a, b in zip(p, output, strict=True)), s) for p, s in points),
                weight,
            )
            for points, weight in ((term.points, term.weight) for term in terms)
        ]
        assert added == shifted


def test_points_of_weight_zero_are_dropped():
    assert [t.points for t in terms_of([(1,), (0,)], [0.0, 3.0], False)] == [(((0,), 1),)]


@pytest.mark.parametrize(
    ("name", "multiply_adds", "additions"),
    [
        # a + c and b of each of three rows; six rows feed four.
        ("oono_puri_laplacian2d", 6, 6 / 4),
        # Seven sums of seven points each; ten rows feed four.
        ("paper_box2d49p", 7, 10 * 6 / 4),
        # Four corners, two pairs and the centre of each row.
        ("kumar_isotropic27", 9, 6 * 6 / 4),
        # Two rows of two points of one weight: too few.
        ("arakawa_c_average4", 4, 0),
        # Corners of two rows; the pairs of the middle row are on it alone.
        ("cahn_hilliard2d_linear", 10, 6 / 4),
        # Pairs are on one row alone.
        ("paper_star2d13p", 13, 0),
        ("laplacian1d_o8", 9, 0),
        # No two weights of a row are the same.
        ("an5d_box3d2r", 125, 0),
    ],
)
def test_operations_of_four_rows(name, multiply_adds, additions):
    kernel = KERNELS[name]
    count = 4 if kernel.rank > 1 else 1
    terms = terms_of(kernel.offsets, kernel.weights, reassociate=True)
    (steps,) = sum_rows([terms], kernel.rank, count).inputs
    assert sum(len(step.weights) for step in steps) == count * multiply_adds
    assert sum(len(step.points) - 1 for step in steps) == count * additions


def test_differences():
    """The sign is that of the point, the weight that of the first one."""
    offsets = [(0, -1), (0, 1), (1, -1), (1, 1), (2, -1), (2, 1)]
    terms = terms_of(offsets, [-3.0, 3.0, 5.0, -5.0, 7.0, -7.0], reassociate=True)
    assert [(t.weight, t.points) for t in terms] == [
        (-3.0, (((0, -1), 1), ((0, 1), -1))),
        (5.0, (((1, -1), 1), ((1, 1), -1))),
        (7.0, (((2, -1), 1), ((2, 1), -1))),
    ]
