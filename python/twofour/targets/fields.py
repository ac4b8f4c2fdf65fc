# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The fields of a program as the runtime sees them."""

from twofour.errors import SourceLocation, TwofourError
from twofour.program import Argument, Program
from twofour.runtime import FieldSpec, field_element_type


def check_runnable(program: Program, filename: str) -> None:
    """Raise TwofourError for a program that has no fields, or stores to none."""
    if not program.fields:
        raise TwofourError("expected a function with fields", SourceLocation(filename))
    if not program.outputs:
        raise TwofourError("expected a function that stores to a field", SourceLocation(filename))


def field_spec(program: Program, argument: Argument) -> FieldSpec:
    """An argument with its halo and interior in coordinates of its array."""
    box, interior = argument.box, program.evolving_interior(argument)
    relative = None
    if interior is not None:
        relative = tuple(
            tuple(c - lo for c, lo in zip(corner, box.lower, strict=True))
            for corner in (interior.lower, interior.upper)
        )
    return FieldSpec(
        argument.index,
        field_element_type(argument.element),
        box.extents,
        argument.loaded,
        argument.stored,
        relative,
    )
