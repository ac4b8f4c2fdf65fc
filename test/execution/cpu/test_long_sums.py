# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""CPU kernels of sums so long that their terms are added in loops."""

import itertools

import numpy as np
import pytest

import kernel_cases as cases
import twofour
from twofour.accuracy import sweep_error
from twofour.codegen.cpu import direct_kernel
from twofour.codegen.cpu.looped_block import LoopedBlock
from twofour.codegen.cpu.register_tile import RegisterTile
from twofour.kernels import Kernel
from twofour.options import CompileOptions
from twofour.targets.cpu.build import compile_cpu
from twofour.targets.cpu.executable import CpuExecutable


def box(*ranges):
    return tuple(itertools.product(*(range(low, high + 1) for low, high in ranges)))


def random_kernel(points):
    weights = np.random.default_rng(3).uniform(-1, 1, len(points))
    return Kernel("long", points, tuple(map(float, weights)))


def gaussian(points, width):
    weights = [np.exp(-sum(n * n for n in at) / width) for at in points]
    return Kernel("long", points, tuple(float(w / sum(weights)) for w in weights))


def slope(kernel):
    """The same kernel's derivative along the last axis: opposite points have opposite weights."""
    weights = zip(kernel.offsets, kernel.weights, strict=True)
    return Kernel("long", kernel.offsets, tuple(-at[-1] * weight for at, weight in weights))


KERNELS = {
    "box": random_kernel(box((-6, 6), (-6, 6))),
    "box on one side": random_kernel(box((2, 21), (-11, -1))),
    "disk": random_kernel(tuple(at for at in box((-13, 13), (-13, 13)) if np.hypot(*at) <= 13)),
    "Gaussian": gaussian(box((-8, 8), (-8, 8)), 20.0),
    "Gaussian slope": slope(gaussian(box((-8, 8), (-8, 8)), 20.0)),
    "line": random_kernel(box((-300, 260))),
    "planes": random_kernel(box((-4, 4), (-3, 5), (-4, 4))),
}
TYPES = {"f64": np.float64, "f32": np.float32, "f16": np.float16}


def compiled(monkeypatch, kernel, dtype, tile, reassociate=True):
    """The program's only kernel, with blocks of a tile; it must add its terms in loops."""
    blocks = []

    class Watched(LoopedBlock):
        def __init__(self, *arguments):
            super().__init__(*arguments)
            blocks.append(self)

    monkeypatch.setattr(direct_kernel, "LoopedBlock", Watched)
    monkeypatch.setattr(direct_kernel, "choose_looped_tile", lambda *_: RegisterTile(*tile))
    options = CompileOptions(dtype=dtype, reassociate=reassociate)
    program = CpuExecutable(compile_cpu(kernel, options))
    assert len(blocks) == 1
    return program._linear_kernel(program.compiled.single)


def float64_sum(kernel, u, reach, shape):
    total, size = np.zeros(shape), np.zeros(shape)
    for offset, weight in zip(kernel.offsets, kernel.weights, strict=True):
        begins = (lo + at for lo, at in zip(reach, offset, strict=True))
        part = u[tuple(slice(b, b + n) for b, n in zip(begins, shape, strict=True))]
        total += weight * part.astype(np.float64)
        size += abs(weight) * np.abs(part.astype(np.float64))
    return total, size


@pytest.mark.parametrize(
    ("name", "dtype"),
    [
        *((name, "f64") for name in KERNELS if name != "disk"),
        *(pytest.param("disk", dtype, marks=pytest.mark.full) for dtype in ("f64", "f32")),
        ("line", "f32"),
        pytest.param("Gaussian", "f16", marks=pytest.mark.full),
    ],
)
def test_every_tile_gives_the_same_bits(monkeypatch, name, dtype):
    """Any number of rows and columns, within the bound of the exact sum."""
    kernel = KERNELS[name]
    rank = kernel.rank
    shape = {1: (301,), 2: (21, 61), 3: (3, 11, 37)}[rank]
    tiles = [(1, 1), (1, 8), (1, 3)] if rank == 1 else [(8, 3), (1, 1), (2, 2)]
    results = []
    for tile in tiles:
        linear = compiled(monkeypatch, kernel, dtype, tile)
        reaches = zip(shape, linear.reach_lo, linear.reach_hi, strict=True)
        extents = [n + max(0, lo) + max(0, hi) for n, lo, hi in reaches]
        u = np.random.default_rng(7).uniform(-1, 1, extents).astype(TYPES[dtype])
        out = np.zeros(shape, u.dtype)
        cuts = (0, 1, 2) if rank == 3 else (0, 4, 13)
        bound = linear.native.bind([u], [out])
        for begin, end in itertools.pairwise((*cuts, shape[0])):
            bound.run(begin, end)
        results.append(out)
    expected, size = float64_sum(kernel, u, linear.reach_lo, shape)
    error = np.abs(results[0].astype(np.float64) - expected)
    assert (error <= 2 * sweep_error(dtype, len(kernel.weights), expected, size)).all()
    for result in results[1:]:
        cases.assert_same_bits(result, results[0], name)


def test_terms_are_added_in_ascending_order_without_reassociation(monkeypatch):
    """One fused multiply-add after the other: in f32 of f64 products that are exact."""
    kernel = KERNELS["box"]
    kernel = Kernel("long", kernel.offsets, tuple(float(np.float32(w)) for w in kernel.weights))
    linear = compiled(monkeypatch, kernel, "f32", (8, 3), reassociate=False)
    u = np.random.default_rng(7).uniform(-1, 1, (21, 36)).astype(np.float32)
    out = np.zeros((9, 24), np.float32)
    linear.native.bind([u], [out]).run(0, 9)
    total = np.full(out.shape, -0.0)
    for (i, j), weight in zip(kernel.offsets, kernel.weights, strict=True):
        product = weight * u[6 + i : 15 + i, 6 + j : 30 + j].astype(np.float64)
        total = (product + total).astype(np.float32).astype(np.float64)
    # The sum of both in f64 is rounded as well: almost never to where it matters.
    assert np.mean(out == total) > 0.999


def test_zeros_keep_their_sign():
    kernel = KERNELS["box"]
    weights = dict(zip(kernel.offsets, map(abs, kernel.weights), strict=True))
    step = twofour.stencil(weights, dtype="f64")
    u = np.full((40, 40), -0.0)
    assert np.signbit(step(u)).all()
    assert not np.signbit(step(-u)).any()


PROGRAM = """
!field = !stencil.field<[0,40]x[0,52]xf64>
!temp = !stencil.temp<?x?xf64>
func.func @both(%u: !field, %v: !field, %out: !field) {{
  %a = stencil.load %u : !field -> !temp
  %b = stencil.load %v : !field -> !temp
  %r = stencil.apply(%x = %a : !temp, %y = %b : !temp) -> (!temp) {{
    %s0 = arith.constant 0.25 : f64
{terms}
    stencil.return %s{count} : f64
  }}
  stencil.store %r to %out(<[12, 8], [28, 44]>) : !temp to !field
  return
}}
"""
TERM = """
    %p{n} = stencil.access %{field}[{i}, {j}] : !temp
    %w{n} = arith.constant {weight!r} : f64
    %m{n} = arith.mulf %w{n}, %p{n} : f64
    %s{n} = arith.addf %s{before}, %m{n} : f64"""


@pytest.mark.parametrize("reassociate", [True, False])
def test_long_sums_of_two_fields_and_a_constant(tmp_path, reassociate):
    reach = {"x": (5, 8), "y": (12, 2)}
    weights = np.random.default_rng(1).uniform(-1, 1, (2, 25, 17))
    terms = [
        (field, i, j, float(of_field[i + rows, j + columns]))
        for (field, (rows, columns)), of_field in zip(reach.items(), weights, strict=True)
        for i, j in box((-rows, rows), (-columns, columns))
    ]
    lines = [
        TERM.format(n=n, before=n - 1, field=field, i=i, j=j, weight=weight)
        for n, (field, i, j, weight) in enumerate(terms, 1)
    ]
    path = tmp_path / "both.mlir"
    path.write_text(PROGRAM.format(terms="".join(lines), count=len(terms)))
    program = twofour.compile(path, dtype="f64", reassociate=reassociate)
    u, v = np.random.default_rng(2).uniform(-1, 1, (2, 40, 52))
    out = program(u, v)
    expected = np.full((16, 36), 0.25)
    for field, i, j, weight in terms:
        values = u if field == "x" else v
        expected += weight * values[12 + i : 28 + i, 8 + j : 44 + j]
    np.testing.assert_allclose(out[12:28, 8:44], expected, rtol=0, atol=1e-12)
