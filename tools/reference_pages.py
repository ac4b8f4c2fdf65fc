# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The pages of docs/reference: passes, dialects, kernels and command lines, from the code."""

import argparse
import inspect
import re
import sys
import typing
from pathlib import Path

from twofour.cli.options import make_parser as run_parser
from twofour.context import DIALECTS
from twofour.kernels import Kernel, built_in_kernels
from twofour.mlir import ext, ir
from twofour.opt.options import make_parser as opt_parser
from twofour.passes import PassOption, pass_class, pass_names, pass_options

HEADER = "<!-- Written by tools/generate_docs.py from the code; do not edit. -->\n"


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


def lit_test(name: str) -> str:
    """The lit file of a pass, from the top of the repository."""
    folder = "conversion" if name.startswith("convert-") else f"dialects/{name.partition('-')[0]}"
    return f"test/{folder}/{name}.mlir"


FORMS = {"N": "integer", "N,N,...": "integers `N,N,...`", "TEXT": "text"}


def option_row(option: PassOption) -> list[str]:
    if option.choices == ("true", "false"):
        kind = "`true` or `false`"
    elif option.choices:
        kind = "one of " + ", ".join(map(code, option.choices))
    else:
        kind = FORMS[option.form]
    shown = "(none)" if option.default is None else code(option.default)
    return [code(option.name), kind, shown]


def pass_section(name: str) -> str:
    cls = pass_class(name)
    module = sys.modules[cls.__module__]
    source = Path(module.__file__)
    file = f"dialects/{source.parent.parent.name}/transforms/{source.name}"
    summary, _, body = inspect.cleandoc(module.__doc__).partition("\n\n")
    summary = summary.partition(": ")[2]
    parts = [f"## `{name}`", docstring(cls)]
    options = [option_row(option) for option in pass_options(cls)]
    parts.append(table(["option", "value", "default"], options) if options else "No options.")
    parts.append(f"In the IR: {escape(summary)}\n\n{escape(body)}")
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


CONSTRAINTS = {
    typing.Any: "any",
    ir.ArrayAttr: "`[...]`",
    ir.DenseI64ArrayAttr: "`array<i64: ...>`",
    ir.DenseF64ArrayAttr: "`array<f64: ...>`",
    ir.IntegerAttr: "integer",
    ir.StringAttr: "text",
    ir.IndexType: "`index`",
}
MANY = {"single": "", "optional": ", may be absent", "variadic": ", any number"}


def constraint(kind) -> str:
    if kind in CONSTRAINTS:
        return CONSTRAINTS[kind]
    return f"`!{kind.type_name}`" if issubclass(kind, ir.Type) else f"`#{kind.attr_name}`"


def field_type(field) -> str:
    if isinstance(field, ext.RegionDef):
        return "one block"
    return constraint(field.constraint) + MANY[field.variadicity.name]


def op_section(op: type[ext.Operation]) -> str:
    kinds = {
        ext.OperandDef: "operand",
        ext.ResultDef: "result",
        ext.AttributeDef: "attribute",
        ext.RegionDef: "region",
    }
    rows = [
        [code(field.name), kind, field_type(field)]
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


def option_spelling(action: argparse.Action) -> str:
    name = action.metavar or ("|".join(action.choices) if action.choices else None)
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


PAGES = {
    "passes.md": passes_page,
    "dialects.md": dialects_page,
    "kernels.md": kernels_page,
    "command_line.md": command_line_page,
}
