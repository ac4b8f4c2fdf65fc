# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Tests of code for Arm SME need a cross compiler and an emulator."""

import pytest

from arm_machine import missing_tools


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items):
    missing = missing_tools()
    if not missing:
        return
    skip = pytest.mark.skip(reason=f"expected {', '.join(missing)} on the path")
    here = str(__file__).removesuffix("conftest.py")
    for item in items:
        if str(item.path).startswith(here):
            item.add_marker(skip)
