# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""How bad input must be refused: one located error line, exit status 1, and nothing else."""

import os
import re
import subprocess
import sys
from collections.abc import Callable, Sequence
from pathlib import Path

INPUTS = Path(__file__).parent / "Inputs"
GENERIC = (INPUTS / "average_generic.mlir").read_text()
PRETTY = (INPUTS / "average_pretty.mlir").read_text()

ERROR = re.compile(r"[^:]+:\d+:\d+: error: \S.*")


def contents(folder: Path) -> dict[str, bytes | None]:
    """Every file below a folder with its bytes; None for folders."""
    return {
        str(path.relative_to(folder)): path.read_bytes() if path.is_file() else None
        for path in folder.rglob("*")
    }


def check_refusal(status: int, out: str, err: str, at: str, message: str) -> None:
    """`at` is the location, or its beginning up to a colon; `message` a part of what is said."""
    assert status == 1
    assert out == ""
    # A pipeline that fails on a valid file says how to see it again.
    lines = [line for line in err.splitlines() if not line.startswith("note: to reproduce: ")]
    assert len(lines) == 1, err
    assert "Traceback" not in err
    assert ERROR.fullmatch(lines[0]), lines[0]
    location, _, said = lines[0].partition(": error: ")
    assert location == at or at.endswith(":") and location.startswith(at), lines[0]
    assert message in said, lines[0]


def refused(
    capfd,
    tool: Callable[[list[str]], int],
    words: Sequence[object],
    message: str,
    at: str = "<command-line>:1:",
) -> None:
    """Check how a tool refuses a command line, in this process and in the current folder."""
    before = contents(Path.cwd())
    status = tool([str(word) for word in words])
    captured = capfd.readouterr()
    check_refusal(status, captured.out, captured.err, at, message)
    assert contents(Path.cwd()) == before


def refused_by_process(
    folder: Path,
    words: Sequence[object],
    message: str,
    at: str = "<command-line>:1:",
    environment: dict[str, str] | None = None,
) -> None:
    """Check how an installed command, `words[0]`, refuses its command line."""
    command = [str(Path(sys.executable).with_name(words[0])), *map(str, words[1:])]
    before = contents(folder)
    done = subprocess.run(
        command,
        cwd=folder,
        capture_output=True,
        text=True,
        timeout=60,
        env={**os.environ, **(environment or {})},
    )
    check_refusal(done.returncode, done.stdout, done.stderr, at, message)
    assert contents(folder) == before
