# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Fixtures of the execution tests."""

import pytest

import twofour

BACK_ENDS = ("cpu", "sim:sm_90")
# What schedules of the CPU are called on GPUs; sparse instructions do not multiply f64.
GPU_SCHEDULES = {"direct": "simt", "loops": "simt", "sparse": "dense"}


# Halos are refreshed by the same code on all back-ends: of the boundaries, one is tried quickly.
QUICK_BOUNDARY = ("reflect", "zero")


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items):
    for item in items:
        chosen = getattr(item, "callspec", None)
        if chosen is None or chosen.params.get("compiled", "cpu") == "cpu":
            continue
        if chosen.params.get("boundary", QUICK_BOUNDARY) != QUICK_BOUNDARY:
            item.add_marker(pytest.mark.full)


class Compiler:
    """Compiles the text of a program for one back-end."""

    def __init__(self, folder, target: str):
        self.path, self.target = folder / "program.mlir", target

    def __call__(self, text: str, **options):
        self.path.write_text(text)
        return twofour.compile(str(self.path), target=self.target, **options)

    def schedule(self, name: str) -> str:
        """The back-end's name for a schedule of f64 programs on the CPU."""
        return name if self.target == "cpu" else GPU_SCHEDULES[name]


@pytest.fixture(params=BACK_ENDS)
def compiled(tmp_path, request):
    """A function that compiles the text of a program, for each back-end."""
    return Compiler(tmp_path, request.param)


@pytest.fixture
def compiled_for_cpu(tmp_path):
    """The same for the CPU only."""
    return Compiler(tmp_path, "cpu")
