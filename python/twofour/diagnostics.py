# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""From MLIR's diagnostics to the project's errors."""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace

from twofour.errors import SourceLocation, TwofourError
from twofour.mlir import ir
from twofour.mlir_support import source_location


def errors_of(failure: ir.MLIRError, filename: str) -> list[TwofourError]:
    """Every error that MLIR reported, located in `filename` where MLIR names the buffer only.

    Of several in a row at one place the first is what is wrong. Notes are dropped: they repeat the
    op in generic form.
    """
    errors: list[TwofourError] = []
    for diagnostic in failure.error_diagnostics:
        location = source_location(diagnostic.location, filename)
        if not errors or errors[-1].location != location:
            errors.append(TwofourError(first_line(diagnostic.message), location))
    return errors or [TwofourError(first_line(str(failure)), SourceLocation(filename))]


def relocate(error: TwofourError, filename: str) -> TwofourError:
    """The error, in `filename` where its file is not known."""
    if error.location is None:
        error.location = SourceLocation(filename)
    elif error.location.file == "-":
        error.location = replace(error.location, file=filename)
    return error


@contextmanager
def located_in(filename: str) -> Iterator[None]:
    """Errors raised inside are located in `filename` where their file is not known."""
    try:
        yield
    except TwofourError as error:
        raise relocate(error, filename) from None


def first_line(text: str) -> str:
    """The first line that says something; MLIR's messages may run over several."""
    return next((line.strip() for line in text.splitlines() if line.strip()), "unknown error")
