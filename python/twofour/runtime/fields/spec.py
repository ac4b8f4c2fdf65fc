# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""What the runtime knows of a field of a program."""

from dataclasses import dataclass

from twofour.runtime.dtypes import ElementType


@dataclass(frozen=True)
class FieldSpec:
    """A field argument of a program: an array of `shape`, halo included.

    `position` is its place among all arguments. `loaded` fields need values, `stored` ones are
    results. `interior` (lower and upper index tuples) is the box that the program updates in it
    sooner or later, None where it stays as it is.
    """

    position: int
    element: ElementType
    shape: tuple[int, ...]
    loaded: bool
    stored: bool
    interior: tuple[tuple[int, ...], tuple[int, ...]] | None
