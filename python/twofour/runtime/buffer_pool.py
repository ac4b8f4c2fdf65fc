# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Memory that results are made in, used again when the last array in it is gone.

Memory fresh from the system is slow to write: every page of it is a fault, which can cost more than
the sweep that fills it. Steppers that are called again and again on arrays of one size get by with
the same few buffers.
"""

from collections import deque
from typing import NamedTuple
from weakref import ref

import numpy as np

from twofour.runtime.page_offset import PAGE


class BufferPool:
    """Buffers of the size of the last request; at most `most` idle ones are kept.

    There is no lock: a garbage collection may give a buffer back at any time, also while its thread
    takes another one. Nor is any code of Python's run for that, in which Ctrl-C would be lost.
    """

    def __init__(self, most: int = 3):
        # Idle buffers, each in what came with its last lease.
        self._idle: deque[_Return] = deque(maxlen=most)

    def take(self, size: int) -> np.ndarray:
        """Return `size` bytes of any content, free again when no array is left that views them."""
        return np.asarray(self.lease(size))

    def lease(self, size: int) -> "Lease":
        """What `numpy.asarray` makes such an array of."""
        lease = Lease(self, self._buffer(size))
        lease.given_back = _Return(lease, self._idle.append)
        lease.given_back.buffer = lease.buffer
        return lease

    def _buffer(self, size: int) -> "_Buffer":
        """An idle buffer, or a new one; those of other sizes are let go on the way."""
        while True:
            try:
                buffer = self._idle.pop().buffer
            except IndexError:
                return _Buffer(size)
            if buffer.size == size:
                return buffer

    def has(self, array: np.ndarray) -> bool:
        """Whether an array was made in a lease of this pool; views of it may go for others."""
        lease = getattr(array.base, "base", None)
        return type(lease) is Lease and lease.pool is self


class Slot(NamedTuple):
    """Where arrays of so many bytes are made: in memory of a pool, at `begin` modulo pages."""

    pool: BufferPool
    size: int
    begin: int

    def lease(self) -> "tuple[Lease, int]":
        """Memory, and how many bytes behind its first one the array begins."""
        lease = self.pool.lease(self.size + PAGE)
        return lease, (self.begin - lease.address) % PAGE


class _Buffer:
    """So many bytes, and what NumPy is told of them."""

    def __init__(self, size: int):
        self.size, self._space = size, np.empty(size, np.uint8)
        # An array makes it anew each time, which takes as long as everything else in a lease.
        self.interface = self._space.__array_interface__


class Lease:
    """What arrays in a buffer of a pool keep alive; `address` is that of its first byte.

    Views of an array name their array, not what it was made from: the lease outlives them.
    """

    given_back: "_Return"

    def __init__(self, pool: BufferPool, buffer: _Buffer):
        self.pool, self.buffer = pool, buffer
        self.__array_interface__ = buffer.interface
        self.address: int = buffer.interface["data"][0]


class _Return(ref):
    """A buffer, handed to the callback of the reference when its lease, which holds it, ends."""

    __slots__ = ("buffer",)
    buffer: _Buffer
