# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""No module imports itself by way of others, or what is built on it, not even in functions."""

import ast
import importlib.util
from collections.abc import Iterator
from pathlib import Path

import networkx as nx

import twofour
import twofour.dialects

# From the bottom up: layouts, code of kernels, costs, passes, the database of measured choices,
# drivers, what fills the database, and what users call.
LAYERS = (
    "layout",
    "codegen",
    "cost",
    "dialects",
    "tuned",
    "targets",
    "tune",
    "explain",
    "bench",
    "cli",
)


def modules() -> dict[str, Path]:
    """The source files of the package by the names of their modules."""
    found = {}
    for package in (twofour, twofour.dialects):
        for folder in package.__path__:
            for path in Path(folder).rglob("*.py"):
                parts = path.relative_to(folder).with_suffix("").parts
                name = ".".join((package.__name__, *parts)).removesuffix(".__init__")
                found[name] = path
    return found


def imports(module: str, text: str, known: set[str]) -> Iterator[str]:
    """The modules among `known` whose names a module imports, wherever it does."""
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names if alias.name in known)
        if isinstance(node, ast.ImportFrom):
            package = importlib.util.resolve_name("." * node.level + (node.module or ""), module)
            for alias in node.names:
                inner = f"{package}.{alias.name}"
                yield from {inner if inner in known else package} & known


def circles(texts: dict[str, str]) -> list[list[str]]:
    """The groups of modules that import each other."""
    graph = nx.DiGraph()
    for name, text in texts.items():
        graph.add_edges_from((name, other) for other in imports(name, text, texts.keys()))
    return sorted(sorted(part) for part in nx.strongly_connected_components(graph) if len(part) > 1)


def test_no_circle_of_imports():
    texts = {name: path.read_text() for name, path in modules().items()}
    assert {"twofour.api", "twofour.sim.bulk", "twofour.dialects.nm.ops"} <= texts.keys()
    # It hands out the public names of its modules, which take the version from it.
    del texts["twofour"]
    assert circles(texts) == []


def test_circles_are_found():
    texts = {
        "p": "",
        "p.a": "from p import b",
        "p.b": "def f():\n    from p.c import g",
        "p.c": "if True:\n    import p.a",
        "p.d": "from p.a import x",
    }
    assert circles(texts) == [["p.a", "p.b", "p.c"]]


def upward(texts: dict[str, str]) -> list[tuple[str, str]]:
    """The imports of modules that belong to a higher layer, by importer and imported."""

    def layer(name: str) -> int | None:
        package = (*name.split("."), "")[1]
        return LAYERS.index(package) if package in LAYERS else None

    pairs = ((a, b) for a, text in texts.items() for b in imports(a, text, texts.keys()))
    placed = ((a, b) for a, b in pairs if layer(a) is not None and layer(b) is not None)
    return sorted((a, b) for a, b in placed if layer(a) < layer(b))


def test_layers_import_downwards():
    texts = {name: path.read_text() for name, path in modules().items()}
    assert all(any(name.split(".")[1:2] == [layer] for name in texts) for layer in LAYERS)
    assert upward(texts) == []


def test_upward_imports_are_found():
    texts = {
        "p.codegen.a": "def f():\n    from p.targets.b import g",
        "p.targets.b": "import p.layout\nfrom p.codegen import a",
        "p.layout": "",
        "p.errors": "from p.cli import main",
        "p.cli.main": "",
    }
    assert upward(texts) == [("p.codegen.a", "p.targets.b")]
