# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Wavefronts and conflicts of shared memory, against a lane by lane definition."""

import numpy as np
import pytest

from twofour.layout.banks import compatible, wavefronts


def counted(addresses, itemsize):
    """Wavefronts of one access: words by bank, half a warp at a time for 8 bytes, and so on."""
    parts = max(1, itemsize // 4)
    total = 0
    for part in np.split(np.asarray(addresses), parts):
        by_bank = {}
        for address in part:
            first, last = address * itemsize // 4, (address * itemsize + itemsize - 1) // 4
            for word in range(first, last + 1):
                by_bank.setdefault(word % 32, set()).add(word)
        total += max(len(words) for words in by_bank.values())
    return total


@pytest.mark.parametrize("itemsize", [2, 4, 8, 16])
def test_wavefronts_count_words_of_a_bank(itemsize):
    rng = np.random.default_rng(itemsize)
    lanes = np.arange(32)
    accesses = [lanes, 2 * lanes, 32 * lanes, 0 * lanes, lanes[::-1] * 3]
    accesses += [rng.integers(0, 300, 32) for _ in range(200)]
    expected = [counted(access, itemsize) for access in accesses]
    assert wavefronts(np.array(accesses), itemsize).tolist() == expected


@pytest.mark.parametrize("itemsize", [2, 4, 8])
def test_columns_are_compatible_where_one_access_takes_one_wavefront(itemsize):
    columns = np.random.default_rng(1).integers(0, 200 // itemsize, (40, 3))
    free = compatible(columns, itemsize)
    for i in range(len(columns)):
        for j in range(len(columns)):
            both = np.concatenate([columns[i], columns[j]])
            access = np.resize(both, 32)[None]
            together = free[i, j] and free[i, i] and free[j, j]
            assert together == (wavefronts(access, itemsize)[0] == max(1, itemsize // 4))
    assert free.any() and not free.all()
