# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Calls that take one sweep, again and again on arrays alike, as those who step by hand make them.

A sweep leaves nothing in the near caches of what Python needs: each function that the next call
goes through comes back from the last one. Hence everything that a call takes is looked up before,
and it goes through few.
"""

import math
from collections.abc import Callable

import numpy as np

from twofour.runtime.buffer_pool import BufferPool
from twofour.runtime.page_offset import CACHE_LINE, PAGE, page_offset
from twofour.runtime.tiles.program import TileProgram
from twofour.runtime.tiles.runs import run_sweeps
from twofour.runtime.tiles.steps import Layout


class SingleCall:
    """One sweep of `program` on up to `threads` threads, from arrays of a shape to new ones.

    `dtype` is the storage type. `pool` has the memory of results, whose halo `refresh` brings up to
    date, if they hold one.
    """

    def __init__(
        self,
        program: TileProgram,
        threads: int,
        shape: tuple[int, ...],
        dtype: np.dtype,
        pool: BufferPool,
        refresh: Callable[[np.ndarray], None] | None = None,
    ):
        self._program, self._threads = program, threads
        self._shape, self._dtype = shape, dtype
        self._pool, self._refresh = pool, refresh
        self._space = math.prod(shape) * dtype.itemsize + PAGE
        strides = [cells * dtype.itemsize for cells in Layout.of_domain(shape).strides]
        self._apart = page_offset(tuple(strides[:-1]))

    def fits(self, u: object, steps: int) -> bool:
        """Whether this makes so many steps of `u`, with nothing left to check or convert."""
        if type(u) is not np.ndarray or type(steps) is not int or steps != self._program.steps:
            return False
        flags = u.flags
        return (
            u.shape == self._shape
            and u.dtype is self._dtype
            and flags.c_contiguous
            and flags.aligned
        )

    def run(self, u: np.ndarray) -> np.ndarray:
        """A new array with the values of `u`, an array that fits, after the steps."""
        # As empty_beside does; `ctypes.data` would be two functions more for each address.
        source = u.__array_interface__["data"][0]
        space = self._pool.take(self._space)
        begin = space.__array_interface__["data"][0]
        offset = (source // CACHE_LINE * CACHE_LINE + self._apart - begin) % PAGE
        result = np.ndarray(self._shape, self._dtype, space, offset)
        run_sweeps(self._program, source, begin + offset, 1, self._threads, whole=True)
        if self._refresh is not None:
            self._refresh(result)
        return result
