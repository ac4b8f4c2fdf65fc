# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Where in a page an array begins that is written while others of its shape are read.

A load waits for an earlier store at the same place of another page. What a sweep reads soon after
it writes a row lies a few rows around it in the other arrays: each array begins where these rows
are farthest, modulo pages.
"""

import math
import operator
from collections.abc import Callable, Sequence
from functools import lru_cache

import numpy as np

PAGE = 4096  # bytes
CACHE_LINE = 64  # bytes
# Rows and planes on either side that a sweep reads.
REACH = 3


@lru_cache(maxsize=64)
def page_offsets(strides: Sequence[int], count: int) -> tuple[int, ...]:
    """Where `count` arrays begin, modulo pages: whole cache lines, the first one at 0.

    `strides` are the bytes from row to row, from plane to plane and so on, of all of them. Each
    array begins where its rows are farthest from the near ones of those before it.
    """
    near = np.zeros(1, np.int64)
    for stride in strides:
        near = np.add.outer(near, np.arange(-REACH, REACH + 1) * stride).ravel() % PAGE
    near = np.unique(near)
    lines = np.arange(0, PAGE, CACHE_LINE)
    offsets, distance = [0], np.full(len(lines), PAGE)
    for _ in range(count - 1):
        apart = (lines[:, None] - offsets[-1] - near) % PAGE
        distance = np.minimum(distance, np.minimum(apart, PAGE - apart).min(axis=1))
        offsets.append(int(lines[distance.argmax()]))
    return tuple(offsets)


def page_offset(strides: Sequence[int]) -> int:
    """The bytes from one array's begin, modulo pages, to another's that is read or written too."""
    return page_offsets(strides, 2)[1]


def offset_to_line(cell: Sequence[int], strides: Sequence[int]) -> int:
    """The bytes from a cache line to where an array begins whose cell begins on a line."""
    return -sum(map(operator.mul, cell, strides)) % CACHE_LINE


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
    begin: int,
    shape: Sequence[int],
    dtype: np.dtype,
    take: Callable[[int], np.ndarray] = fresh_bytes,
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
