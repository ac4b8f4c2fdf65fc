# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Schedules of outer products: their values against direct sums, their counts against the paper."""

import math
from dataclasses import fields, replace

import numpy as np
import pytest

from outer_cases import box, check_execution, plan_by_passes, random_stencil, star
from twofour.errors import TwofourError
from twofour.kernels import built_in_kernels
from twofour.layout.coefficient_lines import OPTIONS, Line, cover, scatter
from twofour.layout.outer_check import check_blocks, check_lines, check_schedule
from twofour.layout.outer_cost import best_blocks, best_cover, counts, instructions_per_tile
from twofour.layout.outer_schedule import (
    Affine,
    Product,
    blocks,
    registers,
    schedule,
    smallest_length,
)


def stencil(offsets, weights) -> dict:
    return dict(zip(offsets, weights, strict=True))


@pytest.mark.parametrize("by", ["load", "splice"])
@pytest.mark.parametrize("option", OPTIONS)
@pytest.mark.parametrize("rank", [2, 3])
def test_executed_schedules_equal_direct_sums(rank, option, by):
    rng = np.random.default_rng(rank)
    for _ in range(15):
        offsets, weights = random_stencil(rng, rank)
        lines = cover(scatter(offsets, weights), option)
        unroll = (1 if rank == 2 else int(rng.integers(1, 4)), int(rng.integers(1, 4)))
        plan = schedule(lines, blocks(lines, unroll), by)
        assert check_schedule(plan, stencil(offsets, weights)) is None
        least = smallest_length(plan)
        lengths = {least, max(least, 2), max(least, 8), max(least, 11)}
        for n in lengths if rank == 2 else {max(least, 3)}:
            for index, found in enumerate(check_execution(plan, offsets, weights, n)):
                expected = counts(plan.sweeps[index], by, index > 0)
                for field in fields(expected):
                    per_block = found[field.name] / found["blocks"]
                    assert per_block == getattr(expected, field.name).at(n), field.name


# Outer products for a tile: section 3.4 for boxes, Tables 1 and 2 for stars.
PAPER = {
    (box, 2, "parallel"): lambda r, n: (2 * r + 1) * (2 * r + n),
    (box, 2, "orthogonal"): lambda r, n: (2 * r + 1) * (2 * r + n),
    (box, 3, "parallel"): lambda r, n: (2 * r + 1) ** 2 * (2 * r + n),
    (box, 3, "orthogonal"): lambda r, n: (2 * r + 1) ** 2 * (2 * r + n),
    (box, 3, "hybrid"): lambda r, n: (2 * r + 1) ** 2 * (2 * r + n),
    (star, 2, "parallel"): lambda r, n: (2 * r + n) + 2 * r * n,
    (star, 2, "orthogonal"): lambda r, n: 2 * (2 * r + n),
    (star, 3, "parallel"): lambda r, n: (2 * r + n) + 4 * r * n,
    (star, 3, "orthogonal"): lambda r, n: 3 * (2 * r + n),
    (star, 3, "hybrid"): lambda r, n: 2 * (2 * r + n) + 2 * r * n,
}


@pytest.mark.parametrize("radius", [1, 2, 3])
@pytest.mark.parametrize("shape, rank, option", PAPER)
def test_executed_outer_products_are_those_of_the_paper(shape, rank, option, radius):
    offsets, weights = shape(rank, radius)
    lines = cover(scatter(offsets, weights), option)
    unroll = (1, 2) if rank == 2 or radius == 3 else (2, 1)
    plan = schedule(lines, blocks(lines, unroll))
    for n in (8,) if rank == 3 else (6, 8, 16):
        found = check_execution(plan, offsets, weights, n, copies=1)
        per_tile = sum(c["outer_products"] / c["blocks"] / math.prod(unroll) for c in found)
        assert per_tile == PAPER[shape, rank, option](radius, n)


@pytest.mark.parametrize("radius", [1, 2, 3])
@pytest.mark.parametrize("shape, rank, option", PAPER)
def test_counted_outer_products_are_those_of_the_paper(shape, rank, option, radius):
    lines = cover(scatter(*shape(rank, radius)), option)
    plan = schedule(lines, best_blocks(lines, 8, 8, [None] * rank))
    for n in (8, 16, 32):
        products = sum(
            counts(sweep, "load", False).outer_products.at(n) / math.prod(sweep.block.unroll)
            for sweep in plan.sweeps
        )
        assert products == PAPER[shape, rank, option](radius, n)


@pytest.mark.parametrize(
    "name", [name for name, kernel in built_in_kernels().items() if kernel.rank in (2, 3)]
)
def test_kernels_through_all_passes(name):
    kernel = built_in_kernels()[name]
    for option in ("auto", *OPTIONS):
        # The verifiers prove each; those with the most kinds of lines are run, too.
        block = "unroll=2" if kernel.rank == 2 else "unroll=2,1"
        plan = plan_by_passes(kernel.offsets, kernel.weights, cover=f"option={option}", block=block)
        if option == "orthogonal" or (option == "diagonal" and kernel.rank == 2):
            n = max(smallest_length(plan), 4)
            check_execution(plan, kernel.offsets, kernel.weights, n, copies=1)


def test_vectors_that_segments_cannot_order_are_lengthened():
    """Lines 20 rows apart: vectors of 8 elements still run it, at the price of zeros."""
    offsets, weights = [(-10, 0), (10, 1)], [1.0, 2.0]
    lines = cover(scatter(offsets, weights), "parallel")
    plan = schedule(lines, blocks(lines, (1, 2)))
    assert smallest_length(plan) == 8
    assert sorted(len(line.weights) for line in plan.lines) == [1, 13]
    check_execution(plan, offsets, weights, 8)


@pytest.mark.parametrize("by, least", [("load", 6), ("splice", 6)])
def test_smallest_length_of_transpositions(by, least):
    """A column line of seven weights needs one more transposed matrix for vectors of fewer."""
    offsets, weights = [(0, k) for k in range(-3, 4)], [1.0 + k for k in range(7)]
    line = Line((0, 1), (0, -3), tuple(reversed(weights)))
    plan = schedule([line], blocks([line], (1, 3)), by)
    assert smallest_length(plan) == least
    check_execution(plan, offsets, weights, least)


def star_plan(option="orthogonal"):
    offsets, weights = star(2, 2)
    lines = cover(scatter(offsets, weights), option)
    return schedule(lines, blocks(lines, (1, 2))), stencil(offsets, weights)


def with_segment(plan, **changes):
    sweep = plan.sweeps[0]
    rows = (replace(sweep.rows[0], **changes), *sweep.rows[1:])
    return replace(plan, sweeps=(replace(sweep, rows=rows),))


def with_vector(plan, **changes):
    segment = plan.sweeps[0].rows[0]
    vectors = (replace(segment.vectors[0], **changes), *segment.vectors[1:])
    return with_segment(plan, vectors=vectors)


def with_transposition(plan, **changes):
    sweep = plan.sweeps[0]
    transpositions = (replace(sweep.transpositions[0], **changes), *sweep.transpositions[1:])
    return replace(plan, sweeps=(replace(sweep, transpositions=transpositions),))


FAULTS = {
    "one row less": lambda plan: with_segment(plan, stop=Affine(1, 1)),
    "one row more": lambda plan: with_segment(plan, start=Affine(-3)),
    "rows that do not grow with the vector": lambda plan: with_segment(plan, stop=Affine(8)),
    "rows that grow too fast": lambda plan: with_segment(plan, stop=Affine(-2, 2)),
    "another shift": lambda plan: with_vector(plan, shift=1),
    "another plane": lambda plan: with_vector(plan, plane=1),
    "a neighbour's vector": lambda plan: with_vector(plan, column=1),
    "a product twice": lambda plan: with_vector(plan, products=(Product(0, (0, 0)),) * 2),
    "a tile that is not there": lambda plan: with_vector(plan, products=(Product(0, (0, 2)),)),
    "a line of columns for rows": lambda plan: with_vector(plan, products=(Product(1, (0, 0)),)),
    "a tile without its product": lambda plan: with_segment(
        plan, vectors=plan.sweeps[0].rows[0].vectors[1:]
    ),
    "no products": lambda plan: with_segment(plan, vectors=()),
    "another row of a transposition": lambda plan: with_transposition(plan, row=1),
    "another column of a transposition": lambda plan: with_transposition(plan, column=-1),
    "too few columns of the last matrix": lambda plan: with_transposition(plan, reach=3),
    "a transposition less": lambda plan: replace(
        plan, sweeps=(replace(plan.sweeps[0], transpositions=()),)
    ),
    "a sweep twice": lambda plan: replace(plan, sweeps=plan.sweeps * 2),
    "another weight": lambda plan: replace(
        plan, lines=(replace(plan.lines[0], weights=(9.0,) * 5), plan.lines[1])
    ),
}


@pytest.mark.parametrize("fault", FAULTS)
def test_faulty_schedules_are_refused(fault):
    plan, expected = star_plan()
    assert check_schedule(plan, expected) is None
    message = check_schedule(FAULTS[fault](plan), expected)
    assert message is not None
    assert message.startswith("expected ")


def test_faulty_blocks_are_refused():
    plan, _ = star_plan()
    block = plan.sweeps[0].block
    assert check_blocks([block], plan.lines) is None
    for faulty in (
        replace(block, lines=(0,)),
        replace(block, lines=(0, 1, 1)),
        replace(block, unroll=(2, 1)),
        replace(block, unroll=(1, 0)),
        replace(block, unroll=(1, 10**9)),
        replace(block, skew=1),
        replace(block, row_axis=1),
    ):
        assert check_blocks([faulty], plan.lines) is not None


def test_faulty_lines_are_refused():
    offsets, weights = star(2, 1)
    lines = cover(scatter(offsets, weights), "parallel")
    expected = stencil(offsets, weights)
    assert check_lines(lines, expected) is None
    assert check_lines(lines[1:], expected) is not None
    assert check_lines((*lines, lines[0]), expected) is not None
    assert check_lines((replace(lines[0], direction=(2, 1)), *lines[1:]), expected) is not None
    mirrored = cover(scatter([(-i, -j) for i, j in offsets], weights), "parallel")
    assert check_lines(mirrored, expected) is not None


def test_registers_hold_tiles_and_transpositions():
    plan, _ = star_plan()
    assert registers(plan.sweeps[0].block, plan.lines) == 2 + 2
    plan, _ = star_plan("parallel")
    assert registers(plan.sweeps[0].block, plan.lines) == 2


@pytest.mark.parametrize("limit, n", [(8, 8), (4, 16)])
@pytest.mark.parametrize("rank, radius", [(2, 1), (2, 3), (3, 1), (3, 2)])
@pytest.mark.parametrize("shape", [box, star])
def test_chosen_blocks_fit_and_none_that_fits_is_cheaper(shape, rank, radius, limit, n):
    for option in ("parallel", "hybrid"):
        lines = cover(scatter(*shape(rank, radius)), option)
        chosen = best_blocks(lines, limit, n, [None] * rank)
        assert all(registers(block, lines) <= limit for block in chosen)
        best = instructions_per_tile(schedule(lines, chosen), n)
        for unroll in ((1, 1), (1, 2), (1, 4), (1, 8), (2, 2), (4, 1), (8, 1), (4, 2)):
            if rank == 2 and unroll[0] > 1:
                continue
            other = blocks(lines, unroll)
            if all(registers(block, lines) <= limit for block in other):
                assert best <= instructions_per_tile(schedule(lines, other), n)


def test_chosen_blocks_are_no_larger_than_the_output():
    lines = cover(scatter(*star(3, 1)), "parallel")
    (block,) = best_blocks(lines, 8, 8, (3, 100, 17))
    assert block.unroll == (2, 2)


def test_registers_too_few_for_a_tile_leave_one():
    lines = cover(scatter(*star(2, 1)), "orthogonal")
    assert best_blocks(lines, 1, 8, [None, None])[0].unroll == (1, 1)


def test_auto_takes_what_the_paper_found_fastest():
    """Figure 3: parallel at order 1, orthogonal above; boxes are parallel."""
    choices = {
        (shape, rank, radius): best_cover(scatter(*shape(rank, radius)), 8, 8, [None] * rank)[0]
        for shape in (box, star)
        for rank in (2, 3)
        for radius in (1, 2, 3)
    }
    for (shape, _, radius), option in choices.items():
        assert option == ("parallel" if shape is box or radius == 1 else "orthogonal")


def test_auto_takes_no_cover_that_vectors_are_too_short_for():
    """One column line of 13 weights has to be read from vectors of 12 elements or more."""
    terms = scatter([(0, k) for k in range(-6, 7)], [1.0 + k * k for k in range(13)])
    assert best_cover(terms, 8, 8, [None, None])[0] == "parallel"
    assert best_cover(terms, 8, 16, [None, None])[0] == "orthogonal"


def test_auto_takes_diagonals_for_an_x():
    offsets = [(k, k) for k in range(-3, 4)] + [(k, -k) for k in range(-3, 4) if k]
    terms = scatter(offsets, [1.0 + k for k in range(len(offsets))])
    option, lines = best_cover(terms, 8, 8, [None, None])
    assert (option, len(lines)) == ("diagonal", 2)


def test_unrolls_that_no_block_can_have():
    lines = cover(scatter(*star(2, 1)), "parallel")
    with pytest.raises(TwofourError, match="expected positive unroll factors"):
        blocks(lines, (1, 0))
    with pytest.raises(TwofourError, match="expected one plane of tiles in rank 2, got 2"):
        blocks(lines, (2, 1))
