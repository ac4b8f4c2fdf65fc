# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The 79 kernels as test cases: extents, boundaries, inputs, compiled code and tolerances.

The compiler is imported when something is compiled: what runs from bundles needs none.
"""

from dataclasses import replace
from functools import cache, lru_cache

import numpy as np

import reference
from twofour.accuracy import sweep_error
from twofour.kernels import Kernel, built_in_kernels
from twofour.runtime import parse_boundary
from twofour.runtime.programs import from_bundle

KERNELS = built_in_kernels()
DTYPES = ("f64", "f32", "f16", "bf16")
SCHEDULES = ("direct", "sparse")
# Schedule direct without reassociation: the bits of sparse, and of plain threads on GPUs.
TERM_BY_TERM = "term by term"
SAME_BITS = (TERM_BY_TERM, "sparse")
EXTENTS = (1, 2, 7, 31, 64, 65, 257)
STEPS = (1, 2, 10)
TOLERANCE = {"f64": 1e-12, "f32": 1e-5}

# The constants are exact in every element type.
MODES = ("fixed", "zero", "constant(0.75)", "periodic", "reflect", "nearest")
MIXED = (
    ("periodic", "fixed", "zero"),
    ("fixed", "reflect", "periodic"),
    ("constant(0.75)", "nearest", "fixed"),
    ("nearest", "constant(-1.25)", "reflect"),
    ("reflect", "zero", "constant(0.75)"),
    ("zero", "periodic", "nearest"),
)

# Larger arrays of rank 3 cost time and show nothing that these do not.
MOST_POINTS_3D = 12000
# Below the largest f16 (65504), so that no intermediate state overflows.
MOST_GROWTH_F16 = 3e4


def boundaries(rank: int) -> list[tuple[str, ...]]:
    """Each boundary on all axes, then different ones on each axis."""
    mixed = [entries[:rank] for entries in MIXED] if rank > 1 else []
    return [(mode,) * rank for mode in MODES] + mixed


def shapes(rank: int) -> list[tuple[int, ...]]:
    """Every extent (1-D), every pair (2-D), and triples of at most MOST_POINTS_3D points (3-D).

    The triples are those of a Latin square: any two axes see every pair of extents that fits.
    """
    if rank == 1:
        return [(e,) for e in EXTENTS]
    if rank == 2:
        return [(e, f) for e in EXTENTS for f in EXTENTS]
    n = len(EXTENTS)
    triples = [
        (EXTENTS[i], EXTENTS[j], EXTENTS[(2 * i + 3 * j + 1) % n])
        for i in range(n)
        for j in range(n)
    ]
    return [t for t in triples if np.prod(t) <= MOST_POINTS_3D]


@cache
def fastest_growth(kernel: Kernel) -> float:
    return reference.symbol(kernel.offsets, kernel.weights)


def gain(weights) -> float:
    return float(np.abs(weights).sum())


def holds(kernel: Kernel, dtype: str, steps: int) -> bool:
    """Whether the states after so many steps from values in [-1, 1] are sure to be in range."""
    return dtype != "f16" or gain(kernel.weights) ** steps <= MOST_GROWTH_F16


@lru_cache(maxsize=32)
def compiled(kernel: Kernel, dtype: str, schedule: str, fuse_steps: int = 1):
    """The machine code of a kernel, a CpuExecutable."""
    from twofour.options import CompileOptions
    from twofour.targets.cpu.build import compile_cpu
    from twofour.targets.cpu.executable import CpuExecutable

    options = {"dtype": dtype, "fuse_steps": fuse_steps, "schedule": schedule}
    if schedule == TERM_BY_TERM:
        options |= {"schedule": "direct", "reassociate": False}
    return CpuExecutable(compile_cpu(kernel, CompileOptions(**options)))


def stepper(kernel, dtype, schedule, boundary, threads=1, fuse_steps=1):
    executable = compiled(kernel, dtype, schedule, fuse_steps)
    return executable.linear_stepper(parse_boundary(boundary, len(boundary)), threads)


def random_values(seed: int, shape: tuple[int, ...], dtype: str) -> np.ndarray:
    """Values in [-1, 1] (float64) that `dtype` holds exactly; f16 and bf16 get the same ones."""
    random = np.random.default_rng(seed)
    if dtype in ("f16", "bf16"):
        return random.integers(-128, 129, shape) / 128
    values = random.uniform(-1, 1, shape)
    return values.astype(np.float32).astype(np.float64) if dtype == "f32" else values


def stored(values: np.ndarray, dtype: str) -> np.ndarray:
    """An array of `dtype` (bf16: bit patterns) that holds exactly these values."""
    if dtype == "bf16":
        array = (values.astype(np.float32).view(np.uint32) >> np.uint32(16)).astype(np.uint16)
    else:
        array = values.astype({"f64": np.float64, "f32": np.float32, "f16": np.float16}[dtype])
    np.testing.assert_array_equal(numbers(array), values)
    return array


def numbers(array: np.ndarray) -> np.ndarray:
    """The values of a stored array, in float64."""
    if array.dtype == np.uint16:
        array = (array.astype(np.uint32) << np.uint32(16)).view(np.float32)
    return array.astype(np.float64)


def assert_same_bits(one: np.ndarray, other: np.ndarray, what=None) -> None:
    assert one.dtype == other.dtype and one.shape == other.shape, what
    assert one.tobytes() == other.tobytes(), what


def relative_error(error: np.ndarray, states: list[np.ndarray], kernel, boundary) -> float:
    """The largest of the errors after len(states) - 1 steps, relative to what was summed up.

    That is the largest |result|, or S^(T-1) * sum|w| * max|u| where weights cancel; S is the growth
    of the fastest mode in one step.
    """
    steps = len(states) - 1
    largest = max(np.abs(states[0]).max(), *map(abs, reference.constants(boundary)), 0.0)
    scale = fastest_growth(kernel) ** (steps - 1) * gain(kernel.weights) * largest
    return error.max() / max(scale, np.abs(states[-1]).max())


@lru_cache(maxsize=4)
def exact_run(kernel: Kernel, values_of: str, shape, boundary, steps: int, seed: int):
    """The float64 states from random values of one kind, and their sums of |w| |u|.

    Cached, since all routes and both 16-bit types share them.
    """
    values = random_values(seed, shape, values_of)
    states = reference.run(values, kernel.offsets, kernel.weights, boundary, steps)
    return states, absolute_sums(states, kernel, boundary)


def absolute_sums(states: list[np.ndarray], kernel: Kernel, boundary) -> list[np.ndarray]:
    """For each state but the last, what its step sums up in absolute values."""
    weights, sizes = np.abs(kernel.weights), reference.absolute(boundary)
    return [reference.step(np.abs(u), kernel.offsets, weights, sizes) for u in states[:-1]]


def error_bounds(
    states: list[np.ndarray],
    sums: list[np.ndarray],
    dtype: str,
    kernel: Kernel,
    boundary,
    *,
    matrix: bool = False,
    pairs: bool = False,
) -> list[np.ndarray]:
    """The bound on the error of each state, point by point: formula (2) of twofour.accuracy.

    With `matrix`, steps are those of tensor cores, formula (3), with `pairs` rows are summed up in
    pairs. Doubled for f64, since the float64 reference rounds as much as an f64 kernel does.
    """
    weights, inexact = np.abs(kernel.weights), reference.without_constants(boundary)
    box = reference.updated(states[0].shape, kernel.offsets, boundary)
    bounds = [np.zeros_like(states[0])]
    for after, summed in zip(states[1:], sums, strict=True):
        carried = reference.step(bounds[-1], kernel.offsets, weights, inexact)
        sizes = np.abs(after) + carried, summed + carried
        fresh = sweep_error(dtype, len(weights), *sizes, matrix=matrix, pairs=pairs)
        # Points that are not updated carry no error.
        bounds.append(np.zeros_like(fresh))
        bounds[-1][box] = (carried + fresh)[box]
    return [2 * bound for bound in bounds] if dtype == "f64" else bounds


def convolved(kernel: Kernel, steps: int) -> tuple[int, float]:
    """The number of terms and the sum of |w| of `steps` steps in one."""
    reach = kernel.radius * steps
    grid = np.zeros((2 * reach + 1,) * kernel.rank)
    center = np.full(kernel.rank, reach)
    grid[tuple(center)] = 1.0
    for _ in range(steps):
        total = np.zeros_like(grid)
        for offset, weight in zip(kernel.offsets, kernel.weights, strict=True):
            total += weight * np.roll(grid, offset, range(kernel.rank))
        grid = total
    return np.count_nonzero(grid), float(np.abs(grid).sum())


def rows_in_pairs(kernel: Kernel) -> bool:
    """Whether schedule direct sums up rows in pairs on this processor."""
    from twofour.codegen.cpu.direct_kernel import DirectKernel, Terms
    from twofour.codegen.cpu.vector_unit import vector_unit

    direct = DirectKernel("k", [Terms(kernel.offsets, kernel.weights)], reassociate=True)
    return direct.in_pairs(vector_unit("host"))


def pair_rows(monkeypatch) -> None:
    """Let schedule direct sum up rows in pairs wherever it can, on any processor."""
    from twofour.codegen.cpu import direct_kernel, vector_unit

    host = vector_unit.vector_unit("host")
    units = {"host": replace(host, adds_beside=True)}
    monkeypatch.setattr(vector_unit, "_host", lambda: "host")
    monkeypatch.setattr(vector_unit, "_UNITS", vector_unit._UNITS | units)
    monkeypatch.setattr(direct_kernel, "choose_rows", lambda single, in_pairs, unit: in_pairs)


def sum_by_columns(monkeypatch) -> None:
    """Let schedule direct do what it does on cores of Intel, with any processor's registers."""
    from twofour.codegen.cpu.core import GOLDEN_COVE

    _take_core(monkeypatch, GOLDEN_COVE)


def sum_row_by_row(monkeypatch) -> None:
    """Let schedule direct do what it does on cores that are not known, as above."""
    from twofour.codegen.cpu.core import Core

    _take_core(monkeypatch, Core())


def _take_core(monkeypatch, core) -> None:
    from twofour.codegen.cpu import vector_unit

    host = replace(vector_unit.vector_unit("host"), halved=False, adds_beside=False)
    units = {"host": replace(host, core=core)}
    monkeypatch.setattr(vector_unit, "_host", lambda: "host")
    monkeypatch.setattr(vector_unit, "_UNITS", vector_unit._UNITS | units)


def fused_bound(
    states, dtype: str, kernel: Kernel, fuse_steps: int, boundary, *, matrix: bool = False
) -> float:
    """The larger of the bounds of fused and of single steps, sweep by sweep, over all points.

    On CPUs rows of two axes may be summed up in pairs, those of either kind; with `matrix`, steps
    are those of tensor cores.
    """
    how = {"matrix": True} if matrix else {"pairs": kernel.rank == 2}
    terms, fused_gain = convolved(kernel, fuse_steps)
    single_gain = gain(kernel.weights)
    outside = max(map(abs, reference.constants(boundary)), default=0.0)
    sizes = [max(np.abs(state).max(), outside) for state in states]
    error, done = 0.0, 0
    while done < len(states) - 1:
        width = fuse_steps if done + fuse_steps < len(states) else 1
        single = error
        for now in range(done, done + width):
            carried = single_gain * single
            single = carried + sweep_error(
                dtype,
                len(kernel.weights),
                sizes[now + 1] + carried,
                single_gain * sizes[now] + carried,
                **how,
            )
        carried = fused_gain * error
        fused = carried + sweep_error(
            dtype,
            terms,
            sizes[done + width] + carried,
            fused_gain * sizes[done] + carried,
            **how,
        )
        error, done = max(single, fused), done + width
    return float(error) * (2 if dtype == "f64" else 1)


def within(got: np.ndarray, exact: np.ndarray, bound: np.ndarray) -> bool:
    """Whether stored values are within the bound everywhere; a NaN is not."""
    return bool((np.abs(numbers(got) - exact) <= bound).all())


def check_on_simulator(bundle, name, dtype, shape, boundary, steps=1, seed=1):
    """Steps by a kernel's bundle on its simulated target have the bits of the CPU's sums."""
    u = stored(random_values(seed, shape, dtype), dtype)
    got = from_bundle(bundle, f"sim:{bundle.target}")(u, steps, boundary=boundary)
    expected = stepper(KERNELS[name], dtype, TERM_BY_TERM, boundary).advance(u, steps)
    assert_same_bits(got, expected)
