# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Geometry of the sweeps of a linear stencil: which kernel writes which box from which buffer.

Coordinates are those of the padded buffers: the interior [lower, upper) is updated, the cells
around it are halo. A single sweep writes the interior. A fused sweep advances T steps:

- A point whose T-step cone of dependence stays in the interior, up to the cells read in the first
  step, is written by the fused kernel. On a periodic axis the halo is T times as deep and every
  point is such a point; on any other axis the first (T-1) reach_lo and the last (T-1) reach_hi
  points are not.
- Those rims are swept T times by the single-step kernel, on slabs that are (T-1)(reach_lo +
  reach_hi) thick at first and lose one reach a step on the side where they were cut.

Hence fusion is exact at every boundary; only rounding differs from single steps.

Where a kernel asks for aligned rows, the rims on the last axis are widened to a multiple of
`granule` points, so that the fused kernel's region begins as aligned as the interior; the regions
of slabs are not aligned, and kernels for them must not ask for it.
"""

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial

import numpy as np

from twofour.reach import halo_reach
from twofour.runtime.boundary import AxisBoundary
from twofour.runtime.box import Box
from twofour.runtime.dtypes import ElementType
from twofour.runtime.halos import Halos, Refresh
from twofour.runtime.memory import HOST, Memory
from twofour.runtime.threads import waking_threads


@dataclass(frozen=True)
class LinearKernel:
    """A sweep kernel of a linear stencil with one input and one output.

    `native` has `bind(views_in, views_out)` as NativeKernel does. Per axis, `reach_lo` is minus
    the smallest offset and `reach_hi` the largest one (either is negative where all offsets lie on
    one side). `steps` time steps are fused into its weights.
    """

    native: object
    reach_lo: tuple[int, ...]
    reach_hi: tuple[int, ...]
    steps: int = 1


Sweep = Callable[[], None]


def bind_region(
    kernel: LinearKernel,
    source: np.ndarray,
    source_box: Box,
    target: np.ndarray,
    target_box: Box,
    threads: int,
) -> Sweep:
    """Return a callable that writes `target_box` of `target` from the same region of `source`."""
    out = target[target_box.slices]
    view = source[source_box.grown(kernel.reach_lo, kernel.reach_hi).slices]
    bound = kernel.native.bind([view], [out])
    extent = out.shape[0]
    parts = min(extent, waking_threads(out.size, threads))
    if parts == 1:
        return partial(bound.run, 0, extent)
    return partial(bound.run_together, extent, parts)


class SingleSweep:
    """One step: refresh the halo of the source, write the interior of the target."""

    def __init__(
        self,
        kernel: LinearKernel,
        shape: tuple[int, ...],
        interior: Box,
        boundary: tuple[AxisBoundary, ...],
        element: ElementType,
        threads: int,
        halos: Halos,
    ):
        self.kernel = kernel
        self.interior = interior
        self.threads = threads
        self.steps = 1
        self.refresh = halos.refresh(shape, (interior.lower, interior.upper), boundary, element)

    def bind(self, source: np.ndarray, target: np.ndarray) -> list[Sweep]:
        """Return the callables that advance `source` into `target` when run in order."""
        box = self.interior
        region = bind_region(self.kernel, source, box, target, box, self.threads)
        return [region] if self.refresh.empty else [self.refresh.bind(source), region]


class FusedSweep:
    """`fused.steps` steps at once: deep interior by the fused kernel, rims by slabs."""

    def __init__(self, single: SingleSweep, fused: LinearKernel, deep: Box, slabs: "list[Slab]"):
        self.single = single
        self.fused = fused
        self.deep = deep
        self.slabs = slabs
        self.steps = fused.steps

    def bind(self, source: np.ndarray, target: np.ndarray) -> list[Sweep]:
        """Return the callables that advance `source` into `target` when run in order."""
        refresh, threads = self.single.refresh, self.single.threads
        sweeps = [] if refresh.empty else [refresh.bind(source)]
        sweeps.append(bind_region(self.fused, source, self.deep, target, self.deep, threads))
        for slab in self.slabs:
            sweeps += slab.bind(source, target)
        return sweeps


@dataclass(frozen=True)
class Slab:
    """The points along one non-periodic end of one axis, swept by single steps.

    `kernel` advances one step. `levels[k]` is the box written by step k + 1, the last one being the
    rim itself; `storage` is the part of the buffers that the intermediate steps are kept in. Its
    interior along the axis ends at the cut, where there is no halo to refresh.
    """

    kernel: LinearKernel
    threads: int
    memory: Memory
    levels: tuple[Box, ...]
    storage: Box
    refresh: Refresh

    def bind(self, source: np.ndarray, target: np.ndarray) -> list[Sweep]:
        """Return the callables that advance the slab from `source` into its rim in `target`."""
        kernel, threads = self.kernel, self.threads
        origin = self.storage.lower
        # Both start as copies for the sake of the cells that no step writes: fixed rims.
        scratch = [self.memory.array(source[self.storage.slices]) for _ in self.levels[:2]]
        first, last = self.levels[0], self.levels[-1]
        sweeps = [
            bind_region(kernel, source, first, scratch[0], first.relative_to(origin), threads)
        ]
        for level in self.levels[1:]:
            values = scratch[0]
            if not self.refresh.empty:
                sweeps.append(self.refresh.bind(values))
            inside = level.relative_to(origin)
            if level is last:
                sweeps.append(bind_region(kernel, values, inside, target, level, threads))
            else:
                sweeps.append(bind_region(kernel, values, inside, scratch[1], inside, threads))
                scratch.reverse()
        return sweeps


def fused_sweep(
    single: SingleSweep,
    fused: LinearKernel,
    boundary: tuple[AxisBoundary, ...],
    element: ElementType,
    halos: Halos,
    *,
    edges: LinearKernel | None = None,
    granule: int = 1,
    memory: Memory = HOST,
) -> FusedSweep | None:
    """Return the fused sweep, or None where the domain is too small for the slabs of an axis.

    `halos` says how halos are refreshed; `edges` sweeps the slabs (the kernel of `single` where it
    is None), kept in `memory`.
    """
    interior = single.interior
    steps = fused.steps
    below = halo_reach(single.kernel.reach_lo)
    above = halo_reach(single.kernel.reach_hi)
    with_halo = interior.grown(below, above)
    deep = interior
    slabs = []
    for axis, (lower, upper, entry) in enumerate(
        zip(interior.lower, interior.upper, boundary, strict=True)
    ):
        if entry.mode == "periodic":
            continue
        lo, hi = below[axis], above[axis]
        rim_lo, rim_hi = (steps - 1) * lo, (steps - 1) * hi
        if axis == len(boundary) - 1:
            rim_lo = -(-rim_lo // granule) * granule
        if upper - lower < rim_lo + (steps - 1) * lo + 2 * rim_hi:
            return None
        deep = deep.with_axis(axis, lower + rim_lo, upper - rim_hi)
        ends = []
        if lo:
            levels = [(lower, lower + rim_lo + (steps - k) * hi) for k in range(1, steps + 1)]
            ends.append((levels, lower - lo, levels[0][1]))
        if hi:
            levels = [(upper - rim_hi - (steps - k) * lo, upper) for k in range(1, steps + 1)]
            ends.append((levels, levels[0][0], upper + hi))
        for levels, begin, end in ends:
            storage = with_halo.with_axis(axis, begin, end)
            inside = interior.with_axis(axis, *levels[0]).relative_to(storage.lower)
            refresh = halos.refresh(storage.shape, (inside.lower, inside.upper), boundary, element)
            boxes = tuple(interior.with_axis(axis, *level) for level in levels)
            kernel = edges or single.kernel
            slabs.append(Slab(kernel, single.threads, memory, boxes, storage, refresh))
    return None if deep.empty else FusedSweep(single, fused, deep, slabs)
