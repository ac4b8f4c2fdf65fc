# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Banks of shared memory: how many wavefronts an access of a warp takes.

Shared memory has 32 banks of 4 bytes. Lanes that touch the same word share it; different words of
one bank go one after the other. Accesses of 8 bytes are served half a warp at a time, accesses of
16 bytes a quarter.
"""

from __future__ import annotations

import numpy as np

BANKS = 32
WORD = 4  # bytes


def wavefronts(addresses: np.ndarray, itemsize: int) -> np.ndarray:
    """Wavefronts of accesses of one element a lane.

    Args:
        addresses: element indices, int, shape (accesses, 32).
        itemsize: bytes of an element: 2, 4, 8 or 16.

    Returns:
        int, shape (accesses,); 1, 1, 2 or 4 without conflicts.
    """
    parts = max(1, itemsize // WORD)
    units = addresses.reshape(len(addresses) * parts, -1)
    units = units * itemsize // WORD // parts
    unit_banks = BANKS // parts
    counts = np.zeros((len(units), unit_banks), np.int64)
    ordered = np.sort(units, axis=1)
    first = np.ones(ordered.shape, bool)
    first[:, 1:] = ordered[:, 1:] != ordered[:, :-1]
    rows, columns = np.nonzero(first)
    np.add.at(counts, (rows, ordered[rows, columns] % unit_banks), 1)
    return counts.max(axis=1).reshape(len(addresses), parts).sum(axis=1)


def compatible(columns: np.ndarray, itemsize: int) -> np.ndarray:
    """Which columns can be read by the lanes of one access without a conflict.

    Args:
        columns: element indices, int, shape (columns, lanes of a column).
        itemsize: bytes of an element: 2, 4 or 8.

    Returns:
        bool, shape (columns, columns); the diagonal says whether a column conflicts with itself.
    """
    unit = max(itemsize, WORD)
    units = columns * itemsize // unit
    banks = units % (BANKS * WORD // unit)
    # Lanes of two columns that meet in a bank are to be those that meet in a unit.
    return _meetings(banks) == _meetings(units)


def _meetings(places: np.ndarray) -> np.ndarray:
    """For each two rows, how many pairs of their entries are equal."""
    found, index = np.unique(places, return_inverse=True)
    # Single precision has fast products, and holds such counts exactly.
    counts = np.zeros((len(places), len(found)), np.float32)
    np.add.at(counts, (np.arange(len(places))[:, None], index.reshape(places.shape)), 1)
    return counts @ counts.T
