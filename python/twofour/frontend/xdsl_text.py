# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Texts in xDSL's syntax: telling them apart, and parsing them with every op's position kept."""

import re
from bisect import bisect_right
from dataclasses import dataclass, field
from functools import cache
from typing import TYPE_CHECKING, Any

from twofour.errors import SourceLocation, TwofourError

if TYPE_CHECKING:
    from xdsl.dialects.builtin import ModuleOp
    from xdsl.ir import Operation, Region

_COMMENT_OR_STRING = re.compile(r'//[^\n]*|"(?:[^"\\\n\v\f]|\\(?:["nt\\]|[0-9A-Fa-f]{2}))*"')
# An op in pretty syntax (not a quoted name, nor the name of an attribute, as in `{stencil.x = 1}`),
# or bounds spelled `[0,64]x` or `?x` right in the type.
_XDSL_SYNTAX = re.compile(
    r"(?<![\w.$#!%@^-])stencil\.\w+(?=\s*[(%:\d]|\s*\Z)"
    r"|!stencil\.(?:field|temp)<\s*[\[?]"
)
_HEXADECIMAL = re.compile(r"0x[0-9A-Fa-f]+")
_RESULTS = re.compile(r"%[^=]*=\s*")
_UNKNOWN_OP = re.compile(r"Operation (\S+) is not registered")
_UNDEFINED = re.compile(r"values used but not defined: \[(%[\w.$-]+)")
_MOST_AXES = re.compile(r"expected 1 to 3 indexes for stencil.index, got (\d+)")
_UNKNOWN_ATTRIBUTE = re.compile(r"'(\S+)' is not registered")


def is_xdsl_syntax(text: str) -> bool:
    """Whether `text` uses xDSL's spelling of stencil ops or types, outside comments and strings."""
    return _XDSL_SYNTAX.search(_blank(_COMMENT_OR_STRING, text)) is not None


def _blank(pattern: re.Pattern, text: str) -> str:
    """`text` with what matches replaced by as many spaces."""
    return pattern.sub(lambda match: " " * len(match[0]), text)


@dataclass
class XdslProgram:
    """A parsed and verified module, with the position of each of its operations."""

    text: str
    filename: str
    module: "ModuleOp | None" = None
    positions: dict["Operation", int] = field(default_factory=dict)

    def __post_init__(self):
        self._line_starts = [0, *(match.end() for match in re.finditer("\n", self.text))]

    def at(self, position: int) -> SourceLocation:
        """The line and column of a character of the text."""
        line = bisect_right(self._line_starts, position)
        return SourceLocation(self.filename, line, position - self._line_starts[line - 1] + 1)

    def location(self, op: "Operation") -> SourceLocation:
        """Where the name of `op` stands, as MLIR has it; the start of the file for implied ones."""
        return self.op_at(self.positions.get(op, 0))

    def op_at(self, start: int) -> SourceLocation:
        """Where the name of the operation that starts at a character stands."""
        results = _RESULTS.match(self.text, start)
        return self.at(results.end() if results else start)

    def error(self, op: "Operation", message: str) -> TwofourError:
        return TwofourError(f"'{op.name}' op {message}", self.location(op))


def parse_xdsl(text: str, filename: str) -> XdslProgram:
    """Parse and verify `text` with xDSL; TwofourError at the position of what is wrong."""
    from xdsl.context import Context
    from xdsl.dialects import get_all_dialects
    from xdsl.dialects.builtin import AnyFloat
    from xdsl.parser import Parser
    from xdsl.utils.exceptions import ParseError, VerifyException

    program = XdslProgram(text, filename)
    try:
        text.encode()
    except UnicodeEncodeError as error:
        raise TwofourError("expected text in UTF-8", program.at(error.start)) from None

    # xDSL's lexer takes time exponential in the length of a string that is not closed.
    quote = _blank(_COMMENT_OR_STRING, text).find('"')
    if quote >= 0:
        raise TwofourError("expected a string that is closed on its line", program.at(quote))

    class PositionKeepingParser(Parser):
        last_start = 0

        def parse_operation(self):
            start = self.last_start = self.pos
            op = super().parse_operation()
            program.positions[op] = start
            return op

        def parse_dense_int_or_fp_elements_attr(self, type=None):
            start = self.pos
            found = super().parse_dense_int_or_fp_elements_attr(type)
            if isinstance(found.type.element_type, AnyFloat):
                # Which xDSL takes for integers.
                bits = _HEXADECIMAL.search(_blank(_COMMENT_OR_STRING, text), start, self.pos)
                if bits:
                    message = f"expected decimal numbers in dense<...> of floats, got '{bits[0]}'"
                    self.raise_error(message, bits.start(), bits.end())
            return found

    context = Context()
    for name, load in get_all_dialects().items():
        context.register_dialect(name, load)
    parser = None
    try:
        parser = PositionKeepingParser(context, text, filename)
        program.module = parser.parse_module()
    except ParseError as error:
        unknown_op = _UNKNOWN_OP.match(error.msg)
        if unknown_op:
            message = f"expected a known operation, got '{unknown_op[1]}'"
            raise TwofourError(message, program.op_at(parser.last_start)) from None
        undefined = _UNDEFINED.search(error.msg)
        if undefined:
            # xDSL says so at the end of the text only.
            message = f"expected values that are defined, got '{undefined[1]}'"
            use = re.search(
                re.escape(undefined[1]) + r"(?![\w.$-])", _blank(_COMMENT_OR_STRING, text)
            )
            raise TwofourError(message, program.at(use.start() if use else 0)) from None
        raise TwofourError(_parser_message(error), program.at(error.span.start)) from None
    except VerifyException as error:
        message = _one_line(str(error))
        if found := _MOST_AXES.match(message):
            message = f"expected 1 to 3 axes in xDSL's syntax, got {found[1]}; MLIR's has more"
        raise TwofourError(message, program.at(parser.pos)) from None
    except OverflowError:
        message = "expected numbers in the range of their types"
        raise TwofourError(message, program.op_at(parser.last_start)) from None
    except Exception as error:
        # xDSL's parsers let other exceptions of their own escape from malformed text.
        start = parser.pos if parser else 0
        message = f"expected valid syntax, got {_describe(error)}"
        raise TwofourError(message, program.at(start)) from None
    _verify(program, program.module)
    return program


def _verify(program: XdslProgram, op: "Operation") -> None:
    """Verify `op` after what it contains, one op at a time, so that a failure has a position."""
    for region in op.regions:
        if op.name == "stencil.apply":
            if len(region.blocks) != 1:
                # xDSL's own verifiers take this for granted.
                raise program.error(op, f"expected a body of one block, got {len(region.blocks)}")
            _check_captured(program, region)
            # Each access verifies its apply, in time that grows with the number of accesses.
            op.verify_ = cache(op.verify_)
        for block in region.blocks:
            for inner in block.ops:
                _verify(program, inner)
    try:
        op.verify(verify_nested_ops=False)
    except Exception as error:
        # Verifiers of xDSL that meet ops they do not expect raise more than VerifyException.
        raise program.error(op, _verifier_message(op, error)) from None


def _check_captured(program: XdslProgram, region: "Region") -> None:
    """Refuse values from outside at their first use: xDSL says so at the first access."""
    inside = set()
    for op in region.walk():
        inside.update(op.results, *(block.args for inner in op.regions for block in inner.blocks))
    inside.update(*(block.args for block in region.blocks))
    for op in region.walk():
        if not inside.issuperset(op.operands):
            raise program.error(op, "expected values that the apply lists, got one from outside")


def _verifier_message(op: Any, error: Exception) -> str:
    """What xDSL's verifier says about `op`, in the form of MLIR's messages."""
    from xdsl.utils.exceptions import DiagnosticException

    message = str(error)
    if op.name == "stencil.load" and "too big" in message:
        return f"expected bounds within those of {op.field.type}, got {op.res.type}"
    if message.endswith("is not a terminator"):
        return "expected a return, a branch or a yield after the last op of a block"
    if not isinstance(error, DiagnosticException):
        operands = ", ".join(str(operand.type) for operand in op.operands)
        results = ", ".join(str(result.type) for result in op.results)
        return f"expected operands and results that fit, got ({operands}) -> ({results})"
    return _one_line(message.removeprefix(f"'{op.name}' ").removeprefix(f"{op.name} "))


def _parser_message(error: Any) -> str:
    """What xDSL's parser says, in the form 'expected ..., got ...'."""
    # One message of xDSL shows a placeholder it forgot to fill.
    message = _one_line(error.msg.replace(" after {first_char}", ""))
    unknown = _UNKNOWN_ATTRIBUTE.match(message)
    if unknown:
        return f"expected a known type or attribute, got '{unknown[1]}'"
    if message.startswith("in "):
        message = f"expected valid syntax {message}"
    elif message.endswith(" expected"):
        message = f"expected {message.removesuffix(' expected')}"
    if not re.search(r"\bexpected\b", message) or re.search(r"\bgot\b", message):
        return message
    token = error.span.text.strip()
    return f"{message}, got {_shown(token) if token else 'the end of the text'}"


def _shown(token: str) -> str:
    line = _printable(token.split("\n")[0])
    return f"'{line}'" if len(line) <= 40 else f"'{line[:37]}...'"


def _describe(error: Exception) -> str:
    return f"{type(error).__name__} ({_one_line(str(error))})"


def _one_line(message: str) -> str:
    """One line, lower case, without a full stop and without what xDSL says on further lines."""
    line = " ".join(message.split("Underlying verification failure")[0].split()).rstrip(".!:")
    if line[1:2].islower():
        line = line[0].lower() + line[1:]
    return _printable(line)


def _printable(line: str) -> str:
    return "".join(c if c.isprintable() else ascii(c)[1:-1] for c in line)
