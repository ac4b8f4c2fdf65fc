# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Where in a page an array begins that is written while another one of its shape is read.

A load waits for an earlier store at the same place of another page. What a sweep reads soon after
it writes a row lies a few rows around it in the other array: the second array begins where these
rows are farthest, modulo pages.
"""

import itertools
import math
from collections.abc import Callable, Sequence
from functools import cache

import numpy as np

PAGE = 4096  # bytes
CACHE_LINE = 64  # bytes
# Rows and planes on either side that a sweep reads.
REACH = 3


@cache
def page_offset(strides: Sequence[int]) -> int:
    """The bytes from the first array's begin, modulo pages, to the second's: whole cache lines.

    `strides` are the bytes from row to row, from plane to plane and so on, of both arrays.
    """
    steps = range(-REACH, REACH + 1)
    near = {
        sum(step * stride for step, stride in zip(row, strides, strict=True)) % PAGE
        for row in itertools.product(steps, repeat=len(strides))
    }

    def distance(place: int) -> int:
        return min(min((place - row) % PAGE, (row - place) % PAGE) for row in near)

    return max(range(0, PAGE, CACHE_LINE), key=distance)


def fresh_bytes(size: int) -> np.ndarray:
    """So many bytes of new memory."""
    return np.empty(size, np.uint8)


def empty_beside(array: np.ndarray, take: Callable[[int], np.ndarray] = fresh_bytes) -> np.ndarray:
    """An uninitialised array like a C-contiguous one, at the page offset from it.

    `take(n)` gives at least n bytes, as a row of uint8.
    """
    begin = array.ctypes.data // CACHE_LINE * CACHE_LINE + page_offset(array.strides[:-1])
    return empty_at(begin, array.shape, array.dtype, take)


def empty_at(
    begin: int, shape: Sequence[int], dtype: np.dtype, take: Callable[[int], np.ndarray]
) -> np.ndarray:
    """An uninitialised C-contiguous array whose address is `begin` modulo pages."""
    space = take(math.prod(shape) * np.dtype(dtype).itemsize + PAGE)
    return np.ndarray(shape, dtype, space, offset=(begin - space.ctypes.data) % PAGE)


def spread_row(points: int, itemsize: int) -> int:
    """The length of a row of so many points, one after the other, that lie apart in the cache."""
    lines = -(-points * itemsize // CACHE_LINE)
    if lines > 4:
        # An odd number of lines a row visits all sets.
        lines |= 1
    return max(points, lines * CACHE_LINE // itemsize)
