# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Command lines whose errors have the form of every other error, with exit status 1."""

import argparse
import re
from typing import NoReturn

from twofour.errors import SourceLocation, TwofourError

COMMAND_LINE = "<command-line>"


class Parser(argparse.ArgumentParser):
    """An ArgumentParser that raises TwofourError instead of ending the process."""

    def error(self, message: str) -> NoReturn:
        raise TwofourError(message)


def on_command_line(error: TwofourError, words: list[str]) -> TwofourError:
    """The error itself, or, when it has no location, located at the word that it names."""
    if error.location is not None:
        return error
    named = re.findall(r"'([^']*)'|(--[\w-]+)", error.message)
    named = [quoted or flag for quoted, flag in named]
    column = 1
    for word in words:
        parts = {word, *re.split("[=,]", word), *word.partition("=")}
        if any(name and name in parts for name in named):
            break
        column += len(word) + 1
    else:
        column = 1
    return TwofourError(error.message, SourceLocation(COMMAND_LINE, 1, column))


def out_of_memory(failure: MemoryError) -> TwofourError:
    """What to say of arrays that are larger than the memory of the machine."""
    return TwofourError(f"expected arrays that fit in memory: {failure or 'no memory left'}")
