# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The 79 kernels as test cases: extents, boundaries, inputs, compiled code and tolerances."""

from functools import cache, lru_cache

import numpy as np

import reference
from twofour.accuracy import sweep_error
from twofour.compiler import CompileOptions, compile_cpu
from twofour.kernels import Kernel, built_in_kernels
from twofour.runtime import parse_boundary
from twofour.targets.cpu.executable import CpuExecutable

KERNELS = built_in_kernels()
DTYPES = ("f64", "f32", "f16", "bf16")
SCHEDULES = ("direct", "sparse")
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
MOST_POINTS_3D = 20000
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


def step_counts(kernel: Kernel, dtype: str) -> list[int]:
    """The numbers of steps whose states f16 can hold; all of STEPS for the other types."""
    growth = gain(kernel.weights) if dtype == "f16" else 1.0
    return [steps for steps in STEPS if growth**steps <= MOST_GROWTH_F16]


@lru_cache(maxsize=32)
def compiled(kernel: Kernel, dtype: str, schedule: str, fuse_steps: int = 1) -> CpuExecutable:
    return CpuExecutable(
        compile_cpu(kernel, CompileOptions("cpu", schedule, dtype, fuse_steps=fuse_steps))
    )


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


def relative_error(got: np.ndarray, states: list[np.ndarray], kernel, boundary) -> float:
    """The largest error after len(states) - 1 steps, relative to the size of what was summed up.

    That is the largest |result|, or S^(T-1) * sum|w| * max|u| where weights cancel; S is the growth
    of the fastest mode in one step.
    """
    steps = len(states) - 1
    largest = max(np.abs(states[0]).max(), *map(abs, reference.constants(boundary)), 0.0)
    scale = fastest_growth(kernel) ** (steps - 1) * gain(kernel.weights) * largest
    return np.abs(got - states[-1]).max() / max(scale, np.abs(states[-1]).max())


def error_bounds(states: list[np.ndarray], dtype: str, kernel, boundary) -> list[np.ndarray]:
    """The bound on the error of each state, point by point: formula (2) of twofour.accuracy."""
    weights = np.abs(kernel.weights)
    count = len(weights)
    inexact, sizes = reference.without_constants(boundary), reference.absolute(boundary)
    box = reference.updated(states[0].shape, kernel.offsets, boundary)
    bounds = [np.zeros_like(states[0])]
    for before, after in zip(states, states[1:]):  # noqa: B905 - neighbours
        carried = reference.step(bounds[-1], kernel.offsets, weights, inexact)
        summed = reference.step(np.abs(before), kernel.offsets, weights, sizes)
        fresh = sweep_error(dtype, count, np.abs(after) + carried, summed + carried)
        # Points that are not updated carry no error.
        bounds.append(np.zeros_like(fresh))
        bounds[-1][box] = (carried + fresh)[box]
    return bounds
