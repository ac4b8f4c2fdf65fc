# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Calls of steppers on callers' arrays: taken in, advanced, and given back as the same kind."""

from collections.abc import Callable, Sequence

import numpy as np

from twofour.errors import TwofourError
from twofour.runtime.arrays import give, take
from twofour.runtime.destinations import Destination
from twofour.runtime.dtypes import ElementType
from twofour.runtime.fields.spec import FieldSpec
from twofour.runtime.fields.stepping import FieldStepper
from twofour.runtime.memory import Memory
from twofour.runtime.stepping import LinearStepper

Report = Callable[[int, int], None]


def advance_array(
    stepper: LinearStepper,
    u: object,
    steps: int,
    progress: Report | None = None,
    shape: Sequence[int] | None = None,
    what: str = "input",
    out: object = None,
):
    """Return `u`, an array of any kind, after `steps` steps.

    That is a new array of its kind and place, or `out` with these values, which may be `u`. With
    `shape`, arrays of another one are refused; `what` names the array in messages.
    """
    again = stepper.again
    if again is not None and progress is None and again.fits(u, steps, out):
        return again.run(u, out)
    memory, element = stepper.memory, stepper.element
    with memory.active():
        values = take(u, element, memory, stepper.rank, shape, what)
        if out is None:
            return give(stepper.advance(values, steps, progress), u, memory)
        to = Destination(out, element, memory, values.shape)
        place = to.place([values])
        if place is not None and place.ctypes.data == values.ctypes.data:
            # A stencil reads what is around a point after it has stored that.
            place = None
        result = stepper.advance(values, steps, progress, place)
        return out if result is place else to.fill(result)


def advance_field(
    stepper: LinearStepper,
    inputs: Sequence,
    steps: int,
    progress: Report | None,
    shape: Sequence[int],
    out: object,
):
    """As `advance_fields` for a program that is one linear step of one field of that shape."""
    if len(inputs) != 1:
        raise TwofourError(f"expected 1 input field, got {len(inputs)}")
    if isinstance(out, tuple | list):
        (out,) = _one_each(out, 1)
    return advance_array(stepper, inputs[0], steps, progress, shape, "input 0", out)


def advance_fields(
    stepper: FieldStepper,
    inputs: Sequence,
    steps: int,
    scalars: Sequence[float | int] = (),
    progress: Report | None = None,
    resume: bool = False,
    out: object = None,
):
    """Return the stored fields after `steps` calls: one array, or a tuple of several.

    With `resume` it is the loaded ones, as the next call takes them. `inputs` are arrays of any
    kind. A result is of the kind of the first input of its element type, or of the first input; or
    it is in `out`, an array for each result or the array for the only one, which may be inputs.
    """
    if progress is None:
        results = stepper.again(inputs, steps, scalars, resume, out)
        if results is not None:
            return results[0] if len(results) == 1 else tuple(results)
    memory = stepper.memory
    loaded = stepper.loaded(inputs)
    given = loaded if resume else stepper.outputs
    with memory.active():
        taken = [
            take(array, field.element, memory, shape=field.shape, what=f"input {number}")
            for number, (array, field) in enumerate(zip(inputs, loaded, strict=True))
        ]
        if out is not None:
            to = _destinations(out, given, memory)
            places = _places(to, taken)
            results = stepper.advance(taken, steps, scalars, progress, resume, places)
            results = _filled(to, places, results, taken)
        else:
            results = stepper.advance(taken, steps, scalars, progress, resume)
            results = _as_given(results, given, inputs, taken, loaded, memory)
    return results[0] if len(results) == 1 else tuple(results)


def _as_given(
    results: Sequence,
    fields: Sequence[FieldSpec],
    inputs: Sequence,
    taken: Sequence,
    loaded: Sequence[FieldSpec],
    memory: Memory,
) -> Sequence:
    """Results of `fields` as arrays of the kind of inputs, or the inputs that they are.

    `taken` are those of the `loaded` fields, as arrays of the memory.
    """
    if not inputs:
        return results
    kinds: dict[ElementType, object] = {}
    for original, field in zip(inputs, loaded, strict=True):
        kinds.setdefault(field.element, original)
    own = {id(array): original for array, original in zip(taken, inputs, strict=True)}
    return [
        own[id(result)]
        if id(result) in own
        else give(result, kinds.get(field.element, inputs[0]), memory)
        for result, field in zip(results, fields, strict=True)
    ]


def _filled(
    to: Sequence[Destination], places: Sequence, results: Sequence, inputs: Sequence
) -> list:
    """The arrays of destinations, with results that are made in their places or elsewhere."""
    # One that is an input may lie where another one goes.
    own = {id(array) for array in inputs}
    results = [
        one.copy() if one is not place and id(one) in own else one
        for one, place in zip(results, places, strict=True)
    ]
    return [
        one.out if result is place else one.fill(result)
        for one, result, place in zip(to, results, places, strict=True)
    ]


def _destinations(out: object, fields: Sequence[FieldSpec], memory: Memory) -> list[Destination]:
    arrays = _one_each(out if isinstance(out, tuple | list) else [out], len(fields))
    return [
        Destination(array, field.element, memory, field.shape, f"out {number}")
        for number, (array, field) in enumerate(zip(arrays, fields, strict=True))
    ]


def _one_each(arrays: Sequence, count: int) -> Sequence:
    """The arrays themselves; raises TwofourError where there are not so many."""
    if len(arrays) != count:
        wanted = f"{count} array{'s' if count > 1 else ''}"
        raise TwofourError(f"out: expected {wanted}, got {len(arrays)}")
    return arrays


def _places(to: Sequence[Destination], inputs: Sequence) -> list:
    """What kernels may write to of each destination."""
    places = [one.place(inputs) for one in to]
    # Two results in one place are assigned, one after the other.
    return [place if _is_apart(number, places) else None for number, place in enumerate(places)]


def _is_apart(number: int, places: Sequence[np.ndarray | None]) -> bool:
    place = places[number]
    others = (one for one in (*places[:number], *places[number + 1 :]) if one is not None)
    return place is not None and not any(np.may_share_memory(place, other) for other in others)
