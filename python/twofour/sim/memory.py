# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Global memory: arrays of the host, registered, with what is known of each of their bytes.

A global address is the address of the byte in the host's memory. Every access is checked against
the registered arrays; nothing else can be reached.
"""

from bisect import bisect_right
from collections.abc import Iterator, Sequence

import numpy as np
from numpy.typing import DTypeLike

Shape = int | Sequence[int]

_ALIGNMENT = 256
UNSIGNED = {1: np.uint8, 2: np.uint16, 4: np.uint32, 8: np.uint64}


class GlobalAllocation:
    """Bytes [start, start + size) of global memory.

    `undefined` marks the bytes that nobody has written, None when there are none left.
    """

    def __init__(self, size: int):
        self.size = size
        padded = -(-size // _ALIGNMENT) * _ALIGNMENT
        backing = np.empty(padded + _ALIGNMENT, np.uint8)
        begin = -backing.ctypes.data % _ALIGNMENT
        self.padded = backing[begin : begin + padded]
        self.start = self.padded.ctypes.data
        self.end = self.start + size
        self.bytes = self.padded[:size]
        self.undefined: np.ndarray | None = None
        self._rows: dict[tuple[int, int], np.ndarray] = {}

    def rows(self, element: int, count: int) -> np.ndarray:
        """The bytes as [rows, count] elements of `element` bytes; [rows] if count is 1."""
        key = (element, count)
        if key not in self._rows:
            view = self.padded.view(UNSIGNED[element])
            self._rows[key] = view.reshape(-1, count) if count > 1 else view
        return self._rows[key]

    def set_undefined(self) -> None:
        self.undefined = np.zeros(self.padded.size, np.uint8)
        self.undefined[: self.size] = 1


class Memory:
    """The registered arrays of a simulated GPU."""

    def __init__(self):
        self._starts: list[int] = []
        self._allocations: list[GlobalAllocation] = []

    def _register(self, size: int) -> GlobalAllocation:
        allocation = GlobalAllocation(size)
        index = bisect_right(self._starts, allocation.start)
        self._starts.insert(index, allocation.start)
        self._allocations.insert(index, allocation)
        return allocation

    def _array(self, shape: Shape, dtype: DTypeLike) -> tuple[GlobalAllocation, np.ndarray]:
        dtype = np.dtype(dtype)
        shape = (shape,) if isinstance(shape, int | np.integer) else tuple(shape)
        count = int(np.prod(shape, dtype=np.int64))
        allocation = self._register(count * dtype.itemsize)
        return allocation, allocation.bytes.view(dtype).reshape(shape)

    def empty(self, shape: Shape, dtype: DTypeLike) -> np.ndarray:
        """An array aligned to 256 bytes; reading a byte before a kernel writes it is a fault.

        A host that fills it says so with `initialised`.
        """
        allocation, array = self._array(shape, dtype)
        allocation.set_undefined()
        return array

    def zeros(self, shape: Shape, dtype: DTypeLike) -> np.ndarray:
        """An array of zeros, aligned to 256 bytes."""
        _, array = self._array(shape, dtype)
        array[...] = np.zeros((), array.dtype)
        return array

    def array(self, values: np.ndarray) -> np.ndarray:
        """A registered copy of an array in C order, aligned to 256 bytes."""
        values = np.asarray(values)
        _, array = self._array(values.shape, values.dtype)
        array[...] = values
        return array

    def reserve(self, size: int, alignment: int = 1) -> GlobalAllocation:
        """Zeroed bytes for a variable of a module."""
        if alignment > _ALIGNMENT:
            raise ValueError(f"expected an alignment of at most {_ALIGNMENT}, got {alignment}")
        allocation = self._register(size)
        allocation.padded[:] = 0
        return allocation

    def initialised(self, array: np.ndarray) -> None:
        """Take note that the host has written an array, or a view of one."""
        allocation = self.find(array.__array_interface__["data"][0])
        if allocation is None:
            raise ValueError("expected an array of this memory")
        if allocation.undefined is None:
            return
        marks = np.ndarray(
            array.shape,
            np.dtype((np.void, array.itemsize)),
            allocation.undefined.data,
            array.__array_interface__["data"][0] - allocation.start,
            array.strides,
        )
        marks[...] = np.zeros((), marks.dtype)
        if not allocation.undefined.any():
            allocation.undefined = None

    def release(self, array: np.ndarray) -> None:
        """Unregister an array that this memory made: later accesses to it are out of bounds."""
        start = array.__array_interface__["data"][0]
        allocation = self.find(start)
        if allocation is None or allocation.start != start:
            raise ValueError("expected an array of this memory")
        index = self._allocations.index(allocation)
        del self._starts[index], self._allocations[index]

    def find(self, address: int) -> GlobalAllocation | None:
        """The allocation that holds the byte at an address."""
        index = bisect_right(self._starts, address) - 1
        if index < 0 or address >= self._allocations[index].end:
            return None
        return self._allocations[index]

    def __iter__(self) -> Iterator[GlobalAllocation]:
        return iter(self._allocations)
