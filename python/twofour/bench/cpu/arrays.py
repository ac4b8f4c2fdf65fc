# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The two arrays that all contestants of a comparison sweep back and forth between."""

from collections.abc import Callable

import numpy as np

from twofour.bench.cpu.contest import Sweeper
from twofour.bench.cpu.workload import NUMPY, Workload, initial_values
from twofour.runtime.boundary import HaloRefresh, parse_boundary
from twofour.runtime.dtypes import element_type
from twofour.runtime.page_offset import PAGE, empty_beside


class Arrays:
    """Two C-contiguous arrays with the halo of a workload, and the values they begin with.

    Their rows lie apart, modulo pages, as those of twofour.runtime do: loads of one do not wait for
    stores to the other. Baselines have that, too. `sweeper` makes contestants over them.
    """

    def __init__(self, workload: Workload):
        shape, dtype = workload.shape, NUMPY[workload.dtype]
        self.initial = initial_values(shape, workload.dtype)
        inside = workload.interior
        boundary = parse_boundary(workload.boundary, len(shape))
        element = element_type(workload.dtype)
        HaloRefresh(shape, (inside.lower, inside.upper), boundary, element)(self.initial)
        first = _at_page(shape, dtype)
        self.both = first, empty_beside(first, lambda count: np.empty(count, np.uint8))
        self.interior = inside.slices
        self._fresh = not workload.averages
        self.reset()

    def sweeper(
        self,
        name: str,
        run: Callable[[int], np.ndarray | None],
        prepare: Callable[[], None],
        rest: Callable[[], None] = lambda: None,
        steps: int = 1,
    ) -> Sweeper:
        """A contestant that sweeps from the first array to the second and back."""
        return Sweeper(name, run, self.reset, prepare, rest, steps, self._fresh)

    def reset(self) -> None:
        """Begin again."""
        for array in self.both:
            array[...] = self.initial

    def after(self, sweeps: int) -> np.ndarray:
        """The array that holds the result of `sweeps` sweeps."""
        return self.both[sweeps % 2]


def _at_page(shape: tuple[int, ...], dtype: np.dtype) -> np.ndarray:
    """An array that begins a page."""
    size = int(np.prod(shape)) * dtype.itemsize
    space = np.empty(size + PAGE, np.uint8)
    skip = -space.ctypes.data % PAGE
    return space[skip : skip + size].view(dtype).reshape(shape)
