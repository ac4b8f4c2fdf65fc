# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Which buffers the calls of a program write to, and when first, and whose halos they read."""

from collections.abc import Collection, Iterable, Sequence

from twofour.runtime.box import Box, around
from twofour.runtime.fields.spec import FieldSpec
from twofour.runtime.halos import HaloCopy, Halos
from twofour.runtime.loops import Loop, Step, View


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
    interiors = {
        field.position: field.interior and Box(*map(tuple, field.interior)) for field in fields
    }
    views = [view for launch in steps for view in launch.outputs if view.buffer in interiors]
    for view in views:
        interior = interiors[view.buffer]
        if interior is None or not view.slices:
            return None
        if around(_box(view), interior):
            return None
    return frozenset(view.buffer for view in views)


def _box(view: View) -> Box:
    """The cells of a view that has slices."""
    return Box(*zip(*((axis.start, axis.stop) for axis in view.slices), strict=True))


def read_halos(steps: Sequence[Step], fields: Sequence[FieldSpec]) -> frozenset[int] | None:
    """The positions of fields that steps read beyond their interiors; None where it may be any.

    Loops of a program are not followed.
    """
    if any(isinstance(step, Loop) for step in steps):
        return None
    interiors = {field.position: field.interior for field in fields}
    found = set()
    for launch in steps:
        for number, view in enumerate(launch.inputs):
            interior = interiors.get(view.buffer)
            if interior is None:
                continue
            inside = Box(*map(tuple, interior))
            if number in launch.tables or not view.slices or around(_box(view), inside):
                found.add(view.buffer)
    return frozenset(found)


def overwritten(
    steps: Sequence[Step], fields: Sequence[FieldSpec], inherited: Iterable[tuple[int, int]]
) -> list[FieldSpec]:
    """Fields of whose first values only those around their interior count.

    One sweep of every call stores their whole interior, and before it no field takes over cells
    from there: of each pair `inherited`, the second one takes over those around its own interior.
    """
    interiors = {field.position: field.interior for field in fields}
    given = {heir for heir, to in inherited if interiors[heir] != interiors[to]}
    launches = [step for step in steps if not isinstance(step, Loop)]
    views = [view for launch in launches for view in launch.outputs]
    return [
        field
        for field in fields
        if field.interior is not None
        and field.position not in given
        and View(field.position, tuple(map(slice, *field.interior))) in views
    ]


def rims_of(fields: Iterable[FieldSpec], halos: Halos) -> dict[int, HaloCopy]:
    """Copies of all cells but the interior, by the positions of their fields."""
    return {
        field.position: halos.copy(Box.whole(field.shape), field.interior, field.element)
        for field in fields
    }
