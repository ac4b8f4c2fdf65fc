# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""`--verify-diagnostics`: errors against `// expected-error @+1 {{text}}` comments."""

import re
from collections.abc import Sequence

from twofour.errors import SourceLocation, TwofourError

_COMMENT = re.compile(r"//\s*expected-(?:error|warning|remark|note)")
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
        begin = 0
        while comment := _COMMENT.search(line, begin):
            match = _EXPECTED.match(line, comment.start())
            # What it expects may look like a comment.
            begin = (match or comment).end()
            try:
                _take(line[comment.start() :], match, number, remaining)
            except TwofourError as error:
                place = SourceLocation(filename, number, comment.start() + 1)
                wrong.append(TwofourError(error.message, place))
    wrong.extend(TwofourError(f"unexpected error: {e.message}", e.location) for e in remaining)
    return wrong


def _take(comment: str, match: re.Match | None, number: int, remaining: list[TwofourError]) -> None:
    """Take the error that a comment expects out of those that remain.

    Raises TwofourError where there is none, and for a comment that could never be checked.
    """
    if match is None:
        # Of warnings, remarks and notes nothing reaches Python.
        raise TwofourError(
            "expected comments of the form 'expected-error @+1 {{text}}', got "
            f"'{comment[2:].strip()}'"
        )
    pattern, target = _pattern(match), _line(match["where"], number)
    found = next((e for e in remaining if _matches(e, target, pattern)), None)
    if found is None:
        raise TwofourError(f"expected error '{match['text']}' was not produced")
    remaining.remove(found)


def _line(where: str | None, number: int) -> int | None:
    """The line that a comment on line `number` speaks of; None for errors without a line."""
    if where is None:
        return number
    if where == "unknown":
        return None
    if where in ("above", "below"):
        return number + (1 if where == "below" else -1)
    return number + int(where) if where[0] in "+-" else int(where)


def _pattern(match: re.Match) -> re.Pattern:
    """What a message is searched for; raises TwofourError for a regular expression that is none."""
    if not match["regex"]:
        return re.compile(re.escape(match["text"]))
    # `-re` texts hold regular expressions between {{ and }}, as in LLVM's tools.
    parts = _REGEX_PART.split(match["text"])
    try:
        return re.compile("".join(p if i % 2 else re.escape(p) for i, p in enumerate(parts)))
    except (re.error, OverflowError, RecursionError) as failure:
        raise TwofourError(
            f"expected a regular expression, got '{match['text']}': {failure}"
        ) from None


def _matches(error: TwofourError, line: int | None, pattern: re.Pattern) -> bool:
    if line is not None and (error.location is None or error.location.line != line):
        return False
    return pattern.search(error.message) is not None
