# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Which buffers the calls of a program write to, and when first, and whose halos they read."""

from collections.abc import Collection, Iterable, Sequence

from twofour.runtime.box import Box, around
from twofour.runtime.fields.spec import FieldSpec
from twofour.runtime.halos import HaloCopy, Halos
from twofour.runtime.loops import Launch, Loop, Step, View


def unwritten_calls(
    steps: Sequence[Step], refilled: Collection[int], rotation: Sequence[int]
) -> dict[int, int]:
    """How many first calls leave the buffer of an argument as it is.

    `steps` are those of one call, `refilled` the arguments whose halos are written before it; after
    each call argument i takes over the buffer of argument rotation[i]. Buffers that no call writes
    to are not among the keys. Loops of the program itself are not followed: what they carry changes
    places with buffers that are written, so any of them may be.
    """
    arguments = range(len(rotation))
    if any(isinstance(step, Loop) for step in steps):
        return dict.fromkeys(arguments, 0)
    outputs = {view.buffer for launch in steps for view in launch.outputs}
    written = outputs.union(refilled).intersection(arguments)
    found: dict[int, int] = {}
    places = list(arguments)
    for call in arguments:
        for argument in written:
            found.setdefault(places[argument], call)
        places = [places[source] for source in rotation]
    return found


def written_interiors(steps: Sequence[Step], fields: Sequence[FieldSpec]) -> frozenset[int] | None:
    """The positions of fields that steps write to, in their interiors alone; None where not so.

    Loops of a program are not followed.
    """
    if any(isinstance(step, Loop) for step in steps):
        return None
    by_position = {field.position: field for field in fields}
    views = [view for launch in steps for view in launch.outputs if view.buffer in by_position]
    for view in views:
        field = by_position[view.buffer]
        if field.interior is None or _is_beyond(view, field):
            return None
    return frozenset(view.buffer for view in views)


def covered_fields(steps: Sequence[Step], fields: Sequence[FieldSpec]) -> frozenset[int]:
    """The positions of fields of whose interior steps write every cell.

    Loops of a program are not followed: they may run no times.
    """
    views = [view for step in steps if not isinstance(step, Loop) for view in step.outputs]
    return frozenset(
        field.position
        for field in fields
        if field.interior is not None and not _cells_left(views, field)
    )


def _cells_left(views: Sequence[View], field: FieldSpec) -> list[Box]:
    """What views leave of a field's interior."""
    left = [Box(*map(tuple, field.interior))]
    for view in views:
        if view.buffer == field.position:
            written = view.box(field.shape)
            left = [rest for box in left for rest in _outside(box, written)]
    return left


def _outside(box: Box, other: Box) -> list[Box]:
    """Boxes that cover a box without another one, which may lie anywhere."""
    common = box.within(other)
    return [box] if common.empty else around(box, common)


def _is_beyond(view: View, field: FieldSpec) -> bool:
    """Whether a view of a field has cells beyond the interior."""
    return bool(around(view.box(field.shape), Box(*map(tuple, field.interior))))


def read_halos(steps: Sequence[Step], fields: Sequence[FieldSpec]) -> frozenset[int] | None:
    """The positions of fields that steps read beyond their interiors; None where it may be any.

    Loops of a program are not followed.
    """
    if any(isinstance(step, Loop) for step in steps):
        return None
    updated = {field.position: field for field in fields if field.interior is not None}
    found = set()
    for launch in steps:
        for number, view in enumerate(launch.inputs):
            field = updated.get(view.buffer)
            if field and (number in launch.tables or _is_beyond(view, field)):
                found.add(view.buffer)
    return frozenset(found)


def overwritten(steps: Sequence[Step], fields: Sequence[FieldSpec]) -> list[FieldSpec]:
    """Fields whose whole interior every call stores.

    Of the first values of those that are only stored, the ones around the interior count.
    """
    covered = covered_fields(steps, fields)
    return [field for field in fields if field.position in covered]


def stores_interior(launch: Launch, field: FieldSpec) -> bool:
    """Whether a launch writes all of a field's interior, and nothing else of it."""
    interior = Box(*map(tuple, field.interior))
    written = (view for view in launch.outputs if view.buffer == field.position)
    return any(view.box(field.shape) == interior for view in written)


def rims_of(fields: Iterable[FieldSpec], halos: Halos) -> dict[int, HaloCopy]:
    """Copies of all cells but the interior, by the positions of their fields."""
    return {
        field.position: halos.copy(Box.whole(field.shape), field.interior, field.element)
        for field in fields
    }
