# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Calls of a few sweeps that are made again: as first calls, whatever they are made on."""

from concurrent.futures import ThreadPoolExecutor
from functools import cache, partial
from pathlib import Path

import numpy as np
import pytest

import kernel_cases as cases
import twofour
from turns import in_turn
from twofour.errors import TwofourError
from twofour.runtime import parse_boundary, slices
from twofour.runtime.tiles import runs
from twofour.runtime.tiles.resident import Residence
from twofour.runtime.tiles.runs import Hop, HopTable

WEIGHTS = {
    1: {(0,): 0.5, (1,): 0.25, (-2,): 0.25},
    2: {(0, 0): 0.5, (0, 1): 0.25, (-1, 0): 0.125, (1, -1): 0.125},
    3: {(0, 0, 0): 0.5, (1, 0, 0): 0.25, (0, -1, 1): 0.25},
}
SHAPE = 19, 23


class Marked(np.ndarray):
    """An array of a kind of its own."""


def stencil(rank=2, **options):
    return twofour.stencil(WEIGHTS[rank], **{"dtype": "f64", **options})


def random(shape=SHAPE, seed=0):
    return np.random.default_rng(seed).random(shape)


def outcome(step, *arguments):
    """What a call gives, or what it says is wrong."""
    try:
        result = step(*arguments)
    except TwofourError as error:
        return str(error)
    return type(result), result.dtype, result.tobytes()


_first = cache(partial(stencil, threads=1))


def first_outcome(*arguments, **options):
    """What the first call of a stencil gives."""
    step = _first(**options)
    step._stepper.again = None
    return outcome(step, *arguments)


def misaligned(u):
    space = np.empty(u.nbytes + 1, np.uint8)
    shifted = np.ndarray(u.shape, u.dtype, space, 1)
    shifted[...] = u
    return shifted


BOUNDARIES = [("fixed",), ("periodic",), ("constant(0.5)",), ("reflect",)]
SHAPES = [((23,), 1), ((19, 23), 2), ((300, 500), 1), ((5, 7, 11), 2)]
MORE_SHAPES = [((23,), 2), ((19, 23), 1), ((300, 500), 2), ((5, 7, 11), 1)]


@pytest.mark.parametrize(
    "boundary, shape, threads", list(in_turn(BOUNDARIES, [*SHAPES, *MORE_SHAPES], 2))
)
def test_calls_made_again(boundary, shape, threads):
    step = stencil(len(shape), boundary=boundary, threads=threads)
    step(random(shape))
    for seed in range(1, 4):
        u = random(shape, seed)
        assert step._stepper.again.fits(u, 1)
        assert outcome(step, u) == first_outcome(u, rank=len(shape), boundary=boundary)


@pytest.mark.parametrize("dtype", ["f32", "f16", "bf16"])
def test_types(dtype):
    step = stencil(dtype=dtype)
    u, other = (cases.stored(cases.random_values(seed, SHAPE, dtype), dtype) for seed in (1, 2))
    step(u)
    assert step._stepper.again.fits(other, 1)
    assert outcome(step, other) == first_outcome(other, dtype=dtype)


def test_several_steps_of_one_sweep():
    step, u = stencil(), random()
    for steps in (3, 3, 1, 1, 3, 2):
        assert outcome(step, u, steps) == first_outcome(u, steps)
        assert step._stepper.again.fits(u, steps)
        assert not step._stepper.again.fits(u, steps + 1)


def by_slices(made, u, steps):
    """What so many steps give where slices are so short that no call is made again."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(slices, "CALL_SECONDS", 0.0)
        fresh = made()
        result = outcome(fresh, u, steps)
    assert fresh._stepper.again is None
    return result


@pytest.mark.parametrize("boundary", ["periodic", "constant(0.5)", "reflect,zero"])
@pytest.mark.parametrize("threads", [1, 2])
def test_steps_in_arrays_that_hold_a_halo(boundary, threads):
    """Those are the stepper's own; each of several threads of Python takes others."""
    boundary = tuple(boundary.split(","))
    step = stencil(boundary=boundary, threads=threads)
    step._stepper.resident = 7, 23
    for steps in (2, 3, 8, 2):
        step(random(), steps)
        u, place = random(seed=steps), np.full(SHAPE, np.nan)
        expected = first_outcome(u, steps, boundary=boundary)
        assert step._stepper.again.fits(u, steps, place)
        assert outcome(step, u, steps) == expected
        assert outcome(partial(step, out=place), u, steps) == expected
        assert step(u, steps, out=place) is place
    arrays = [random(seed=seed) for seed in range(24)]
    with ThreadPoolExecutor(3) as pool:
        found = list(pool.map(lambda u: outcome(step, u, 9), arrays))
    assert found == [first_outcome(u, 9, boundary=boundary) for u in arrays]


def test_arrays_that_hold_a_halo_are_used_again(monkeypatch):
    made, make = [], Residence._make
    monkeypatch.setattr(Residence, "_make", lambda self: made.append(1) or make(self))
    step = stencil(boundary="periodic")
    step._stepper.resident = 7, 23
    for steps in (5, 5, 9):
        step(random(), steps)
    assert made == [1]


def test_rims_are_copied_to_arrays_that_hold_a_halo():
    step = stencil(boundary=("periodic", "fixed"))
    step._stepper.resident = 7, 23
    for seed in range(3):
        u = random(seed=seed)
        assert outcome(step, u, 5) == first_outcome(u, 5, boundary=("periodic", "fixed"))
        assert step._stepper.again is None


SWEEPS = [(2, 1), (7, 2), (20, 1), (37, 2), (2, 2), (7, 1), (20, 2), (37, 1)]


@pytest.mark.parametrize("boundary, steps, threads", list(in_turn(BOUNDARIES, SWEEPS, 2)))
def test_several_sweeps(boundary, steps, threads):
    """In tiles of two steps: some take two new arrays, and one step is left of odd numbers."""

    def made():
        stepper = stencil(boundary=boundary, threads=threads)
        stepper._stepper.tile = 2, (7, 23)
        return stepper

    step = made()
    step(random(), steps)
    for seed in range(1, 4):
        u = random(seed=seed)
        assert step._stepper.again.fits(u, steps)
        expected = first_outcome(u, steps, boundary=boundary)
        before = u.copy()
        assert outcome(step, u, steps) == expected
        if steps > 2:
            assert by_slices(made, u, steps) == expected
        assert (u == before).all()
    results = [step(random(seed=seed), steps) for seed in range(6)]
    for seed, result in enumerate(results):
        again = first_outcome(random(seed=seed), steps, boundary=boundary)
        assert outcome(np.asarray, result) == again


@pytest.mark.parametrize(
    "other",
    [
        random((23, 19)),
        random((19, 23, 1)),
        random().astype(np.float32),
        random().astype(">f8"),
        random().astype(complex),
        np.asfortranarray(random()),
        random((38, 46))[::2, ::2],
        misaligned(random()),
        random().view(Marked),
        np.ma.masked_array(random(), random() > 0.5),
        random().tolist(),
        None,
    ],
    ids=lambda other: type(other).__name__,
)
def test_arrays_that_are_not_alike(other):
    step = stencil()
    step(random())
    assert not step._stepper.again.fits(other, 1)
    assert outcome(step, other) == first_outcome(other)
    # And back again.
    assert outcome(step, random()) == first_outcome(random())


@pytest.mark.parametrize("steps", [0, 2, 40, True, -1, 1.0, np.int64(1), "1", None])
def test_steps_that_are_not_alike(steps):
    step = stencil()
    step(random())
    assert not step._stepper.again.fits(random(), steps)
    assert outcome(step, random(), steps) == first_outcome(random(), steps)


def test_arrays_that_may_not_be_written():
    step, u = stencil(), random()
    u.flags.writeable = False
    assert outcome(step, u) == outcome(step, u)
    assert step._stepper.again.fits(u, 1)
    assert (u == random()).all()


def test_results_are_the_callers():
    step, u = stencil(), random()
    results = [step(u + number) for number in range(6)]
    for number, result in enumerate(results):
        assert outcome(np.asarray, result) == first_outcome(u + number)
    u[...] = 0
    assert results[0].any()
    for result in results:
        result[...] = 7
    assert (step(u) == 0).all()


def test_calls_at_the_same_time_have_scratch_arrays_of_their_own(monkeypatch):
    """Another thread's, which begins while one is under way; later ones have the same again."""
    step = stencil(boundary="periodic")
    step(random(), 3)
    call, run, tables = step._stepper.again, HopTable.run, []

    def interrupted(table, addresses):
        tables.append(table)
        if len(tables) == 1:
            call.run(random(seed=1))
        run(table, addresses)

    monkeypatch.setattr(HopTable, "run", interrupted)
    for _ in range(4):
        call.run(random())
    assert len(tables) == 5 and len(set(tables)) == len(set(tables[:2])) == 2


def test_calls_go_on_where_others_ended(monkeypatch):
    """Their legs say of the first sweep whether it goes up (even) or down."""
    run_table, found = runs.run_table, []

    def spied(drive, table, *rest):
        found.append(table[1:][4:6])
        run_table(drive, table, *rest)

    monkeypatch.setattr(runs, "run_table", spied)
    step = stencil(boundary="periodic", threads=1)
    for _ in range(4):
        step(random())
    assert found == [[0, 1], [1, 2], [0, 1], [1, 2]]


@pytest.mark.parametrize("sweeps", [1, 2, 3])
def test_an_even_number_of_sweeps_ends_where_it_began(sweeps, monkeypatch):
    found = []
    monkeypatch.setattr(runs, "run_table", lambda _, table, *rest: found.append(table[1:][4:6]))
    program = stencil(threads=1)._stepper.plan(SHAPE).programs.program(1)
    table = HopTable([Hop(program, 0, 1, sweeps)], 1)
    for _ in range(3):
        table.run([0, 0])
    odd = sweeps % 2
    assert found == [[way, way + sweeps] for way in (0, odd, 0)]


def test_progress_is_told():
    step, told = stencil(), []
    for _ in range(2):
        step(random(), progress=lambda *done: told.append(done))
    assert told == [(1, 1), (1, 1)]


def test_halos_are_refreshed():
    """Arrays that hold their halo have it as it is after the step."""
    executable = cases.compiled(cases.KERNELS["heat2d_ftcs"], "f64", "direct")
    interior = (1, 1), (18, 22)
    u = random(seed=5)
    boundary = parse_boundary("periodic", 2)
    first, again = (executable.linear_stepper(boundary, 1, interior) for _ in range(2))
    again.advance(random(), 1)
    result = again.again.run(u)
    assert result.tobytes() == first.advance(u, 1).tobytes()
    assert (result[0, 1:-1] == result[-2, 1:-1]).all()


def test_steps_that_may_be_skewed_are_asked_about():
    """Of three axes and many steps it depends on how often they are asked for."""
    step = stencil(3)
    u = random((6, 7, 8))
    step(u, 8)
    assert step._stepper.again is None
    step(u, 3)
    assert step._stepper.again.fits(u, 3)


HEAT = Path(__file__).parents[3] / "docs" / "examples" / "heat2d.mlir"


@pytest.mark.parametrize("boundary", ["fixed", "periodic"])
def test_calls_of_files(boundary):
    """Their arrays hold a halo, which results hold as well."""
    first, again = (twofour.compile(HEAT, boundary=boundary) for _ in range(2))
    shape = first.inputs[0].shape
    again(random(shape))
    u = random(shape, seed=1)
    assert again._linear.again.fits(u, 1)
    assert outcome(again, u) == outcome(first, u)
    result = again(u)
    inside = result[1:-1, 1:-1]
    if boundary == "periodic":
        expected = np.pad(inside, 1, mode="wrap")
    else:
        expected = u.copy()
        expected[1:-1, 1:-1] = inside
    np.testing.assert_array_equal(result, expected)
    for other in (random(SHAPE), np.asfortranarray(u), u.astype(np.float32)):
        assert outcome(again, other) == outcome(twofour.compile(HEAT, boundary=boundary), other)
