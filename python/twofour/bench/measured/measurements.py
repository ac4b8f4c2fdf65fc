# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The file of results beside a plan: lines of JSON, a header and then one for each group.

A group is written when it is done, so that what is interrupted goes on where it was. The header
says what was measured and where: the plan by its SHA-256, the device, versions, the protocol.
"""

import json
import os
from typing import BinaryIO

from twofour.bench.measured.plan import Plan
from twofour.errors import SourceLocation, TwofourError
from twofour.files import WRITE, read_file, system_errors

FILE = "measurements.jsonl"
COMMAND = "python -m twofour.bench --measure"

_HEADER = ("plan", "device", "versions", "date", "command", "protocol")


def read_results(folder: str, plan: Plan) -> tuple[dict, dict[str, dict]]:
    """Where the results of a plan come from, and those of groups by their keys.

    A last line that was cut off counts as not measured. Raises TwofourError for other files, and
    for results of another plan.
    """
    path = os.path.join(folder, FILE)
    whole = read_file(path).split(b"\n")[:-1]
    try:
        first, *lines = map(json.loads, whole)
        header = {key: first[key] for key in _HEADER}
        found = {line["group"]: line for line in lines}
    except (ValueError, KeyError, TypeError):
        raise TwofourError(
            f"expected what `{COMMAND}` writes, got another file", SourceLocation(path)
        ) from None
    if header["plan"] != plan.sha256:
        raise TwofourError(
            "expected results of the plan beside them, got those of another; remove the file to "
            "begin anew",
            SourceLocation(path),
        )
    return header, found


def check_unmeasured(folder: str) -> None:
    """Raise TwofourError where a folder holds results, which belong to the plan beside them."""
    path = os.path.join(folder, FILE)
    if os.path.exists(path):
        raise TwofourError(
            "expected a folder without results to prepare; remove the file or name another folder",
            SourceLocation(path),
        )


def open_results(folder: str) -> BinaryIO:
    """The file to append to, without a last line that was cut off.

    Raises TwofourError where it cannot be written.
    """
    path = os.path.join(folder, FILE)
    with system_errors(WRITE, path):
        file = open(path, "a+b")  # noqa: SIM115 - the caller closes it
        file.seek(0)
        file.truncate(file.read().rfind(b"\n") + 1)
        return file


def append(file: BinaryIO, line: dict) -> None:
    """Write a line that is there when the process ends after it."""
    file.write((json.dumps(line) + "\n").encode())
    file.flush()
