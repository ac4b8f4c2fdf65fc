#!/usr/bin/env python
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Write the reference pages and the generated sections of the guide.

    python tools/generate_docs.py            # write docs/reference/*.md, fill the marked sections
    python tools/generate_docs.py --check    # write nothing; exit status 1 names stale files

Pages come from the code: passes from their dataclasses, dialects from their op classes, kernels
from the package data, command lines from their parsers. A section of a hand-written page between
`<!-- generated: COMMAND -->` and `<!-- end -->` holds the command and what it prints;
`<!-- generated, only @NAME: COMMAND -->` keeps one function of the module, and
`<!-- generated, matrix: COMMAND -->` draws the patch operator instead of the module.
"""

import argparse
import contextlib
import dataclasses
import inspect
import io
import os
import re
import shlex
import sys
import typing
from pathlib import Path

from twofour.cli import main as cli
from twofour.cli.options import make_parser as run_parser
from twofour.context import DIALECTS, make_context
from twofour.dialects.nm.ops import PatchMatmulOp, SparsePatchMatmulOp
from twofour.dialects.stencil.traversal import nested_ops
from twofour.frontend.source import parse_module
from twofour.kernels import Kernel, built_in_kernels
from twofour.mlir import ext, ir
from twofour.opt import main as opt
from twofour.opt.options import make_parser as opt_parser
from twofour.passes import pass_class, pass_names

ROOT = Path(__file__).resolve().parent.parent
HEADER = "<!-- Written by tools/generate_docs.py from the code; do not edit. -->\n"
WIDTH = 100
SECTION = re.compile(
    r"(<!-- generated(?:, (?P<kind>matrix|only @(?P<name>\w+)))?: (?P<command>[^\n]+?) -->\n)"
    r".*?(<!-- end -->)",
    re.DOTALL,
)
GUIDES = ("docs/README.md", "docs/guide", "dialects/stencil/README.md", "dialects/nm/README.md")


def escape(text: str) -> str:
    """Prose of a docstring as Markdown: no emphasis or tags outside code."""
    lines = []
    for line in text.split("\n"):
        parts = line.split("`")
        if not line.startswith("    "):
            parts[::2] = [re.sub(r"([*<|])", r"\\\1", part) for part in parts[::2]]
        lines.append("`".join(parts))
    return "\n".join(lines)


def docstring(thing) -> str:
    return escape(inspect.cleandoc(thing.__doc__ or ""))


def table(header: typing.Sequence[str], rows: typing.Iterable[typing.Sequence[str]]) -> str:
    lines = [header, ["---"] * len(header), *rows]
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)


def code(text: str) -> str:
    """A code span for a cell of a table."""
    return f"`{text}`".replace("|", "\\|")


# Passes


def lit_test(name: str) -> str:
    """The lit file of a pass, from the top of the repository."""
    folder = "conversion" if name.startswith("convert-") else f"dialects/{name.partition('-')[0]}"
    return f"test/{folder}/{name}.mlir"


def option_row(field: dataclasses.Field, hint) -> list[str]:
    default = field.default
    origin, arguments = typing.get_origin(hint), typing.get_args(hint)
    if origin is typing.Literal:
        kind = "one of " + ", ".join(code(value) for value in arguments)
    elif hint is bool:
        kind = "`true` or `false`"
    elif origin is not None:
        kind = "integers `N,N,...`"
    else:
        kind = {int: "integer", str: "text"}[hint]
    if default is dataclasses.MISSING:
        shown = "(required)"
    elif default is None:
        shown = "(none)"
    else:
        shown = code(str(default).lower() if isinstance(default, bool) else str(default))
    return [code(field.name.replace("_", "-")), kind, shown]


def pass_section(name: str) -> str:
    cls = pass_class(name)
    module = sys.modules[cls.__module__]
    source = Path(module.__file__)
    file = f"dialects/{source.parent.parent.name}/transforms/{source.name}"
    summary, _, body = inspect.cleandoc(module.__doc__).partition("\n\n")
    parts = [f"## `{name}`", f"*{escape(summary.partition(': ')[2])}*", docstring(cls)]
    hints = typing.get_type_hints(cls)
    options = [option_row(field, hints[field.name]) for field in dataclasses.fields(cls)]
    parts.append(table(["option", "value", "default"], options) if options else "No options.")
    parts.append(escape(body))
    test = lit_test(name)
    parts.append(f"Code: [{file}](../../{file}). Test: [{test}](../../{test}).")
    return "\n\n".join(part for part in parts if part)


def passes_page() -> str:
    names = pass_names()
    intro = (
        "# Passes\n\n"
        "In the order of the pipeline. In a pipeline a pass is spelled `nm-crush{tile=4,4}`, as a "
        "flag of `twofour-opt` `--nm-crush=tile=4,4`; several options are separated by spaces.\n\n"
        + "\n".join(f"- [`{name}`](#{name})" for name in names)
    )
    return "\n\n".join([HEADER + intro, *map(pass_section, names)]) + "\n"


# Dialects

CONSTRAINTS = {
    typing.Any: "any",
    ir.ArrayAttr: "`[...]`",
    ir.DenseI64ArrayAttr: "`array<i64: ...>`",
    ir.DenseF64ArrayAttr: "`array<f64: ...>`",
    ir.IntegerAttr: "integer",
    ir.IndexType: "`index`",
}
MANY = {"single": "", "optional": ", may be absent", "variadic": ", any number"}


def constraint(kind) -> str:
    if kind in CONSTRAINTS:
        return CONSTRAINTS[kind]
    return f"`!{kind.type_name}`" if issubclass(kind, ir.Type) else f"`#{kind.attr_name}`"


def op_section(op: type[ext.Operation]) -> str:
    kinds = {
        ext.OperandDef: "operand",
        ext.ResultDef: "result",
        ext.AttributeDef: "attribute",
        ext.RegionDef: "region",
    }
    rows = [
        [code(field.name), kind, constraint(field.constraint) + MANY[field.variadicity.name]]
        for definition, kind in kinds.items()
        for field in op._fields
        if isinstance(field, definition)
    ]
    traits = ", ".join(trait.__name__.removesuffix("Trait") for trait in op._traits) or "none"
    return "\n\n".join(
        [
            f"### `{op.OPERATION_NAME}`",
            docstring(op),
            table(["name", "kind", "type"], rows),
            f"Traits: {traits}.",
        ]
    )


def parameter_section(cls) -> str:
    """A type or an attribute."""
    is_type = issubclass(cls, ir.Type)
    name = f"!{cls.type_name}" if is_type else f"#{cls.attr_name}"
    names = ", ".join(code(field.name) for field in cls._fields)
    return "\n\n".join([f"### `{name}`", docstring(cls), f"Parameters: {names}."])


def parameters(dialect: type[ext.Dialect]) -> list:
    """The attributes and types of a dialect, in the order of their module."""
    found = vars(sys.modules[dialect.__module__]).values()
    return [
        item
        for item in found
        if inspect.isclass(item)
        and issubclass(item, (ext.Type, ext.Attribute))
        and item.__module__ == dialect.__module__
        and ("type_name" in vars(item) or "attr_name" in vars(item))
    ]


def dialects_page() -> str:
    parts = [
        HEADER + "# Dialects\n\nOps are written in MLIR's generic form: "
        '`%r = "stencil.load"(%u) : (...) -> ...`. `any` means that the declaration leaves '
        "the type open and the op's verifier checks it."
    ]
    for dialect in DIALECTS:
        parts.append(f"## Dialect `{dialect.DIALECT_NAMESPACE}`\n\n{docstring(dialect)}")
        parts += [parameter_section(item) for item in parameters(dialect)]
        parts += [op_section(op) for op in dialect.operations]
    return "\n\n".join(parts) + "\n"


# Kernels


def kernel_row(kernel: Kernel) -> list[str]:
    return [
        code(kernel.name),
        f"{kernel.rank}-D",
        str(kernel.radius),
        str(len(kernel.offsets)),
        kernel.shape.replace("_", " "),
        kernel.kind.replace("_", " "),
        code(kernel.formula),
        escape(kernel.source),
    ]


def kernels_page() -> str:
    kernels = list(built_in_kernels().values())
    header = ["name", "dimension", "radius", "points", "shape", "kind", "formula", "source"]
    parts = [
        HEADER + f"# Built-in kernels\n\n{len(kernels)} linear stencils, by domain. `twofour run "
        "NAME --steps N` runs one, `twofour kernels NAME` prints its weights. An *update* is one "
        "time step; an *operator* or *filter* is applied once; a *two level update* is the part "
        "of a step that reads the current time level (the older level is a separate term)."
    ]
    for domain in dict.fromkeys(kernel.domain for kernel in kernels):
        rows = [kernel_row(kernel) for kernel in kernels if kernel.domain == domain]
        parts.append(f"## {domain.replace('_', ' ')}\n\n{table(header, rows)}")
    return "\n\n".join(parts) + "\n"


# Command lines


def option_spelling(action: argparse.Action) -> str:
    name = action.metavar or (", ".join(action.choices) if action.choices else None)
    if not action.option_strings:
        return name or action.dest
    name = name or ("" if action.nargs == 0 else action.dest.upper())
    flags = ", ".join(action.option_strings)
    return f"{flags} {name}".strip()


def parser_section(parser: argparse.ArgumentParser, text: str, level: str) -> str:
    actions = [a for a in parser._actions if not isinstance(a, argparse._SubParsersAction)]
    words = [f"[{option_spelling(a)}]" if a.nargs == "?" else option_spelling(a)
             for a in actions if not a.option_strings]  # fmt: skip
    usage = " ".join([parser.prog, *words, "[OPTION...]"])
    rows = [[code(option_spelling(a)), escape(a.help or "")] for a in actions]
    parts = [f"{level} `{parser.prog}`", escape(text), f"```text\n{usage}\n```"]
    return "\n\n".join([*parts, table(["argument", "meaning"], rows)])


def command_line_page() -> str:
    parts = [
        HEADER
        + "# Command lines\n\nErrors are one line, `FILE:LINE:COLUMN: error: ...`, with exit "
        "status 1. Errors of the command line itself are located in `<command-line>`, those of a "
        "pipeline in `<pass-pipeline>`."
    ]
    parser = run_parser()
    commands = next(a for a in parser._actions if isinstance(a, argparse._SubParsersAction))
    listed = [[f"[`twofour {c.dest}`](#twofour-{c.dest})", c.help or ""]
              for c in commands._choices_actions]  # fmt: skip
    parts.append(f"## `twofour`\n\n{parser.description}\n\n{table(['command', 'what'], listed)}")
    for entry in commands._choices_actions:
        text = (entry.help or "").capitalize() + "."
        parts.append(parser_section(commands.choices[entry.dest], text, "###"))
    parser = opt_parser()
    note = f"{parser.description} Passes are given as `--PASS` or `--PASS=OPTIONS`, in order, or "
    note += "together by `--pass-pipeline`; see [passes](passes.md)."
    parts.append(parser_section(parser, note, "##"))
    return "\n\n".join(parts) + "\n"


# Generated sections of the guide


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
    inner = f"\n{indent}  "
    shown = []
    for item in split_top(attributes):
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


def section(match: re.Match) -> str:
    """A marked section, filled."""
    output = run_command(match["command"])
    if match["kind"] == "matrix":
        body = f"```text\n{draw_matrix(output)}```\n"
    else:
        if match["name"]:
            output = only_function(output, match["name"])
        language = "mlir" if match["command"].startswith("twofour-opt") else "text"
        lines = "\n".join(wrap(line) for line in output.split("\n"))
        command = match["command"].replace(" --", " \\\n  --")
        body = f"```sh\n{command}\n```\n\n```{language}\n{lines}```\n"
    return match[1] + body + "<!-- end -->"


# Files


def hand_written() -> list[Path]:
    """The pages whose marked sections are filled."""
    found = [ROOT / entry for entry in GUIDES]
    return [page for entry in found for page in (sorted(entry.glob("*.md")) or [entry])]


def generated_files() -> dict[Path, str]:
    """What every generated file and every page with generated sections should hold."""
    reference = ROOT / "docs" / "reference"
    files = {
        reference / "passes.md": passes_page(),
        reference / "dialects.md": dialects_page(),
        reference / "kernels.md": kernels_page(),
        reference / "command_line.md": command_line_page(),
    }
    for page in hand_written():
        text = page.read_text(encoding="utf-8")
        files[page] = SECTION.sub(section, text)
    return files


def stale_files() -> list[Path]:
    """The files that differ from what they should hold, from the top of the repository."""
    return [
        path.relative_to(ROOT)
        for path, text in generated_files().items()
        if not path.exists() or path.read_text(encoding="utf-8") != text
    ]


def main(arguments: list[str] | None = None) -> int:
    """Write the files, or check them; returns the exit status."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--check", action="store_true", help="write nothing; name stale files")
    if parser.parse_args(arguments).check:
        stale = stale_files()
        for path in stale:
            print(f"{path}:1:1: error: expected what tools/generate_docs.py writes, got other text",
                  file=sys.stderr)  # fmt: skip
        return 1 if stale else 0
    for path, text in generated_files().items():
        path.parent.mkdir(parents=True, exist_ok=True)
        if not path.exists() or path.read_text(encoding="utf-8") != text:
            path.write_text(text, encoding="utf-8")
            print(path.relative_to(ROOT))
    return 0


if __name__ == "__main__":
    sys.exit(main())
