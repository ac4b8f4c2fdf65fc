# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The JSON files of tuning: read with errors that have a place, written whole or not at all."""

import json
import math
import os
from collections.abc import Callable
from typing import TypeVar

from twofour.errors import SourceLocation, TwofourError
from twofour.files import read_file, write_files

MAX_COUNT = 2**31
# Times and costs beyond these are damage: products and quotients of them could be 0 or infinite.
LEAST, MOST = 1e-30, 1e30

T = TypeVar("T")


def read_document(path: str | os.PathLike, what: str, read: Callable[[dict], T]) -> T:
    """What `read` makes of the object in a JSON file.

    Raises TwofourError, located at the file, where it cannot be read, is not JSON, or is not what
    `read` takes: KeyError, AttributeError, TypeError and ValueError stand for a file that is no
    `what`.
    """
    name = os.fsdecode(path)
    return parse_document(read_file(path), name, what, read)


def parse_document(data: bytes, name: str, what: str, read: Callable[[dict], T]) -> T:
    """As `read_document`, of bytes that were read from the file `name`."""
    try:
        content = json.loads(data.decode("utf-8"), parse_constant=_refuse)
    except json.JSONDecodeError as failure:
        place = SourceLocation(name, failure.lineno, failure.colno)
        raise TwofourError(f"expected {what} in JSON: {failure.msg.lower()}", place) from None
    except (ValueError, RecursionError) as failure:
        reason = str(failure).splitlines()[0] or "it is nested too deeply"
        raise TwofourError(f"expected {what} in JSON: {reason}", SourceLocation(name)) from None
    try:
        if not isinstance(content, dict):
            raise TypeError("the file holds no object")
        return read(content)
    except TwofourError as error:
        raise TwofourError(f"expected {what}: {error.message}", SourceLocation(name)) from None
    except KeyError as missing:
        message = f"expected {what}, got one without {missing}"
        raise TwofourError(message, SourceLocation(name)) from None
    except (AttributeError, TypeError, ValueError) as failure:
        raise TwofourError(f"expected {what}: {failure}", SourceLocation(name)) from None


def write_document(path: str | os.PathLike, content: dict) -> None:
    """Write an object as JSON; raises TwofourError, located at the file, where that fails."""
    data = document_bytes(content)
    write_files([(os.fsdecode(path), lambda file: file.write(data))])


def document_bytes(content: dict) -> bytes:
    """The bytes of an object's file; the same object has the same bytes."""
    return (json.dumps(content, indent=1, sort_keys=True, allow_nan=False) + "\n").encode("ascii")


def check_format(content: dict, expected: int) -> None:
    """Raise ValueError for another version of a file's format."""
    if content["format"] != expected:
        raise ValueError(f"it has format {content['format']!r} instead of {expected}")


def text(value: object) -> str:
    """The value itself; raises TypeError or ValueError where it is no text that can be shown."""
    if not isinstance(value, str):
        raise TypeError(f"it has {value!r} in the place of a text")
    value.encode()
    return value


def number(value: object) -> float:
    """The value as a float; raises TypeError where it is no finite number."""
    try:
        found = math.nan if isinstance(value, bool | str) else float(value)
    except (TypeError, OverflowError):
        found = math.nan
    if not math.isfinite(found):
        raise TypeError(f"it has {value!r} in the place of a number")
    return found


def positive(value: object) -> float:
    """The value as a float; raises TypeError where it is no number from LEAST to MOST."""
    if not LEAST <= number(value) <= MOST:
        raise TypeError(
            f"it has {value!r} in the place of a positive number from {LEAST:g} to {MOST:g}"
        )
    return number(value)


def amount(value: object) -> float:
    """The value as a float; raises TypeError where it is neither 0 nor as `positive` asks."""
    return 0.0 if number(value) == 0 else positive(value)


def count(value: object) -> int:
    """The value itself; raises TypeError where it is no positive integer below 2^31."""
    if type(value) is not int or not 1 <= value < MAX_COUNT:
        raise TypeError(f"it has {value!r} in the place of a positive integer below 2^31")
    return value


def _refuse(name: str) -> None:
    raise ValueError(f"it holds {name}, which is no number of JSON")
