# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""`twofour run` and `twofour kernels`: what they print and write."""

import json
import re

import numpy as np
import pytest

from twofour.cli.main import main
from twofour.kernels import built_in_kernels

HEAT = {(0, 0): 0.5, (0, 1): 0.125, (0, -1): 0.125, (1, 0): 0.125, (-1, 0): 0.125}


def rolled(u: np.ndarray, steps: int) -> np.ndarray:
    for _ in range(steps):
        u = sum(w * np.roll(u, (-i, -j), (0, 1)) for (i, j), w in HEAT.items())
    return u


def test_run_reports_one_line_and_writes_the_result(capsys, tmp_path):
    u = np.random.default_rng(0).random((20, 33))
    np.save(tmp_path / "u.npy", u)
    words = ["run", "heat2d_ftcs", "--dtype", "f64", "--boundary", "periodic", "--steps", "7"]
    words += ["--input", str(tmp_path / "u.npy"), "--output", str(tmp_path / "v.npy")]
    assert main(words) == 0
    captured = capsys.readouterr()
    assert re.fullmatch(
        r"heat2d_ftcs: 660 points x 7 steps in \S+ s, \S+ GStencil/s "
        r"\(direct, f64, \d+ threads?\)\n",
        captured.out,
    )
    assert captured.err == ""
    np.testing.assert_allclose(np.load(tmp_path / "v.npy"), rolled(u, 7), rtol=1e-13)
    assert sorted(p.name for p in tmp_path.iterdir()) == ["u.npy", "v.npy"]


def test_plot_is_a_png(capsys, tmp_path):
    pytest.importorskip("matplotlib")
    picture = tmp_path / "u.png"
    words = ["run", "heat2d_ftcs", "--shape", "32,48", "--steps", "2", "--plot", str(picture)]
    assert main(words) == 0
    assert picture.read_bytes().startswith(b"\x89PNG\r\n")


def test_long_runs_show_progress(capsys):
    words = ["run", "heat2d_ftcs", "--shape", "700,700", "--steps", "12000", "--threads", "1"]
    assert main(words) == 0
    captured = capsys.readouterr()
    seconds = float(re.search(r" in (\S+) s", captured.out)[1])
    assert ("%" in captured.err) == (seconds > 1)


def test_kernels_lists_all_with_their_sources(capsys):
    assert main(["kernels"]) == 0
    listed = [line.split()[0] for line in capsys.readouterr().out.splitlines()[1:]]
    assert listed == list(built_in_kernels()) and len(listed) == 79
    assert main(["kernels", "sobel5x5_x"]) == 0
    text = capsys.readouterr().out
    assert built_in_kernels()["sobel5x5_x"].source in text
    assert main(["kernels", "--json"]) == 0
    assert [entry["name"] for entry in json.loads(capsys.readouterr().out)] == listed
