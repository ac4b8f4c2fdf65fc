# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Rows of outputs that are summed up in pairs: exact sums, in one order, with fewer products."""

import itertools
from collections import Counter
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from twofour.accuracy import PAIRED_PARTS
from twofour.codegen.cpu.direct_kernel import DirectKernel, Terms
from twofour.codegen.cpu.row_pairs import COMPARABLE, pair_terms, sum_row_pairs
from twofour.codegen.cpu.row_sums import terms_of
from twofour.codegen.cpu.vector_unit import vector_unit
from twofour.kernels import built_in_kernels

WEIGHTS = (-4.0, -2.0, -1.0, 0.5, 1.0, 2.0, 3.0, 8.0)


@st.composite
def stencils(draw):
    offset = st.tuples(*[st.integers(-2, 2)] * 2)
    offsets = draw(st.lists(offset, min_size=1, max_size=25, unique=True))
    size = len(offsets)
    return offsets, draw(st.lists(st.sampled_from(WEIGHTS), min_size=size, max_size=size))


def paired(stencil):
    return pair_terms(terms_of(*stencil, reassociate=True))


def products(rows, target):
    """What is multiplied and added to a sum, in order: points with their signs, and the weight."""
    (steps,) = rows.inputs
    return [
        ((*step.points, *((at, -sign) for at, sign in step.minus)), weight)
        for step in steps
        for row, weight in step.weights
        if row == target
    ]


def products_of_row(rows, row):
    """Those of a row, then those of the sum that it shares, relative to the row."""
    count = len(rows.outputs)
    (shared,) = [count + n for n, users in enumerate(rows.shared) if row in users]
    return [
        [
            (tuple(((at[0] - row, at[1]), sign) for at, sign in points), weight)
            for points, weight in products(rows, target)
        ]
        for target in (row, shared)
    ]


@settings(deadline=None, max_examples=150, derandomize=True)
@given(stencils(), st.integers(1, 8), st.integers(0, 1))
def test_rows_are_the_stencil(stencil, count, first):
    rows = sum_row_pairs([paired(stencil)], count, first)
    exact = {at: Fraction(w) for at, w in zip(*stencil, strict=True)}
    assert [output for output in rows.outputs] == [(row, 0) for row in range(count)]
    for row in range(count):
        found = Counter()
        for points, weight in itertools.chain(*products_of_row(rows, row)):
            for point, sign in points:
                found[point] += sign * Fraction(weight)
        assert {at: w for at, w in found.items() if w} == exact


@settings(deadline=None, max_examples=150, derandomize=True)
@given(stencils(), st.integers(1, 8), st.integers(0, 1))
def test_rows_beside_change_nothing(stencil, count, first):
    """Every even row has the products of one that is summed up alone, in order, and every odd."""
    terms = paired(stencil)
    rows = sum_row_pairs([terms], count, first)
    for row in range(count):
        alone = sum_row_pairs([terms], 1, (row + first) % 2)
        assert products_of_row(rows, row) == products_of_row(alone, 0)


@settings(deadline=None, max_examples=150, derandomize=True)
@given(stencils(), st.integers(0, 1))
def test_weights_of_a_point_stay_comparable(stencil, first):
    """What the error bound counts: parts of a weight, in absolute values, and roundings."""
    weights = dict(zip(*stencil, strict=True))
    rows = sum_row_pairs([paired(stencil)], 1, first)
    parts = Counter()
    for points, weight in itertools.chain(*products_of_row(rows, 0)):
        for point, _ in points:
            parts[point] += abs(weight)
    assert all(size <= PAIRED_PARTS * abs(weights[at]) for at, size in parts.items())
    assert parts.keys() == weights.keys()


@settings(deadline=None, max_examples=150, derandomize=True)
@given(stencils())
def test_pairs_are_adjacent_and_complete(stencil):
    terms = terms_of(*stencil, reassociate=True)
    found = pair_terms(terms)
    members = [term for pair in found.pairs for term in (pair.upper, pair.lower)]
    assert sorted(map(id, [*members, *found.alone])) == sorted(map(id, terms))
    for pair in found.pairs:
        assert pair.lower.points == pair.upper.shifted((1, 0))
        sizes = sorted((abs(pair.upper.weight), abs(pair.lower.weight)))
        assert sizes[1] <= COMPARABLE * sizes[0]


@pytest.mark.parametrize(
    ("radius", "multiply_adds", "additions"),
    # Of four rows: columns of three weights are a pair and one, three products of four rows a pair.
    [(1, 4 * 7.5, 12 + 4), (2, 4 * 20, 5 * 6 + 4), (3, 4 * 38.5, 7 * 8 + 4)],
)
def test_operations_of_boxes(radius, multiply_adds, additions):
    offsets = list(itertools.product(range(-radius, radius + 1), repeat=2))
    weights = np.random.default_rng(1).uniform(0.5, 1.5, len(offsets))
    rows = sum_row_pairs([paired((offsets, weights))], 4)
    (steps,) = rows.inputs
    assert sum(len(step.weights) for step in steps) == multiply_adds
    differences = sum(bool(step.minus) for step in steps)
    assert differences + sum(map(len, rows.shared)) == additions


def kernel_of(offsets, weights, **options):
    return DirectKernel("k", [Terms(offsets, weights)], **options)


def in_pairs(kernel, machine="znver4"):
    return kernel.in_pairs(vector_unit(machine))


@pytest.mark.parametrize("radius", [1, 2, 3])
def test_cores_that_add_beside_pair_rows_of_boxes(radius):
    offsets = list(itertools.product(range(-radius, radius + 1), repeat=2))
    weights = np.random.default_rng(1).uniform(0.5, 1.5, len(offsets))
    kernel = kernel_of(offsets, weights, reassociate=True)
    assert in_pairs(kernel)
    assert not in_pairs(kernel_of(offsets, weights))
    for machine in ("avx512", "avx2", "sse", "neon"):
        assert not in_pairs(kernel, machine)
    # Terms of very different weights are not paired.
    steep = [10.0 ** at[0] for at in offsets]
    assert not in_pairs(kernel_of(offsets, steep, reassociate=True))
    # Rows of three axes are not.
    thick = [(0, *at) for at in offsets]
    assert not in_pairs(kernel_of(thick, weights, reassociate=True))


def test_short_kernels_are_not_paired():
    """Sweeps of few points wait for memory."""
    for name in ("heat2d_ftcs", "advect2d_ctu"):
        kernel = built_in_kernels()[name]
        assert not in_pairs(kernel_of(kernel.offsets, kernel.weights, reassociate=True))
