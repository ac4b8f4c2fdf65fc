# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Pictures of the matrix A: its weights, its groups of four columns, and 2:4 metadata."""

import numpy as np

from twofour.html_page.markup import element, escaped, svg
from twofour.layout.compress import GROUPS_PER_WORD

WIDTH = 960  # pixels that a picture may take where its columns fit
MAX_CELL, MIN_HEIGHT = 16, 48
GRID_CELL, DIGIT_CELL = 5, 11  # pixels of a cell from which on it has lines and digits
LEVELS = 4  # of the magnitude of a weight
GROUP = 4


def matrix_picture(matrix: np.ndarray, label: str, *, fragment: int | None = None) -> str:
    """A matrix (M, K): one cell for each weight that is not zero, its colour by sign and magnitude.

    Where a `fragment` (columns that an instruction takes) is given, every other group of four
    columns is shaded, columns of zeros are marked, and lines separate fragments.
    """
    rows, columns = matrix.shape
    parts = []
    if fragment is not None:
        starts = range(0, columns, GROUP)
        parts.append(_bars("band", rows, [(start, GROUP) for start in starts[1::2]]))
        empty = np.flatnonzero((matrix == 0).all(axis=0)).tolist()
        parts.append(_bars("padding", rows, [(column, 1) for column in empty]))
    levels = np.ceil(np.abs(matrix) * (LEVELS / max(np.abs(matrix).max(initial=0), 1e-300)))
    levels = np.clip(levels, 1, LEVELS)
    for name, chosen in (("plus", matrix > 0), ("minus", matrix < 0)):
        parts += [
            _cells(f"{name} level{level}", chosen & (levels == level))
            for level in range(1, LEVELS + 1)
        ]
    lines = ""
    if fragment is not None:
        width, height = _cell_size(rows, columns)
        places = range(fragment, columns, fragment)
        lines = _path("fragment", "".join(f"M{x * width} 0v{rows * height}" for x in places))
    return _picture(label, rows, columns, "".join(parts), lines)


def metadata_picture(metadata: np.ndarray, label: str) -> str:
    """Metadata (M, K / 16) of uint16: the column (0 to 3) of its group that each value belongs to.

    A cell for each of the M x K / 2 values, darker for columns further to the right.
    """
    shifts = 2 * np.arange(2 * GROUPS_PER_WORD)
    indices = (metadata.astype(np.int64)[:, :, None] >> shifts & 3).reshape(len(metadata), -1)
    rows, columns = indices.shape
    cells = "".join(_cells(f"index{index}", indices == index) for index in range(GROUP))
    width, height = _cell_size(rows, columns)
    digits = ""
    if width >= DIGIT_CELL:
        places = " ".join(f"{(column + 0.5) * width:g}" for column in range(columns))
        digits = "".join(
            element(
                "text",
                escaped("".join(map(str, line))),
                class_="digit",
                x=places,
                y=(row + 0.5) * height,
                font_size=0.7 * width,
            )
            for row, line in enumerate(indices.tolist())
        )
    return _picture(label, rows, columns, cells, digits)


def swatch(name: str) -> str:
    """A cell of a class, for a legend."""
    return element(
        "svg",
        element("rect", class_=name, width=10, height=10),
        width=10,
        height=10,
        aria_hidden="true",
    )


def _picture(label: str, rows: int, columns: int, cells: str, over: str) -> str:
    """Cells of size 1 x 1, with what lies over them in pixels."""
    width, height = _cell_size(rows, columns)
    across, down = columns * width, rows * height
    grid = ""
    if width >= GRID_CELL:
        lines = [f"M{x} 0v{down}" for x in range(0, across + 1, width)]
        lines += [f"M0 {y}h{across}" for y in range(0, down + 1, height)]
        grid = _path("grid", "".join(lines))
    scaled = element("g", cells, transform=f"scale({width} {height})")
    return svg(label, across, down, scaled, grid, over)


def _cell_size(rows: int, columns: int) -> tuple[int, int]:
    """Pixels of a cell, at least 1; few rows of narrow cells are drawn higher than wide."""
    width = min(MAX_CELL, max(1, WIDTH // max(1, columns)))
    return width, max(width, min(MAX_CELL, -(-MIN_HEIGHT // max(1, rows))))


def _cells(name: str, where: np.ndarray) -> str:
    """The cells (row, column) of a mask."""
    return _path(name, "".join(f"M{x} {y}h1v1h-1z" for y, x in np.argwhere(where).tolist()))


def _bars(name: str, rows: int, spans: list[tuple[int, int]]) -> str:
    """Whole columns: spans of (first, number)."""
    return _path(name, "".join(f"M{x} 0h{count}v{rows}h-{count}z" for x, count in spans))


def _path(name: str, data: str) -> str:
    return element("path", class_=name, d=data) if data else ""
