# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Calls of steppers on callers' arrays: taken in, advanced, and given back as the same kind."""

from collections.abc import Callable, Sequence

from twofour.runtime.arrays import give, take
from twofour.runtime.fields.stepping import FieldStepper
from twofour.runtime.stepping import LinearStepper

Report = Callable[[int, int], None]


def advance_array(
    stepper: LinearStepper,
    u: object,
    steps: int,
    progress: Report | None = None,
    shape: Sequence[int] | None = None,
    what: str = "input",
):
    """Return `u`, an array of any kind, after `steps` steps, as a new one of its kind and place.

    With `shape`, arrays of another one are refused; `what` names the array in messages.
    """
    again = stepper.again
    if again is not None and progress is None and again.fits(u, steps):
        return again.run(u)
    memory = stepper.memory
    with memory.active():
        values = take(u, stepper.element, memory, stepper.rank, shape, what)
        return give(stepper.advance(values, steps, progress), u, memory)


def advance_fields(
    stepper: FieldStepper,
    inputs: Sequence,
    steps: int,
    scalars: Sequence[float | int] = (),
    progress: Report | None = None,
    resume: bool = False,
):
    """Return the stored fields after `steps` calls: one array, or a tuple of several.

    With `resume` it is the loaded ones, as the next call takes them. `inputs` are arrays of any
    kind. A result is of the kind of the first input of its element type, or of the first input.
    """
    again = stepper.again(resume) if progress is None else None
    if again is not None and again.fits(inputs, steps):
        results = again.run(inputs, scalars)
        return results[0] if len(results) == 1 else tuple(results)
    memory = stepper.memory
    loaded = stepper.loaded(inputs)
    with memory.active():
        taken = [
            take(array, field.element, memory, shape=field.shape, what=f"input {number}")
            for number, (array, field) in enumerate(zip(inputs, loaded, strict=True))
        ]
        results = stepper.advance(taken, steps, scalars, progress, resume)
        if inputs:
            kind = {f.element: a for a, f in reversed(list(zip(inputs, loaded, strict=True)))}
            results = [
                give(result, kind.get(field.element, inputs[0]), memory)
                for result, field in zip(
                    results, loaded if resume else stepper.outputs, strict=True
                )
            ]
    return results[0] if len(results) == 1 else tuple(results)
