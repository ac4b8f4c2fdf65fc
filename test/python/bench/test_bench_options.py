# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""`twofour bench` with options that it does not take."""

import pytest

from twofour.cli.main import main

BAD = [
    (["tabel2"], "unknown experiment 'tabel2'; did you mean 'table2'?"),
    (["table2", "--kernels", "heat"], "unknown kernel 'heat'"),
    (["table2", "--chip", "V100"], "expected a chip of A100, H100, H200, RTX4090, got 'V100'"),
    (["table2", "--date", "today"], "expected a date YYYY-MM-DD, got 'today'"),
    (["--prepare", "a", "--report", "b"], "not allowed with argument --prepare"),
    (["table2", "--report", "x"], "without --prepare, --measure and --report, got 'table2'"),
    (["--report", "nowhere"], "nowhere/plan.json:1:1: error: cannot read the file"),
    (["table2", "--rounds", "3"], "expected no --rounds with predictions"),
    (["table2", "--device", "cuda:1"], "expected no --device with predictions"),
    (["cpu", "--chip", "H100"], "expected no --chip with cpu"),
    (["--prepare", "x", "--output", "y"], "expected no --output with --prepare"),
    (["--measure", "x", "--kernels", "heat2d_ftcs"], "expected no --kernels with --measure"),
    (["--report", "x", "--date", "2026-11-26"], "expected no --date with --report"),
    (["table2", "cpu"], "expected 'cpu' as the first experiment"),
    (["table2", "--date", "20261126"], "expected a date YYYY-MM-DD, got '20261126'"),
    (["table2", "--date", "2026-13-01"], "expected a date YYYY-MM-DD, got '2026-13-01'"),
    (["table2", "--output="], "expected the name of a folder, got ''"),
    (["--report="], "expected the name of a folder, got ''"),
    (["--prepare="], "expected the name of a folder, got ''"),
    (["cpu", "swep"], "unknown experiment 'swep' of cpu; did you mean 'sweeps'?"),
    (["cpu", "--sizes", "4"], "expected sizes of at least 16, got [4]"),
    (["cpu", "--sizes", "4,x"], "expected numbers with commas between, got '4,x'"),
    (["cpu", "--threads", "4096"], "threads, the processors of this process, got [4096, 4096]"),
    (["cpu", "--rounds", "0"], "expected at least 1 round, got 0"),
    (["cpu", "--kernels", "heat"], "unknown kernel 'heat'"),
    (["cpu", "--report", "x"], "without --prepare, --measure and --report, got 'cpu'"),
]


@pytest.mark.parametrize(("words", "message"), BAD)
def test_bad_options_are_one_line(words, message, capsys):
    assert main(["bench", *words]) == 1
    captured = capsys.readouterr()
    assert message in captured.err and captured.err.count("\n") == 1 and captured.out == ""
