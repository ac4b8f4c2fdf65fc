# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Where the second array of a sweep begins in a page."""

import numpy as np
import pytest

from twofour.runtime.page_offset import (
    CACHE_LINE,
    PAGE,
    empty_at,
    empty_beside,
    offset_to_line,
    page_offset,
    spread_row,
)


def nearest(strides, offset):
    """The bytes, modulo pages, from a row of one array to the nearest near row of the other."""
    first = np.arange(-3, 4)
    rows = [np.zeros(1, int)]
    for stride in strides:
        rows.append(np.add.outer(rows[-1], first * stride).ravel())
    distance = np.mod(offset - rows[-1], PAGE)
    return np.minimum(distance, PAGE - distance).min()


@pytest.mark.parametrize(
    ("strides", "least"),
    [
        ((), PAGE // 2),
        ((4096,), PAGE // 2),  # rows of a page: 512 numbers of f64
        ((4112,), PAGE // 2 - 3 * 16),  # with a halo
        ((2048,), PAGE // 4),
        ((2064,), PAGE // 4 - 3 * 16),  # where half a page would be next to the following row
        ((4096 * 64, 4096), PAGE // 2),
        ((34848, 528), CACHE_LINE // 2),
        ((1 << 20,), PAGE // 2),
    ],
)
def test_near_rows_lie_apart(strides, least):
    offset = page_offset(strides)
    assert offset % CACHE_LINE == 0 and 0 <= offset < PAGE
    best = max(nearest(strides, other) for other in range(0, PAGE, CACHE_LINE))
    assert nearest(strides, offset) == best >= least - CACHE_LINE


def test_the_second_array_begins_there():
    first = np.zeros((5, 513))
    second = empty_beside(first, lambda size: np.empty(size, np.uint8))
    assert (second.shape, second.dtype, second.flags.c_contiguous) == ((5, 513), first.dtype, True)
    apart = (second.ctypes.data - first.ctypes.data // CACHE_LINE * CACHE_LINE) % PAGE
    assert apart == page_offset(first.strides[:-1])


@pytest.mark.parametrize("begin", [0, 8, 4088])
def test_an_array_that_begins_anywhere_in_a_page(begin):
    array = empty_at(begin, (3, 7), np.float32, lambda size: np.empty(size, np.uint8))
    assert (array.shape, array.dtype, array.flags.c_contiguous) == ((3, 7), np.float32, True)
    assert array.ctypes.data % PAGE == begin


@pytest.mark.parametrize("cell", [(0, 0), (4, 4), (1, 3), (2, 0)])
def test_a_cell_that_begins_a_line(cell):
    strides = 31 * 8, 8
    begin = offset_to_line(cell, strides)
    assert 0 <= begin < CACHE_LINE
    assert (begin + sum(map(np.multiply, cell, strides))) % CACHE_LINE == 0


def test_rows_spread_over_the_sets_of_a_cache():
    assert [spread_row(n, 8) for n in (1, 8, 9, 32, 33, 40, 41, 64)] == [
        8,
        8,
        16,
        32,
        40,
        40,
        56,
        72,
    ]
