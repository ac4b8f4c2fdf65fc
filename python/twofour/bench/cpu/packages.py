# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The same steps in other packages, each as its documentation has it.

`prepare_*(job)` compiles and returns a call: all steps of the job, from Python, on values that are
in place already. Points whose neighbours would lie outside keep their values. A call returns the
result in whatever form the package has, and takes no copy of it where the package needs none.
"""

import itertools
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from twofour.kernels import Kernel

Call = Callable[[], object]


@dataclass(frozen=True)
class Job:
    """`steps` steps of a 2-D stencil on `values` (float64), on so many threads."""

    kernel: Kernel
    values: np.ndarray
    steps: int
    threads: int

    @property
    def inside(self) -> tuple[slice, slice]:
        """The points that are updated."""
        r = self.kernel.radius
        return (slice(r, -r), slice(r, -r))

    def sum_of(self, term: str) -> str:
        """Python for the sum over all points; `term` holds {0}, {1} for the offsets."""
        pairs = zip(self.kernel.offsets, self.kernel.weights, strict=True)
        return " + ".join(f"{weight!r} * {term.format(*offset)}" for offset, weight in pairs)


def prepare_twofour(job: Job) -> Call:
    """One call makes all steps, and returns a new array."""
    import twofour

    weights = dict(zip(job.kernel.offsets, job.kernel.weights, strict=True))
    step = twofour.stencil(weights, boundary="fixed", dtype="f64", threads=job.threads)
    return lambda: step(job.values, steps=job.steps)


def prepare_gcc(job: Job) -> Call:
    """C with OpenMP by gcc: no package, but what all of them may be held to."""
    import os

    from twofour.bench.cpu.arrays import Arrays
    from twofour.bench.cpu.c_library import gcc_sweeps
    from twofour.bench.cpu.workload import Workload

    extents = job.values[job.inside].shape
    workload = Workload("", job.kernel, extents, "f64", job.threads)
    arrays = Arrays(workload)
    arrays.both[0][...] = arrays.both[1][...] = job.values
    sweeps = gcc_sweeps(workload, arrays, sorted(os.sched_getaffinity(0)), job.steps)
    sweeps.prepare()
    return lambda: sweeps.run(1)


def prepare_numba(job: Job) -> Call:
    """Loops under `njit`, with `prange` for more than one thread."""
    import numba

    r, (rows, columns) = job.kernel.radius, job.values.shape
    loop = "numba.prange" if job.threads > 1 else "range"
    source = f"""
def run(u, steps):
    a, b = u.copy(), u.copy()
    for _ in range(steps):
        for i in {loop}({r}, {rows - r}):
            for j in range({r}, {columns - r}):
                b[i, j] = {job.sum_of("a[i + {0}, j + {1}]")}
        a, b = b, a
    return a
"""
    names = {"numba": numba}
    exec(source, names)
    numba.set_num_threads(job.threads)
    run = numba.njit(names["run"], fastmath=True, parallel=job.threads > 1)
    return lambda: run(job.values, job.steps)


def prepare_jax(job: Job) -> Call:
    """Shifted slices in a `fori_loop` under `jit`, in double precision."""
    import jax

    jax.config.update("jax_platforms", "cpu")
    jax.config.update("jax_enable_x64", True)
    r, (rows, columns) = job.kernel.radius, job.values.shape
    total = job.sum_of(f"u[{r} + {{0}}:{rows - r} + {{0}}, {r} + {{1}}:{columns - r} + {{1}}]")
    names: dict = {}
    exec(f"def new(u):\n    return {total}\n", names)

    @jax.jit
    def run(u):
        return jax.lax.fori_loop(
            0, job.steps, lambda _, u: u.at[job.inside].set(names["new"](u)), u
        )

    values = jax.device_put(job.values)
    return lambda: run(values).block_until_ready()


def prepare_devito(job: Job) -> Call:
    """A `TimeFunction` of two time levels and one operator, which is applied for all steps."""
    import devito

    devito.configuration["log-level"] = "ERROR"
    if job.threads > 1:
        devito.configuration["language"] = "openmp"
    extents = job.values[job.inside].shape
    grid = devito.Grid(shape=extents, dtype=np.float64)
    r = job.kernel.radius
    u = devito.TimeFunction(name="u", grid=grid, time_order=1, space_order=r)
    t, (x, y) = grid.stepping_dim, grid.dimensions
    pairs = zip(job.kernel.offsets, job.kernel.weights, strict=True)
    total = sum(weight * u[t, x + a, y + b] for (a, b), weight in pairs)
    operator = devito.Operator(devito.Eq(u[t + 1, x, y], total))
    # The halo is at least as wide as the rim, which the operator never writes.
    wide = (u.data_with_halo.shape[1] - extents[0]) // 2 - r
    held = (slice(None), *(slice(wide, n - wide) for n in u.data_with_halo.shape[1:]))
    u.data_with_halo[held] = job.values
    threads = {"nthreads": job.threads} if job.threads > 1 else {}

    def call() -> np.ndarray:
        operator.apply(time_m=0, time_M=job.steps - 1, **threads)
        return u.data_with_halo[held][job.steps % 2]

    return call


def prepare_scipy(job: Job) -> Call:
    """`scipy.ndimage.correlate` into one of two arrays, step by step; it has no threads."""
    from scipy import ndimage

    r = job.kernel.radius
    weights = np.zeros((2 * r + 1, 2 * r + 1))
    for offset, weight in zip(job.kernel.offsets, job.kernel.weights, strict=True):
        weights[offset[0] + r, offset[1] + r] = weight
    sides = itertools.product(range(2), (slice(None, r), slice(-r, None)))
    rim = [(side,) if axis == 0 else (slice(None), side) for axis, side in sides]

    def call() -> np.ndarray:
        a, b = job.values, np.empty_like(job.values)
        for step in range(job.steps):
            ndimage.correlate(a, weights, output=b, mode="nearest")
            for side in rim:
                b[side] = job.values[side]
            a, b = b, (np.empty_like(b) if step == 0 else a)
        return a

    return call


OWN = "twofour"
# By name: what makes the call, and what has to be installed for it.
PACKAGES: dict[str, tuple[Callable[[Job], Call], str | None]] = {
    OWN: (prepare_twofour, None),
    "gcc": (prepare_gcc, None),
    "numba": (prepare_numba, "numba"),
    "Devito": (prepare_devito, "devito"),
    "JAX": (prepare_jax, "jax"),
    "SciPy": (prepare_scipy, "scipy"),
}
# Those whose threads are OpenMP's: it is told to tie them to processors and to let them spin.
OPENMP = ("numba", "Devito")
