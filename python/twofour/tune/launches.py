# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Launches of the main kernels of several bundles on the same arrays.

The kernel that most points of a run go through is launched on a whole domain with its halo; inputs
are not refreshed and results do not become inputs, so that every launch does the same.
"""

import math
from collections.abc import Callable, Iterator, Sequence

import numpy as np

from twofour.reach import halo_reach
from twofour.runtime.box import Box
from twofour.runtime.bundle import Bundle
from twofour.runtime.devices.device import BoundLaunch, Device
from twofour.runtime.devices.stepping import SECTOR, aligned_rows
from twofour.runtime.dtypes import field_element_type, from_storage, to_storage
from twofour.runtime.manifest import KernelSpec

PATTERN = 1 << 22  # random numbers; arrays repeat them
COMPARED = 1 << 23  # points of a result, spread over the domain
TOGETHER = 1 << 14  # compared points that are neighbours, at least


class InputSets:
    """Several inputs with halos, and an output for each, in the memory of a device.

    They fit the main kernels of all `bundles`, which are of one stencil. `shape` is the domain,
    `magnitude` bounds the values; `count` is the number of sets.
    """

    def __init__(
        self,
        bundles: Sequence[Bundle],
        device: Device,
        shape: Sequence[int],
        magnitude: float,
        count: int,
    ):
        self.device, self.shape = device, tuple(shape)
        program = bundles[0].program
        self.steps = program.fused_steps
        self.element = field_element_type(bundles[0].manifest["element"])
        lo, hi = (
            tuple(self.steps * reach for reach in side)
            for side in (program.reach_lo, program.reach_hi)
        )
        self.reach_lo, self.reach_hi = lo, hi
        specs = [main_kernel(bundle) for bundle in bundles]
        granule = max(SECTOR, *(spec.alignment for spec in specs)) // self.element.itemsize
        below, above = halo_reach(lo), halo_reach(hi)
        extents = [b + n + a for b, n, a in zip(below, self.shape, above, strict=True)]
        self.inner = Box(below, tuple(b + n for b, n in zip(below, self.shape, strict=True)))

        def array() -> np.ndarray:
            storage = self.element.storage
            return aligned_rows(device, extents, self.inner.lower[-1], storage, granule)

        self.arrays = [(array(), array()) for _ in range(count)]
        for number, (source, _) in enumerate(self.arrays):
            self._fill(source, number, magnitude)

    def _fill(self, array: np.ndarray, seed: int, magnitude: float) -> None:
        rows = max(1, min(array.shape[0], PATTERN // max(1, math.prod(array.shape[1:]))))
        random = np.random.default_rng(seed)
        values = random.uniform(-magnitude, magnitude, (rows, *array.shape[1:]))
        pattern = self.device.array(to_storage(values, self.element))
        for begin in range(0, array.shape[0], rows):
            end = min(begin + rows, array.shape[0])
            array[begin:end] = pattern[: end - begin]

    def bind(self, bundle: Bundle) -> list[BoundLaunch]:
        """The main kernel of a bundle, loaded and bound to every set.

        Raises TwofourError where the device cannot run it.
        """
        kernel = self.device.load(bundle)[main_kernel(bundle).name]
        aligned = kernel.aligned_for(self.reach_lo[-1])
        read = self.inner.grown(self.reach_lo, self.reach_hi).slices
        write = self.inner.slices
        return [aligned.bind([source[read]], [target[write]]) for source, target in self.arrays]

    def launcher(self, bound: Sequence[BoundLaunch], count: int) -> Callable[[], None]:
        """A call that launches `count` times, the sets in turns; recorded where that works."""

        def launches() -> None:
            for number in range(count):
                bound[number % len(bound)].run(0, self.shape[0])

        return self.device.record(launches) or launches

    def clear(self) -> None:
        """Let the first output hold no numbers, so that what is not written is not right."""
        self.arrays[0][1][...] = to_storage(np.array(np.nan), self.element)[()]

    def slabs(self) -> Iterator[tuple[slice, np.ndarray, np.ndarray]]:
        """Slabs of the domain, spread evenly along its first axis: what is compared.

        Of each its rows, the inputs with the halo around it and the outputs of the first set, in
        float64.
        """
        source, target = self.arrays[0]
        output = target[self.inner.slices]
        around = source.shape[0] - self.shape[0]
        for rows in slabs(self.shape):
            values = self._numbers(source[rows.start : rows.stop + around])
            yield rows, values, self._numbers(output[rows])

    def _numbers(self, array) -> np.ndarray:
        module = self.device.array_module
        host = np.array(array) if module is np else module.asnumpy(array)
        return from_storage(host, self.element)


def slabs(shape: Sequence[int]) -> list[slice]:
    """Rows of a domain to compare, some in each place: the first, the last, and some between."""
    row = max(1, math.prod(shape[1:]))
    rows = min(shape[0], max(1, TOGETHER // row))
    count = max(2, COMPARED // (rows * row))
    if count * rows >= shape[0]:
        return [slice(0, shape[0])]
    starts = np.linspace(0, shape[0] - rows, count).astype(int).tolist()
    return [slice(start, start + rows) for start in starts]


def main_kernel(bundle: Bundle) -> KernelSpec:
    """The kernel of a bundle's sweeps, the fused ones where there are such."""
    program = bundle.program
    return bundle.kernels[program.fused or program.single]
