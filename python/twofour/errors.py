# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The project's own exception and the source location it carries."""

from dataclasses import dataclass


@dataclass(frozen=True)
class SourceLocation:
    """A position in a file; `line` and `column` count from 1."""

    file: str
    line: int = 1
    column: int = 1

    def __str__(self) -> str:
        return f"{self.file}:{self.line}:{self.column}"


class TwofourError(Exception):
    """Bad input of any kind: `str()` of it is the one error line that the tools print.

    `message` is lower case and states what was expected and what was found; `location` is None
    where the input has no file (a call from Python).
    """

    def __init__(self, message: str, location: SourceLocation | None = None):
        super().__init__(message)
        self.message = message
        self.location = location

    def __str__(self) -> str:
        prefix = f"{self.location}: " if self.location else ""
        return _one_line(f"{prefix}error: {self.message}")


class Unsuitable(TwofourError):
    """A program that is right, but that one way to execute it cannot take; another may."""


class DeviceFailure(TwofourError):
    """A device that failed at work; what it was asked for is lost, and often all that follows."""


def _one_line(text: str) -> str:
    """Names of files and texts of users may hold line breaks and terminal codes: shown escaped."""
    return "".join(c if c.isprintable() else ascii(c)[1:-1] for c in text)
