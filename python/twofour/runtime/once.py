# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""What is made once, by whichever thread asks for it first."""

from collections.abc import Callable, Hashable
from functools import wraps
from threading import RLock
from typing import TypeVar

Value = TypeVar("Value")


def made_once(make: Callable[..., Value]) -> Callable[..., Value]:
    """A function that calls `make` once for each tuple of arguments, also if several threads do.

    All but one of them wait for it. Nothing is kept where it raises.
    """
    made: dict[tuple[Hashable, ...], Value] = {}
    lock = RLock()

    @wraps(make)
    def get(*arguments: Hashable) -> Value:
        if arguments not in made:
            with lock:
                if arguments not in made:
                    made[arguments] = make(*arguments)
        return made[arguments]

    return get
