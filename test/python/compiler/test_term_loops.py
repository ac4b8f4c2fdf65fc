# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Loops over the terms of long sums, and the blocks of outputs that they are added to."""

import itertools
import random
from collections.abc import Iterator
from functools import partial

import pytest

from twofour.codegen.cpu.looped_tile import MAX_CODE, choose_looped_tile
from twofour.codegen.cpu.register_tile import RegisterTile
from twofour.codegen.cpu.row_sums import sum_rows, terms_of
from twofour.codegen.cpu.term_loops import Loop, are_added_in_loops, code_size, loops_over
from twofour.codegen.cpu.vector_unit import vector_unit


def box(*reaches):
    return list(itertools.product(*(range(-reach, reach + 1) for reach in reaches)))


def disk(radius):
    return [at for at in box(radius, radius) if sum(n * n for n in at) <= radius**2]


def differing(points):
    return terms_of(points, [1.0 + n for n in range(len(points))], reassociate=True)


def symmetric(points):
    """Weights of the distance from the middle, but for an odd one out."""
    weights = [1.0 + sum(map(abs, at)) for at in points]
    weights[len(points) // 3] = -0.5
    return terms_of(points, weights, reassociate=True)


def partly_odd(points):
    """Opposite points have the same weight in two columns, then opposite ones in two."""
    weights = [(1.0 + abs(j)) * (-1 if j < 0 and j // 2 % 2 else 1) for _, j in points]
    return terms_of(points, weights, reassociate=True)


def scattered(points, count, seed=5):
    return sorted(random.Random(seed).sample(points, count))


def turns(nodes, numbers) -> Iterator[tuple[tuple, tuple, tuple]]:
    """The updates of all turns, one after the other."""
    begin = 0
    for node in nodes:
        end = begin + len(node.numbers)
        own = numbers[begin:end]
        if isinstance(node, Loop):
            for turn in range(node.count):
                shifted = [n + turn * by for n, by in zip(own, node.strides, strict=True)]
                yield from turns(node.body, shifted)
        else:
            yield node.signs, node.sums, tuple(own)
        begin = end


@pytest.mark.parametrize("rows", [1, 4, 8])
@pytest.mark.parametrize(
    "terms",
    [
        differing(box(6, 6)),
        differing(box(1, 2, 3)),
        differing(box(40)),
        differing(disk(9)),
        differing(scattered(box(5, 5), 60)),
        differing([(0, n * n) for n in range(6)] + [(1, n * n) for n in range(6)]),
        symmetric(box(3, 7)),
        symmetric(disk(6)),
        partly_odd(box(3, 12)),
        symmetric(box(1, 4, 4)),
        symmetric(scattered(box(4, 6), 70)),
    ],
)
def test_turns_of_loops_are_the_steps(terms, rows):
    rank = len(terms[0].points[0][0])
    summed = sum_rows([terms], rank, rows)
    (nodes,) = loops_over(summed, [terms])
    found = []
    for signs, sums, numbers in turns(nodes, [n for node in nodes for n in node.numbers]):
        coordinates, places = numbers[: rank * len(signs)], numbers[rank * len(signs) :]
        points = zip(*(coordinates[axis::rank] for axis in range(rank)), strict=True)
        weights = [(at, terms[place].weight) for at, place in zip(sums, places, strict=True)]
        found.append((tuple(zip(points, signs, strict=True)), weights))
    assert found == [(step.points, step.weights) for step in summed.inputs[0]]


def code_of(terms, rows):
    return code_size(loops_over(sum_rows([terms], len(terms[0].points[0][0]), rows), [terms]))


def test_boxes_are_a_few_loops():
    """One for each number of rows that a row of inputs feeds, whatever the box."""
    for terms in (differing(box(10, 10)), differing(box(15, 30))):
        assert code_of(terms, 8) == 8 + 2 * sum(range(8))
        assert code_of(terms, 1) == 1
    assert code_of(differing(box(8, 8, 8)), 8) == 8 + 2 * sum(range(8))
    assert code_of(differing(box(500)), 1) == 1
    # The row in the middle is added for itself, other columns in pairs.
    symmetric_box = terms_of(box(9, 9), [1.0 + abs(j) for _, j in box(9, 9)], reassociate=True)
    assert code_of(symmetric_box, 1) == 1 + 2


@pytest.mark.parametrize(
    ("points", "expected"),
    [
        (box(5, 5), False),
        (box(6, 6), True),
        # Few steps are alike.
        (disk(10), False),
        (disk(15), True),
        (scattered(box(20, 20), 500), False),
        (scattered(box(20, 20), 600), True),
        # Rows of planes are short.
        (box(3, 3, 3), False),
        (box(4, 4, 4), True),
        (box(255), False),
        (box(256), True),
    ],
)
def test_terms_that_are_added_in_loops(points, expected):
    terms, rank = differing(points), len(points[0])
    assert are_added_in_loops([terms], rank) == expected
    # Together they are too many.
    assert are_added_in_loops([terms] * 9, rank) == (expected or len(terms) * 9 * 8 > 4096)


@pytest.mark.parametrize(
    ("machine", "rank", "expected"),
    [
        ("sapphirerapids", 1, (1, 8)),
        ("sapphirerapids", 2, (8, 3)),
        ("znver4", 3, (8, 3)),
        ("neon", 2, (8, 3)),
        ("avx2", 1, (1, 4)),
        ("avx2", 2, (4, 2)),
    ],
)
def test_tiles_that_load_least(machine, rank, expected):
    assert choose_looped_tile(lambda rows: 8, rank, vector_unit(machine)) == RegisterTile(*expected)


def test_tiles_whose_code_is_long_are_smaller():
    unit = vector_unit("sapphirerapids")
    for terms in (
        differing(disk(15)),
        differing(disk(40)),
        differing(scattered(box(30, 30), 3000)),
    ):
        tile = choose_looped_tile(partial(code_of, terms), 2, unit)
        assert 1 < tile.rows * tile.vectors < 24
        assert code_of(terms, tile.rows) * tile.vectors <= MAX_CODE
    assert choose_looped_tile(lambda rows: 5000 * rows, 2, unit) == RegisterTile(1, 1)
