# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Time tiles in native code: the bits of single steps, whatever the tiles and threads."""

import itertools
import time
from dataclasses import replace
from threading import Thread

import numpy as np
import pytest

import kernel_cases as cases
import twofour
from turns import in_turn
from twofour.codegen.cpu import vector_unit
from twofour.errors import TwofourError
from twofour.kernels import Kernel
from twofour.runtime import AxisBoundary, parse_boundary, slices
from twofour.runtime.tiles import runs as tile_runs
from twofour.runtime.tiles import stepping as tiled_stepping
from twofour.runtime.tiles.steps import SOURCE, TARGET

SHAPES = {1: (331,), 2: (37, 61), 3: (9, 17, 23)}
TILES = {
    1: [(1, (64,)), (4, (50,)), (5, (1000,))],
    2: [(1, (8, 20)), (3, (16, 16)), (5, (100, 30))],
    3: [(1, (4, 8, 10)), (2, (5, 6, 30)), (4, (20, 9, 9))],
}
NAMES = ("heat1d_ftcs", "klein_gordon1d_o6", "tti2d_gzz_o4", "advect_diffuse3d_upwind")


def tiled(kernel, dtype, boundary, threads, tile):
    executable = cases.compiled(kernel, dtype, "direct")
    return executable.linear_stepper(parse_boundary(boundary, kernel.rank), threads, tile=tile)


DTYPES = [("f64",), ("f32",), ("f16",), ("bf16",)]


@pytest.mark.parametrize("name, dtype", list(in_turn(zip(NAMES), DTYPES, 2)))
def test_bits_of_single_steps(name, dtype):
    kernel = cases.KERNELS[name]
    shape, steps = SHAPES[kernel.rank], 7
    u = cases.stored(cases.random_values(3, shape, dtype), dtype)
    for modes in itertools.islice(
        itertools.product(cases.MODES, repeat=kernel.rank), 0, None, 5 ** (kernel.rank - 1)
    ):
        boundary = ",".join(modes)
        whole = tiled(kernel, dtype, boundary, 1, (1, shape))
        states = [u]
        for _ in range(steps):
            states.append(whole.advance(states[-1], 1))
        for tile, threads in itertools.product(TILES[kernel.rank], (1, 3)):
            stepper = tiled(kernel, dtype, boundary, threads, tile)
            for count in (1, 2, steps):
                cases.assert_same_bits(stepper.advance(u, count), states[count], boundary)


@pytest.mark.parametrize(
    "offsets",
    [
        [(0, -1), (0, 0), (0, 2)],
        [(-2, 0), (0, 0), (1, 0)],
        [(0, 0), (-1, 1), (1, -1)],
        [(-1, 0, 0), (0, 0, 1)],
        [(0, 2, 0), (0, -1, 0)],
    ],
)
@pytest.mark.parametrize("steps", [1, 2, 5])
def test_cells_beside_the_interior_are_kept(offsets, steps):
    """Rims of any width, on axes that are read along and on others, from buffers used before."""
    rank = len(offsets[0])
    kernel = Kernel("k", tuple(offsets), (0.5, 0.25, 0.125)[: len(offsets)])
    shape = (29, 41) if rank == 2 else (13, 11, 17)
    lower, upper = (3, 4, 2)[:rank], tuple(n - 3 for n in shape)
    u, other = np.random.default_rng(0).random((2, *shape))
    expected = u.copy()
    for _ in range(steps):
        before = expected.copy()
        expected[tuple(map(slice, lower, upper))] = sum(
            weight
            * before[tuple(slice(a + o, b + o) for a, b, o in zip(lower, upper, at, strict=True))]
            for at, weight in zip(kernel.offsets, kernel.weights, strict=True)
        )
    executable = cases.compiled(kernel, "f64", "direct")
    for tile, threads in itertools.product([(1, (4, 9, 8)), (2, (5, 7, 30)), None], (1, 3)):
        stepper = executable.linear_stepper(
            parse_boundary("fixed", rank),
            threads,
            (lower, upper),
            tile and (tile[0], tile[1][:rank]),
        )
        for values in (other, u):
            result = stepper.advance(values, steps)
        np.testing.assert_allclose(result, expected, rtol=1e-13, atol=0)
        outside = np.ones(shape, bool)
        outside[tuple(map(slice, lower, upper))] = False
        assert np.array_equal(result[outside], u[outside])


STREAMED = [
    ("advect_diffuse3d_upwind", "bf16"),
    ("laplacian3d_o6", "f64"),
    ("laplacian3d_o6", "bf16"),
    ("advect_diffuse3d_upwind", "f64"),
]


@pytest.mark.parametrize(
    "mode, name, dtype", list(in_turn(zip(cases.MODES, strict=True), STREAMED, 4))
)
def test_streamed_tiles_have_the_bits_of_single_steps(mode, name, dtype):
    kernel, shape = cases.KERNELS[name], (73, 13, 21)
    u = cases.stored(cases.random_values(5, shape, dtype), dtype)
    for others in (("fixed", "periodic"), ("reflect", "zero"), ("periodic", "nearest")):
        boundary = ",".join((mode, *others))
        whole = tiled(kernel, dtype, boundary, 1, (1, shape))
        states = [u]
        for _ in range(7):
            states.append(whole.advance(states[-1], 1))
        for tile, threads in itertools.product([(2, (73, 5, 30)), (4, (40, 20, 9))], (1, 3)):
            stepper = tiled(kernel, dtype, boundary, threads, tile)
            for count in (2, 7):
                cases.assert_same_bits(stepper.advance(u, count), states[count], boundary)


@pytest.mark.parametrize("shape", [(37, 61), (24, 40), (3, 9)])
@pytest.mark.parametrize("mode", cases.MODES)
def test_rows_in_pairs_have_the_bits_of_single_steps(monkeypatch, mode, shape):
    """Even and odd rows are those of the domain, wherever a tile and its steps begin."""
    cases.pair_rows(monkeypatch)
    kernel, steps = cases.KERNELS["emboss3x3"], 5
    u = np.random.default_rng(3).random(shape)
    for other, past_caches in (("periodic", False), ("fixed", True)):
        monkeypatch.setattr(tiled_stepping, "past_caches", lambda *_, p=past_caches: p)
        boundary = f"{mode},{other}"
        whole = tiled(kernel, "f64", boundary, 1, (1, shape))
        states = [u]
        for _ in range(steps):
            states.append(whole.advance(states[-1], 1))
        for tile, threads in itertools.product(TILES[2], (1, 3)):
            stepper = tiled(kernel, "f64", boundary, threads, tile)
            cases.assert_same_bits(stepper.advance(u, steps), states[steps], boundary)


@pytest.mark.parametrize("dtype", ["f64", "f32"])
@pytest.mark.parametrize("name", ["heat1d_ftcs", "heat2d_ftcs", "heat3d_ftcs"])
def test_kernels_past_caches(monkeypatch, name, dtype):
    monkeypatch.setattr(tiled_stepping, "past_caches", lambda *arguments: True)
    kernel = cases.KERNELS[name]
    shape = {1: (331,), 2: (37, 64), 3: (9, 17, 32)}[kernel.rank]
    u = cases.stored(cases.random_values(3, shape, dtype), dtype)
    for mode, tile in itertools.product(("fixed", "reflect"), TILES[kernel.rank]):
        boundary = ",".join([mode] * kernel.rank)
        stepper = tiled(kernel, dtype, boundary, 2, tile)
        result = stepper.advance(u, 7)
        used = {program._last for program in stepper.plan(shape).programs._programs.values()}
        assert used == {stepper.single.native.past_caches()} != {None}
        monkeypatch.undo()
        cases.assert_same_bits(
            result, tiled(kernel, dtype, boundary, 1, (1, shape)).advance(u, 7), boundary
        )
        monkeypatch.setattr(tiled_stepping, "past_caches", lambda *arguments: True)


@pytest.mark.parametrize(("axes", "dtype"), [(2, "f64"), (2, "bf16"), (3, "f64")])
def test_large_arrays_of_three_axes(monkeypatch, axes, dtype):
    """Where they are not stored past the caches, their kernel reads the source as well."""
    monkeypatch.setattr(tiled_stepping, "past_caches", lambda *arguments: True)
    host = replace(vector_unit.vector_unit("host"), nontemporal_axes=axes)
    monkeypatch.setattr(vector_unit, "_host", lambda: "host")
    monkeypatch.setattr(vector_unit, "_UNITS", vector_unit._UNITS | {"host": host})
    kernel, shape = cases.KERNELS["heat3d_ftcs"], (9, 17, 32)
    u = cases.stored(cases.random_values(3, shape, dtype), dtype)
    whole = tiled(kernel, dtype, "fixed", 1, (1, shape))
    states = [u]
    for _ in range(7):
        states.append(whole.advance(states[-1], 1))
    for tile in TILES[3]:
        stepper = tiled(kernel, dtype, "fixed", 2, tile)
        cases.assert_same_bits(stepper.advance(u, 7), states[7], tile)
        large, main = stepper.single.native.past_caches(), stepper.single.native
        for program in stepper.plan(shape).programs._programs.values():
            for address, view, *_ in program._commands:
                if address not in (main.address, large.address):
                    continue
                (source, *_), (target, *_) = program._views[view : view + 2]
                reads = source == SOURCE and axes == 2
                assert (address == large.address) == (reads or target == TARGET)


def test_threads_that_are_done_help_those_that_are_late():
    kernel = cases.KERNELS["heat2d_ftcs"]
    u = np.random.default_rng(4).random((64, 40))
    stepper = tiled(kernel, "f64", "periodic", 3, (2, (8, 40)))
    expected = stepper.advance(u, 2)
    program = stepper.plan(u.shape).programs.program(2)
    result, seen = np.full_like(u, np.nan), []

    class OneIsLate:
        def run(self, job, legs, threads):
            early = [Thread(target=job, args=(legs, number, threads)) for number in (0, 2)]
            for thread in early:
                thread.start()
            deadline = time.monotonic() + 20
            while np.isnan(result).any() and time.monotonic() < deadline:
                time.sleep(0.01)
            seen.append(result.copy())
            job(legs, 1, threads)
            for thread in early:
                thread.join()

    program.code = replace(program.code, crew=OneIsLate)
    tile_runs.run_legs([tile_runs.Leg(program, u, result, 1)], 3)
    cases.assert_same_bits(seen[0], expected)
    cases.assert_same_bits(result, expected)


@pytest.mark.parametrize("legs", [1, 2])
def test_rims_are_written_by_legs_that_write_a_whole(legs):
    kernel = cases.KERNELS["heat2d_ftcs"]
    u = cases.random_values(5, (19, 23), "f64")
    stepper = tiled(kernel, "f64", "fixed", 1, (1, (6, 30)))
    program = stepper.plan(u.shape).programs.program(1)
    for whole in (False, True):
        results = np.full((legs, *u.shape), np.nan)
        runs = [tile_runs.Leg(program, u, result, 1, whole) for result in results]
        tile_runs.run_legs(runs, 2)
        for result in results:
            kept = result.copy()
            kept[1:-1, 1:-1] = u[1:-1, 1:-1]
            rim = u.copy()
            if not whole:
                rim[0] = rim[-1] = rim[:, 0] = rim[:, -1] = np.nan
            np.testing.assert_array_equal(kept, rim)
            assert not np.isnan(result[1:-1, 1:-1]).any()


@pytest.mark.parametrize("steps", [1, 3])
@pytest.mark.parametrize("above", ["zero", "constant(0.0)"])
def test_zeros_beside_the_interior_keep_their_signs(above, steps):
    boundary = f"{above},constant(-0.0)"
    step = twofour.stencil({(0, 1): 0.5, (1, 0): 0.5}, boundary=boundary, dtype="f64")
    found = step(np.full((40, 50), -0.0), steps)
    # A sum is -0 where all its terms are.
    rows = np.arange(40)[:, np.newaxis]
    np.testing.assert_array_equal(np.signbit(found), np.repeat(rows < 40 - steps, 50, axis=1))


@pytest.mark.parametrize("steps", [1, 3])
def test_values_count_for_constants_only(steps):
    u = np.random.default_rng(4).random(50)
    results = [
        twofour.stencil({(-1,): 0.5, (2,): 0.25}, boundary=boundary, dtype="f64")(u, steps)
        for boundary in ("zero", [AxisBoundary("zero", 3.0)])
    ]
    np.testing.assert_array_equal(*results)


def test_input_is_read_only_and_result_is_new():
    kernel = cases.KERNELS["heat1d_ftcs"]
    u = np.linspace(0, 1, 5000)
    u.flags.writeable = False
    result = tiled(kernel, "f64", "periodic", 2, None).advance(u, 50)
    assert not np.shares_memory(u, result) and result.flags.writeable


def test_progress_and_interruption(monkeypatch):
    monkeypatch.setattr(slices, "PROGRESS_INTERVAL", 0)
    kernel = cases.KERNELS["heat1d_ftcs"]
    stepper = tiled(kernel, "f64", "periodic", 1, None)
    u = np.zeros(1 << 18)
    told = []
    stepper.advance(u, 2000, lambda done, total: told.append((done, total)))
    assert told[-1] == (2000, 2000) and len(told) > 2
    assert told == sorted(told)

    def stop(done, total):
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        stepper.advance(u, 20000, stop)


FILE = """!field = !stencil.field<#stencil.bounds<[-1], [65]>, f64>
!temp = !stencil.temp<#stencil.bounds<[-1], [65]>, f64>
!inner = !stencil.temp<#stencil.bounds<[0], [64]>, f64>
func.func @step(%u: !field, %v: !field) attributes {stencil.time_tile = TILE} {
  %t = "stencil.load"(%u) : (!field) -> !temp
  %r = "stencil.weighted_sum"(%t)
    {offsets = [[-1], [1]], weights = array<f64: 0.25, 0.5>} : (!temp) -> !inner
  "stencil.store"(%r, %v) {bounds = #stencil.bounds<[0], [64]>} : (!inner, !field) -> ()
  return
}
"""


def test_file_names_its_tile(tmp_path):
    path = tmp_path / "step.mlir"
    path.write_text(FILE.replace("TILE", "array<i64: 5, 11>"))
    program = twofour.compile(path, boundary="reflect")
    u = np.random.default_rng(2).random(66)
    single = u
    for _ in range(7):
        single = program(single)
    np.testing.assert_array_equal(program(u, steps=7), single)
    programs = program._linear.plan(u.shape).programs._programs.values()
    assert {(tiles.steps, tiles.tiles) for tiles in programs} == {(5, 6), (1, 6), (2, 6)}


@pytest.mark.parametrize("tile", ["array<i64: 5>", "array<i64: 0, 4>", "array<i64: 2, 0>", "7"])
def test_tile_that_does_not_fit(tmp_path, tile):
    path = tmp_path / "step.mlir"
    path.write_text(FILE.replace("TILE", tile))
    with pytest.raises(TwofourError, match=r"step.mlir:4:1: error: .*expected stencil.time_tile"):
        twofour.compile(path)
