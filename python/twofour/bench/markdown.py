# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Sections as Markdown."""

from collections.abc import Sequence

from twofour.bench.section import Column, Section, Table, Value


def page(title: str, about: Sequence[str], sections: Sequence[Section]) -> str:
    """A report: a title, sentences about it, and the sections."""
    parts = [f"# {title}", *about]
    parts += [part for section in sections for part in section_parts(section)]
    return "\n\n".join(parts) + "\n"


def section_parts(section: Section) -> list[str]:
    """The paragraphs of a section; its plots are expected beside the page."""
    parts = [f"## {section.title}", section.text]
    for one in section.tables:
        shared = f" ({one.common})" if one.common else ""
        parts += [f"### {one.title}{shared}", table_text(one)]
    parts += [f"![{plot.title} ({plot.basis})]({plot.name}.svg)" for plot in section.plots]
    return parts


def table_text(table: Table) -> str:
    """A table; columns with a basis are aligned to the right."""
    columns = table.columns
    lines = [
        [_heading(column, table.common) for column in columns],
        ["--:" if column.basis else "---" for column in columns],
        *([shown(value, column) for value, column in zip(row, columns, strict=True)]
          for row in table.rows),
    ]  # fmt: skip
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)


def _heading(column: Column, common: str) -> str:
    details = "" if column.details == common else column.details
    return f"{column.name} ({details})" if details else column.name


def shown(value: Value, column: Column) -> str:
    """A value as its column shows it."""
    if value is None:
        return "-"
    if isinstance(value, float):
        return f"{value:.{column.digits}f}"
    return str(value).replace("|", "\\|")
