# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Random stencils against the float64 reference: no mismatch in any of them."""

from dataclasses import dataclass

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import kernel_cases as cases
import reference
from random_kernels import kernels
from twofour.kernels import Kernel

QUICK, FULL = 40, 2000
MOST_POINTS = {1: 1000, 2: 20000, 3: 5000}


@dataclass(frozen=True)
class Example:
    kernel: Kernel
    shape: tuple[int, ...]
    boundary: tuple[str, ...]
    dtype: str
    schedules: tuple[str, ...]
    threads: int
    steps: int
    fuse_steps: int
    seed: int


@st.composite
def examples(draw) -> Example:
    kernel = draw(kernels())
    shape, points = [], 1
    for axis in draw(st.permutations(range(kernel.rank))):
        most = max(1, min(300, MOST_POINTS[kernel.rank] // points))
        extent = min(most, draw(st.sampled_from(cases.EXTENTS) | st.integers(1, 40)))
        shape.append((axis, extent))
        points *= extent
    modes = st.sampled_from(cases.MODES)
    boundary = draw(st.tuples(*[modes] * kernel.rank) | modes.map(lambda m: (m,) * kernel.rank))
    fuse_steps = draw(st.sampled_from((1, 1, 1, 2)))
    return Example(
        kernel,
        tuple(extent for _, extent in sorted(shape)),
        boundary,
        draw(st.sampled_from(cases.DTYPES)),
        draw(st.sampled_from((("direct",), ("sparse",), cases.SAME_BITS))),
        draw(st.sampled_from((1, 2))),
        draw(st.sampled_from((1, 2, 3, 4))),
        fuse_steps,
        draw(st.integers(0, 2**16)),
    )


def check(example: Example) -> None:
    kernel, dtype, boundary = example.kernel, example.dtype, example.boundary
    values = cases.random_values(example.seed, example.shape, dtype)
    u = cases.stored(values, dtype)
    steps = max(n for n in range(1, example.steps + 1) if n == 1 or cases.holds(kernel, dtype, n))
    states = reference.run(values, kernel.offsets, kernel.weights, boundary, steps)
    if example.fuse_steps > 1:
        bound = cases.fused_bound(states, dtype, kernel, example.fuse_steps, boundary)
    else:
        sums = cases.absolute_sums(states, kernel, boundary)
        pairs = example.schedules == ("direct",) and cases.rows_in_pairs(kernel)
        bound = cases.error_bounds(states, sums, dtype, kernel, boundary, pairs=pairs)[-1]
    options = {"threads": example.threads, "fuse_steps": example.fuse_steps}
    results = [
        cases.stepper(kernel, dtype, schedule, boundary, **options).advance(u, steps)
        for schedule in example.schedules
    ]
    for result in results[1:]:
        cases.assert_same_bits(result, results[0])
    assert cases.within(results[0], states[-1], bound)
    if dtype in cases.TOLERANCE:
        error = np.abs(cases.numbers(results[0]) - states[-1])
        assert cases.relative_error(error, states, kernel, boundary) <= cases.TOLERANCE[dtype]
    if example.fuse_steps == 1:
        state = u
        for _ in range(steps):
            state = cases.stepper(kernel, dtype, example.schedules[0], boundary).advance(state, 1)
        cases.assert_same_bits(results[0], state)


@pytest.fixture(autouse=True, scope="module")
def split_small_arrays():
    """Two threads share arrays of any size, so that sweeps begin and end anywhere."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("twofour.runtime.threads.WAKING_POINTS", 1)
        yield


def run_examples(draws: int) -> set[Example]:
    """Check the distinct ones among `draws` random examples, the same ones each time."""
    checked: set[Example] = set()

    @settings(
        max_examples=draws,
        deadline=None,
        derandomize=True,
        database=None,
        suppress_health_check=list(HealthCheck),
    )
    @given(examples())
    def each(example):
        if example not in checked:
            check(example)
            checked.add(example)

    each()
    return checked


def test_random_stencils():
    checked = run_examples(QUICK + QUICK // 2)
    assert len(checked) >= QUICK
    assert {example.dtype for example in checked} == set(cases.DTYPES)
    assert {len(example.shape) for example in checked} == {1, 2, 3}
    assert {mode for example in checked for mode in example.boundary} == set(cases.MODES)
    assert {len(example.schedules) for example in checked} == {1, 2}


@pytest.mark.full
def test_two_thousand_random_stencils():
    checked = run_examples(FULL + FULL // 4)
    print(f"{len(checked)} distinct examples")
    assert len(checked) >= FULL
    assert {example.kernel.radius for example in checked} == set(range(9))
    assert sum(len(example.kernel.weights) > 8 for example in checked) >= FULL // 5
