# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""ptxas: what it reports, and what becomes of one that is missing, too old or unwilling."""

import errno
import tempfile
from pathlib import Path

import pytest

from twofour.codegen.gpu import cuda_toolkit
from twofour.errors import TwofourError
from twofour.targets.gpu import ptx

REPORT = """ptxas info    : 0 bytes gmem
ptxas info    : Compiling entry function 'first' for 'sm_90'
ptxas info    : Function properties for first
    8 bytes stack frame, 4 bytes spill stores, 12 bytes spill loads
ptxas info    : Used 72 registers, used 1 barriers, 16 bytes cumulative stack size
ptxas info    : Compiling entry function 'second' for 'sm_90'
ptxas info    : Function properties for second
    0 bytes stack frame, 0 bytes spill stores, 0 bytes spill loads
ptxas info    : Used 18 registers, 464 bytes cmem[0]
"""


def install(tmp_path, monkeypatch, script: str) -> None:
    tool = tmp_path / "ptxas"
    tool.write_text(f"#!/bin/sh\n{script}\n")
    tool.chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}:/usr/bin:/bin")


def test_the_report_names_every_kernel():
    assert ptx.read_report(REPORT) == {
        "first": ptx.Resources(72, 16, 8),
        "second": ptx.Resources(18, 0, 0),
    }


def test_machine_code_and_warnings(tmp_path, monkeypatch):
    said = "ptxas warning : use something else\nptxas info : Advisory: or that"
    script = f"cat >&2 <<'X'\n{REPORT}\n{said}\nX\n"
    install(tmp_path, monkeypatch, script + 'for last; do :; done; printf "%s" "$1" > "$last"')
    found = ptx.assemble("text", "sm_90")
    assert found.cubin == b"-arch=sm_90" and found.resources["first"].registers == 72
    assert found.warnings == (
        "ptxas warning : use something else",
        "ptxas info : Advisory: or that",
    )


def test_without_a_place_for_temporary_files(tmp_path, monkeypatch):
    install(tmp_path, monkeypatch, "true")
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path / "nowhere"))
    with pytest.raises(TwofourError, match="cannot make temporary files: no such file"):
        ptx.assemble("without", "sm_90")


def test_a_full_disk_is_named(tmp_path, monkeypatch):
    def refuse(self, *arguments):
        raise OSError(errno.ENOSPC, "No space left on device")

    install(tmp_path, monkeypatch, "true")
    monkeypatch.setattr(Path, "write_text", refuse)
    with pytest.raises(TwofourError, match=r"kernels\.ptx:.*cannot write the file: no space left"):
        ptx.assemble("full", "sm_90")


def test_modules_are_assembled_once_for_a_chip(tmp_path, monkeypatch):
    calls = tmp_path / "calls"
    script = f'echo "$1" >> {calls}; for last; do :; done; cat "$3" > "$last"; echo "$1" >> "$last"'
    install(tmp_path, monkeypatch, script)
    wanted = [("one", "sm_90"), ("one", "sm_80"), ("two", "sm_90"), ("one", "sm_90")]
    found = [ptx.assemble(text, chip).cubin.decode() for text, chip in wanted]
    assert found == [f"{text}-arch={chip}\n" for text, chip in wanted]
    assert len(calls.read_text().splitlines()) == 3


@pytest.mark.parametrize(
    "message",
    [
        "ptxas x.ptx, line 5; fatal : Unsupported .version 8.5; current version is '8.2'",
        "ptxas fatal : Value 'sm_100' is not defined for option 'gpu-name'",
    ],
)
def test_an_old_ptxas_counts_as_none(tmp_path, monkeypatch, message):
    install(tmp_path, monkeypatch, f'echo "{message}" >&2; exit 255')
    assert ptx.assemble("text", "sm_100") is None


def test_a_refusal_is_an_error(tmp_path, monkeypatch):
    install(tmp_path, monkeypatch, "echo 'ptxas fatal : unexpected token' >&2; exit 1")
    with pytest.raises(TwofourError, match="ptxas: ptxas fatal : unexpected token"):
        ptx.assemble("text", "sm_90")


def test_without_ptxas(tmp_path, monkeypatch):
    monkeypatch.setenv("PATH", str(tmp_path))
    for name in ("CUDA_HOME", "CUDA_PATH"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setattr(cuda_toolkit, "DEFAULT_HOME", str(tmp_path / "none"))
    assert ptx.assemble("text", "sm_90") is None
    (tmp_path / "bin").mkdir()
    tool = tmp_path / "bin" / "ptxas"
    tool.write_text("#!/bin/sh\n")
    tool.chmod(0o755)
    for name in ("CUDA_HOME", "CUDA_PATH"):
        with monkeypatch.context() as patch:
            patch.setenv(name, str(tmp_path))
            assert cuda_toolkit.find_ptxas() == str(tool)
    monkeypatch.setattr(cuda_toolkit, "DEFAULT_HOME", str(tmp_path))
    assert cuda_toolkit.find_ptxas() == str(tool)
