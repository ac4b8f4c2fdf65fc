# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""How long the tools take from the start of the process, on nothing but a cold compiler.

Times are the best of several runs: what else the machine does only ever adds to them.
"""

import subprocess
import sys
import time

import pytest

RUNS = 5
COMPILE_LIMIT = 1.5  # seconds
OPT_LIMIT = 0.4


def best_time(command: list[str], limit: float) -> list[float]:
    """The seconds that runs took, the last one within the limit unless all RUNS are beyond it."""
    times: list[float] = []
    while len(times) < RUNS and (not times or times[-1] >= limit):
        started = time.perf_counter()
        subprocess.run(command, check=True, stdout=subprocess.DEVNULL, stdin=subprocess.DEVNULL)
        times.append(time.perf_counter() - started)
    return times


# Those that take longest to compile: many terms or many rows, and both routes.
@pytest.mark.parametrize("schedule", ["direct", "sparse"])
@pytest.mark.parametrize(
    "kernel", ["yask_3plane_r3", "an5d_box3d2r", "pfc2d_isotropic49", "tti2d_gzz_o8"]
)
def test_cold_compile(kernel, schedule):
    shape = "8,8,8" if kernel in ("yask_3plane_r3", "an5d_box3d2r") else "16,16"
    command = [sys.executable, "-m", "twofour.cli.main", "run", kernel, "--shape", shape]
    times = best_time([*command, "--steps", "1", "--schedule", schedule], COMPILE_LIMIT)
    assert min(times) < COMPILE_LIMIT, f"{kernel}: best of {RUNS} runs {min(times):.2f} s"


def test_opt_starts(tmp_path):
    path = tmp_path / "empty.mlir"
    path.write_text("func.func @nothing() {\n  return\n}\n")
    times = best_time([sys.executable, "-m", "twofour.opt.main", str(path)], OPT_LIMIT)
    assert min(times) < OPT_LIMIT, f"twofour-opt: best of {RUNS} runs {min(times):.2f} s"
