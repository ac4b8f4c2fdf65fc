# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Reading program files: MLIR's generic form, or the pretty syntax of xDSL's stencil dialect."""

import re
from dataclasses import dataclass

from twofour.diagnostics import errors_of
from twofour.dialects.stencil.types import GridType
from twofour.errors import SourceLocation, TwofourError
from twofour.files import BUNDLE_MAGIC, read_bytes
from twofour.frontend.xdsl_text import is_xdsl_syntax
from twofour.mlir import ir
from twofour.mlir_support import VerificationFailure, source_location

# MLIR's parser and printer recurse without a limit, and end the process on texts beyond these.
MAX_NESTING = 128
MAX_DIGITS = 1000
MAX_SIGNS = 100
MAX_ALIASES = 10000

_TOKEN = re.compile(
    r'//[^\n]*|"(?:[^"\\\n]|\\.)*"|->'
    r"|(?P<open>[(\[{<])|(?P<close>[)\]}>])"
    rf"|(?P<digits>0x[0-9a-fA-F]{{{MAX_DIGITS}}}|[0-9]{{{MAX_DIGITS}}})"
    rf"|(?P<signs>(?:-\s*){{{MAX_SIGNS}}})"
    r"|(?P<alias>^[ \t]*[#!][\w.$-]+\s*=)",
    re.MULTILINE,
)
# An op that begins a line, or follows its results there.
_UNQUOTED_OP = re.compile(
    r"^[ \t]*(?:%[^=\n]*=[ \t]*)?((?:stencil|nm)\.\w+)(?!\w*\s*=)", re.MULTILINE
)
_CLOSING = {"(": ")", "[": "]", "{": "}", "<": ">"}


def check_text(text: str, filename: str) -> None:
    """Raise ParseFailure for nesting, numbers and rows of signs that no program needs."""
    depths = dict.fromkeys(_CLOSING.values(), 0)
    aliases = 0
    for match in _TOKEN.finditer(text):
        kind, token = match.lastgroup, match[0]
        expected = None
        if kind == "open":
            depths[_CLOSING[token]] += 1
            if sum(depths.values()) > MAX_NESTING:
                expected = f"at most {MAX_NESTING} brackets inside each other"
        elif kind == "close":
            # A `>` may be a comparison, and wrong brackets are the parser's to report.
            depths[token] = max(0, depths[token] - 1)
        elif kind == "alias":
            # Each may hold the one before.
            aliases += 1
            if aliases > MAX_ALIASES:
                expected = f"at most {MAX_ALIASES} aliases"
        elif kind == "digits":
            expected = f"numbers of fewer than {MAX_DIGITS} digits"
        elif kind == "signs":
            expected = f"fewer than {MAX_SIGNS} signs in a row"
        if expected:
            line = text.count("\n", 0, match.start()) + 1
            column = match.start() - text.rfind("\n", 0, match.start())
            message = f"expected {expected}, got more"
            raise ParseFailure([TwofourError(message, SourceLocation(filename, line, column))])


@dataclass(frozen=True)
class ProgramText:
    """The text of a program that was read, and the name of its file to report it by.

    Who compiles a program more than once reads it once: standard input has no second time.
    """

    name: str
    text: str

    @classmethod
    def of(cls, source: "str | ProgramText") -> "ProgramText":
        """What was read already, or the text of a file; raises TwofourError as `read_text` does."""
        return source if isinstance(source, ProgramText) else cls(source, read_text(source))


def read_text(filename: str) -> str:
    """The text of a file, or of standard input for `-`.

    Raises TwofourError when it cannot be read or is not UTF-8 text.
    """
    data = read_bytes(filename)
    if data.startswith(BUNDLE_MAGIC):
        raise TwofourError(
            "expected a program, got a bundle, which twofour.runtime.load runs",
            SourceLocation(filename),
        )
    try:
        # Editors of Windows begin a text with a mark.
        text = data.decode("utf-8").removeprefix("\ufeff")
    except UnicodeDecodeError as failure:
        line = data.count(b"\n", 0, failure.start) + 1
        column = failure.start - (data.rfind(b"\n", 0, failure.start) + 1) + 1
        raise TwofourError(
            f"expected UTF-8 text, got byte 0x{data[failure.start]:02x}",
            SourceLocation(filename, line, column),
        ) from None
    if "\0" in text:
        raise TwofourError("expected text, got a binary file", SourceLocation(filename))
    return text


def parse_module(text: str, filename: str, first_line: int = 1) -> ir.Module:
    """Parse and verify a program in either form; the current context is used.

    Locations name `filename`; `first_line` is the line of the file at which `text` begins. Raises
    ParseFailure with every error that was found.
    """
    if first_line > 1:
        text = "\n" * (first_line - 1) + text
    check_text(text, filename)
    if is_xdsl_syntax(text):
        # xdsl takes longer to import than everything else together.
        from twofour.frontend.xdsl_import import import_xdsl

        try:
            module = import_xdsl(text, filename)
        except TwofourError as error:
            raise ParseFailure([error]) from None
        except ir.MLIRError as failure:
            raise ParseFailure(errors_of(failure, filename)) from None
        _check_names(module, filename)
        return module
    try:
        module = ir.Module.parse(text)
    except ir.MLIRError as failure:
        silent = [] if failure.error_diagnostics else [_unquoted_op(text, filename, first_line)]
        raise ParseFailure(silent or errors_of(failure, filename)) from None
    _check_names(module, filename)
    _check_signatures(module, filename)
    return module


def _unquoted_op(text: str, filename: str, first_line: int) -> TwofourError:
    """The error that MLIR does not tell: an op of the project's dialects is written as others are.

    Bindings give these ops no syntax of their own.
    """
    match = _UNQUOTED_OP.search(text)
    if match is None:
        message, line, column = "expected a program of MLIR", first_line, 1
    else:
        message = f"expected '{match[1]}' in generic form, as \"{match[1]}\"(...)"
        line = text.count("\n", 0, match.start(1)) + 1
        column = match.start(1) - text.rfind("\n", 0, match.start(1))
    return TwofourError(message, SourceLocation(filename, line, column))


def _check_names(module: ir.Module, filename: str) -> None:
    """Refuse names of functions that cannot be printed and read again: MLIR parses any bytes."""
    for op in module.body.operations:
        if op.operation.name == "func.func" and not _is_text(op.attributes["sym_name"].value_bytes):
            message = "'func.func' op expected a name of UTF-8 characters"
            error = TwofourError(message, source_location(op.operation.location, filename))
            raise ParseFailure([error])


def _is_text(name: bytes) -> bool:
    try:
        return name.decode() != ""
    except UnicodeDecodeError:
        return False


def _check_signatures(module: ir.Module, filename: str) -> None:
    """Verify the types of functions; ops verify those of the values that they use."""
    for op in module.body.operations:
        if op.operation.name != "func.func":
            continue
        for kind in (*op.type.inputs, *op.type.results):
            if isinstance(kind, GridType):
                try:
                    kind.check()
                except VerificationFailure as failure:
                    message = f"'func.func' op {failure.message} in {kind}"
                    error = TwofourError(message, source_location(op.operation.location, filename))
                    raise ParseFailure([error]) from None


class ParseFailure(TwofourError):
    """A program that could not be read; `errors` holds every error, the first of which is this."""

    def __init__(self, errors: list[TwofourError]):
        super().__init__(errors[0].message, errors[0].location)
        self.errors = errors
