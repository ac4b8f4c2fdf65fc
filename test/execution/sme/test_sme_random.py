# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Random stencils, extents, covers and vector lengths for Arm SME: no mismatch in any of them."""

import itertools
import tempfile
from dataclasses import dataclass
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from sme_cases import VECTOR_BITS, build, check, expected_output, random_input, weighted
from twofour.kernels import Kernel
from twofour.targets.sme.options import COVERS

QUICK, FULL = 12, 300
LONGEST = {2: 6, 3: 3}


@dataclass(frozen=True)
class Example:
    kernel: Kernel
    cover: str
    element: str
    runs: tuple[tuple[tuple[int, ...], int, str], ...]


@st.composite
def kernels(draw) -> Kernel:
    rank = draw(st.sampled_from((2, 2, 3)))
    limits = []
    for _ in range(rank):
        length, first = draw(st.integers(1, LONGEST[rank])), draw(st.integers(-4, 2))
        limits.append(range(first, first + length))
    points = list(itertools.product(*limits))
    count = draw(st.integers(1, len(points)))
    random = draw(st.randoms(use_true_random=True))
    return weighted("random", sorted(random.sample(points, count)))


@st.composite
def examples(draw) -> Example:
    kernel = draw(kernels())
    rows = st.tuples(*[st.integers(1, 40)] * (kernel.rank - 1))
    # Whole blocks, too, which are as wide as several vectors.
    columns = st.one_of(st.integers(1, 200), st.sampled_from((32, 64, 128)))
    run = st.tuples(
        st.builds(lambda r, c: (*r, c), rows, columns),
        st.sampled_from(VECTOR_BITS),
        st.sampled_from(("begin", "end")),
    )
    return Example(
        kernel,
        draw(st.sampled_from(COVERS)),
        draw(st.sampled_from(("f64", "f32"))),
        tuple(draw(st.lists(run, min_size=4, max_size=4))),
    )


def check_example(example: Example) -> None:
    with tempfile.TemporaryDirectory() as folder:
        program = build(Path(folder), example.kernel, example.cover, example.element)
        for extents, bits, guard in example.runs:
            values = random_input(example.kernel, extents, example.element)
            expected = expected_output(example.kernel, values)
            check(program.run(values, bits, guard=guard), expected, example.element)


CHECKS = {
    "deadline": None,
    "derandomize": True,
    "database": None,
    "suppress_health_check": list(HealthCheck),
}


@settings(max_examples=QUICK, **CHECKS)
@given(examples())
def test_random_stencils(example):
    check_example(example)


@pytest.mark.full
@settings(max_examples=FULL, **CHECKS)
@given(examples())
def test_many_random_stencils(example):
    check_example(example)
