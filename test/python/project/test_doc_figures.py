# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Times on CPUs in README and in the guide are those of the kept reports."""

import json
import re
import statistics
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[3]
README = (ROOT / "README.md").read_text()
GUIDE = " ".join((ROOT / "docs/guide/evaluation.md").read_text().split())
XEON, ZEN4, ZEN3 = (f"docs/measurements/{name}" for name in ("cpu_xeon", "cpu_zen4", "cpu"))
PACKAGES = ("numba", "Devito", "JAX", "SciPy")

# The title of a report's table, which of its rows count, and the column of this project's times if
# that is not OWN.
Selection = tuple[str, Callable[[dict], bool]] | tuple[str, Callable[[dict], bool], str]

STEPS, STEP = "32 steps in one call", "1 step in one call"
OWN, OUT = "twofour, ps", "twofour, out, ps"
CALLS = "100 steps in one call, 512 x 512, f64"
PLANE, CUBE = "32 steps, 4096 x 4096, 2 threads", "32 steps, 256 x 256 x 256, 2 threads"


def every(row: dict) -> bool:
    return True


def axes(row: dict) -> int:
    return len(row["domain"].split(" x "))


def in_place(row: dict) -> bool:
    return row["program"].endswith("in place")


def is_large(row: dict) -> bool:
    return row["domain"] in ("4096 x 4096", "256 x 256 x 256")


def of_stencil(title: str, name: str) -> Selection:
    return title, lambda row: row["stencil"] == name


def of_program(name: str) -> tuple[Selection, Selection]:
    """The rows of a program in the caches and beyond."""
    return tuple(
        (STEPS, lambda row, large=large: row["program"].startswith(name) and is_large(row) == large)
        for large in (False, True)
    )


ROWS: dict[str, Selection] = {
    "32 steps of nine points, 4096 x 4096, over gcc's loops": of_stencil(PLANE, "box r=1"),
    "32 steps of seven points, 256 x 256 x 256, over gcc's loops": of_stencil(CUBE, "star r=1"),
    "32 steps of programs over several fields, over gcc's loops": (
        STEPS,
        lambda row: axes(row) == 2 and not in_place(row),
    ),
    "the same, updated in place": (STEPS, lambda row: axes(row) == 2 and in_place(row)),
    "the same of three axes, high order or in place": (STEPS, lambda row: axes(row) == 3),
    "single steps of all of these, a call each": (STEP, every),
    "the same, results in arrays that are there (`out`)": (STEP, every, OUT),
    "100 steps in one call from Python, 512 x 512, one thread, over the fastest other package": (
        CALLS,
        lambda row: row["threads"] == 1,
    ),
}
PHRASES: list[tuple[str, str, tuple[Selection, ...]]] = [
    (
        XEON,
        "Single sweeps take {} of the time of gcc's on 512 x 512 points, where those of f64 wait "
        "for a last-level cache that is far away, {} on 4096 x 4096 and {} on 256 x 256 x 256; "
        "32 steps {} on 4096 x 4096 and, on 256 x 256 x 256, stars {} and boxes {}.",
        (
            ("512 x 512, 1 thread", every),
            ("4096 x 4096, 2 threads", every),
            ("256 x 256 x 256, 2 threads", every),
            (PLANE, every),
            of_stencil(CUBE, "star r=1"),
            of_stencil(CUBE, "box r=1"),
        ),
    ),
    (
        XEON,
        "100 steps in one call take {} of the time of the fastest other package.",
        ((CALLS, every),),
    ),
    (
        XEON,
        "32 steps of programs over several fields take {} of the time of gcc's loops, FDTD and "
        "elastic waves in place {};",
        (
            ROWS["32 steps of programs over several fields, over gcc's loops"],
            ROWS["the same, updated in place"],
        ),
    ),
    (
        XEON,
        "acoustic waves of order 8 take {} on a cube of 64 points an edge and {} on one of 256, "
        "sound in place {} and {}.",
        (*of_program("acoustic"), *of_program("sound")),
    ),
    (
        XEON,
        "Single steps of them take {} beyond the caches and {} within, in place {} and {}:",
        tuple(
            (STEP, lambda row, p=place, g=large: in_place(row) == p and is_large(row) == g)
            for place in (False, True)
            for large in (True, False)
        ),
    ),
    (
        XEON,
        "by `out`, it is {} and {}, in place {} and {}:",
        tuple(
            (STEP, lambda row, p=place, g=large: in_place(row) == p and is_large(row) == g, OUT)
            for place in (False, True)
            for large in (True, False)
        ),
    ),
    (
        ZEN4,
        "Single sweeps of a cube of 256 points an edge take {} of the time of gcc's: there memory "
        "is the limit of both. 32 steps of it take {}.",
        (("256 x 256 x 256, 2 threads", every), (CUBE, every)),
    ),
    (
        ZEN4,
        "the wave equation takes {} and {} of the time of gcc's loops, Gray-Scott {} and {}, "
        "waves in a medium {} and {}, acoustic waves of order 8 {} and {}, and,",
        (
            *of_program("wave equation"),
            *of_program("Gray-Scott"),
            *of_program("waves in a medium"),
            *of_program("acoustic"),
        ),
    ),
    (
        ZEN4,
        "FDTD {} and {}, elastic waves {} and {}, sound {} and {}.",
        (*of_program("FDTD"), *of_program("elastic"), *of_program("sound")),
    ),
]
MEANS = {
    **dict.fromkeys(
        (XEON, ZEN4), "The 79 kernels take {f64} (f64) and {f32} (f32) of the time of LLVM's loops"
    ),
    ZEN3: "The 79 kernels take {f32} to {f64} of the time of LLVM's loops",
}


def table_rows(folder: str, title: str) -> Iterator[dict]:
    """The rows of a table of a report, by the names of their columns."""
    content = json.loads((ROOT / folder / "results.json").read_text())
    for section in content["sections"]:
        for table in section["tables"]:
            if table["title"] == title:
                names = [column["name"] for column in table["columns"]]
                yield from (dict(zip(names, row, strict=True)) for row in table["rows"])


def ratios(folder: str, selection: Selection) -> list[float]:
    """Times of twofour over those of others; of packages from Python, of the fastest other one."""
    title, counts, own = (*selection, OWN)[:3]
    rows = [row for row in table_rows(folder, title) if counts(row)]
    if title != CALLS:
        return [row[own] / row["gcc, ps"] for row in rows if own in row]
    peers = [row for row in rows if row["package"] in PACKAGES]
    threads = {row["threads"] for row in peers}
    return [1 / min(row["over twofour"] for row in peers if row["threads"] == n) for n in threads]


def said(found: list[float]) -> str:
    low, high = f"{min(found):.2f}", f"{max(found):.2f}"
    return low if low == high else f"{low} to {high}"


@pytest.mark.parametrize("row", ROWS)
def test_the_table_of_readme(row):
    head = next(line for line in README.splitlines() if line.startswith("| time of a step"))
    folders = re.findall(r"\]\((docs/measurements/\w+)/README\.md\)", head)
    assert folders == [ZEN4, XEON]
    cells = [
        [part.strip() for part in line.strip("|").split("|")[1:]]
        for line in README.splitlines()
        if line.startswith(f"| {row} |")
    ]
    found = [ratios(folder, ROWS[row]) for folder in folders]
    assert cells == [[said(part) if part else "not measured" for part in found]]


@pytest.mark.parametrize(("folder", "phrase", "selections"), PHRASES)
def test_the_guide(folder, phrase, selections):
    assert phrase.format(*(said(ratios(folder, selection)) for selection in selections)) in GUIDE


@pytest.mark.parametrize("folder", MEANS)
def test_means_of_the_kernels(folder):
    means = {}
    for dtype in ("f64", "f32"):
        found = [row["over LLVM"] for row in table_rows(folder, f"{dtype}, 1 thread")]
        assert len(found) == 79
        means[dtype] = f"{1 / statistics.geometric_mean(found):.2f}"
    assert MEANS[folder].format(**means) in GUIDE
