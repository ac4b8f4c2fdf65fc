# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Column permutations: validity, minimality, and the claims about the staircase."""

import itertools
import math
import random

import networkx
import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from layout_cases import (
    box_stencil,
    built_in_kernels,
    pattern_operator,
    patterns,
    star,
    stencils,
)
from twofour.errors import TwofourError
from twofour.layout import exact
from twofour.layout.blossom import pair_by_blossom
from twofour.layout.compress import check_2to4
from twofour.layout.conflicts import ZERO
from twofour.layout.crush import crush
from twofour.layout.exact import pack_exhaustively, pack_groups
from twofour.layout.matching import (
    Permutation,
    apply_permutation,
    lower_bound,
    permute_2to4,
)
from twofour.layout.patch import PatchOperator, check
from twofour.layout.search import mma_per_128_outputs, tiles
from twofour.layout.staircase import pair_by_staircase, partner

NAMED = ("staircase", "blossom", "exact")
POWERS = (1, 2, 4, 8, 16, 32)


def zero_columns(pairs):
    return sum(second == ZERO for _, second in pairs)


def assert_pairs(op, pairs):
    """Every nonzero column once, and no two columns of a pair in one row."""
    nonzero = op.matrix != 0
    columns = [column for pair in pairs for column in pair if column != ZERO]
    assert sorted(columns) == np.flatnonzero(nonzero.any(axis=0)).tolist()
    for first, second in pairs:
        assert first != ZERO
        assert second == ZERO or not (nonzero[:, first] & nonzero[:, second]).any()


def full_graph_zero_columns(op):
    """Zero columns of a maximum matching on the whole complement of the conflict graph."""
    nonzero = op.matrix != 0
    graph = networkx.Graph()
    graph.add_nodes_from(np.flatnonzero(nonzero.any(axis=0)).tolist())
    for first, second in itertools.combinations(graph, 2):
        if not (nonzero[:, first] & nonzero[:, second]).any():
            graph.add_edge(first, second)
    return len(graph) - 2 * len(networkx.max_weight_matching(graph, maxcardinality=True))


def fewest_groups(pattern):
    """Fewest groups of four by dynamic programming over sets of columns."""
    columns = [column for column in pattern.T if column.any()]
    everything = (1 << len(columns)) - 1
    fits = [
        sum(1 << place for place in group)
        for size in range(1, 5)
        for group in itertools.combinations(range(len(columns)), size)
        if (sum(columns[place].astype(int) for place in group) <= 2).all()
    ]
    best = {0: 0}
    for done in range(everything + 1):
        if done in best and done != everything:
            lowest = ~done & (done + 1)
            for group in fits:
                if group & lowest and not group & done:
                    later = done | group
                    best[later] = min(best.get(later, math.inf), best[done] + 1)
    return best[everything]


def assert_permutation(op, permutation, stencil=None):
    """2:4 holds, the order is consistent, and the stencil (if any) is still computed."""
    permuted = apply_permutation(op, permutation)
    assert check_2to4(permuted.matrix) is None
    assert permutation.k == permuted.matrix.shape[1]
    assert permutation.k % permutation.fragment == 0
    real = [column for column in permutation.order if column != ZERO]
    assert permutation.padding_columns == permutation.k - len(real)
    np.testing.assert_array_equal(
        permuted.matrix[:, [place for place, c in enumerate(permutation.order) if c != ZERO]],
        op.matrix[:, real],
    )
    assert permutation.k_lower_bound <= permutation.k
    assert permutation.k_lower_bound >= lower_bound(op.matrix, permutation.fragment)
    assert set(map(tuple, permuted.input_offsets)) <= set(map(tuple, op.input_offsets))
    if stencil:
        assert check(permuted, *stencil) is None


def assert_strategies(op, stencil=None, fragment=32):
    """All strategies are valid, and each is at least as good as it claims to be."""
    found = {name: permute_2to4(op, name, fragment) for name in (*NAMED, "auto")}
    for permutation in found.values():
        assert_permutation(op, permutation, stencil)
    assert found["blossom"].k <= found["staircase"].k
    assert found["exact"].k <= found["blossom"].k
    assert found["auto"].k == found["exact"].k
    return found


@given(stencils(), st.sampled_from([4, 16, 32]), st.data())
@settings(max_examples=60, deadline=None)
def test_every_strategy_keeps_the_stencil(stencil, fragment, data):
    tile = data.draw(st.sampled_from(tiles(len(stencil[0][0]), (4, 16))))
    op = crush(*stencil, tile)
    assert_pairs(op, pair_by_staircase(op))
    assert_strategies(op, stencil, fragment)


@given(patterns(), st.sampled_from([4, 16]))
@settings(max_examples=60, deadline=None)
@example(np.ones((3, 5), dtype=bool), 4)
@example(np.zeros((2, 3), dtype=bool), 4)
@example(np.eye(5, dtype=bool), 4)
def test_any_pattern_is_accepted(pattern, fragment):
    op = pattern_operator(pattern)
    assert_pairs(op, pair_by_staircase(op))
    assert_strategies(op, fragment=fragment)


@given(patterns(max_rows=6, max_columns=18))
@settings(deadline=None)
def test_blossom_is_a_maximum_matching(pattern):
    op = pattern_operator(pattern)
    pairs = pair_by_blossom(op)
    assert_pairs(op, pairs)
    assert zero_columns(pairs) == full_graph_zero_columns(op)


def test_blossom_on_the_whole_graph():
    """Three columns that only fit the same one: neither shortcut finds a perfect matching."""
    op = pattern_operator([[1, 1, 1, 0], [0, 0, 0, 1]])
    assert zero_columns(pair_by_blossom(op)) == 2
    offsets = [(0, 0), (0, 1), (1, 0), (1, 1)]
    op = crush(offsets, [1, 1, 1, 1], (32, 1))
    assert zero_columns(pair_by_blossom(op)) == full_graph_zero_columns(op)


@given(patterns(max_rows=6, max_columns=9))
@settings(deadline=None)
def test_exact_is_minimal_on_small_matrices(pattern):
    permutation = permute_2to4(pattern_operator(pattern), "exact", 4)
    assert permutation.k == 4 * fewest_groups(pattern)
    assert permutation.proven


@given(patterns(max_rows=6, max_columns=9), st.integers(0, 4))
@settings(max_examples=50, deadline=None)
def test_packing_into_a_given_number_of_groups(pattern, count):
    matrix = pattern.astype(float)
    groups, complete = pack_exhaustively(matrix, count)
    assert complete
    assert (groups is not None) == (fewest_groups(pattern) <= count)
    columns = np.flatnonzero(pattern.any(axis=0)).tolist()
    found = None
    if 0 < len(columns) <= 4 * count:
        found = pack_groups(matrix, columns, count)
    for packed in filter(None, (groups, found)):
        members = [column for group in packed for column in group if column != ZERO]
        assert sorted(members) == columns
        for group in packed:
            assert (pattern[:, [c for c in group if c != ZERO]].sum(axis=1) <= 2).all()


def test_exact_is_weaker_than_two_pairs():
    """Three columns that conflict in pairs fit into one group of four, but not into two pairs."""
    pattern = np.array([[1, 1, 0], [0, 1, 1], [1, 0, 1]])
    op = pattern_operator(pattern)
    assert permute_2to4(op, "blossom", 4).k == 8
    exact = permute_2to4(op, "exact", 4)
    assert (exact.k, exact.strategy, exact.proven) == (4, "exact", True)
    auto = permute_2to4(op, "auto", 4)
    assert (auto.order, auto.strategy) == (exact.order, "exact")


def test_gap_is_reported():
    op = pattern_operator([[1, 1, 0], [0, 1, 1], [1, 0, 1]])
    permutation = permute_2to4(op, "blossom", 4)
    assert (permutation.k, permutation.k_lower_bound, permutation.proven) == (8, 4, False)
    op = pattern_operator(np.ones((1, 5)))
    permutation = permute_2to4(op, "blossom", 4)
    assert (permutation.k, permutation.k_lower_bound, permutation.proven) == (12, 12, True)


def test_exhaustion_raises_the_lower_bound():
    """No row has more than four of the eight columns, and yet they do not fit into two groups."""
    rows = ["11001100", "01000110", "10000101", "01011010", "11010010", "10101010"]
    pattern = np.array([[int(digit) for digit in row] for row in rows])
    op = pattern_operator(pattern)
    assert lower_bound(op.matrix, 4) == 8
    permutation = permute_2to4(op, "exact", 4)
    assert permutation.k == 4 * fewest_groups(pattern) == 12
    assert permutation.proven
    assert not permute_2to4(op, "blossom", 4).proven


def test_no_steps_mean_the_better_pairing(monkeypatch):
    op = crush(*box_stencil(5, 5), (4, 4))
    assert permute_2to4(op, "exact").k == 64
    monkeypatch.setattr(exact, "STEPS", 0)
    monkeypatch.setattr(exact, "VISITS", 0)
    assert permute_2to4(op, "exact").k == permute_2to4(op, "blossom").k == 96
    assert not permute_2to4(op, "exact").proven


def test_results_are_deterministic():
    op = crush(*box_stencil(5, 5), (4, 4))
    for name in (*NAMED, "auto"):
        assert permute_2to4(op, name) == permute_2to4(op, name)


def test_auto_names_the_first_strategy_that_meets_the_bound():
    assert permute_2to4(crush(*star(2, 1), (4, 4))).strategy == "staircase"
    assert permute_2to4(crush(*star(2, 3), (4, 4))).strategy == "blossom"
    assert permute_2to4(crush(*box_stencil(5, 5), (4, 4))).strategy == "exact"


def box_zero_columns(extents, tile):
    """Zero columns on a full box: those that conflict with all others, and one for parity."""
    size = [k + t - 1 for k, t in zip(extents, tile, strict=True)]
    alone = math.prod(max(0, 2 * k - n) for k, n in zip(extents, size, strict=True))
    return alone + (math.prod(size) - alone) % 2


def assert_box(extents, tile, matching):
    op = crush(*box_stencil(*extents), tile)
    pairs = pair_by_staircase(op)
    assert_pairs(op, pairs)
    assert zero_columns(pairs) == box_zero_columns(extents, tile)
    if matching:
        assert zero_columns(pair_by_blossom(op)) == zero_columns(pairs)


@pytest.mark.parametrize("size", [(7,), (8,), (4, 3), (3, 5), (5, 3), (4, 5, 3), (3, 3, 3)])
def test_partners_of_a_box(size):
    """Geometry alone: mutual, conflict-free, and single only where it must be."""
    for stencil in itertools.product(*(range(1, n + 1) for n in size)):
        tile = [n - k + 1 for n, k in zip(size, stencil, strict=True)]
        single = 0
        for position in np.ndindex(size):
            other = partner(position, size, stencil)
            if other is None:
                single += 1
                continue
            assert partner(other, size, stencil) == position
            apart = np.abs(np.subtract(position, other))
            assert (apart < size).all()
            assert (apart >= stencil).any()
        assert single == box_zero_columns(stencil, tile)


def boxes(rank, widest, outputs):
    for tile in itertools.product(POWERS, repeat=rank):
        if math.prod(tile) in outputs:
            for extents in itertools.product(range(1, widest + 1), repeat=rank):
                yield extents, tile


@pytest.mark.parametrize("tile", POWERS)
def test_staircase_is_optimal_on_lines(tile):
    for extent in range(1, 10):
        assert_box((extent,), (tile,), matching=True)


def test_staircase_is_optimal_on_sampled_boxes():
    sample = random.Random(0).sample
    for extents, tile in sample(list(boxes(2, 9, POWERS)), 100):
        assert_box(extents, tile, matching=True)
    for extents, tile in sample(list(boxes(3, 5, POWERS)), 30):
        assert_box(extents, tile, matching=True)


@pytest.mark.full
@pytest.mark.parametrize("outputs", POWERS)
def test_staircase_is_optimal_on_all_boxes_2d(outputs):
    for extents, tile in boxes(2, 9, (outputs,)):
        assert_box(extents, tile, matching=True)


@pytest.mark.full
@pytest.mark.parametrize("outputs", POWERS)
def test_staircase_is_optimal_on_boxes_3d(outputs):
    for extents, tile in boxes(3, 4, (outputs,)):
        assert_box(extents, tile, matching=max(extents) < 4)


def test_theorem_6_counterexample():
    """Of size (5, 3) and reach (2, 3): algorithm 1 pads a whole block, one zero column does."""
    op = crush(*box_stencil(2, 3), (4, 1))
    assert op.matrix.shape == (4, 15)
    assert zero_columns(pair_by_staircase(op)) == 1


def test_staircase_skips_holes_and_far_inputs():
    op = crush([(0, 0), (0, 10**12), (10**6, 3)], [1, 2, 3], (2, 2))
    assert_pairs(op, pair_by_staircase(op))
    assert_strategies(op)


def test_staircase_takes_repeated_inputs():
    op = PatchOperator([[1.0, 2.0, 3.0]], [[0]], [[4], [4], [5]], (1,))
    assert_pairs(op, pair_by_staircase(op))


@pytest.mark.parametrize(
    ("stencil", "tile", "mma"),
    [(star(2, 1), (2, 16), 2.5), (star(3, 1), (2, 2, 8), 3)],
    ids=["heat-2d", "heat-3d"],
)
def test_columns_of_one_row_block_share_fragments(stencil, tile, mma):
    """Both halves of the rows read most fragments, but not all of them."""
    op = crush(*stencil, tile)
    permutation = permute_2to4(op)
    assert mma < permutation.k / 32
    assert mma_per_128_outputs(apply_permutation(op, permutation).matrix) == mma


def test_zero_columns_read_a_neighbour():
    op = PatchOperator([[1.0, 2.0]], [[0]], [[7], [9]], (1,))
    order = (-1, 1, -1, 0, -1, -1, -1, -1)
    permuted = apply_permutation(op, Permutation(order, "exact", 8, 4))
    assert permuted.matrix.tolist() == [[0, 2, 0, 1, 0, 0, 0, 0]]
    assert permuted.input_offsets.ravel().tolist() == [9, 9, 9, 7, 7, 7, 7, 7]


@pytest.mark.parametrize("order", [(0, 0, -1, -1), (0, -1, -1, -1), (0, 2, 1, -1), (0, 1, 1, -1)])
def test_apply_refuses_what_is_no_permutation(order):
    op = PatchOperator([[1.0, 2.0]], [[0]], [[7], [9]], (1,))
    with pytest.raises(TwofourError, match="expected an order that holds each of 2 nonzero"):
        apply_permutation(op, Permutation(order, "exact", 4, 4))


def test_wrong_options_are_refused():
    op = crush([(0,)], [1], (4,))
    with pytest.raises(TwofourError, match="expected a strategy of auto, .*, got greedy"):
        permute_2to4(op, "greedy")
    for fragment in (0, -4, 6):
        with pytest.raises(TwofourError, match=f"multiple of 4, got {fragment}"):
            permute_2to4(op, fragment=fragment)


def assert_kernel(offsets, weights, tile):
    op = crush(offsets, weights, tile)
    assert check(op, offsets, weights) is None
    found = assert_strategies(op, (offsets, weights))
    assert found["exact"].proven


@pytest.mark.parametrize(("offsets", "weights"), built_in_kernels())
def test_strategies_on_a_tile_of_every_kernel(offsets, weights):
    choice = random.Random(len(offsets)).choice
    assert_kernel(offsets, weights, choice(tiles(len(offsets[0]))))


@pytest.mark.full
@pytest.mark.parametrize(("offsets", "weights"), built_in_kernels())
def test_strategies_on_all_tiles_of_every_kernel(offsets, weights):
    for tile in tiles(len(offsets[0])):
        assert_kernel(offsets, weights, tile)
