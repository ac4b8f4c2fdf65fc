# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""What native code copies for fields: first values, and halos in phases."""

import itertools
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence

from twofour.runtime.boundary import HaloRefresh
from twofour.runtime.box import Box
from twofour.runtime.fields.spec import FieldSpec, heir_of
from twofour.runtime.rounds.actions import Copy


def copied(source: int, target: int, boxes: Iterable[Box]) -> list[Copy]:
    """The copies of boxes from one buffer to the same cells of another one."""
    return [Copy(target, box.slices, source, box.slices) for box in boxes]


def refreshed(refreshes: Iterable[tuple[int, HaloRefresh]]) -> list[list[Copy]]:
    """The copies that refresh the halos of these buffers, axis by axis."""
    buffers, by_axis = [], []
    for buffer, refresh in refreshes:
        buffers.append(buffer)
        by_axis.append(refresh.by_axis)
    return [
        [
            Copy(buffer, target, None if source is None else buffer, source, value)
            for buffer, operations in zip(buffers, axis, strict=True)
            for target, source, value in operations
        ]
        for axis in itertools.zip_longest(*by_axis, fillvalue=())
    ]


def first_values(
    fields: Collection[FieldSpec],
    rotation: Sequence[int],
    given: Mapping[int, int],
    cells: Callable[[FieldSpec], Iterable[Box]],
) -> Iterator[Copy]:
    """What fields that are only stored start with: the values of those that take them over.

    That are zeros where nobody does. `given` are the buffers that have the first values of loaded
    fields, by their positions, and `cells` those of a field that count.
    """
    for field in fields:
        if field.loaded:
            continue
        position, boxes = field.position, cells(field)
        heir = given.get(heir_of(field, fields, rotation))
        if heir is None:
            zero = field.element.storage.type(0)
            yield from (Copy(position, box.slices, None, (), zero) for box in boxes)
        else:
            yield from copied(heir, position, boxes)
