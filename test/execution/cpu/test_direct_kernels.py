# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""CPU kernels of every register tile, for any number of rows and columns, at any address."""

import itertools
import re

import numpy as np
import pytest

import kernel_cases as cases
from twofour.accuracy import sweep_error
from twofour.codegen.cpu import direct_kernel
from twofour.codegen.cpu.register_tile import RegisterTile
from twofour.kernels import Kernel
from twofour.options import CompileOptions
from twofour.runtime import parse_boundary
from twofour.targets.cpu.build import compile_cpu
from twofour.targets.cpu.executable import CpuExecutable

LINE = 64  # bytes
# No two weights alike, so that every column of three has a pair.
BOX = Kernel(
    "box",
    tuple(itertools.product((-1, 0, 1), repeat=2)),
    (0.5, 0.7, 1.1, 0.9, 1.3, 0.8, 0.6, 1.2, 1.4),
)
STAR = Kernel(
    "star",
    (
        (0, 0, 0, 0),
        *(tuple(n * (a == axis) for a in range(4)) for axis in range(4) for n in (-1, 1)),
    ),
    (0.5, 0.7, 1.1, 0.9, 1.3, 0.8, 0.6, 1.2, 1.4),
)


def aligned(shape, dtype):
    """Zeros that begin at a cache line."""
    size = int(np.prod(shape))
    space = np.zeros(size + LINE, dtype)
    skip = -space.ctypes.data % LINE // space.itemsize
    return space[skip : skip + size].reshape(shape)


def explicit_sum(kernel, u, reach, shape):
    total = np.zeros(shape)
    for offset, weight in zip(kernel.offsets, kernel.weights, strict=True):
        part = tuple(
            slice(lo + o, lo + o + n) for lo, o, n in zip(reach, offset, shape, strict=True)
        )
        total += weight * u[part].astype(np.float64)
    return total


def run_in_parts(native, u, space, columns, cuts):
    """What a kernel writes to some columns of an array of zeros, part by part of its first axis.

    The array is filled with zeros again, and nothing is written beside those columns.
    """
    out = space[..., columns]
    bound = native.bind([u], [out])
    for begin, end in itertools.pairwise(cuts):
        bound.run(begin, end)
    result = out.copy()
    out[...] = 0
    assert not space.any()
    return result


def compiled(monkeypatch, kernel, dtype, tile):
    monkeypatch.setattr(direct_kernel, "choose_tile", lambda *arguments: RegisterTile(*tile))
    return CpuExecutable(compile_cpu(kernel, CompileOptions(dtype=dtype)))


@pytest.mark.parametrize("dtype", ["f64", "f32"])
def test_boxes_summed_up_by_columns(monkeypatch, dtype):
    """The same bits in every block and for every part of the rows, within the bound."""
    cases.sum_by_columns(monkeypatch)
    points = tuple(itertools.product(range(-2, 3), repeat=2))
    kernel = Kernel("box", points, tuple(0.5 + n / 64 for n in range(25)))
    u = np.random.default_rng(7).random((21, 53)).astype({"f64": float, "f32": np.float32}[dtype])
    results = []
    for tile in ((8, 1), (1, 1), (2, 2), (4, 4), (16, 1)):
        program = compiled(monkeypatch, kernel, dtype, tile)
        linear = program._linear_kernel(program.compiled.single)
        for rows, columns in ((17, 49), (9, 23)):
            out = np.zeros((rows, columns), u.dtype)
            view = u[: rows + 4, : columns + 4]
            linear.native.bind([view], [out]).run(0, rows)
            results.append(out[:9, :23])
    expected = explicit_sum(kernel, u, (2, 2), (9, 23))
    size = sum(kernel.weights)
    assert np.abs(results[0] - expected).max() <= sweep_error(dtype, 25, size, size)
    for result in results[1:]:
        assert result.tobytes() == results[0].tobytes()


# Elements from row to row: all rows begin at the same place of a line, or each at another one.
@pytest.mark.parametrize("pitch", [128, 99])
@pytest.mark.parametrize("tile", [(1, 1), (1, 4), (2, 2), (4, 1), (2, 2, 16)])
@pytest.mark.parametrize(
    ("name", "dtype"),
    [
        ("heat2d_ftcs", "f32"),
        ("heat3d_ftcs", "f64"),
        pytest.param("heat2d_ftcs", "f64", marks=pytest.mark.full),
    ],
)
def test_every_extent_and_alignment(monkeypatch, name, dtype, tile, pitch):
    kernel = cases.KERNELS[name]
    program = compiled(monkeypatch, kernel, dtype, tile)
    single = program.compiled.single
    linear = program._linear_kernel(single)
    natives = linear.native, linear.native.past_caches()
    generator = np.random.default_rng(5)
    numbers = {"f32": np.float32, "f64": np.float64}[dtype]
    for rows, columns, skip in itertools.product((1, 2, 3, 5, 8), (1, 4, 9, 23, 71), (0, 1, 3, 6)):
        shape = (rows, *(2,) * (kernel.rank - 2), columns)
        reach = zip(shape, linear.reach_lo, linear.reach_hi, strict=True)
        u = generator.random([n + lo + hi for n, lo, hi in reach]).astype(numbers)
        expected = explicit_sum(kernel, u, linear.reach_lo, shape)
        results = []
        for native in natives:
            space = aligned((*shape[:-1], pitch), numbers)
            results.append(run_in_parts(native, u, space, slice(skip, skip + columns), (0, rows)))
            np.testing.assert_allclose(results[-1], expected, rtol=8 * np.finfo(numbers).eps)
        assert np.array_equal(*results)


@pytest.mark.parametrize(
    ("name", "by_columns", "dtype"),
    [
        pytest.param("an5d_box3d2r", True, "f32", marks=pytest.mark.full),
        pytest.param("an5d_box3d2r", True, "f64", marks=pytest.mark.full),
        pytest.param("an5d_box3d2r", False, "f64", marks=pytest.mark.full),
        pytest.param("an5d_box3d2r", False, "f32", marks=pytest.mark.full),
        *itertools.product(("lbm_d3q27_diffusion", "star of four axes"), (False,), ("f64", "f32")),
    ],
)
def test_rows_of_several_planes(monkeypatch, name, by_columns, dtype):
    """The bits of single rows, for any number of planes and rows and any part of the planes."""
    (cases.sum_by_columns if by_columns else cases.sum_row_by_row)(monkeypatch)
    kernel = STAR if name == "star of four axes" else cases.KERNELS[name]
    *outer, planes, rows, columns = (2,) * (kernel.rank - 3) + (11, 5, 21)
    shape = (*outer, planes, rows, columns)
    results = []
    for tile in ((1, 1), (2, 1, None, 4), (1, 1, 32, 4), (3, 2, None, 2), (8, 1, None, 1)):
        program = compiled(monkeypatch, kernel, dtype, tile)
        linear = program._linear_kernel(program.compiled.single)
        reach = zip(shape, linear.reach_lo, linear.reach_hi, strict=True)
        u = np.random.default_rng(7).random([n + lo + hi for n, lo, hi in reach])
        u = u.astype({"f64": float, "f32": np.float32}[dtype])
        for cuts in ((0, 11), (0, 1, 6, 11), (0, 4, 11)) if kernel.rank == 3 else ((0, 2),):
            space = np.zeros((*shape[:-1], 33), u.dtype)
            results.append(run_in_parts(linear.native, u, space, slice(5, 26), cuts))
    expected = explicit_sum(kernel, u, linear.reach_lo, shape)
    sizes = Kernel("sizes", kernel.offsets, tuple(map(abs, kernel.weights)))
    size = explicit_sum(sizes, u, linear.reach_lo, shape)
    bound = sweep_error(dtype, len(kernel.weights), expected, size)
    assert (np.abs(results[0] - expected) <= 2 * bound).all()
    for result in results[1:]:
        cases.assert_same_bits(result, results[0], name)


@pytest.mark.parametrize("tile", [(2, 1), (4, 2), (8, 1), (1, 4), (4, 2, 16)])
@pytest.mark.parametrize(
    ("name", "dtype"),
    [
        ("box", "f64"),
        ("emboss3x3", "f32"),
        pytest.param("box", "f32", marks=pytest.mark.full),
        pytest.param("emboss3x3", "f64", marks=pytest.mark.full),
    ],
)
def test_rows_in_pairs(monkeypatch, name, dtype, tile):
    """Any part of the rows, from even and odd ones, has the bits of the whole."""
    cases.pair_rows(monkeypatch)
    kernel = BOX if name == "box" else cases.KERNELS[name]
    program = compiled(monkeypatch, kernel, dtype, tile)
    single = program.compiled.single
    linear = program._linear_kernel(single)
    numbers = {"f32": np.float32, "f64": np.float64}[dtype]
    sizes_of = Kernel("sizes", kernel.offsets, tuple(map(abs, kernel.weights)))
    rows, pitch = 19, 99
    for columns, skip in itertools.product((1, 4, 23, 71), (0, 3)):
        shape = (rows, columns)
        u = np.random.default_rng(5).random((rows + 2, columns + 2)).astype(numbers)
        expected = explicit_sum(kernel, u, linear.reach_lo, shape)
        results = []
        for native in (linear.native, linear.native.past_caches()):
            for cuts in ((0, 19), (0, 1, 19), (0, 3, 4, 10, 19), range(20)):
                space, inside = aligned((rows, pitch), numbers), slice(skip, skip + columns)
                results.append(run_in_parts(native, u, space, inside, cuts))
        sizes = explicit_sum(sizes_of, u, linear.reach_lo, shape)
        bound = sweep_error(dtype, len(kernel.weights), expected, sizes, pairs=True)
        # The reference rounds as well.
        assert (np.abs(results[0] - expected) <= 2 * bound).all()
        for result in results[1:]:
            cases.assert_same_bits(result, results[0])


@pytest.mark.parametrize("size, lanes", [(16, 2), (32, 4)])
def test_vectors_are_as_long_as_the_tile_says(monkeypatch, size, lanes):
    module = compiled(
        monkeypatch, cases.KERNELS["heat2d_ftcs"], "f64", (2, 2, size)
    ).compiled.module
    found = set(re.findall(r"vector<(\d+)xf64>", str(module)))
    assert found == {str(lanes)}


@pytest.mark.parametrize("dtype", ["f64", "f32"])
@pytest.mark.parametrize("name", ["laplacian1d_o8", "wrf_advection5_2d", "sobel5x5_x"])
def test_every_tile_adds_in_the_same_order(monkeypatch, name, dtype):
    # Rows of inputs so wide that several vectors of a block read the same inputs, of f64 at least.
    kernel = cases.KERNELS[name]
    u = cases.random_values(7, (17, 203) if kernel.rank == 2 else (203,), dtype)
    u = cases.stored(u, dtype)
    results = []
    for tile in ((1, 1), (1, 4), (2, 2), (4, 2)):
        stepper = compiled(monkeypatch, kernel, dtype, tile).linear_stepper(
            parse_boundary("periodic", kernel.rank), 1
        )
        results.append(stepper.advance(u, 1))
    for result in results[1:]:
        cases.assert_same_bits(result, results[0], name)
