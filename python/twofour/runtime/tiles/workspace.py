# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""What the threads of a tile program have beside the source and the target."""

from collections.abc import Mapping

import numpy as np

from twofour.runtime.page_offset import CACHE_LINE, PAGE

# Words of a thread, the last one its number; of what threads share, beside 8 a thread.
ARRAY_WORDS = 8
SHARED_WORDS = 16


class Workspace:
    """Scratch arrays of up to `threads` threads, and the tables of addresses that these read.

    `points` are those of each scratch array, which `addresses` lists behind fixed ones. A run
    leaves a workspace as it found it, but for what is in the scratch arrays: a program that runs
    again and again, on arrays so small that a step takes microseconds, has it made once.
    """

    def __init__(
        self, points: Mapping[int, int], addresses: Mapping[int, int], itemsize: int, threads: int
    ):
        self.threads = threads
        # Scratch arrays of a thread, one behind the other.
        offsets, end = {}, 0
        for array, count in sorted(points.items()):
            offsets[array] = end
            end += -(-count * itemsize // CACHE_LINE) * CACHE_LINE + 5 * CACHE_LINE
        pitch = -(-(end + CACHE_LINE) // PAGE) * PAGE + 9 * CACHE_LINE
        self._scratch = np.empty(threads * pitch + CACHE_LINE, np.uint8)
        # Pages that nobody has written made tiles up to three times as slow, presumably where
        # vectors under a mask reach over to them.
        self._scratch.fill(0)
        start = -(-self._scratch.ctypes.data // CACHE_LINE) * CACHE_LINE
        self._arrays = np.zeros((threads, ARRAY_WORDS), np.int64)
        self._arrays[:, -1] = np.arange(threads)
        for array, address in addresses.items():
            self._arrays[:, array] = address
        for array, offset in offsets.items():
            self._arrays[:, array] = start + offset + pitch * np.arange(threads)
        self._shared = np.zeros(SHARED_WORDS + 8 * threads, np.int64)
        self.of_threads = self._arrays.ctypes.data
        self.of_all = self._shared.ctypes.data
