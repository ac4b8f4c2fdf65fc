# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""What the runtime knows of a field of a program."""

from collections.abc import Collection, Sequence
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


def heir_of(field: FieldSpec, fields: Collection[FieldSpec], rotation: Sequence[int]) -> int | None:
    """The position of the first loaded field that takes over the buffer of a field, if any does.

    After a call, argument i takes over the buffer of argument rotation[i].
    """
    loaded = {other.position for other in fields if other.loaded}
    heir = rotation.index(field.position)
    while heir not in loaded and heir != field.position:
        heir = rotation.index(heir)
    return heir if heir in loaded else None
