# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Random stencils of three axes whose steps are skewed: the bits of single steps."""

from dataclasses import dataclass

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import kernel_cases as cases
from native_cases import cut_planes, share_small_work, skew_small_arrays
from random_kernels import kernels
from twofour.kernels import Kernel
from twofour.runtime import parse_boundary
from twofour.runtime.rounds.stepping import SkewedSteps
from twofour.runtime.tiles import stepping as tiled_stepping

EXAMPLES = 25


@dataclass(frozen=True)
class Example:
    kernel: Kernel
    shape: tuple[int, int, int]
    halo: tuple[tuple[int, int], ...] | None
    boundary: str
    dtype: str
    threads: int
    steps: int
    width: int | None


@st.composite
def examples(draw) -> Example:
    kernel = draw(kernels(ranks=(3,), farthest=3))
    shape = draw(st.integers(80, 200)), draw(st.integers(1, 24)), draw(st.integers(1, 20))
    beyond = st.integers(0, 2)
    halo = draw(st.none() | st.tuples(*[st.tuples(beyond, beyond)] * 3))
    boundary = ",".join(draw(st.tuples(*[st.sampled_from(cases.MODES)] * 3)))
    return Example(
        kernel,
        shape,
        halo,
        boundary,
        draw(st.sampled_from(("f64", "f32", "bf16"))),
        draw(st.sampled_from((1, 2, 3))),
        draw(st.integers(6, 24)),
        draw(st.sampled_from((None, 8, 5))),
    )


def with_halo(example: Example):
    """The extents of the array, and the interior that it holds, None where it is the domain."""
    if example.halo is None:
        return example.shape, None
    reaches = [
        (max(0, -min(column)), max(0, max(column)))
        for column in zip(*example.kernel.offsets, strict=True)
    ]
    lower = tuple(reach[0] + more[0] for reach, more in zip(reaches, example.halo, strict=True))
    upper = tuple(map(sum, zip(lower, example.shape, strict=True)))
    ends = zip(upper, reaches, example.halo, strict=True)
    return tuple(end + reach[1] + more[1] for end, reach, more in ends), (lower, upper)


def check(example: Example, monkeypatch) -> None:
    if example.width is not None:
        cut_planes(monkeypatch, example.width)
    shape, interior = with_halo(example)
    u = cases.stored(cases.random_values(example.steps, shape, example.dtype), example.dtype)
    executable = cases.compiled(example.kernel, example.dtype, "direct")
    boundary = parse_boundary(example.boundary, 3)
    single = executable.linear_stepper(boundary, 1, interior, tile=(1, shape))
    expected = u
    for _ in range(example.steps):
        expected = single.advance(expected, 1)
    stepper = executable.linear_stepper(boundary, example.threads, interior)
    cases.assert_same_bits(stepper.advance(u, example.steps), expected, example)


def test_random_stencils(monkeypatch):
    share_small_work(monkeypatch)
    monkeypatch.setattr(tiled_stepping, "WORTH_PLANNING", 0)
    monkeypatch.setattr(tiled_stepping, "is_skewing_faster", lambda *_: True)
    runs, run = [], SkewedSteps.run

    def counted(self, *arguments):
        runs.append(self.rounds.cutting is not None)
        return run(self, *arguments)

    monkeypatch.setattr(SkewedSteps, "run", counted)

    @settings(
        max_examples=EXAMPLES,
        deadline=None,
        derandomize=True,
        database=None,
        suppress_health_check=list(HealthCheck),
    )
    @given(examples())
    def each(example):
        with pytest.MonkeyPatch.context() as patch:
            skew_small_arrays(patch)
            check(example, patch)

    each()
    assert len(runs) > EXAMPLES // 2 and any(runs) and not all(runs)
