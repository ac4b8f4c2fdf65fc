# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Hints for misspelt names."""

import difflib
from collections.abc import Iterable

MANY = 12


def suggest(word: str, choices: Iterable[str]) -> str:
    """`; did you mean 'x'?`, or the choices when none is close and they are few, or nothing.

    Choices that hold the whole word are close, too.
    """
    choices = list(choices)
    close = difflib.get_close_matches(word, choices, n=1)
    if close:
        return f"; did you mean '{close[0]}'?"
    longer = [choice for choice in choices if word and word in choice]
    if 0 < len(longer) <= MANY:
        return f"; did you mean {' or '.join(repr(choice) for choice in longer)}?"
    return f"; expected one of {', '.join(choices)}" if 0 < len(choices) <= MANY else ""
