# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""What was made for the last few of many keys, such as the shapes of arrays."""

from collections import OrderedDict
from collections.abc import Callable, Hashable
from threading import Lock
from typing import Generic, TypeVar

# Keys whose values are kept: programs have few shapes at a time, and may come by many.
MOST = 8

Value = TypeVar("Value")


class Recent(Generic[Value]):
    """The values of the `most` keys that were asked for last.

    Threads may ask at the same time. A value that is let go lives on in the calls that have it.
    """

    def __init__(self, most: int = MOST):
        self._most = most
        self._kept: OrderedDict[Hashable, Value] = OrderedDict()
        self._lock = Lock()

    def get(self, key: Hashable, make: Callable[[Hashable], Value]) -> Value:
        """The value of a key, which is `make(key)` where none is kept."""
        with self._lock:
            if key in self._kept:
                self._kept.move_to_end(key)
                return self._kept[key]
        # Others need not wait for what takes long to make: two may make it, and share the first.
        made = make(key)
        let_go = None
        with self._lock:
            value = self._kept.setdefault(key, made)
            self._kept.move_to_end(key)
            if len(self._kept) > self._most:
                # It ends when the lock is free: what ends with it may ask as well.
                let_go = self._kept.popitem(last=False)
        del let_go
        return value
