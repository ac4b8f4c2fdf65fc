# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""`twofour explain --html`: one page that needs nothing else and shows what was compiled."""

import io
import re
import sys
from dataclasses import dataclass, field
from html.parser import HTMLParser
from pathlib import Path
from xml.etree import ElementTree

import numpy as np
import pytest

from bad_input import GENERIC, refused
from twofour.cli.main import main
from twofour.explain import explain
from twofour.html_page.matrix_picture import matrix_picture, metadata_picture
from twofour.html_page.page import html_report
from twofour.html_page.roofline_picture import roofline_picture
from twofour.kernels import built_in_kernels
from twofour.layout.chunks import chunk_operator
from twofour.layout.compress import compress
from twofour.layout.crush import crush
from twofour.layout.matching import apply_permutation, permute_2to4
from twofour.options import CompileOptions
from twofour.targets.cpu.stages import emit as emit_cpu
from twofour.targets.gpu.build import emit as emit_gpu

KERNEL = "heat2d_ftcs"
COMMAND_LINE = "<command-line>:1:"
GPU_STAGES = ["stencil", "nm", "gpu", "nvvm", "llvm", "ptx"]
CASES = {
    "stream": {"target": "sm_90", "dtype": "f16", "schedule": "stream"},
    "sparse": {"target": "sim:sm_90", "dtype": "f16", "schedule": "sparse"},
    "dense": {"target": "sm_80", "dtype": "f64", "schedule": "dense"},
    "simt": {"target": "sm_90", "dtype": "f32", "schedule": "simt"},
    "cpu": {"target": "cpu", "dtype": "f32", "schedule": "direct"},
    "cpu-sparse": {"target": "cpu", "dtype": "f16", "schedule": "sparse"},
}
HOSTILE = '</pre></svg><script src="http://x.y/z.js">alert(1)</script>\x01\ud800'
REPORT = {
    "name": "heat",
    "target": "sm_90",
    "dtype": "f16",
    "schedule": "stream",
    "why": "because",
    "steps_per_sweep": 1,
    "function": None,
    "sweeps": [],
    "layout_executed": False,
    "left_on_general_path": [],
    "pipeline": "builtin.module()",
}
# A copy of f16 runs at 1000 GStencil/s and 4 bytes a point.
CANDIDATES = [
    {
        "schedule": "stream",
        "gstencil_per_s": 990.5,
        "dram_bytes_per_point": 4 / 0.9905,
        "fraction_of_copy": 0.9905,
        "limited_by": "dram",
        "chosen": True,
    },
    {
        "schedule": "simt",
        "gstencil_per_s": 123.25,
        "dram_bytes_per_point": 4.5,
        "fraction_of_copy": 0.12325,
        "limited_by": "issue",
        "chosen": False,
    },
    {
        "schedule": "simt",
        "gstencil_per_s": 1000.0,
        "dram_bytes_per_point": 1.5,
        "fraction_of_copy": 1.0,
        "limited_by": "mma",
        "chosen": False,
    },
]


@dataclass
class Node:
    """An element; `text` is all text inside of it."""

    tag: str
    attributes: dict
    text: str = ""
    children: list["Node"] = field(default_factory=list)

    def all(self, *tags: str) -> list["Node"]:
        inside = [node for child in self.children for node in child.all(*tags)]
        return [self, *inside] if not tags or self.tag in tags else inside


class Page(HTMLParser):
    """The tree of a page whose elements are all closed in order."""

    def __init__(self, text: str):
        super().__init__()
        self.open = [Node("", {})]
        self.feed(text)
        self.close()
        assert len(self.open) == 1
        self.root = self.open[0]

    def handle_starttag(self, tag, attributes):
        assert len(attributes) == len(dict(attributes))
        node = Node(tag, dict(attributes))
        self.open[-1].children.append(node)
        if tag != "meta":
            self.open.append(node)

    def handle_endtag(self, tag):
        assert self.open.pop().tag == tag

    def handle_data(self, data):
        for node in self.open:
            node.text += data

    def section(self, name: str) -> Node | None:
        found = [n for n in self.root.all("section") if n.attributes["id"] == name]
        return found[0] if found else None


def pictures(text: str) -> list[ElementTree.Element]:
    """The pictures of a page, by an XML parser."""
    found = [ElementTree.fromstring(svg) for svg in re.findall(r"<svg.*?</svg>", text, re.DOTALL)]
    return [svg for svg in found if svg.get("role") == "img"]


def shapes(svg: ElementTree.Element, name: str, pattern: str) -> list[tuple[int, ...]]:
    """The numbers of each part of the paths of a class; the parts must be of this form."""
    data = "".join(p.get("d") for p in svg.iter("path") if name in p.get("class").split())
    assert re.fullmatch(f"({pattern})*", data)
    return [tuple(map(int, match.groups())) for match in re.finditer(pattern, data)]


def cells(svg: ElementTree.Element, name: str) -> list[tuple[int, int]]:
    """(row, column) of the cells of a class."""
    return sorted((y, x) for x, y in shapes(svg, name, r"M(\d+) (\d+)h1v1h-1z"))


def nonzeros(svg: ElementTree.Element) -> list[tuple[int, int]]:
    return sorted(cells(svg, "plus") + cells(svg, "minus"))


def where(mask: np.ndarray) -> list[tuple[int, int]]:
    return list(map(tuple, np.argwhere(mask).tolist()))


def write_page(kernel: str, folder: Path, **options: str) -> str:
    words = [word for name, value in options.items() for word in (f"--{name}", value)]
    path = folder / "x.html"
    assert main(["explain", kernel, *words, "--html", str(path)]) == 0
    return path.read_text(encoding="utf-8")


@pytest.fixture(scope="module", params=CASES)
def case(request, tmp_path_factory):
    """Options, the report and the page that they give."""
    options = CASES[request.param]
    report = explain(built_in_kernels()[KERNEL], CompileOptions(**options))
    return options, report, write_page(KERNEL, tmp_path_factory.mktemp("html"), **options)


def check_page(text: str) -> Page:
    """A page that is whole, accessible, and refers to nothing outside of it."""
    assert text.startswith("<!DOCTYPE html>")
    page = Page(text)
    nodes = page.root.all()
    names = [node.attributes["id"] for node in nodes if "id" in node.attributes]
    assert len(names) == len(set(names))
    assert not {node.tag for node in nodes} & {"script", "link", "img", "iframe", "object", "base"}
    for node in nodes:
        for key, value in node.attributes.items():
            assert key not in ("src", "srcset", "style", "xlink:href") and key[:2] != "on"
            if key == "href":
                assert value[0] == "#" and value[1:] in names
    (style,) = page.root.all("style")
    assert not re.search(r"url\(|@import|http|src", style.text)
    assert "@media (prefers-color-scheme: dark)" in style.text and "@media print" in style.text

    (html,) = page.root.all("html")
    assert html.attributes["lang"] == "en" and len(page.root.all("h1")) == 1
    levels = [int(node.tag[1]) for node in page.root.all("h1", "h2", "h3")]
    assert all(after <= before + 1 for before, after in zip(levels, levels[1:], strict=False))
    for table in page.root.all("table"):
        assert table.all("caption") and all(n.attributes["scope"] for n in table.all("th"))
    shown = [n.attributes for n in page.root.all("svg") if "aria-hidden" not in n.attributes]
    assert all(svg["role"] == "img" and svg["aria-label"] for svg in shown)
    assert len(pictures(text)) == len(shown) == len(page.root.all("figure"))
    assert all(figure.all("figcaption") for figure in page.root.all("figure"))
    return page


def test_pages_are_whole_and_need_nothing_else(case):
    options, report, text = case
    page = check_page(text)
    (heading,) = page.root.all("h1")
    assert heading.text == (
        f"{KERNEL}: {options['schedule']} on {options['target']}, {options['dtype']}"
    )
    choices = page.section("choices").text
    assert report["why"] in choices and report["pipeline"] in choices
    assert page.section("candidates") is None or "candidates" in report
    assert (page.section("costs") is not None) == (options["target"] != "cpu")


def test_every_stage_is_folded_and_as_the_compiler_emits_it(case):
    options, _, text = case
    stages = {"simt": [s for s in GPU_STAGES if s != "nm"], "direct": ["stencil", "llvm"]}
    expected = stages.get(options["schedule"], GPU_STAGES)
    emit = emit_gpu
    if options["target"] == "cpu":
        emit, expected = emit_cpu, [s for s in expected if s in ("stencil", "nm", "llvm")]
    folded = Page(text).section("stages").all("details")
    assert [node.all("h3")[0].text for node in folded] == expected
    assert all("open" not in node.attributes for node in folded)
    texts = {stage: node.all("pre")[0].text for stage, node in zip(expected, folded, strict=True)}
    # Each takes another compilation.
    for stage in expected if options["schedule"] == "sparse" else expected[-1:]:
        emitted = emit(built_in_kernels()[KERNEL], CompileOptions(**options), stage)
        assert texts[stage] == emitted


def test_pictures_show_the_matrix_of_every_stage(case):
    options, report, text = case
    kernel = built_in_kernels()[KERNEL]
    matrices = text[: text.index("</section>", text.index('id="matrix"'))]
    flat, crushed, *rest = pictures(matrices)
    assert nonzeros(flat) == [(0, column) for column in range(len(kernel.weights))]
    captions = [node.text for node in Page(text).root.all("figcaption")]
    if options["schedule"] == "dense":
        # f64 has no sparse instruction: nothing is permuted.
        assert not rest and "Crushed" in captions[1]
        return
    tile = tuple(report["tile"])
    operator = crush(kernel.offsets, kernel.weights, tile)
    assert nonzeros(crushed) == where(operator.matrix != 0)
    assert f"tile {'x'.join(map(str, tile))}, {report['rows']} x" in captions[1]

    permuted, values, metadata = rest
    if report["strategy"] == "chunks":
        operator = chunk_operator(kernel.offsets, kernel.weights)
    else:
        permutation = permute_2to4(operator, report["strategy"], report["fragment"])
        operator = apply_permutation(operator, permutation)
    check_permuted(permuted, operator.matrix, report["fragment"])
    for key in (f"K = {report['k']}", f"padding columns {report['padding_columns']}"):
        assert key in captions[2] and key in permuted.get("aria-label")
    assert f"density {report['density']:.3f}" in captions[2]

    kept, words = compress(operator.matrix)
    assert nonzeros(values) == where(kept != 0)
    assert f"{report['rows']} x {report['k'] // 2}" in captions[3]
    check_metadata_picture(metadata, words)
    note = "does not multiply by this matrix"
    assert (note in Page(text).section("matrix").text) == (not report["layout_executed"])


def check_permuted(svg: ElementTree.Element, matrix: np.ndarray, fragment: int) -> None:
    rows, columns = matrix.shape
    found = nonzeros(svg)
    assert found == where(matrix != 0)
    groups = [(row, column // 4) for row, column in found]
    assert max(groups.count(group) for group in set(groups)) <= 2
    bars = rf"M(\d+) 0h(\d+)v{rows}h-\d+z"
    assert shapes(svg, "band", bars) == [(x, 4) for x in range(4, columns, 8)]
    empty = np.flatnonzero((matrix == 0).all(axis=0))
    assert shapes(svg, "padding", bars) == [(x, 1) for x in empty]
    pixels = int(svg.get("width")) // columns
    lines = shapes(svg, "fragment", r"M(\d+) 0v\d+")
    assert lines == [(x * pixels,) for x in range(fragment, columns, fragment)]


def check_metadata_picture(svg: ElementTree.Element, metadata: np.ndarray) -> None:
    """Bits 2j and 2j + 1 of a word hold the place of its value j."""
    expected = [[word >> bit & 3 for word in row for bit in range(0, 16, 2)] for row in metadata]
    for index in range(4):
        assert cells(svg, f"index{index}") == where(np.array(expected) == index)
    digits = [line.text for line in svg.iter("text")]
    assert digits in ([], ["".join(map(str, row)) for row in expected])


def test_cells_are_coloured_by_sign_and_magnitude():
    svg = ElementTree.fromstring(matrix_picture(np.array([[1.0, 0, -4], [0, 2, 0]]), "a & b"))
    assert svg.get("aria-label") == "a & b" == svg.find("title").text
    assert cells(svg, "plus") == [(0, 0), (1, 1)] and cells(svg, "minus") == [(0, 2)]
    levels = [cells(svg, f"level{level}") for level in range(1, 5)]
    assert levels == [[(0, 0)], [(1, 1)], [], [(0, 2)]]


@pytest.mark.parametrize("rows, columns", [(1, 1), (1, 5000), (16, 1568), (4096, 32)])
def test_large_matrices_are_drawn_at_the_scale_of_pixels(rows, columns):
    matrix = np.eye(rows, columns)
    svg = ElementTree.fromstring(matrix_picture(matrix, "A", fragment=32))
    assert nonzeros(svg) == [(i, i) for i in range(min(rows, columns))]
    width, height = int(svg.get("width")), int(svg.get("height"))
    assert svg.get("viewBox") == f"0 0 {width} {height}"
    assert columns <= width <= max(960, columns) and 16 <= height <= max(960, rows * 30)
    assert svg.find("g").get("transform") == f"scale({width // columns} {height // rows})"
    words = np.full((rows, -(-columns // 16)), 0x4E94, np.uint16)
    check_metadata_picture(ElementTree.fromstring(metadata_picture(words, "m")), words)


def test_fused_sweeps_are_drawn_first_unfolded(tmp_path):
    text = write_page(
        "heat1d_ftcs", tmp_path, dtype="f16", schedule="sparse", **{"fuse-steps": "3"}
    )
    folded = Page(text).section("matrix").all("details")
    names = {node.all("h3")[0].text: "open" in node.attributes for node in folded}
    assert names == {"@heat1d_ftcs": False, "@heat1d_ftcs_fused3": True}
    assert len(nonzeros(pictures(text)[5])) == 7


def test_candidates_are_on_the_roofline_as_predictions():
    text = html_report(REPORT | {"candidates": CANDIDATES}, {}, [])
    section = check_page(text).section("candidates")
    (svg,) = pictures(text)
    heads = [node.text for node in section.all("thead")[0].all("th")]
    rows = [[node.text for node in row.all("th", "td")] for row in section.all("tr")[1:]]
    assert all("predicted" in head for head in heads[1:-1])
    # Fastest first.
    assert [row[1] for row in rows] == ["1000", "990.5", "123.2"]
    assert rows[1] == ["stream", "990.5", "4.038", "0.9905", "dram", "chosen"]
    assert [row[-1] for row in rows].count("chosen") == 1
    for word in ("measured", "simulated"):
        assert word not in section.text.replace("not measured", "")
    titles = [group.find("title").text for group in svg.iter("g")]
    assert titles[-1] == "stream: 990.5 GStencil/s, predicted"
    assert all(title.endswith("GStencil/s, predicted") for title in titles)
    assert "the copy bound is 1000 GStencil/s, the DRAM bound 4000 GB/s" in svg.get("aria-label")
    assert svg.get("aria-label").startswith("Roofline of 3 candidates, predicted")


def test_candidates_at_a_bound_lie_on_its_line():
    svg = ElementTree.fromstring(roofline_picture(CANDIDATES, 2))
    places = {
        group.find("title").text.split(" GS")[0]: tuple(
            map(float, re.findall(r"[\d.]+", group.get("transform")))
        )
        for group in svg.iter("g")
    }
    lines = {line.get("class"): line for line in svg.iter("line")}
    copy, dram = (
        [float(lines[name].get(key)) for key in ("x1", "y1", "x2", "y2")]
        for name in ("roof copy", "roof dram")
    )
    assert copy[1] == copy[3] == places["simt: 1000"][1]
    x, y = places["stream: 990.5"]
    slope = (dram[3] - dram[1]) / (dram[2] - dram[0])
    assert dram[1] + slope * (x - dram[0]) == pytest.approx(y, abs=0.05)
    # Slower is lower; more traffic is further left.
    assert places["simt: 123.2"][1] > y and places["simt: 123.2"][0] < x
    (ring,) = svg.iter("circle")
    (chosen,) = [group for group in svg.iter("g") if ring in list(group)]
    assert chosen.find("title").text.startswith("stream")
    assert all(16 <= float(n.get("x")) <= 720 for n in svg.iter("text") if n.get("x"))


def test_slow_candidates_are_folded():
    slow = [CANDIDATES[1] | {"gstencil_per_s": 100.0 - i} for i in range(30)]
    section = Page(html_report(REPORT | {"candidates": slow + CANDIDATES}, {}, [])).section(
        "candidates"
    )
    first, folded = section.all("table")
    assert [len(table.all("tr")) - 1 for table in (first, folded)] == [20, 13]
    (details,) = section.all("details")
    assert details.all("table") == [folded] and "predicted" in details.all("summary")[0].text


def test_costs_name_their_sources():
    costs = {"counters": {"mma": 0.0078125}, "registers": 77, "spills": 3}
    costs |= {"shared_bytes": 11, "occupancy": 0.375}
    section = check_page(html_report(REPORT | costs, {}, [])).section("costs")
    rows = [[n.text for n in row.all("th", "td")] for row in section.all("tr")]
    assert rows[:2] == [["counter", "per output point, simulated"], ["mma", "0.007812"]]
    assert ["registers of a thread", "77", "ptxas"] in rows
    assert ["spilled bytes of a thread", "3", "ptxas"] in rows
    assert ["shared memory of a block, bytes", "11", "the layout"] in rows
    assert any(row[:2] == ["occupancy", "38%"] and "ptxas" in row[2] for row in rows)
    assert all("simulated" in table.text for table in section.all("table")[:1])


def test_what_is_not_known_is_left_out():
    costs = {"counters": None, "registers": None, "spills": None, "occupancy": None}
    page = check_page(html_report(REPORT | costs | {"shared_bytes": 11}, {}, []))
    section = page.section("costs")
    assert "Not simulated" in section.text and "None" not in section.text
    assert "registers are not known without ptxas" in section.text
    assert page.section("matrix") is page.section("candidates") is page.section("stages") is None


def test_hostile_texts_are_escaped():
    """Names of files, reasons, programs: all of it may come from elsewhere."""
    shown = HOSTILE.replace("\x01", "\ufffd").replace("\ud800", "\ufffd")
    report = {key: HOSTILE if isinstance(value, str) else value for key, value in REPORT.items()}
    report["left_on_general_path"] = [{"location": HOSTILE, "reason": HOSTILE}]
    report |= {"counters": {HOSTILE: 1.0}, "registers": None, "shared_bytes": 0}
    report["candidates"] = [c | {"schedule": HOSTILE, "limited_by": HOSTILE} for c in CANDIDATES]
    text = html_report(report, {"ptx": HOSTILE}, [])
    text.encode("utf-8")
    page = check_page(text)
    assert shown == page.root.all("pre")[0].text
    assert page.root.all("h1")[0].text == page.root.all("title")[0].text
    assert page.section("candidates").text.count(shown) >= 6
    assert page.section("choices").text.count(shown) >= 7


def test_a_program_with_hostile_names(tmp_path):
    program = tmp_path / "<b>&.mlir"
    program.write_text(
        GENERIC.replace("@average", '@"<script>"').replace('"average"', '"<script>"')
    )
    text = write_page(str(program), tmp_path)
    page = check_page(text)
    assert "@<script>" in [node.text for node in page.root.all("h3")]
    assert "&lt;b&gt;&amp;.mlir" in text


def test_applies_on_the_general_path_are_listed(tmp_path):
    page = check_page(write_page("docs/examples/gray_scott.mlir", tmp_path))
    assert page.section("matrix") is None
    assert "docs/examples/gray_scott.mlir:" in page.section("choices").all("table")[1].text


def test_programs_from_standard_input(tmp_path, monkeypatch, capsys):
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(GENERIC.encode())))
    page = check_page(write_page("-", tmp_path))
    assert len(page.section("stages").all("pre")) == 2
    size = (tmp_path / "x.html").stat().st_size
    assert (
        capsys.readouterr().out == f"{tmp_path / 'x.html'}: -, direct on cpu, f64, {size} bytes\n"
    )


@pytest.mark.parametrize("options", [CASES["stream"], CASES["cpu-sparse"]])
def test_the_same_bytes_every_time(options, tmp_path):
    assert write_page(KERNEL, tmp_path, **options) == write_page(KERNEL, tmp_path, **options)


@pytest.mark.parametrize(
    "words, message, at",
    [
        ([KERNEL, "--html", "none/x.html"], "no directory 'none'", "none/x.html:1:1"),
        ([KERNEL, "--html", "."], "cannot write the file: it is a directory", ".:1:1"),
        ([KERNEL, "--html", ""], "expected the name of a file to write, got ''", COMMAND_LINE),
        ([KERNEL, "--html"], "expected one argument", COMMAND_LINE),
        ([KERNEL, "--json", "--html", "x.html"], "not allowed with argument --json", COMMAND_LINE),
        (["heat2d", "--html", "x.html"], "unknown kernel 'heat2d'", COMMAND_LINE),
        (["none.mlir", "--html", "x.html"], "cannot read the file", "none.mlir:1:1"),
        (["bad.mlir", "--html", "old.html"], "expected one function, got none", "bad.mlir:1:1"),
        (
            [KERNEL, "--schedule", "dense", "--html", "x.html"],
            "expected a GPU target",
            COMMAND_LINE,
        ),
        (
            [KERNEL, *"--target sm_90 --schedule stream --html old.html".split()],
            "expected fields of f16 or bf16 for schedule 'stream', got f32",
            COMMAND_LINE,
        ),
    ],
)
def test_nothing_is_written_on_errors(words, message, at, tmp_path, monkeypatch, capfd):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "old.html").write_text("kept")
    (tmp_path / "bad.mlir").write_text("// nothing\n")
    refused(capfd, main, ["explain", *words], message, at)
