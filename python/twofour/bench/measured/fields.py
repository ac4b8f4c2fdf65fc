# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The arrays of one group on a device: several sets of inputs, and what results have to be."""

import math
from collections.abc import Iterator

import numpy as np

from twofour.accuracy import error_bound
from twofour.bench.measured.plan import Group
from twofour.runtime.devices.device import Device
from twofour.runtime.devices.stepping import aligned_rows
from twofour.runtime.dtypes import ELEMENT_TYPES
from twofour.swept import swept

# Sets together are larger than any cache of the second level, so that none flatters.
SPAN_BYTES = 512 << 20
MIN_SETS, MAX_SETS = 2, 16
ALIGNMENT = 64  # bytes that rows of outputs and of the inputs under them begin at
CHECKED_POINTS = 1 << 19  # of the outputs at the beginning, in the middle and at the end
# Other programs round in another order: what they may err more than our bound.
SLACK = 2.0


class Fields:
    """Inputs with a halo for all steps of a group, and outputs in `targets`, `sets` of each.

    Inputs are random numbers between -1 and 1, the same in every session.
    """

    def __init__(self, group: Group, device: Device):
        self.group, self.device = group, device
        self.element = ELEMENT_TYPES[group.dtype]
        granule = ALIGNMENT // self.element.itemsize
        lo, hi = group.reach
        self.halo_lo = tuple(group.steps * reach for reach in lo)
        above = [group.steps * reach for reach in hi]
        # Accesses of several elements may go on behind the last input of a row.
        above[-1] = -(-above[-1] // granule) * granule + granule
        grown = [n + a + b for n, a, b in zip(group.shape, self.halo_lo, above, strict=True)]
        one = (math.prod(grown) + math.prod(group.shape)) * self.element.itemsize
        self.sets = min(MAX_SETS, max(MIN_SETS, -(-SPAN_BYTES // one)))
        storage = self.element.storage
        self._sources, self.targets = [], []
        self._expected: dict[tuple[int, int, int], np.ndarray] = {}
        for number in range(self.sets):
            source = aligned_rows(device, grown, self.halo_lo[-1], storage, granule)
            source[...] = self._random(grown, number)
            self._sources.append(source)
            self.targets.append(aligned_rows(device, group.shape, 0, storage, granule))
        pool = getattr(device.array_module, "get_default_memory_pool", None)
        if pool is not None:
            # What CuPy keeps for itself, PyTorch cannot have.
            pool().free_all_blocks()

    def _random(self, shape, seed: int):
        module = self.device.array_module
        values = module.random.default_rng(seed).random(shape, dtype=np.float32)
        return (2 * values - 1).astype(self.element.storage)

    def source(self, number: int, below: tuple[int, ...], above: tuple[int, ...]):
        """Input set `number` with a halo of so many cells; negative numbers leave cells out."""
        slices = tuple(
            slice(lead - lo, lead + extent + hi)
            for lead, lo, extent, hi in zip(
                self.halo_lo, below, self.group.shape, above, strict=True
            )
        )
        return self._sources[number][slices]

    def clear(self, number: int) -> None:
        """Fill an output with what no sweep gives."""
        self.targets[number][...] = self.element.storage.type(math.nan)

    def error(self, number: int, steps: int) -> tuple[float, float]:
        """The largest error of an output after `steps` steps, at the checked points, and its bound.

        The error is infinite where an output is not a number.
        """
        largest = 0.0
        for rows in self._checked():
            result = self._numbers(self.targets[number][rows])
            key = (number, rows.start, steps)
            if key not in self._expected:
                self._expected[key] = self._swept(number, rows, steps)
            difference = np.abs(result - self._expected[key])
            largest = max(largest, float(np.where(np.isnan(difference), np.inf, difference).max()))
        weights = self.group.weights
        return largest, SLACK * error_bound(self.group.dtype, weights, 1.0, steps, matrix=True)

    def _checked(self) -> Iterator[slice]:
        """Rows of the slowest axis that are compared."""
        extent = self.group.shape[0]
        count = max(1, min(extent, CHECKED_POINTS * extent // math.prod(self.group.shape)))
        for first in sorted({0, (extent - count) // 2, extent - count}):
            yield slice(first, first + count)

    def _numbers(self, values) -> np.ndarray:
        """Values in the memory of the process, as float64."""
        get = getattr(self.device.array_module, "asnumpy", np.asarray)
        return get(values).astype(np.float64)

    def _swept(self, number: int, rows: slice, steps: int) -> np.ndarray:
        """Rows of outputs in float64, step by step from the inputs."""
        lo, hi = self.group.reach
        below, above = ([steps * reach for reach in side] for side in (lo, hi))
        source = self.source(number, tuple(below), tuple(above))
        values = self._numbers(source[rows.start : rows.stop + below[0] + above[0]])
        return swept(values, self.group.offsets, self.group.weights, steps)
