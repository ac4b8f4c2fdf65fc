# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""What an experiment finds: a section of tables and plots, in which every figure says its basis."""

from collections.abc import Sequence
from dataclasses import asdict, dataclass, field
from typing import Literal

from twofour.errors import TwofourError

# `exact` follows from the stencil alone; `ptxas` is what the assembler says; `published` stands in
# the paper.
Basis = Literal["predicted", "simulated", "measured", "ptxas", "published", "exact"]
Value = str | int | float | None


@dataclass(frozen=True)
class Column:
    """A column of a table: what it holds, in which unit, where that comes from.

    `digits` after the point are shown; values in JSON have all. Columns without a basis name
    things.
    """

    name: str
    basis: Basis | None = None
    unit: str = ""
    digits: int = 2

    @property
    def details(self) -> str:
        """Unit and basis."""
        return ", ".join(filter(None, (self.unit, self.basis)))


@dataclass(frozen=True)
class Table:
    """Rows of as many values as there are columns; None where there is no such figure.

    `common` are details that many columns share: they are shown with the title. Raises
    TwofourError for a row of another length.
    """

    title: str
    columns: tuple[Column, ...]
    rows: tuple[tuple[Value, ...], ...]
    common: str = ""

    def __post_init__(self):
        for row in self.rows:
            if len(row) != len(self.columns):
                raise TwofourError(f"expected {len(self.columns)} values a row, got {len(row)}")

    def column(self, name: str) -> list[Value]:
        """The values of the first column of this name."""
        place = [column.name for column in self.columns].index(name)
        return [row[place] for row in self.rows]


@dataclass(frozen=True)
class Plot:
    """A picture of one quantity; `kind` is bars, lines or grid.

    `series` holds, by name, a value (or None) for each of `x`; of a grid each is one row of cells,
    named by its place on the vertical axis. `basis` and `unit` are written on its axis, and `line`
    is a value to draw a line at.
    """

    name: str
    title: str
    kind: Literal["bars", "lines", "grid"]
    x_label: str
    y_label: str
    unit: str
    basis: Basis
    x: tuple[Value, ...]
    series: dict[str, tuple[float | None, ...]]
    line: float | None = None


@dataclass(frozen=True)
class Section:
    """The result of one experiment. `text` says what was done, in sentences of Markdown.

    `samples` are raw values, for the JSON only.
    """

    name: str
    title: str
    text: str
    tables: tuple[Table, ...]
    plots: tuple[Plot, ...] = ()
    samples: list[dict] = field(default_factory=list)

    def as_dict(self) -> dict:
        """The section as plain values for JSON."""
        return asdict(self)


def table(
    title: str, columns: Sequence[Column], rows: Sequence[Sequence[Value]], common: str = ""
) -> Table:
    """A table of any sequences."""
    return Table(title, tuple(columns), tuple(map(tuple, rows)), common)


def transposed(rows: Sequence[Sequence[Value]]) -> list[tuple[Value, ...]]:
    """Rows as columns."""
    return list(zip(*rows, strict=True))
