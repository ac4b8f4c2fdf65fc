# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""README's table of times on CPUs says what the kept reports say."""

import json
import re
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
README = (ROOT / "README.md").read_text()
STEPS = "32 steps in one call"
PACKAGES = ("numba", "Devito", "JAX", "SciPy")

# By row: the title of the report's table, and which of its rows count.
ROWS: dict[str, list[tuple[str, Callable[[dict], bool]]]] = {
    "32 steps of nine points, 4096 x 4096, over gcc's loops": [
        ("32 steps, 4096 x 4096, 2 threads", lambda row: row["stencil"] == "box r=1")
    ],
    "32 steps of seven points, 256 x 256 x 256, over gcc's loops": [
        ("32 steps, 256 x 256 x 256, 2 threads", lambda row: row["stencil"] == "star r=1")
    ],
    "32 steps of programs over several fields, over gcc's loops": [
        (STEPS, lambda row: axes(row) == 2 and not in_place(row))
    ],
    "the same, updated in place": [(STEPS, lambda row: axes(row) == 2 and in_place(row))],
    "the same of three axes, high order or in place": [(STEPS, lambda row: axes(row) == 3)],
    "single steps of all of these, a call each": [("1 step in one call", lambda row: True)],
}
PACKAGES_ROW = (
    "100 steps in one call from Python, 512 x 512, one thread, over the fastest other package"
)


def axes(row: dict) -> int:
    return len(row["domain"].split(" x "))


def in_place(row: dict) -> bool:
    return row["program"].endswith("in place")


def reports() -> list[str]:
    """The links in the head of the table."""
    head = next(line for line in README.splitlines() if line.startswith("| time of a step"))
    return re.findall(r"\]\((docs/measurements/\w+)/README\.md\)", head)


def table_rows(folder: str, title: str) -> Iterator[dict]:
    """The rows of a table of a report, by the names of their columns."""
    content = json.loads((ROOT / folder / "results.json").read_text())
    for section in content["sections"]:
        for table in section["tables"]:
            if table["title"] == title:
                names = [column["name"] for column in table["columns"]]
                yield from (dict(zip(names, row, strict=True)) for row in table["rows"])


def ratios(folder: str, row: str) -> list[float]:
    """Times of twofour over those of others."""
    if row == PACKAGES_ROW:
        title = "100 steps in one call, 512 x 512, f64"
        found = [
            entry["over twofour"]
            for entry in table_rows(folder, title)
            if entry["threads"] == 1 and entry["package"] in PACKAGES
        ]
        return [1 / min(found)]
    return [
        entry["twofour, ps"] / entry["gcc, ps"]
        for title, counts in ROWS[row]
        for entry in table_rows(folder, title)
        if counts(entry)
    ]


def cell(found: list[float]) -> str:
    low, high = f"{min(found):.2f}", f"{max(found):.2f}"
    return low if low == high else f"{low} to {high}"


@pytest.mark.parametrize("row", [*ROWS, PACKAGES_ROW])
def test_times_in_readme_are_those_of_the_reports(row):
    said = [
        [part.strip() for part in line.strip("|").split("|")[1:]]
        for line in README.splitlines()
        if line.startswith(f"| {row} |")
    ]
    found = [ratios(folder, row) for folder in reports()]
    assert len(found) == 2
    assert said == [[cell(part) if part else "not measured" for part in found]]
