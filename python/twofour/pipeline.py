# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Pipelines that mix the project's passes with upstream's, and how they are run.

The bindings cannot register Python passes by name, so the text of a pipeline is split here: the
project's passes become callables of MLIR's pass manager, everything else goes to its own parser.
"""

import os
import re
import shlex
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass

from twofour.diagnostics import errors_of, first_line, relocate
from twofour.errors import SourceLocation, TwofourError
from twofour.files import STANDARD_STREAM
from twofour.mlir import ir, passmanager
from twofour.passes import ModulePass, make_pass, pass_names
from twofour.suggestions import suggest

PIPELINE_TEXT = "<pass-pipeline>"


@dataclass(frozen=True)
class PassElement:
    """One entry of a pipeline: a pass of the project, or text for upstream's parser."""

    text: str
    own: ModulePass | None
    column: int = 1


def parse_pipeline(text: str) -> list[PassElement]:
    """The entries of `builtin.module(a,b{x=1 y=2},func.func(c))` (the anchor may be left out).

    Raises TwofourError, located in the text, for unbalanced brackets and for names and options that
    neither the project nor upstream knows.
    """
    inner, start = text, 0
    if match := re.match(r"\s*(builtin\.module|any)\s*\(", text):
        if not text.rstrip().endswith(")"):
            raise _error(f"expected ')' at the end of '{text.strip()}'", len(text))
        start = match.end()
        inner = text[start : text.rstrip().rfind(")")]
    return [_element(item, start + offset) for offset, item in _split(inner, start)]


def _split(text: str, start: int) -> list[tuple[int, str]]:
    """Top-level items between commas, with their offsets."""
    items, depth, begin = [], [], 0
    closing = {"(": ")", "{": "}"}
    for position, char in enumerate(text):
        if char in closing:
            depth.append(closing[char])
        elif char in ")}":
            if not depth or depth.pop() != char:
                raise _error(f"unexpected '{char}' in the pipeline", start + position)
        elif char == "," and not depth:
            items.append((begin, text[begin:position]))
            begin = position + 1
    if depth:
        raise _error(f"expected '{depth[-1]}' at the end of the pipeline", start + len(text))
    items.append((begin, text[begin:]))
    if len(items) == 1 and not items[0][1].strip():
        return []
    return [(offset + len(i) - len(i.lstrip()), i.strip()) for offset, i in items]


def _element(text: str, offset: int) -> PassElement:
    if not text:
        raise _error("expected a pass, got nothing", offset)
    match = re.fullmatch(r"([\w.-]+)\s*(?:\{(.*)\})?", text, re.DOTALL)
    if match and match[1] in pass_names():
        try:
            return PassElement(text, make_pass(match[1], match[2] or ""), offset + 1)
        except TwofourError as error:
            raise _error(error.message, offset) from None
    for name in pass_names():
        if re.search(rf"[(,]\s*{name}\b", text):
            raise _error(f"pass '{name}' runs on the module, not inside '{text}'", offset)
    try:
        with ir.Context(), _native_errors_discarded():
            passmanager.PassManager("builtin.module").add(text)
    except ValueError as failure:
        message = re.sub(r"^.*?\berror: ", "", first_line(str(failure)))
        hint = ""
        if match and "registered pass" in message:
            hint = suggest(match[1], pass_names())
            hint = hint if "did you mean" in hint else ""
        raise _error(message + hint, offset) from None
    return PassElement(text, None, offset + 1)


@contextmanager
def _native_errors_discarded() -> Iterator[None]:
    """LLVM's option parser prints what it raises as well, straight to the standard error."""
    if sys.stderr is None:  # closed
        yield
        return
    sys.stderr.flush()
    kept = os.dup(2)
    try:
        with open(os.devnull, "wb") as nothing:
            os.dup2(nothing.fileno(), 2)
        yield
    finally:
        os.dup2(kept, 2)
        os.close(kept)


def _error(message: str, offset: int) -> TwofourError:
    return TwofourError(message, SourceLocation(PIPELINE_TEXT, 1, offset + 1))


def pipeline_text(elements: Sequence[PassElement]) -> str:
    """The pipeline as it is written for `--pass-pipeline`."""
    return f"builtin.module({','.join(element.text for element in elements)})"


@dataclass(frozen=True)
class PipelineOptions:
    """How a pipeline is run.

    `printing` holds arguments of `PassManager.enable_ir_printing`, or None. `flags` are those that
    `twofour-opt` needs besides the pipeline to run it alike.
    """

    verify: bool = True
    timing: bool = False
    printing: dict | None = None
    filename: str = "-"
    flags: Sequence[str] = ()


def run_pipeline(
    module: ir.Module, elements: Sequence[PassElement], options: PipelineOptions | None = None
) -> None:
    """Run a pipeline on a module, in place.

    Raises PipelineFailure with every error that was reported.
    """
    options = options or PipelineOptions()
    raised: list[TwofourError] = []
    with module.context:
        manager = passmanager.PassManager("builtin.module")
        for element in elements:
            if element.own is None:
                manager.add(element.text)
            else:
                manager.add(
                    _callback(element.own, raised),
                    name=type(element.own).__name__,
                    argument=element.own.spell(),
                )
        manager.enable_verifier(options.verify)
        if options.timing:
            manager.enable_timing()
        if options.printing is not None:
            manager.enable_ir_printing(**options.printing)
        try:
            manager.run(module.operation)
        except ir.MLIRError as failure:
            errors = [relocate(error, options.filename) for error in raised]
            errors = errors or errors_of(failure, options.filename)
        else:
            return
    raise PipelineFailure(errors, pipeline_text(elements), options)


def _callback(own: ModulePass, raised: list[TwofourError]) -> Callable:
    def run(op, external_pass) -> None:
        try:
            own.run(op)
        except TwofourError as error:
            # MLIR has to hear of the failure, so that it can print the IR that the pass left.
            raised.append(error)
            external_pass.signal_pass_failure()

    return run


class PipelineFailure(TwofourError):
    """A pipeline that did not run to its end.

    `errors` holds every error that was reported, the first of which is this one; `reproducer` is
    the exact command that shows it again.
    """

    def __init__(self, errors: Sequence[TwofourError], pipeline: str, options: PipelineOptions):
        super().__init__(errors[0].message, errors[0].location)
        self.errors = list(errors)
        # Other words that begin with a dash are options.
        dashed = options.filename.startswith("-") and options.filename != STANDARD_STREAM
        file = f"./{options.filename}" if dashed else options.filename
        words = " ".join(map(shlex.quote, ["twofour-opt", file, *options.flags]))
        self.reproducer = f"{words} --pass-pipeline={shlex.quote(pipeline)}"
