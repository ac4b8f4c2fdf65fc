# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""What code for Arm SME executes: the outer products of the paper, and few instructions else.

Counted by a plugin of the emulator, at vectors of 512 bits: n = 8 elements of f64.
"""

import dataclasses

import pytest

from sme_cases import (
    box,
    build,
    build_plain,
    check,
    expected_output,
    kernel_functions,
    link,
    mirrored,
    random_input,
    star,
)
from twofour.codegen.sme.kernel import OuterKernel
from twofour.dialects.stencil.transforms import outer_to_sme
from twofour.targets.sme.build import compile_sme
from twofour.targets.sme.options import SmeOptions

BITS, N = 512, 8
# Whole blocks, of which the smallest has 8 x 64 outputs in two dimensions.
EXTENTS = {2: (16, 128), 3: (8, 16, 64)}


def tiles(extents):
    product = 1
    for extent in extents:
        product *= extent
    return product // (N * N)


def products(kernel, cover, radius):
    """Outer products of a tile: Stencil Matrixization, section 3.4 (boxes), Tables 1 and 2."""
    r, line, rank = radius, 2 * radius + N, kernel.rank
    if kernel.name.startswith("box"):
        return (2 * r + 1) ** (rank - 1) * line
    return {
        ("parallel", 2): line + 2 * r * N,
        ("orthogonal", 2): 2 * line,
        ("parallel", 3): line + 4 * r * N,
        ("orthogonal", 3): 3 * line,
        ("hybrid", 3): 2 * line + 2 * r * N,
    }[cover, rank]


@pytest.mark.parametrize("radius", [1, 2, 3])
@pytest.mark.parametrize(
    ("shape", "rank", "cover"),
    [
        (box, 2, "parallel"),
        (box, 3, "parallel"),
        (star, 2, "parallel"),
        (star, 2, "orthogonal"),
        (star, 3, "parallel"),
        (star, 3, "orthogonal"),
        (star, 3, "hybrid"),
    ],
)
def test_outer_products(tmp_path, shape, rank, cover, radius):
    kernel, extents = shape(rank, radius), EXTENTS[rank]
    program = build(tmp_path, kernel, cover)
    values = random_input(kernel, extents, "f64")
    got, counts = program.count(values, BITS, kernel_functions(kernel))
    check(got, expected_output(kernel, values), "f64")
    assert counts["fmopa"] == products(kernel, cover, radius) * tiles(extents)


@pytest.mark.parametrize(
    ("kernel", "cover", "least", "most"),
    [
        (box(2, 1), "parallel", 1.8, 89),
        (box(2, 2), "parallel", 2.2, 158),
        (box(2, 3), "parallel", 4.0, 245),
        (star(2, 1), "parallel", 1.0, 83),
        (star(2, 2), "parallel", 1.15, 123),
        (star(2, 3), "parallel", 1.2, 165),
        (star(2, 3), "orthogonal", 1.2, 154),
        (box(3, 1), "parallel", 2.4, 192),
    ],
    ids=lambda value: getattr(value, "name", value),
)
def test_fewer_instructions_than_vectorised_loops(tmp_path, kernel, cover, least, most):
    """At least `least` times fewer, and at most `most` for the 64 outputs of a tile."""
    kernel = mirrored(kernel)
    extents = (64, 512) if kernel.rank == 2 else (16, 32, 64)
    values = random_input(kernel, extents, "f64")
    expected = expected_output(kernel, values)
    plain = build_plain(tmp_path, kernel, extents)
    got, theirs = plain.count(values, BITS, "plain")
    check(got, expected, "f64")
    # Vectors of the same length: N outputs are stored at a time.
    assert theirs["st1d"] <= 1.05 * N * tiles(extents)
    got, ours = build(tmp_path, kernel, cover).count(values, BITS, kernel_functions(kernel))
    check(got, expected, "f64")
    assert sum(theirs.values()) / sum(ours.values()) >= least
    assert sum(ours.values()) <= most * tiles(extents)


def without_its_first_product(plan):
    """A schedule that no verifier would let through."""
    sweep = plan.sweeps[0]
    vector, *vectors = sweep.rows[0].vectors
    vector = dataclasses.replace(vector, products=vector.products[1:])
    segment = dataclasses.replace(sweep.rows[0], vectors=(vector, *vectors))
    sweep = dataclasses.replace(sweep, rows=(segment, *sweep.rows[1:]))
    return dataclasses.replace(plan, sweeps=(sweep, *plan.sweeps[1:]))


def test_a_dropped_product_shows(tmp_path, monkeypatch):
    kernel, extents = box(2, 1), EXTENTS[2]

    def mutated(name, plan, *others):
        return OuterKernel(name, without_its_first_product(plan), *others)

    monkeypatch.setattr(outer_to_sme, "OuterKernel", mutated)
    compiled = compile_sme(kernel, SmeOptions("parallel", "f64"))
    program = link(tmp_path, kernel, "f64", compiled.data, compiled.header)
    values = random_input(kernel, extents, "f64")
    got, counts = program.count(values, BITS, kernel_functions(kernel))
    with pytest.raises(AssertionError, match="expected an error of at most"):
        check(got, expected_output(kernel, values), "f64")
    assert counts["fmopa"] < products(kernel, "parallel", 1) * tiles(extents)
