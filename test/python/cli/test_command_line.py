# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""`twofour run` and `twofour kernels`: what they print and write."""

import io
import json
import os
import re
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

import twofour
from bad_input import GENERIC
from twofour.cli import run
from twofour.cli.main import main
from twofour.command_line import run_tool
from twofour.kernels import built_in_kernels
from twofour.runtime import progress

HEAT = {(0, 0): 0.5, (0, 1): 0.125, (0, -1): 0.125, (1, 0): 0.125, (-1, 0): 0.125}


def rolled(u: np.ndarray, steps: int) -> np.ndarray:
    for _ in range(steps):
        u = sum(w * np.roll(u, (-i, -j), (0, 1)) for (i, j), w in HEAT.items())
    return u


def shell(command: str, folder: Path | None = None) -> subprocess.CompletedProcess:
    path = os.pathsep.join([os.path.dirname(sys.executable), os.environ["PATH"]])
    return subprocess.run(
        ["bash", "-c", command],
        capture_output=True,
        text=True,
        cwd=folder,
        env={**os.environ, "PATH": path},
    )


def test_run_reports_one_line_and_writes_the_result(capsys, tmp_path):
    u = np.random.default_rng(0).random((20, 33))
    np.save(tmp_path / "u.npy", u)
    words = ["run", "heat2d_ftcs", "--dtype", "f64", "--boundary", "periodic", "--steps", "7"]
    words += ["--input", str(tmp_path / "u.npy"), "--output", str(tmp_path / "v.npy")]
    assert main(words) == 0
    captured = capsys.readouterr()
    assert re.fullmatch(
        r"heat2d_ftcs: 660 points x 7 steps in \S+ s \(\S+ s the first time\), \S+ GStencil/s "
        r"\(direct, f64, \d+ threads?\)\n",
        captured.out,
    )
    assert captured.err == ""
    np.testing.assert_allclose(np.load(tmp_path / "v.npy"), rolled(u, 7), rtol=1e-13)
    assert sorted(p.name for p in tmp_path.iterdir()) == ["u.npy", "v.npy"]


@pytest.mark.parametrize(
    "times, where, expected",
    [
        ((0.5, 0.25), [], "in 0.25 s (0.5 s the first time), 7.2e-06 GStencil/s"),
        ((2.5,), [], "in 2.5 s, 7.2e-07 GStencil/s"),
        ((0.5,), ["--target", "sim:sm_80"], "in 0.5 s, 3.6e-06 GStencil/s"),
        ((0.5,), ["--target", "sm_80", "--device", "sim"], "in 0.5 s, 3.6e-06 GStencil/s"),
    ],
)
def test_rates_of_short_runs_are_those_of_a_second_one(capsys, monkeypatch, times, where, expected):
    timed, left = run._timed, list(times)
    monkeypatch.setattr(run, "_timed", lambda *what: (timed(*what)[0], left.pop(0)))
    words = ["run", "heat2d_ftcs", "--shape", "32,32", "--steps", "2", *where]
    assert main(words) == 0 and not left
    assert f": 900 points x 2 steps {expected} (" in capsys.readouterr().out


def test_plot_is_a_png(capsys, tmp_path):
    pytest.importorskip("matplotlib")
    picture = tmp_path / "u.png"
    words = ["run", "heat2d_ftcs", "--shape", "32,48", "--steps", "2", "--plot", str(picture)]
    assert main(words) == 0
    assert picture.read_bytes().startswith(b"\x89PNG\r\n")


def test_a_plot_of_each_result(capsys, tmp_path):
    pytest.importorskip("matplotlib")
    example = str(Path(__file__).parents[3] / "docs/examples/gray_scott.mlir")
    assert main(["run", example, "--steps", "2", "--plot", str(tmp_path / "u.v.png")]) == 0
    pictures = [tmp_path / f"u.v.{number}.png" for number in range(2)]
    assert sorted(tmp_path.iterdir()) == pictures
    first, second = (picture.read_bytes() for picture in pictures)
    assert first.startswith(b"\x89PNG\r\n") and second.startswith(b"\x89PNG\r\n")
    assert first != second


@pytest.mark.parametrize("quiet_seconds", [0.0, 1e9])
def test_long_runs_show_progress(capsys, monkeypatch, quiet_seconds):
    monkeypatch.setattr(progress, "QUIET_SECONDS", quiet_seconds)
    words = ["run", "heat2d_ftcs", "--shape", "70,70", "--steps", "120", "--threads", "1"]
    assert main(words) == 0
    assert ("%" in capsys.readouterr().err) == (quiet_seconds == 0)


def test_kernels_lists_all_with_their_sources(capsys):
    assert main(["kernels"]) == 0
    listed = [line.split()[0] for line in capsys.readouterr().out.splitlines()[1:]]
    assert listed == list(built_in_kernels()) and len(listed) == 79
    assert main(["kernels", "sobel5x5_x"]) == 0
    text = capsys.readouterr().out
    assert built_in_kernels()["sobel5x5_x"].source in text
    assert main(["kernels", "--json"]) == 0
    assert [entry["name"] for entry in json.loads(capsys.readouterr().out)] == listed


def test_texts_that_begin_with_a_mark(capsys, tmp_path):
    for text, said in ((GENERIC, ""), ("module {", "x.mlir:1:7: error: ")):
        (tmp_path / "x.mlir").write_text(text, encoding="utf-8-sig")
        assert main(["run", str(tmp_path / "x.mlir")]) == bool(said)
        assert said in capsys.readouterr().err


@pytest.mark.parametrize("command, said", [("run", "average: 64 points"), ("explain", "-: direct")])
def test_programs_from_standard_input(capsys, monkeypatch, command, said):
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(GENERIC.encode())))
    assert main([command, "-"]) == 0
    assert capsys.readouterr().out.startswith(said)
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(b"// nothing\n")))
    assert main([command, "-"]) == 1
    assert capsys.readouterr().err.startswith("-:1:1: error: expected one function, got none")


def test_arrays_from_standard_input_and_to_standard_output(tmp_path):
    (tmp_path / "x.mlir").write_text(GENERIC)
    np.save(tmp_path / "in.npy", np.random.default_rng(4).random(66))
    piped = (
        "twofour run x.mlir --input - --output - <in.npy "
        "| twofour run x.mlir --input - --steps 2 --output - >out.npy"
    )
    done = shell(piped, tmp_path)
    assert done.stdout == ""
    said = sorted(line.partition(" in ")[0] for line in done.stderr.splitlines())
    assert said == [f"average: 64 points x {steps} steps" for steps in (1, 2)]
    assert shell("twofour run x.mlir --steps 3 --input in.npy --output to.npy", tmp_path).stdout
    assert (tmp_path / "out.npy").read_bytes() == (tmp_path / "to.npy").read_bytes()
    files = sorted(path.name for path in tmp_path.iterdir())
    assert files == ["in.npy", "out.npy", "to.npy", "x.mlir"]


def test_arrays_from_a_pipe(tmp_path):
    np.save(tmp_path / "in.npy", np.random.default_rng(4).random(66))
    (tmp_path / "x.mlir").write_text(GENERIC)
    run = shell("cat in.npy | twofour run x.mlir --input /dev/stdin --output a.npy", tmp_path)
    assert run.returncode == 0, run.stderr
    assert shell("twofour run x.mlir --input in.npy --output b.npy", tmp_path).returncode == 0
    assert (tmp_path / "a.npy").read_bytes() == (tmp_path / "b.npy").read_bytes()


@pytest.mark.parametrize("name", ["/dev/stdout", "/dev/fd/1", "/proc/self/fd/1"])
def test_outputs_named_by_what_is_open(tmp_path, name):
    """They go on where others stopped writing to the file."""
    (tmp_path / "x.mlir").write_text(GENERIC)
    once = shell("twofour-opt x.mlir", tmp_path).stdout
    run = shell(f"(echo a; twofour-opt x.mlir -o {name}; echo b) >>f", tmp_path)
    assert run.returncode == 0 and (tmp_path / "f").read_text() == f"a\n{once}b\n"
    run = shell(f"twofour compile x.mlir --emit stencil -o {name} >f", tmp_path)
    assert (tmp_path / "f").read_text() == shell(
        "twofour compile x.mlir --emit stencil", tmp_path
    ).stdout
    shell("(echo a >&3; twofour-opt x.mlir -o /dev/fd/3) 3>g", tmp_path)
    assert (tmp_path / "g").read_text() == f"a\n{once}"


def test_pages_to_standard_output(capsysbinary, tmp_path):
    assert main(["explain", "heat2d_ftcs", "--html", str(tmp_path / "x.html")]) == 0
    capsysbinary.readouterr()
    assert main(["explain", "heat2d_ftcs", "--html", "-"]) == 0
    assert capsysbinary.readouterr().out == (tmp_path / "x.html").read_bytes()


def test_names_that_the_output_cannot_encode(tmp_path):
    text = Path("docs/examples/heat1d.mlir").read_text()
    (tmp_path / "snow.mlir").write_text(text.replace("@heat1d", '@"snow☃"'))
    for command in ("explain", "run"):
        run = shell(f"PYTHONIOENCODING=ascii twofour {command} {tmp_path}/snow.mlir")
        assert "@snow\\u2603" in run.stdout or run.stdout.startswith("snow\\u2603: ")
        assert not run.stderr


@pytest.mark.parametrize(
    ("command", "message"),
    [
        ("twofour kernels >&-", "<stdout>:1:1: error: cannot write the output: it is closed\n"),
        ("twofour-opt - >&- </dev/null", "<stdout>:1:1: error: cannot write the output: it is "),
        ("twofour run - <&-", "-:1:1: error: cannot read the file: it is closed\n"),
        ("twofour-opt <&-", "-:1:1: error: cannot read the file: it is closed\n"),
    ],
)
def test_streams_that_are_closed(command, message):
    run = shell(command)
    assert run.returncode == 1 and run.stderr.startswith(message) and run.stderr.count("\n") == 1


def test_files_of_libraries_are_named(capsys):
    def tool(_):
        raise PermissionError(13, "Permission denied", "/cache/kernel.cubin")

    assert run_tool(tool, []) == 1
    assert capsys.readouterr().err == (
        "/cache/kernel.cubin:1:1: error: cannot use the file: permission denied\n"
    )


def test_libraries_that_are_not_found(capsys):
    def tool(_):
        raise OSError("Could not find/load shared object file")

    assert run_tool(tool, []) == 1
    assert capsys.readouterr().err == (
        "<command-line>:1:1: error: expected all libraries in place, got: could not find/load "
        "shared object file\n"
    )


@pytest.mark.parametrize("words", ["twofour --version", "twofour run --help", "twofour-opt --help"])
@pytest.mark.parametrize("unbuffered", ["", "1"])
def test_help_that_cannot_be_written(words, unbuffered):
    run = shell(f"PYTHONUNBUFFERED={unbuffered} {words} >/dev/full")
    message = "<stdout>:1:1: error: cannot write the output: no space left on device\n"
    assert (run.returncode, run.stderr) == (1, message)


@pytest.mark.parametrize("unbuffered", ["", "1"])
def test_errors_that_cannot_be_written(unbuffered):
    command = f"PYTHONUNBUFFERED={unbuffered} twofour run none.mlir 2>/dev/full"
    assert shell(command).returncode == 1


def test_standard_error_that_is_closed(tmp_path):
    (tmp_path / "x.mlir").write_text(GENERIC)
    run = shell("twofour-opt x.mlir --canonicalize -o y.mlir 2>&-", tmp_path)
    assert run.returncode == 0 and (tmp_path / "y.mlir").exists()
    (tmp_path / "y.mlir").unlink()
    run = shell("twofour run x.mlir --output x.npy 2>&-", tmp_path)
    assert run.returncode == 0 and run.stdout.startswith("average: 64 points")
    assert np.load(tmp_path / "x.npy").shape == (66,)
    run = shell("twofour run y.mlir 2>&-", tmp_path)
    assert run.returncode == 1 and run.stdout == ""


REPEAT = """func.func @repeat(%n: i64, %u: !f, %v: !f) {
  %t = stencil.load %u : !f -> !t
  %r = stencil.apply(%a = %t : !t, %m = %n : i64) -> (!t) {
    %0 = stencil.access %a[0] : !t
    %1 = arith.sitofp %m : i64 to f64
    %2 = arith.mulf %0, %1 : f64
    stencil.return %2 : f64
  }
  stencil.store %r to %v(<[0], [4]>) : !t to !f
  return
}
""".replace("!f", "!stencil.field<[0,4]xf64>").replace("!t", "!stencil.temp<?xf64>")


def test_reading_the_command_line_needs_no_numpy():
    code = (
        "import sys\n"
        "from twofour.cli.options import parse_arguments\n"
        "parse_arguments(['explain', 'heat2d_ftcs', '--target', 'sm_90'])\n"
        "sys.exit('numpy' in sys.modules)"
    )
    subprocess.run([sys.executable, "-c", code], check=True, timeout=60)


@pytest.mark.parametrize(
    ("module", "word"), [("twofour", "--version"), ("twofour.opt.main", "--version")]
)
def test_versions(module, word):
    run = subprocess.run([sys.executable, "-m", module, word], capture_output=True, text=True)
    assert run.returncode == 0 and run.stdout.endswith(f" {twofour.__version__}\n")


def test_scalars_of_the_command_line(capsys, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "x.mlir").write_text(REPEAT)
    np.save("u.npy", np.arange(4.0))
    words = ["run", "x.mlir", "--input", "u.npy", "--output", "v.npy", "--scalar"]
    assert main([*words, "3"]) == 0
    assert np.load("v.npy").tolist() == [0, 3, 6, 9]
    capsys.readouterr()
    for text in ("3.5", "x", str(2**70)):
        assert main([*words, text]) == 1
        captured = capsys.readouterr()
        assert captured.err == (
            "<command-line>:1:50: error: scalar 0: expected an integer from -9223372036854775808 "
            f"to 9223372036854775807 (i64), got '{text}'\n"
        )
