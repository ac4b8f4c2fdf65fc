# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Where the buffers of a run live: what time stepping asks of the memory that kernels work on."""

from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager, nullcontext
from ctypes import addressof, c_char
from typing import Protocol

import numpy as np


class Memory(Protocol):
    """Arrays of `array_module` (NumPy or CuPy) that kernels can read and write.

    `empty`, `zeros` and `array` make C-contiguous buffers that begin at a multiple of 256 bytes;
    `array` copies values. `address` is that of an array's first element. `result` gives what a
    caller may keep of a buffer. `record` turns calls into one that repeats them faster, on the same
    buffers, or returns None where it cannot; `synchronize` waits until everything asked for has
    happened. `stream` identifies the queue that work goes to now; `active` is the context in which
    all of this is done.
    """

    array_module: object
    name: str
    stream: object

    def active(self) -> AbstractContextManager: ...

    def empty(self, shape: Sequence[int], dtype: np.dtype | type) -> np.ndarray: ...

    def zeros(self, shape: Sequence[int], dtype: np.dtype | type) -> np.ndarray: ...

    def array(self, values) -> np.ndarray: ...

    def address(self, array: np.ndarray) -> int: ...

    def result(self, buffer: np.ndarray) -> np.ndarray: ...

    def record(self, calls: Callable[[], None]) -> Callable[[], None] | None: ...

    def synchronize(self) -> None: ...


def address_of(array: np.ndarray) -> int:
    """Where an array begins; `ctypes.data` takes four times as long."""
    try:
        return addressof(c_char.from_buffer(array))
    except (BufferError, TypeError, ValueError):
        # It is not contiguous, not writable or empty, or no other library knows its dtype.
        return array.__array_interface__["data"][0]


class HostMemory:
    """The memory of this process, for kernels that run in it."""

    array_module = np
    name = "cpu"
    stream = None

    def active(self) -> AbstractContextManager:
        return nullcontext()

    def empty(self, shape: Sequence[int], dtype: np.dtype | type) -> np.ndarray:
        return np.empty(shape, dtype)

    def zeros(self, shape: Sequence[int], dtype: np.dtype | type) -> np.ndarray:
        return np.zeros(shape, dtype)

    def array(self, values: np.ndarray) -> np.ndarray:
        return np.array(values, order="C", subok=False)

    def address(self, array: np.ndarray) -> int:
        return address_of(array)

    def result(self, buffer: np.ndarray) -> np.ndarray:
        return buffer

    def record(self, calls: Callable[[], None]) -> None:
        return None

    def synchronize(self) -> None:
        """Kernels of the process have ended when their calls return."""


HOST = HostMemory()
