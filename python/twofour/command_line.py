# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Command lines whose errors have the form of every other error, with exit status 1."""

import argparse
import io
import os
import re
import sys
from collections.abc import Callable
from typing import NoReturn, TextIO

from twofour.errors import SourceLocation, TwofourError

COMMAND_LINE = "<command-line>"


class Parser(argparse.ArgumentParser):
    """An ArgumentParser that raises TwofourError instead of ending the process.

    Options that hold one value may be given once. A parser is for one command line.
    """

    def __init__(self, *arguments, **options):
        super().__init__(*arguments, **options)
        self._given: set[str] = set()
        for name in (None, "store"):
            self.register("action", name, _StoreOnce)

    def note(self, option: str, destination: str) -> None:
        """Raise TwofourError for an option that was given before."""
        if destination in self._given:
            raise TwofourError(f"expected {option} once, got it twice")
        self._given.add(destination)

    def error(self, message: str) -> NoReturn:
        raise TwofourError(message)

    def _print_message(self, message: str, file: TextIO | None = None) -> None:
        """Print help or the version; argparse's own method passes over errors."""
        (file or sys.stderr).write(message)


class _StoreOnce(argparse.Action):
    def __call__(self, parser: Parser, namespace, values, option_string: str | None = None) -> None:
        if option_string is not None:
            parser.note(option_string, self.dest)
        setattr(namespace, self.dest, values)


def on_command_line(error: TwofourError, words: list[str]) -> TwofourError:
    """The error itself, or, when it has no location, located at the word that it names."""
    if error.location is not None:
        return error
    named = re.findall(r"'([^']*)'|((?<![\w-])--?[A-Za-z][\w-]*)", error.message)
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


def run_tool(tool: Callable[[list[str]], int], words: list[str] | None) -> int:
    """Run a tool on its command line; returns the exit status, 1 after one error line."""
    words = sys.argv[1:] if words is None else words
    _write_any_name()
    try:
        for word in words:
            # argparse takes `--` behind a `=` for no value at all.
            if re.fullmatch(r"-[^=]*=--", word):
                raise TwofourError(f"expected a value, got '{word}'")
        if sys.stdout is None:
            raise TwofourError("cannot write the output: it is closed", SourceLocation("<stdout>"))
        status = _status(tool, words)
        sys.stdout.flush()
        return status
    except TwofourError as error:
        failure = error
    except MemoryError as error:
        failure = TwofourError(f"expected arrays that fit in memory: {error or 'no memory left'}")
    except BrokenPipeError:
        # The reader of a pipe went away; nothing is left to say.
        _discard(sys.stdout)
        return 1
    except OSError as error:
        reason = (error.strerror or str(error)).lower()
        if error.filename is not None:
            # A library's own file, such as a cache.
            place = SourceLocation(str(error.filename))
            failure = TwofourError(f"cannot use the file: {reason}", place)
        elif error.errno is None:
            # Libraries raise such ones, where they find no memory to load a part of theirs.
            failure = TwofourError(f"expected all libraries in place, got: {reason}")
        else:
            failure = TwofourError(f"cannot write the output: {reason}", SourceLocation("<stdout>"))
            _discard(sys.stdout)
    except KeyboardInterrupt:
        return 130
    if sys.stderr is not None:
        try:
            print(on_command_line(failure, words), file=sys.stderr, flush=True)
        except OSError:
            _discard(sys.stderr)
    return 1


def _status(tool: Callable[[list[str]], int], words: list[str]) -> int:
    """What a tool returns; 0 where argparse ends it after help or the version."""
    try:
        return tool(words)
    except SystemExit as end:
        return end.code or 0


def _write_any_name() -> None:
    """Let names that the encoding of standard output lacks be escaped, as on standard error."""
    if isinstance(sys.stdout, io.TextIOWrapper) and sys.stdout.errors == "strict":
        sys.stdout.reconfigure(errors="backslashreplace")


def _discard(stream: TextIO) -> None:
    """Let the interpreter flush at its end what could not be written."""
    nothing = os.open(os.devnull, os.O_WRONLY)
    os.dup2(nothing, stream.fileno())
    os.close(nothing)
