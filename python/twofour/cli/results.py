# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Where commands write what they made: files, or the standard output (`-`)."""

import io
import os
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import BinaryIO

from twofour.errors import TwofourError
from twofour.files import STANDARD_STREAM, check_output, real_path, write_files
from twofour.targets.linked_object import LinkedObject


def check_results(paths: Sequence[str], source: str) -> None:
    """Raise TwofourError where results could not be written, each to a place of its own.

    `source` is the program's file, or the name of a kernel.
    """
    places = [path if path == STANDARD_STREAM else real_path(path) for path in paths]
    for path, place in zip(paths, places, strict=True):
        if places.count(place) > 1:
            raise TwofourError(f"expected another file for each result, got '{path}' twice")
        if os.path.isfile(path) and os.path.isfile(source) and os.path.samefile(path, source):
            raise TwofourError(f"expected another file than that of the program, got '{path}'")
    for path in paths:
        if path != STANDARD_STREAM:
            check_output(path)


def write_results(results: Sequence[tuple[str, Callable[[BinaryIO], object]]]) -> None:
    """Let every function write its result; where one fails, no file appears or changes."""
    # NumPy writes to files that can seek only.
    streams = [(io.BytesIO(), write) for path, write in results if path == STANDARD_STREAM]
    for stream, write in streams:
        write(stream)
    write_files([(path, write) for path, write in results if path != STANDARD_STREAM])
    for stream, _ in streams:
        sys.stdout.flush()
        sys.stdout.buffer.write(stream.getvalue())


def write_result(path: str, data: bytes, what: str) -> None:
    """Write to a file and say so, or to the standard output."""
    write_results([(path, lambda file: file.write(data))])
    if path != STANDARD_STREAM:
        print(f"{path}: {what}, {len(data)} bytes")


def write_object(path: str, source: str, what: str, make: Callable[[], LinkedObject]) -> None:
    """Write an object and its header beside it, and say so.

    `source` is the program's file. Raises TwofourError, before anything is made, where there is no
    place for both.
    """
    if path == STANDARD_STREAM:
        raise TwofourError("expected -o FILE to write the object to, and its header beside it")
    # A folder has no name to give another ending.
    check_results([path], source)
    if os.path.exists(path) and not os.path.isfile(path):
        raise TwofourError(f"expected a file to write the object to, got '{path}'")
    header = str(Path(path).with_suffix(".h"))
    if os.path.realpath(header) == os.path.realpath(path):
        raise TwofourError(f"expected another name for the object than that of its header, {path}")
    check_results([path, header], source)
    made = make()
    contents = (path, made.data), (header, made.header.encode())
    write_files([(name, lambda file, data=data: file.write(data)) for name, data in contents])
    print(f"{path}: {what}, {len(made.data)} bytes; {header}: its header")
