# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Arrays of callers that results go to: `out`, as NumPy's own functions take it.

Kernels write to such an array where it is memory that they can write to, and where nothing else of
the call lies there. In all other cases the result is made elsewhere and assigned at the end.
"""

import itertools
from collections.abc import Iterable, Sequence

import numpy as np

from twofour.errors import TwofourError
from twofour.runtime.arrays import give, is_negated, kind_of, take
from twofour.runtime.dtypes import ElementType, check_array, storage_view
from twofour.runtime.memory import HOST, Memory, address_of


class Destination:
    """The array `out` for a result of an element type and a shape; `what` names it in messages.

    Raises TwofourError for an array that cannot take the result.
    """

    def __init__(
        self,
        out: object,
        element: ElementType,
        memory: Memory,
        shape: Sequence[int],
        what: str = "out",
    ):
        self.out, self._element, self._memory = out, element, memory
        if isinstance(out, np.ndarray):
            check_array(out, element, shape=shape, what=what)
            values = out
        else:
            values = take(out, element, memory, shape=shape, what=what)
        try:
            # Libraries have no word in common for arrays that cannot be written to.
            out[:0] = out[:0]
        except Exception as failure:
            reason = str(failure).strip().splitlines() or [type(failure).__name__]
            raise TwofourError(
                f"{what}: expected an array that can be written to, got one of {kind_of(out)}: "
                f"{reason[0]}"
            ) from None
        if _overlaps_itself(values):
            raise TwofourError(
                f"{what}: expected an array with a place for every element, got one with strides "
                f"{tuple(values.strides)}"
            )
        # What kernels can write to, none where it is not in this memory or in another order.
        self._place: np.ndarray | None = None
        if memory is HOST and not is_negated(out):
            flags = values.flags
            if flags.c_contiguous and flags.aligned and flags.writeable:
                self._place = storage_view(np.asarray(values), element)

    def place(self, others: Iterable[object]) -> np.ndarray | None:
        """The memory of `out`, for kernels to write to; None where one of the others is in the way.

        The others are arrays of this memory. One that is the very same may be among them.
        """
        place = self._place
        if place is None:
            return None
        shared = [other for other in others if np.may_share_memory(place, other)]
        if not shared or len(shared) == 1 and _are_same(place, shared[0]):
            return place
        return None

    def fill(self, result: np.ndarray):
        """Return `out` with the values of `result`, an array of the memory's module."""
        values = give(storage_view(result, self._element), self.out, self._memory)
        if isinstance(self.out, np.ndarray | self._memory.array_module.ndarray):
            # Numbers of 16 bits may be spelt in two ways, and would be converted from one to other.
            storage_view(self.out, self._element)[...] = storage_view(values, self._element)
        else:
            self.out[...] = values
        return self.out


def _overlaps_itself(array: np.ndarray) -> bool:
    """Whether elements of an array may lie in one place: slices of whole arrays never do."""
    spread = zip(array.strides, array.shape, strict=True)
    reach = array.itemsize
    for stride, extent in sorted((abs(stride), extent) for stride, extent in spread if extent > 1):
        if stride < reach:
            return True
        reach += (extent - 1) * stride
    return False


def _are_same(one: np.ndarray, other: np.ndarray) -> bool:
    """Whether a C-contiguous array is another one."""
    return (
        other.flags.c_contiguous
        and one.shape == other.shape
        and one.itemsize == other.itemsize
        and address_of(one) == address_of(other)
    )


def are_apart(spans: Iterable[tuple[int, int]]) -> bool:
    """Whether no two pieces of memory, each an address and a number of bytes, overlap."""
    begins = sorted(spans)
    return all(begin + size <= after for (begin, size), (after, _) in itertools.pairwise(begins))
