# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Where `compile` writes what it made: a file, or the standard output."""

import sys

from twofour.files import write_files

STANDARD_OUTPUT = "-"


def write_result(path: str, data: bytes, what: str) -> None:
    """Write to a file and say so, or to the standard output."""
    if path == STANDARD_OUTPUT:
        sys.stdout.flush()
        sys.stdout.buffer.write(data)
        return
    write_files([(path, lambda file: file.write(data))])
    print(f"{path}: {what}, {len(data)} bytes")
