# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""`--verify-diagnostics`: errors against `// expected-error @+1 {{text}}` comments."""

import re
from collections.abc import Sequence

from twofour.errors import SourceLocation, TwofourError

_OTHER = re.compile(r"//\s*expected-(?:warning|remark|note)")
_EXPECTED = re.compile(
    r"//\s*expected-error(?P<regex>-re)?\s*"
    r"(?:@(?P<where>[+-]\d+|above|below|unknown|\d+))?\s*"
    r"\{\{(?P<text>(?:\{\{.*?\}\}|(?!\}\}).)*)\}\}"
)
_REGEX_PART = re.compile(r"\{\{(.*?)\}\}")


def check_expectations(
    text: str, first_line: int, filename: str, errors: Sequence[TwofourError]
) -> list[TwofourError]:
    """What is wrong: errors that no comment expects, and expected errors that did not come."""
    remaining = list(errors)
    wrong = []
    for number, line in enumerate(text.split("\n"), start=first_line):
        for match in _OTHER.finditer(line):
            # Nothing else reaches Python, so such a comment could never be checked.
            got = f"expected comments of the form 'expected-error', got '{match[0][2:].strip()}'"
            wrong.append(TwofourError(got, SourceLocation(filename, number, match.start() + 1)))
        for match in _EXPECTED.finditer(line):
            target = _line(match["where"], number)
            found = next((e for e in remaining if _matches(e, target, match)), None)
            if found is not None:
                remaining.remove(found)
            else:
                column = match.start() + 1
                wrong.append(
                    TwofourError(
                        f"expected error '{match['text']}' was not produced",
                        SourceLocation(filename, number, column),
                    )
                )
    wrong.extend(TwofourError(f"unexpected error: {e.message}", e.location) for e in remaining)
    return wrong


def _line(where: str | None, number: int) -> int | None:
    """The line that a comment on line `number` speaks of; None for errors without a line."""
    if where is None:
        return number
    if where == "unknown":
        return None
    if where in ("above", "below"):
        return number + (1 if where == "below" else -1)
    return number + int(where) if where[0] in "+-" else int(where)


def _matches(error: TwofourError, line: int | None, match: re.Match) -> bool:
    if line is not None and (error.location is None or error.location.line != line):
        return False
    if not match["regex"]:
        return match["text"] in error.message
    # `-re` texts hold regular expressions between {{ and }}, as in LLVM's tools.
    parts = _REGEX_PART.split(match["text"])
    pattern = "".join(p if i % 2 else re.escape(p) for i, p in enumerate(parts))
    return re.search(pattern, error.message) is not None
