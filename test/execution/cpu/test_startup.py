# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""How long the tools take from the start of the process, on nothing but a cold compiler.

What counts is processor time: on an idle machine it is what the clock shows, since one thread
compiles, and on a busy one it does not depend on the others. The clock may show ten times that.
One of several runs has to be within the limit: what else the machine does only ever adds to them.
The limits are for a processor that counts to ten million in COUNTING seconds; slower ones get more.
"""

import os
import subprocess
import sys
import time

import pytest

RUNS = 5
COMPILE_LIMIT = 1.5  # seconds
OPT_LIMIT = 0.4
COUNTING = 0.2


def times_of(command: list[str]) -> tuple[float, float]:
    """Seconds of processor time, and of the clock, of one run."""
    before, started = os.times(), time.perf_counter()
    subprocess.run(command, check=True, stdout=subprocess.DEVNULL, stdin=subprocess.DEVNULL)
    elapsed, after = time.perf_counter() - started, os.times()
    used = after.children_user + after.children_system
    return used - before.children_user - before.children_system, elapsed


def slowness() -> float:
    """How many times slower this processor is now than the one that the limits are for, or 1."""
    counting = [sys.executable, "-c", "for _ in range(10_000_000): pass"]
    return max(1.0, times_of(counting)[0] / COUNTING)


def check_time(command: list[str], limit: float) -> None:
    """Run up to RUNS times, until one run is within the limit, measured beside the yardstick."""
    before, runs = slowness(), []
    for _ in range(RUNS):
        used, clock = times_of(command)
        after = slowness()
        allowed = limit * (before + after) / 2
        if used < allowed and clock < 10 * allowed:
            return
        runs.append(f"{used:.2f} s of processor, {clock:.2f} s by the clock, limit {allowed:.2f} s")
        before = after
    pytest.fail("\n".join([" ".join(command[1:]), *runs]))


# Those that take longest to compile.
@pytest.mark.parametrize("schedule", ["direct", "sparse"])
@pytest.mark.parametrize("kernel", ["yask_3plane_r3", "an5d_box3d2r"])
def test_cold_compile(kernel, schedule):
    command = [sys.executable, "-m", "twofour.cli.main", "run", kernel, "--shape", "8,8,8"]
    check_time([*command, "--steps", "1", "--schedule", schedule], COMPILE_LIMIT)


def test_opt_starts(tmp_path):
    path = tmp_path / "empty.mlir"
    path.write_text("func.func @nothing() {\n  return\n}\n")
    check_time([sys.executable, "-m", "twofour.opt.main", str(path)], OPT_LIMIT)
