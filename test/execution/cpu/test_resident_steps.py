# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Single steps in arrays that hold the halo, in native code: the bits of steps without them."""

import gc
import itertools
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest

import kernel_cases as cases
from twofour.runtime import parse_boundary, slices
from twofour.runtime.boundary import refresh_halo
from twofour.runtime.recent import Recent

SHAPES = {1: (331,), 2: (37, 61), 3: (9, 17, 23)}
TILES = {1: [(64,), (400,)], 2: [(8, 20), (40, 70)], 3: [(4, 8, 10), (3, 20, 30)]}
NAMES = ("heat1d_ftcs", "klein_gordon1d_o6", "tti2d_gzz_o4", "advect_diffuse3d_upwind")


def stepper_of(kernel, dtype, boundary, threads=1, interior=None, **tiles):
    executable = cases.compiled(kernel, dtype, "direct")
    boundary = parse_boundary(boundary, kernel.rank)
    return executable.linear_stepper(boundary, threads, interior, **tiles)


def states_of(kernel, dtype, boundary, u, steps, interior=None):
    """What single steps come to, each a call of its own."""
    single = stepper_of(kernel, dtype, boundary, interior=interior, tile=(1, u.shape))
    states = [u]
    for _ in range(steps):
        states.append(single.advance(states[-1], 1))
    return states


@pytest.mark.parametrize(
    "dtype", ["f64", "f32", pytest.param("f16", marks=pytest.mark.full), "bf16"]
)
@pytest.mark.parametrize("name", NAMES)
def test_bits_of_single_steps(name, dtype):
    kernel = cases.KERNELS[name]
    u = cases.stored(cases.random_values(3, SHAPES[kernel.rank], dtype), dtype)
    for modes in itertools.islice(
        itertools.product(cases.MODES, repeat=kernel.rank), 0, None, 5 ** (kernel.rank - 1)
    ):
        boundary = ",".join(modes)
        states = states_of(kernel, dtype, boundary, u, 7)
        for tile, threads in itertools.product(TILES[kernel.rank], (1, 3)):
            stepper = stepper_of(kernel, dtype, boundary, threads, resident=tile)
            for count in (1, 2, 3, 7):
                cases.assert_same_bits(stepper.advance(u, count), states[count], boundary)
                assert bool(stepper.plan(u.shape).programs._programs) == (count == 1)
                stepper._plans = Recent()


@pytest.mark.parametrize("name", ["advect2d_ctu", "arakawa_c_average4", "curlcurl_cross2d"])
@pytest.mark.parametrize("mode", cases.MODES)
def test_tiles_at_ends_that_the_stencil_does_not_reach(mode, name):
    """Cells there are in the halo at the other end: such tiles are unlike those in the middle."""
    kernel, u = cases.KERNELS[name], np.random.default_rng(8).random((32, 160))
    states = states_of(kernel, "f64", mode, u, 3)
    for tile in ((4, 160), (32, 16), (4, 32)):
        stepper = stepper_of(kernel, "f64", mode, 2, resident=tile)
        cases.assert_same_bits(stepper.advance(u, 3), states[3], mode)


@pytest.mark.parametrize("mode", cases.MODES)
def test_arrays_that_hold_the_halo_already(mode):
    kernel, shape = cases.KERNELS["tti2d_gzz_o4"], (33, 47)
    u = np.random.default_rng(5).random(shape)
    interior = (3, 4), (28, 43)
    states = states_of(kernel, "f64", mode, u, 5, interior)
    stepper = stepper_of(kernel, "f64", mode, 2, interior, resident=(10, 40))
    for count in (2, 5):
        result = stepper.advance(u, count)
        cases.assert_same_bits(result, states[count], mode)
        fresh = result.copy()
        refresh_halo(fresh, interior, parse_boundary(mode, 2))
        cases.assert_same_bits(result, fresh, mode)


def test_slices_of_a_run(monkeypatch):
    """Progress is told between slices, whichever sweeps they end with."""
    kernel, u = cases.KERNELS["heat2d_ftcs"], np.random.default_rng(6).random((40, 50))
    states = states_of(kernel, "f64", "periodic", u, 9)
    monkeypatch.setattr(slices, "PROGRESS_INTERVAL", 0)
    for together in (1, 2, 3, 9):
        seconds = slices.POINT_SECONDS * u.size * (together + 0.5)
        monkeypatch.setattr(slices, "CALL_SECONDS", seconds)
        told = []
        stepper = stepper_of(kernel, "f64", "periodic", resident=(40, 50))
        result = stepper.advance(u, 9, lambda *now, told=told: told.append(now))
        cases.assert_same_bits(result, states[9])
        assert told[0][0] == together and told[-1] == (9, 9)


def test_a_long_run_holds_its_halo_and_the_input_stays(monkeypatch):
    kernel, u = cases.KERNELS["heat3d_ftcs"], np.random.default_rng(7).random((40, 40, 40))
    u.flags.writeable = False
    before, states = u.copy(), states_of(kernel, "f64", "periodic", u, 40)
    stepper = stepper_of(kernel, "f64", "periodic", 2)
    result = stepper.advance(u, 40)
    cases.assert_same_bits(result, states[40])
    np.testing.assert_array_equal(u, before)
    assert result.flags.writeable and result.flags.c_contiguous
    programs = stepper.plan(u.shape).programs
    assert programs.are_resident(40) and not programs.are_resident(1) and not programs._programs
    # Not where a program names its tile.
    stepper = stepper_of(kernel, "f64", "periodic", 2, tile=(1, (40, 40, 40)))
    cases.assert_same_bits(stepper.advance(u, 40), states[40])
    assert [program.steps for program in stepper.plan(u.shape).programs._programs.values()] == [1]


@pytest.mark.parametrize("steps", [1, 2, 20])
@pytest.mark.parametrize("tiles", [{"resident": (64, 64)}, {"tile": (1, (64, 64))}])
def test_buffers_are_used_again_at_once(tiles, steps):
    """What a run has made is free when it returns, not when garbage is collected."""
    kernel, u = cases.KERNELS["heat2d_ftcs"], np.zeros((64, 64))
    stepper = stepper_of(kernel, "f64", "periodic", **tiles)
    gc.disable()
    try:
        results = [stepper.advance(u, steps).ctypes.data for _ in range(8)]
    finally:
        gc.enable()
    assert len(set(results)) <= 2


@pytest.mark.parametrize("mode", cases.MODES)
def test_runs_leave_nothing_behind(mode):
    """One stepper on other values, for other times, and on several threads at once."""
    kernel, rng = cases.KERNELS["tti2d_gzz_o4"], np.random.default_rng(9)
    inputs = [rng.random((33, 47)) for _ in range(4)]
    states = [states_of(kernel, "f64", mode, u, 5) for u in inputs]
    stepper = stepper_of(kernel, "f64", mode, 2, resident=(10, 40))
    runs = list(itertools.product(range(len(inputs)), (5, 2, 3)))
    for number, steps in runs:
        result = stepper.advance(inputs[number], steps)
        cases.assert_same_bits(result, states[number][steps], mode)
    with ThreadPoolExecutor(4) as pool:
        results = list(pool.map(lambda run: stepper.advance(inputs[run[0]], run[1]), runs * 4))
    for (number, steps), result in zip(runs * 4, results, strict=True):
        cases.assert_same_bits(result, states[number][steps], mode)
