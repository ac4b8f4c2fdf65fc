# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Time stepping of compiled kernels: many steps, fused steps, threads, and reproducible bits."""

import itertools

import pytest

import kernel_cases as cases
import reference
from turns import in_turn
from twofour.kernels import Kernel
from twofour.runtime.recent import Recent
from twofour.runtime.threads import WAKING_POINTS
from twofour.targets.cpu import jit
from twofour.targets.cpu.executable import CpuExecutable

# One of each rank and shape, lopsided ones among them.
NAMES = (
    "advect1d_beam_warming",
    "laplacian1d_o8",
    "lbm_d2q9_advection_diffusion",
    "wrf_advection5_2d",
    "advect_diffuse3d_upwind",
    "elastic_staggered_div3d_o4",
)


def input_of(kernel: Kernel, dtype: str, shape: tuple[int, ...], seed: int = 1):
    values = cases.random_values(seed, shape, dtype)
    return values, cases.stored(values, dtype)


def check_single_steps(kernel: Kernel, dtype: str, schedule: str, shape) -> None:
    """`steps=T` has the bits of T single steps, and each is one step of the state before it."""
    for boundary in cases.boundaries(kernel.rank):
        _, u = input_of(kernel, dtype, shape)
        stepper = cases.stepper(kernel, dtype, schedule, boundary)
        count = 4 if cases.holds(kernel, dtype, 4) else 1
        state = u
        for _ in range(count):
            before, state = state, stepper.advance(state, 1)
            exact = reference.run(
                cases.numbers(before), kernel.offsets, kernel.weights, boundary, 1
            )
            sums = cases.absolute_sums(exact, kernel, boundary)
            pairs = schedule == "direct" and cases.rows_in_pairs(kernel)
            bound = cases.error_bounds(exact, sums, dtype, kernel, boundary, pairs=pairs)[1]
            assert cases.within(state, exact[1], bound), boundary
        cases.assert_same_bits(stepper.advance(u, count), state, boundary)


@pytest.mark.parametrize("schedule", cases.SCHEDULES)
@pytest.mark.parametrize(
    ("name", "dtype"),
    list(zip(NAMES, itertools.cycle(("bf16", "f32", "f16", "f64")), strict=False)),
)
def test_steps_are_single_steps(name, dtype, schedule):
    kernel = cases.KERNELS[name]
    check_single_steps(kernel, dtype, schedule, {1: (65,), 2: (7, 31), 3: (2, 7, 31)}[kernel.rank])


@pytest.mark.full
@pytest.mark.parametrize("dtype", cases.DTYPES)
@pytest.mark.parametrize("name", cases.KERNELS)
def test_steps_are_single_steps_everywhere(name, dtype):
    kernel = cases.KERNELS[name]
    shapes = {
        1: [(1,), (65,), (257,)],
        2: [(7, 31), (2, 65), (64, 1)],
        3: [(2, 7, 31), (7, 1, 65), (31, 7, 2)],
    }
    for schedule, shape in itertools.product(cases.SCHEDULES, shapes[kernel.rank]):
        check_single_steps(kernel, dtype, schedule, shape)


def check_fused(kernel: Kernel, dtype: str, fuse_steps: int, schedule: str, shapes) -> int:
    """Fused steps within the bound at every point; returns how many runs show another rounding."""
    fused_runs = 0
    for boundary, shape in itertools.product(cases.boundaries(kernel.rank), shapes):
        values, u = input_of(kernel, dtype, shape)
        stepper = cases.stepper(kernel, dtype, schedule, boundary, fuse_steps=fuse_steps)
        most = 2 * fuse_steps + 1
        states = reference.run(values, kernel.offsets, kernel.weights, boundary, most)
        for steps in (1, fuse_steps, most):
            if not cases.holds(kernel, dtype, steps):
                continue
            got = stepper.advance(u, steps)
            bound = cases.fused_bound(states[: steps + 1], dtype, kernel, fuse_steps, boundary)
            what = f"{kernel.name} {dtype} {shape} {boundary}, {steps} steps by {fuse_steps}"
            assert cases.within(got, states[steps], bound), what
            single = cases.stepper(kernel, dtype, schedule, boundary).advance(u, steps)
            if steps == 1:
                cases.assert_same_bits(got, single, what)
            fused_runs += got.tobytes() != single.tobytes()
    return fused_runs


FUSED_SHAPES = {
    1: [(1,), (7,), (31,), (65,), (257,)],
    2: [(1, 7), (7, 31), (31, 64), (65, 2), (30, 29)],
    3: [(1, 2, 7), (7, 31, 7), (13, 14, 15), (31, 2, 31)],
}


FUSED = [
    ("heat1d_ftcs", "f16", "direct"),
    ("advect1d_beam_warming", "f64", "sparse"),
    ("heat2d_ftcs", "bf16", "sparse"),
    ("wrf_advection5_2d", "f32", "direct"),
    ("advect_diffuse3d_upwind", "f16", "sparse"),
    ("heat3d_ftcs", "f64", "direct"),
]


@pytest.mark.parametrize("name, dtype, schedule, fuse_steps", list(in_turn(FUSED, [(2,), (3,)], 2)))
def test_fused_steps(name, dtype, schedule, fuse_steps):
    kernel = cases.KERNELS[name]
    assert check_fused(kernel, dtype, fuse_steps, schedule, FUSED_SHAPES[kernel.rank]) > 0


@pytest.mark.full
@pytest.mark.parametrize("fuse_steps", [2, 3])
@pytest.mark.parametrize("name", [n for n, k in cases.KERNELS.items() if len(k.weights) <= 30])
def test_fused_steps_everywhere(name, fuse_steps):
    """Two element types by twos and the other two by threes."""
    kernel = cases.KERNELS[name]
    for dtype, schedule in zip(cases.DTYPES[fuse_steps - 2 :: 2], cases.SCHEDULES, strict=True):
        check_fused(kernel, dtype, fuse_steps, schedule, FUSED_SHAPES[kernel.rank])


@pytest.mark.parametrize("schedule", cases.SCHEDULES)
@pytest.mark.parametrize(
    ("name", "shape", "dtype"),
    [
        ("laplacian1d_o8", (2 * WAKING_POINTS + 77,), "f32"),
        ("gauss7x7_binomial", (401, 3 * WAKING_POINTS // 400), "f16"),
        ("elastic_staggered_div3d_o4", (5, 257, 3 * WAKING_POINTS // 1000), "bf16"),
        ("heat2d_ftcs", (3, WAKING_POINTS), "f64"),
    ],
)
def test_threads_give_the_same_bits(name, shape, dtype, schedule):
    kernel = cases.KERNELS[name]
    _, u = input_of(kernel, dtype, shape)
    for boundary in cases.boundaries(kernel.rank)[:: 2 if kernel.rank < 3 else 3]:
        one, two, five = (
            cases.stepper(kernel, dtype, schedule, boundary, threads).advance(u, 2)
            for threads in (1, 2, 5)
        )
        cases.assert_same_bits(two, one, boundary)
        cases.assert_same_bits(five, one, boundary)


@pytest.mark.parametrize(
    ("name", "shape"), [("heat2d_ftcs", (67, 3301)), ("heat3d_ftcs", (41, 73, 79))]
)
def test_threads_give_the_same_bits_of_fused_steps(name, shape):
    kernel = cases.KERNELS[name]
    _, u = input_of(kernel, "f64", shape)
    for boundary in cases.boundaries(kernel.rank)[::2]:
        one, three = (
            cases.stepper(kernel, "f64", "direct", boundary, threads, fuse_steps=2).advance(u, 5)
            for threads in (1, 3)
        )
        cases.assert_same_bits(three, one, boundary)


@pytest.mark.parametrize("schedule", cases.SCHEDULES)
@pytest.mark.parametrize("name", ["tti2d_gzz_o4", "curlcurl_diag3d"])
def test_compiling_twice_gives_the_same_bits(name, schedule, monkeypatch):
    monkeypatch.setattr(jit, "RECENT", Recent(0))
    kernel = cases.KERNELS[name]
    _, u = input_of(kernel, "f32", (31, 65, 7)[: kernel.rank])
    boundary = ("reflect",) * kernel.rank
    first = cases.stepper(kernel, "f32", schedule, boundary).advance(u, 3)
    cases.compiled.cache_clear()
    assert isinstance(cases.compiled(kernel, "f32", schedule), CpuExecutable)
    again = cases.stepper(kernel, "f32", schedule, boundary)
    for _ in range(2):
        cases.assert_same_bits(again.advance(u, 3), first)
