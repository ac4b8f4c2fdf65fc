# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Arguments of programs that are numbers, as callers give them."""

import math
import operator
from collections.abc import Sequence

import numpy as np

from twofour.errors import TwofourError
from twofour.runtime.dtypes import field_element_type, from_storage, to_storage

_INTEGER_BITS = {"i8": 8, "i16": 16, "i32": 32, "i64": 64, "index": 64}


def read_scalars(scalars: Sequence[float | int | str], elements: Sequence[str]) -> list:
    """The arguments of a program that are numbers, one for each element type in `elements`.

    Texts are read as numbers. Integer types take integers in their range (i1: 0 and 1), others
    numbers in theirs. Raises TwofourError for all others.
    """
    if not elements and isinstance(scalars, tuple) and not scalars:
        return []
    if isinstance(scalars, str | bytes) or not np.iterable(scalars):
        raise TwofourError(f"expected a sequence of scalar arguments, got {scalars!r}")
    scalars = list(scalars)
    if len(scalars) != len(elements):
        many = "" if len(elements) == 1 else "s"
        raise TwofourError(f"expected {len(elements)} scalar argument{many}, got {len(scalars)}")
    numbers = []
    for position, (value, element) in enumerate(zip(scalars, elements, strict=True)):
        if element == "i1" or element in _INTEGER_BITS:
            low, high = 0, 1
            if element != "i1":
                high = 2 ** (_INTEGER_BITS[element] - 1) - 1
                low = -high - 1
            number = _integer(value)
            fits = number is not None and low <= number <= high
            expected = f"an integer from {low} to {high} ({element})"
        else:
            number = _real(value)
            fits = number is not None and not _overflows(number, element)
            expected = f"a number in the range of {element}"
        if not fits:
            raise TwofourError(f"scalar {position}: expected {expected}, got {value!r}")
        numbers.append(number)
    return numbers


def _integer(value: object) -> int | None:
    """An integer, or a text of one; None for anything else, numbers like 3.0 among them."""
    try:
        if isinstance(value, str):
            return int(value)
        return int(value) if isinstance(value, np.bool_) else operator.index(value)
    except (TypeError, ValueError):
        return None


def _real(value: object) -> float | None:
    """A number, or a text of one; None for anything else, and for integers beyond f64."""
    try:
        return None if isinstance(value, bytes) else float(value)
    except (TypeError, ValueError, OverflowError):
        return None


def _overflows(number: float, element: str) -> bool:
    """Whether a finite number becomes infinite in a type."""
    kind = field_element_type(element)
    rounded = from_storage(to_storage(np.float64(number), kind), kind)
    return math.isfinite(number) and bool(np.isinf(rounded))
