# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Fixtures of the execution tests."""

import pytest

import twofour


@pytest.fixture
def compiled(tmp_path):
    """A function that compiles the text of a program."""

    def build(text: str, **options):
        path = tmp_path / "program.mlir"
        path.write_text(text)
        return twofour.compile(str(path), **options)

    return build
