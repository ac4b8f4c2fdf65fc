# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""What is timed: a stencil over arrays that hold a halo, and how far results may be apart."""

import math
from dataclasses import dataclass
from typing import Literal

import numpy as np

from twofour.accuracy import sweep_error
from twofour.kernels import Kernel
from twofour.reach import halo_of
from twofour.runtime.box import Box

SEED = 20261122
Shape = Literal["box", "star"]
# Storage types that baselines know.
NUMPY = {"f64": np.dtype(np.float64), "f32": np.dtype(np.float32)}


@dataclass(frozen=True)
class Workload:
    """A stencil, the extents of the interior it updates, the storage type and the threads.

    `boundary` is fixed or periodic on all axes; either way the arrays hold the halo.
    """

    label: str
    kernel: Kernel
    extents: tuple[int, ...]
    dtype: str
    threads: int
    boundary: str = "fixed"

    @property
    def averages(self) -> bool:
        """Whether sweeps keep values in their range, so that they may be repeated for ever."""
        weights = self.kernel.weights
        return min(weights) > 0 and abs(math.fsum(weights) - 1) < 1e-6

    @property
    def below(self) -> tuple[int, ...]:
        """Cells of halo below the interior, an axis each."""
        return halo_of(self.kernel.offsets)[0]

    @property
    def above(self) -> tuple[int, ...]:
        """Cells of halo above the interior, an axis each."""
        return halo_of(self.kernel.offsets)[1]

    @property
    def shape(self) -> tuple[int, ...]:
        """The extents of arrays."""
        return tuple(
            lo + n + hi for lo, n, hi in zip(self.below, self.extents, self.above, strict=True)
        )

    @property
    def interior(self) -> Box:
        """What is updated, in the indices of arrays."""
        ends = tuple(lo + n for lo, n in zip(self.below, self.extents, strict=True))
        return Box(self.below, ends)

    @property
    def points(self) -> int:
        """Points that a step updates."""
        return math.prod(self.extents)

    @property
    def terms(self) -> int:
        return len(self.kernel.weights)

    @property
    def itemsize(self) -> int:
        return NUMPY[self.dtype].itemsize

    @property
    def flops(self) -> int:
        """Floating-point operations of a step: a multiplication and an addition a term."""
        return 2 * self.terms * self.points

    @property
    def bytes(self) -> int:
        """Bytes of a step that reads and writes every point once."""
        return 2 * self.points * self.itemsize

    @property
    def domain(self) -> str:
        return " x ".join(map(str, self.extents))

    def bound(self, steps: int) -> float:
        """How far two right results of inputs in [0, 1) may be apart after `steps` steps.

        Each is within equations (1) and (2) of twofour.accuracy of the exact one, for sums in any
        order, with A and the inputs replaced by their maxima; those of twofour are perhaps of rows
        in pairs.
        """
        size = math.fsum(map(abs, self.kernel.weights))
        return sum(
            size**steps
            * ((1 + sweep_error(self.dtype, self.terms, 0.0, 1.0, pairs=pairs)) ** steps - 1)
            for pairs in (False, self.kernel.rank == 2)
        )


def extents(size: int, rank: int) -> tuple[int, ...]:
    """About size * size points in a line, a square or a cube."""
    edge = {1: size * size, 2: size}.get(rank) or round(size ** (2 / rank))
    return (edge,) * rank


def random_stencil(shape: Shape, radius: int, dtype: str, rank: int = 2) -> Kernel:
    """A box or star with positive random weights, no two alike, of sum one.

    Sweeps may then be repeated for ever: values stay between the least and the largest input, and
    none becomes subnormal. The weights are exact in `dtype`.
    """
    offsets = [
        tuple(int(c) - radius for c in index)
        for index in np.ndindex(*(2 * radius + 1,) * rank)
        if shape == "box" or sum(c != radius for c in index) <= 1
    ]
    draws = np.random.default_rng([SEED, radius, len(offsets)]).uniform(0.5, 1.5, len(offsets))
    weights = (draws / draws.sum()).astype(NUMPY[dtype])
    return Kernel(f"{shape}_r{radius}", tuple(offsets), tuple(map(float, weights)))


def initial_values(shape: tuple[int, ...], dtype: str) -> np.ndarray:
    """The same random numbers in [0, 1) for every array of a shape."""
    return np.random.default_rng(SEED).random(shape, NUMPY[dtype])
