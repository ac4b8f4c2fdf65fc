# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""`twofour compile --target cpu`: stages of the CPU's compiler as texts."""

import platform
import re
from pathlib import Path

import pytest

from bad_input import refused
from cpu_object_cases import write_heat
from twofour.cli.main import main


@pytest.fixture(autouse=True)
def empty_folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)


@pytest.mark.parametrize("element", ["f64", "bf16"])
def test_nothing_but_interfaces_is_seen(capfd, element):
    write_heat(Path("heat.mlir"), element)
    assert main(["compile", "heat.mlir", "--emit", "llvm"]) == 0
    found = re.findall(r"^define (.*?)@(.*?)\(", capfd.readouterr().out, re.M)
    seen = {name for linkage, name in found if not re.match("internal|weak_odr hidden", linkage)}
    assert all(name.startswith("_mlir_ciface_heat") for name in seen) and len(seen) >= 2


@pytest.mark.skipif(platform.machine() != "x86_64", reason="expected an x86 processor")
def test_stores_past_the_caches_end_with_a_fence(capfd):
    write_heat(Path("heat.mlir"))
    assert main(["compile", "heat.mlir", "--emit", "llvm"]) == 0
    text = capfd.readouterr().out
    interface = text[text.index("define void @_mlir_ciface_heat_kernel0_past_caches(") :]
    assert "call void @llvm.x86.sse.sfence()" in interface[: interface.index("\n}")]


@pytest.mark.parametrize(
    ("words", "text"),
    [
        (["stencil"], "stencil.weighted_sum"),
        (["nm", "--schedule", "sparse"], "nm.sparse_patch_matmul"),
        (["llvm"], "define void @_mlir_ciface_heat_kernel0("),
    ],
)
def test_a_stage_as_text(tmp_path, capfd, words, text):
    write_heat(tmp_path / "heat.mlir")
    assert main(["compile", "heat.mlir", "--emit", *words]) == 0
    assert text in capfd.readouterr().out


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["--emit", "object"], "expected -o FILE to write the object to"),
        (
            ["--emit", "object", "-o", "-"],
            "expected -o FILE to write the object to, and its header",
        ),
        (
            ["--emit", "object", "-o", "x.h"],
            "expected another name for the object than that of its",
        ),
        (
            ["--emit", "object", "-o", "/dev/null"],
            "expected a file to write the object to, got '/dev/null'",
        ),
        (["--emit", "nm"], "expected a stage that schedule 'direct' has, got 'nm'"),
        (["--emit", "ptx"], "expected a GPU target such as sm_90 to compile for (--emit ptx)"),
        (["--emit", "bundle", "-o", "x"], "or one of --emit stencil, nm, llvm, object for the CPU"),
        (
            ["--emit", "object", "-o", "x", "--target", "sm_90"],
            "expected target 'cpu' for --emit object, got 'sm_90'",
        ),
    ],
)
def test_what_a_target_does_not_have(tmp_path, capfd, words, message):
    write_heat(tmp_path / "heat.mlir")
    refused(capfd, main, ["compile", "heat.mlir", *words], message)


def test_a_stage_that_plain_loops_do_not_have(capfd):
    program = Path(__file__).parents[3] / "docs" / "examples" / "gray_scott.mlir"
    message = "expected a stage that schedule 'loops' has, got 'nm'"
    refused(capfd, main, ["compile", program, "--emit", "nm"], message)
