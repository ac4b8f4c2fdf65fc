# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The documentation: generated parts are current, links lead somewhere, snippets do what they say.

In a guide page, a block ```sh run or ```python run is executed, ```sh run fails must end with exit
status 1, ```mlir run must be a valid program and ```mlir reject an invalid one; a block
```text output after it is what it prints, where `...` stands for anything. The blocks of a page run
in order in one directory, which holds docs/examples.
"""

import doctest
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from twofour.cli.main import main as twofour
from twofour.dialects.nm.transforms.crush import CrushPass
from twofour.dialects.stencil.ops import LoadOp
from twofour.explain import explain
from twofour.kernels import built_in_kernels
from twofour.opt.main import main as twofour_opt
from twofour.options import AUTO, CompileOptions
from twofour.passes import pass_class, pass_names

ROOT = Path(__file__).resolve().parents[3]
sys.path.insert(0, str(ROOT / "tools"))

import generate_docs  # noqa: E402
import guide_sections  # noqa: E402

GUIDES = sorted((ROOT / "docs" / "guide").glob("*.md"))
EXAMPLES = sorted((ROOT / "docs" / "examples").iterdir())
PAGES = sorted([*ROOT.glob("*.md"), *ROOT.glob("docs/**/*.md"), *ROOT.glob("dialects/*/*.md")])
BLOCK = re.compile(r"^```(?P<language>\w*)(?P<mark>[^\n]*)\n(?P<text>.*?)^```$", re.M | re.S)
LINK = re.compile(r"\[[^\]]*\]\(([^)\s]+)\)")


def relative(path: Path) -> str:
    return path.relative_to(ROOT).as_posix()


def test_every_pass_of_a_dialect_is_in_its_readme():
    for name in pass_names():
        dialect = pass_class(name).__module__.split(".")[2]
        assert f"| `{name}` |" in (ROOT / "dialects" / dialect / "README.md").read_text()


def test_every_module_of_the_stencil_dialect_is_in_its_readme():
    folder = ROOT / "dialects" / "stencil"
    modules = {path.name for path in folder.glob("*.py")} - {"__init__.py"}
    text = (folder / "README.md").read_text()
    assert [name for name in sorted(modules) if f"`{name}`" not in text] == []


def test_generated_parts_are_current():
    assert generate_docs.stale_files() == []


@pytest.fixture
def reference_only(monkeypatch):
    """Without the guide, whose sections take longer and hold nothing of docstrings."""
    monkeypatch.setattr(generate_docs, "hand_written", lambda: [])


@pytest.mark.parametrize(("thing", "page"), [(CrushPass, "passes.md"), (LoadOp, "dialects.md")])
def test_a_changed_docstring_is_noticed(thing, page, monkeypatch, reference_only):
    monkeypatch.setattr(thing, "__doc__", "Another sentence.")
    assert generate_docs.stale_files() == [Path("docs", "reference", page)]


def test_a_changed_default_is_noticed(monkeypatch, reference_only):
    monkeypatch.setattr(CrushPass.__dataclass_fields__["tile"], "default", (4, 4))
    assert generate_docs.stale_files() == [Path("docs", "reference", "passes.md")]


def test_a_changed_page_is_named_and_mended(tmp_path, monkeypatch, capsys):
    for folder in ("docs", "dialects"):
        shutil.copytree(ROOT / folder, tmp_path / folder)
    monkeypatch.setattr(generate_docs, "ROOT", tmp_path)
    page = tmp_path / "docs" / "guide" / "one_stencil_through_every_pass.md"
    text = page.read_text(encoding="utf-8")
    page.write_text(text.replace("offsets = [[-1], [0], [1]]", "offsets = []", 1), encoding="utf-8")
    kernels = tmp_path / "docs" / "reference" / "kernels.md"
    kernels.unlink()
    assert generate_docs.main(["--check"]) == 1
    named = [line.partition(":")[0] for line in capsys.readouterr().err.splitlines()]
    assert sorted(named) == sorted(
        path.relative_to(tmp_path).as_posix() for path in (page, kernels)
    )
    assert generate_docs.main([]) == 0
    assert page.read_text(encoding="utf-8") == text and kernels.exists()


def members(value: object) -> set[str]:
    """The names of all members in JSON data."""
    if isinstance(value, list):
        return set().union(*map(members, value))
    if not isinstance(value, dict):
        return set()
    # Members of these are named elsewhere.
    inner = (members(part) for name, part in value.items() if name not in ("choice", "busy"))
    return value.keys() | set().union(*inner)


def test_every_member_of_explain_is_in_the_guide():
    text = (ROOT / "docs/guide/explain.md").read_text()
    reports = [
        explain(built_in_kernels()["heat2d_ftcs"], CompileOptions("cpu")),
        explain(built_in_kernels()["heat3d_ftcs"], CompileOptions("cpu")),
        explain(built_in_kernels()["heat1d_ftcs"], CompileOptions("sm_90", "auto", "f16", AUTO)),
        explain(built_in_kernels()["wrf_advection5_2d"], CompileOptions("sm_90", dtype="f16")),
    ]
    assert all(any(r.get(name) for r in reports) for name in ("tuned", "fusion_depths"))
    named = set(re.findall(r"`(\w+)`", text))
    assert sorted(set().union(*map(members, reports)) - named) == []
    rows = [line.split("|")[1] for line in text.splitlines() if line.startswith("| `")]
    top = {name for row in rows for name in re.findall(r"`(\w+)`", row)}
    assert sorted(top - set().union(*reports)) == []


def slug(heading: str) -> str:
    """The anchor of a heading, as GitHub makes it."""
    return re.sub(r"[^\w\- ]", "", heading.strip().lower()).replace(" ", "-")


@pytest.mark.parametrize("page", PAGES, ids=relative)
def test_links_lead_somewhere(page):
    text = page.read_text(encoding="utf-8")
    for link in LINK.findall(BLOCK.sub("", text)):
        if re.match(r"\w+://", link):
            continue
        name, _, anchor = link.partition("#")
        target = page.parent / name if name else page
        assert target.exists(), link
        if anchor:
            headings = re.findall(r"^#+ (.*)$", target.read_text(encoding="utf-8"), re.MULTILINE)
            assert anchor in map(slug, headings), link


@pytest.mark.parametrize("program", [e for e in EXAMPLES if e.suffix == ".mlir"], ids=relative)
def test_example_programs_run(program, capsys):
    assert twofour(["run", str(program), "--steps", "2"]) == 0
    assert " points x 2 steps in " in capsys.readouterr().out


@pytest.mark.parametrize("script", [e for e in EXAMPLES if e.suffix == ".py"], ids=relative)
def test_example_scripts_run(script, tmp_path):
    done = subprocess.run([sys.executable, script], cwd=tmp_path, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert done.stdout


def own_blocks(page: Path) -> list[re.Match]:
    """The blocks of a page that are not generated."""
    return list(BLOCK.finditer(guide_sections.SECTION.sub("", page.read_text(encoding="utf-8"))))


@pytest.mark.parametrize("page", GUIDES, ids=relative)
def test_snippets_do_what_the_page_says(page, tmp_path, monkeypatch, capfd):
    shutil.copytree(ROOT / "docs" / "examples", tmp_path / "docs" / "examples")
    monkeypatch.chdir(tmp_path)
    # The commands of the interpreter that runs the tests.
    tools = os.path.dirname(sys.executable)
    monkeypatch.setenv("PATH", tools, prepend=os.pathsep)
    printed = None
    for block in own_blocks(page):
        language, mark, text = block["language"], block["mark"].strip(), block["text"]
        if (language, mark) == ("text", "output"):
            checker = doctest.OutputChecker()
            assert checker.check_output(text, printed, doctest.ELLIPSIS), f"{text}\n{printed}"
            continue
        expected = {"run": 0, "run fails": 1, "reject": 1}.get(mark)
        if expected is None:
            # The one command that a test cannot run: it makes the environment of the checkout.
            assert language == "text" or text.startswith("./tools/run "), text
            continue
        status = run_block(language, text)
        captured = capfd.readouterr()
        printed = captured.out + captured.err
        assert status == expected, printed


def run_block(language: str, text: str) -> int:
    if language == "mlir":
        Path("program.mlir").write_text(text, encoding="utf-8")
        return twofour_opt(["program.mlir", "--stencil-infer-bounds", "-o", "printed.mlir"])
    command = {"sh": ["bash", "-euo", "pipefail", "-c"], "python": [sys.executable, "-c"]}[language]
    return subprocess.run([*command, text]).returncode


@pytest.mark.parametrize("page", GUIDES, ids=relative)
def test_printed_modules_can_be_read_back(page, tmp_path):
    for match in guide_sections.SECTION.finditer(page.read_text(encoding="utf-8")):
        for block in BLOCK.finditer(match[0]):
            if block["language"] == "mlir" and block["text"].startswith("module"):
                program = tmp_path / "printed.mlir"
                program.write_text(block["text"], encoding="utf-8")
                assert twofour_opt([str(program), "-o", str(tmp_path / "again.mlir")]) == 0
