# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Sections of hand-written pages that hold what a command prints.

`<!-- generated: COMMAND -->` ... `<!-- end -->` holds the command and its output;
`<!-- generated, only @NAME: COMMAND -->` keeps one function of the module, and
`<!-- generated, matrix: COMMAND -->` draws the patch operator instead of the module.
"""

import contextlib
import io
import os
import re
import shlex
from pathlib import Path

from twofour.cli import main as cli
from twofour.context import make_context
from twofour.dialects.nm.ops import PatchMatmulOp, SparsePatchMatmulOp
from twofour.frontend.source import parse_module
from twofour.mlir_support import nested_ops
from twofour.opt import main as opt

ROOT = Path(__file__).resolve().parent.parent
WIDTH = 100
SECTION = re.compile(
    r"(<!-- generated(?:, (?P<kind>matrix|only @(?P<name>\w+)))?: (?P<command>[^\n]+?) -->\n)"
    r".*?(<!-- end -->)",
    re.DOTALL,
)


def fill_sections(page: str) -> str:
    """The text of a page with every marked section filled anew."""
    return SECTION.sub(_section, page)


def run_command(command: str) -> str:
    """What a command prints to standard output; paths are from the top of the repository."""
    name, *arguments = shlex.split(command)
    main = {"twofour": cli.main, "twofour-opt": opt.main}[name]
    output, here = io.StringIO(), os.getcwd()
    os.chdir(ROOT)
    try:
        with contextlib.redirect_stdout(output):
            status = main(arguments)
    finally:
        os.chdir(here)
    if status:
        raise SystemExit(f"'{command}' in the guide failed with exit status {status}")
    return output.getvalue()


def split_top(text: str) -> list[str]:
    """Items between the commas that no bracket encloses."""
    items, depth, begin = [], 0, 0
    for position, char in enumerate(text):
        depth += (char in "[{(<") - (char in "]})>")
        if char == "," and depth == 0:
            items.append(text[begin:position])
            begin = position + 1
    return [item.strip() for item in [*items, text[begin:]]]


def wrap(line: str) -> str:
    """A long op with one attribute a line, and one row of a matrix a line."""
    match = re.fullmatch(r'( *)(.*"\(.*?\)) \{(.*)\} : (\(.*)', line)
    if len(line) <= WIDTH or not match:
        return line
    indent, head, attributes, kind = match.groups()
    items = split_top(attributes)
    if len(items) == 1:
        return line
    inner = f"\n{indent}  "
    shown = []
    for item in items:
        row = re.fullmatch(r"(\w+ = \[)(array<.*>)\]", item)
        if row and len(item) > WIDTH:
            item = row[1] + f",{inner}  ".join(["", *split_top(row[2])])[1:] + "]"
        shown.append(item)
    return f"{indent}{head} {{{inner}" + f",{inner}".join(shown) + f"\n{indent}}} : {kind}"


def only_function(text: str, name: str) -> str:
    """The lines of one function of a printed module."""
    match = re.search(rf"^( *)func\.func @{name}\(.*?^\1\}}$", text, re.DOTALL | re.MULTILINE)
    if match is None:
        raise SystemExit(f"expected a function @{name} in the output of a command of the guide")
    return match[0] + "\n"


def draw_matrix(text: str) -> str:
    """A of the patch operators of a printed module, a column an input and a row an output."""
    with make_context():
        module = parse_module(text, "<output>")
        names = (PatchMatmulOp.OPERATION_NAME, SparsePatchMatmulOp.OPERATION_NAME)
        return "\n".join(_draw(op) for op in nested_ops(module.operation, *names))


def _draw(op) -> str:
    operator = op.operator()
    # Columns at the end that are all zero only fill up the fragment.
    used = operator.matrix.any(axis=0).nonzero()[0].max() + 1
    grouped = op.operation.name != PatchMatmulOp.OPERATION_NAME or "permutation" in op.attributes
    used = -(-used // 4) * 4 if grouped else used
    rows = [["p:", *(_point(p) for p in operator.input_offsets[:used])]]
    for at, row in zip(operator.output_offsets, operator.matrix, strict=True):
        rows.append([f"o = {_point(at)}", *(f"{a:g}" if a else "." for a in row[:used])])
    if op.operation.name == SparsePatchMatmulOp.OPERATION_NAME:
        return _draw_compressed(op, operator, used)
    lines = []
    for row in rows:
        cells = [f"{cell:>6}" for cell in row[1:]]
        width = 4 if grouped else len(cells)
        groups = ["".join(cells[i : i + width]) for i in range(0, len(cells), width)]
        lines.append(f"{row[0]:8}" + " |".join(groups))
    left = operator.matrix.shape[1] - used
    return "\n".join(lines) + "\n" + (f"and {left} more columns of zeros\n" if left else "")


def _draw_compressed(op, operator, used: int) -> str:
    lines = []
    for at, values, words in zip(operator.output_offsets, op.values, op.metadata, strict=True):
        kept = []
        for group in range(used // 4):
            nibble = int(words[group // 4]) >> (4 * (group % 4)) & 15
            pair = (nibble & 3, nibble >> 2)
            numbers = (values[2 * group], values[2 * group + 1])
            kept.append(" ".join(f"{v:5g} @{i}" for v, i in zip(numbers, pair, strict=True)))
        word = " ".join(f"0x{int(word) & 0xFFFF:04x}" for word in words)
        lines.append(f"o = {_point(at):4}" + "  |".join(kept) + f"    metadata {word}")
    return "\n".join(lines) + "\n"


def _point(offset) -> str:
    return ",".join(map(str, offset))


def _section(match: re.Match) -> str:
    """A marked section, filled."""
    output = run_command(match["command"])
    if match["kind"] == "matrix":
        body = f"```text\n{draw_matrix(output)}```\n"
    else:
        if match["name"]:
            output = only_function(output, match["name"])
        language = "mlir" if match["command"].startswith("twofour-opt") else "text"
        lines = "\n".join(wrap(line) for line in output.split("\n"))
        command = match["command"]
        if len(command) > WIDTH:
            command = command.replace(" --", " \\\n  --")
        body = f"```sh\n{command}\n```\n\n```{language}\n{lines}```\n"
    return match[1] + body + "<!-- end -->"
