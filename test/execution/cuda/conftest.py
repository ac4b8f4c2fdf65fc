# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Tests on a real GPU, from bundles that `tools/prepare_cuda_tests` has made.

They need NumPy, CuPy and pytest, and no compiler:

    TWOFOUR_CUDA_BUNDLES=FOLDER PYTHONPATH=python pytest -m cuda test/execution/cuda
"""

import json
import os
from functools import cache
from pathlib import Path

import pytest

from twofour.errors import TwofourError
from twofour.runtime import load
from twofour.runtime.devices.cuda import CudaDevice

FOLDER = "TWOFOUR_CUDA_BUNDLES"


def index() -> Path:
    """The list of the prepared cases."""
    return Path(os.environ.get(FOLDER, ""), "cases.json")


def has_bundles() -> bool:
    """Whether the variable names a folder with bundles."""
    return bool(os.environ.get(FOLDER)) and index().is_file()


@cache
def unavailable() -> str | None:
    """Why nothing can run here, None where it can."""
    if not has_bundles():
        return f"expected {FOLDER} to name a folder of bundles (tools/prepare_cuda_tests)"
    try:
        CudaDevice()
    except TwofourError as error:
        return error.message
    return None


def cases(kind: str) -> list[dict]:
    """The prepared cases of a kind: those of kernels, or of programs from files."""
    return json.loads(index().read_text())[kind] if has_bundles() else []


def pytest_generate_tests(metafunc):
    for kind in ("kernel", "program"):
        if f"{kind}_case" in metafunc.fixturenames:
            # Without bundles one test stands for all, to say why it is skipped.
            found = cases(kind) or [{"bundle": "no bundles"}]
            names = [case["bundle"].removesuffix(".tfb") for case in found]
            metafunc.parametrize(f"{kind}_case", found, ids=names)


def pytest_collection_modifyitems(items):
    for item in items:
        if item.path.is_relative_to(Path(__file__).parent):
            item.add_marker(pytest.mark.cuda)
            if unavailable() is not None:
                item.add_marker(pytest.mark.skip(reason=unavailable()))


@pytest.fixture
def loaded():
    """A function that loads the bundle of a case onto the device."""
    return lambda case: load(Path(os.environ[FOLDER]) / case["bundle"])
