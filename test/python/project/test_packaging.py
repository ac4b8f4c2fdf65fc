# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""`pyproject.toml` lists every package of the tree, so that a wheel holds them all."""

from pathlib import Path

try:
    import tomllib
except ModuleNotFoundError:  # Python 3.10
    from pip._vendor import tomli as tomllib

ROOT = Path(__file__).parents[3]


def test_every_package_is_listed():
    settings = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["setuptools"]
    found = set()
    for prefix, folder in settings["package-dir"].items():
        for init in (ROOT / folder).rglob("__init__.py"):
            relative = init.parent.relative_to(ROOT / folder)
            found.add(".".join([prefix, *relative.parts]))
    assert sorted(settings["packages"]) == sorted(found)
