# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""What was made for the last few of many keys, such as the shapes of arrays."""

from collections import OrderedDict
from collections.abc import Callable, Hashable
from contextlib import suppress
from threading import RLock
from typing import Any, Generic, TypeVar

# Keys whose values are kept: programs have few shapes at a time, and may come by many.
MOST = 8
_NONE: Any = object()

Value = TypeVar("Value")


class Recent(Generic[Value]):
    """The values of the `most` keys that were asked for last.

    Threads may ask at the same time, and so may signal handlers and finalisers, at any line. A
    value that is let go lives on in the calls that have it.
    """

    def __init__(self, most: int = MOST):
        self._most = most
        self._kept: OrderedDict[Hashable, Value] = OrderedDict()
        self._lock = RLock()

    def get(self, key: Hashable, make: Callable[[Hashable], Value]) -> Value:
        """The value of a key, which is `make(key)` where none is kept."""
        with self._lock:
            kept = self._kept.get(key, _NONE)
            if kept is not _NONE:
                self._use(key)
                return kept
        # Others need not wait for what takes long to make: two may make it, and share the first.
        made = make(key)
        let_go = None
        with self._lock:
            value = self._kept.setdefault(key, made)
            self._use(key)
            if len(self._kept) > self._most:
                # It ends when the lock is free: what ends with it may ask as well.
                let_go = self._kept.popitem(last=False)
        del let_go
        return value

    def _use(self, key: Hashable) -> None:
        """Let a key be the one that was asked for last, where it is kept still."""
        with suppress(KeyError):
            self._kept.move_to_end(key)
