# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Steps of linear stencils of three axes that are skewed: the bits of single steps."""

import itertools

import numpy as np
import pytest

import kernel_cases as cases
from native_cases import cut_planes, share_small_work, skew_small_arrays
from turns import in_turn
from twofour.kernels import Kernel
from twofour.runtime import parse_boundary, slices
from twofour.runtime.boundary import MODES
from twofour.runtime.page_offset import CACHE_LINE
from twofour.runtime.processor import Caches
from twofour.runtime.rounds import round_tables
from twofour.runtime.rounds.stepping import SkewedSteps
from twofour.runtime.tiles import stepping as tiled_stepping

KERNELS = ("heat3d_ftcs", "elastic_staggered_div3d_o4", "laplacian3d_o6")
SHAPE = (104, 41, 21)
STEPS = (6, 7, 16, 37)


def stepper_of(kernel, dtype, boundary, threads, interior=None, tile=None):
    executable = cases.compiled(kernel, dtype, "direct")
    parsed = parse_boundary(boundary, kernel.rank)
    return executable.linear_stepper(parsed, threads, interior, tile=tile)


@pytest.fixture
def skewed(monkeypatch):
    """Skew small arrays; the runs of skewed steps, by their number of steps."""
    share_small_work(monkeypatch)
    skew_small_arrays(monkeypatch)
    monkeypatch.setattr(tiled_stepping, "WORTH_PLANNING", 0)
    monkeypatch.setattr(tiled_stepping, "is_skewing_faster", lambda *_: True)
    runs, run = [], SkewedSteps.run

    def counted(self, u, steps, *arguments):
        runs.append(steps)
        return run(self, u, steps, *arguments)

    monkeypatch.setattr(SkewedSteps, "run", counted)
    return runs


def states_of(kernel, dtype, boundary, u, interior=None):
    """What every number of single steps leaves."""
    single = stepper_of(kernel, dtype, boundary, 1, interior, (1, u.shape))
    states = [u]
    for _ in range(max(STEPS)):
        states.append(single.advance(states[-1], 1))
    return states


CASES = zip(KERNELS, ("f64", "bf16", "f32"), strict=True)
WAYS = [(False, False), (False, True), (True, True), (True, False)]


@pytest.mark.parametrize("name, dtype, has_halo, is_cut", list(in_turn(CASES, WAYS, 2)))
def test_bits_of_single_steps(name, dtype, has_halo, is_cut, skewed, monkeypatch):
    strips = cut_planes(monkeypatch, 8) if is_cut else []
    kernel, interior, shape = cases.KERNELS[name], None, SHAPE
    if has_halo:
        # More than is needed, and not the same at all ends.
        interior = (3, 4, 3), tuple(3 + extent for extent in SHAPE)
        shape = tuple(extent + 7 for extent in SHAPE)
    u = cases.stored(cases.random_values(3, shape, dtype), dtype)
    before = u.copy()
    # All of them fixed first.
    for modes in itertools.islice(itertools.product(MODES, repeat=3), 0, None, 23):
        boundary = ",".join("constant(0.5)" if mode == "constant" else mode for mode in modes)
        states = states_of(kernel, dtype, boundary, u, interior)
        skewed.clear()
        for threads in (1, 2):
            stepper = stepper_of(kernel, dtype, boundary, threads, interior)
            for steps in STEPS:
                cases.assert_same_bits(stepper.advance(u, steps), states[steps], boundary)
        assert skewed == [*STEPS] * 2
        cases.assert_same_bits(u, before, "the caller's array")
    assert bool(strips) == is_cut


@pytest.mark.parametrize("axis", range(3))
def test_points_along_one_axis(axis, skewed):
    """The other axes have no halo that is refilled, and are too long to be folded."""
    offsets = tuple(tuple(at * (d == axis) for d in range(3)) for at in (-2, 0, 1))
    kernel = Kernel("line", offsets, (0.25, 0.5, 0.125))
    u = cases.random_values(3, (104, 41, 65), "f64")
    for boundary in ("fixed", "zero", "periodic", "reflect,fixed,nearest"):
        states = states_of(kernel, "f64", boundary, u)
        stepper = stepper_of(kernel, "f64", boundary, 2)
        for steps in STEPS:
            cases.assert_same_bits(stepper.advance(u, steps), states[steps], boundary)
    assert skewed == [*STEPS] * 4


def test_results_are_not_written_again(skewed):
    """Runs use the same memory again, but for what callers hold."""
    kernel = cases.KERNELS["heat3d_ftcs"]
    rng = np.random.default_rng(5)
    for boundary in ("fixed", "periodic"):
        stepper = stepper_of(kernel, "f64", boundary, 1)
        fields = [rng.uniform(-1, 1, SHAPE) for _ in range(4)]
        results = [stepper.advance(u, 20) for u in fields]
        for u, result in zip(fields, results, strict=True):
            expected = stepper_of(kernel, "f64", boundary, 1, tile=(1, SHAPE)).advance(u, 20)
            cases.assert_same_bits(result, expected, boundary)
        # Of arrays with a halo none is a result: both are there for the next run.
        assert len(stepper.larger_pool._idle) == (0 if boundary == "fixed" else 2)
    assert len(skewed) == 8


def test_arrays_in_the_nearer_caches_keep_their_tiles(monkeypatch):
    """Steps would be skewed there to meet less often: what data take is not known."""
    monkeypatch.setattr(round_tables, "caches", lambda: Caches(1 << 21, 1 << 26, 12))
    monkeypatch.setattr(tiled_stepping, "WORTH_PLANNING", 0)
    stepper = stepper_of(cases.KERNELS["heat3d_ftcs"], "f32", "fixed", 2)
    shape = (200, 40, 40)
    stepper.advance(np.ones(shape, np.float32), 6)
    programs = stepper.plan(shape).programs
    assert programs._skewed.rounds.depth > 6 and programs._skewed.cycles(6) is None
    assert programs.skewed(6) is None


def test_interiors_begin_on_cache_lines(skewed):
    stepper = stepper_of(cases.KERNELS["heat3d_ftcs"], "f64", "fixed", 1)
    result = stepper.advance(np.ones(SHAPE), 20)
    assert skewed == [20]
    assert result[1:, 1:, 1:].ctypes.data % CACHE_LINE == 0


def test_progress_of_skewed_steps(skewed, monkeypatch):
    kernel, told = cases.KERNELS["heat3d_ftcs"], []
    stepper = stepper_of(kernel, "f64", "periodic", 1)
    monkeypatch.setattr(slices, "PROGRESS_INTERVAL", 0)
    monkeypatch.setattr(slices, "CALL_SECONDS", 0)
    stepper.advance(np.ones(SHAPE), 100, lambda *now: told.append(now))
    assert told[-1] == (100, 100) and len(told) > 3
    assert [done for done, _ in told] == sorted(done for done, _ in told)
    assert skewed == [100]


def test_when_steps_are_skewed(skewed, monkeypatch):
    """Many of three axes, after as much work as planning takes, where no tile is given."""
    star, square = cases.KERNELS["heat3d_ftcs"], cases.KERNELS["heat2d_ftcs"]
    u, points = np.ones(SHAPE), 102 * 39 * 19

    def are_skewed(steps, kernel=star, u=u, **options):
        skewed.clear()
        stepper_of(kernel, "f64", "fixed", 1, **options).advance(u, steps)
        return bool(skewed)

    assert are_skewed(6) and not are_skewed(5)
    assert not are_skewed(6, tile=(2, SHAPE))
    assert not are_skewed(100, square, np.ones((500, 400)))
    monkeypatch.setattr(tiled_stepping, "WORTH_PLANNING", 20 * points)
    assert are_skewed(20) and not are_skewed(19)
    stepper = stepper_of(star, "f64", "fixed", 1)
    skewed.clear()
    for _ in range(3):
        stepper.advance(u, 8)
    assert skewed == [8]
    # Tiles are taken where they are expected to be as fast.
    monkeypatch.setattr(tiled_stepping, "is_skewing_faster", lambda *_: False)
    assert not are_skewed(40)
