# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Progress lines: silent for short runs, one line on a terminal, plain lines elsewhere."""

import io

from twofour.runtime import Progress


class Terminal(io.StringIO):
    def isatty(self):
        return True


def run(stream, total, step_seconds):
    now = [0.0]
    with Progress(stream=stream, clock=lambda: now[0]) as progress:
        for done in range(1, total + 1):
            now[0] += step_seconds
            progress(done, total)
    return stream.getvalue()


def test_short_runs_are_silent():
    assert run(io.StringIO(), 9, 0.1) == ""
    assert run(Terminal(), 9, 0.1) == ""


def test_plain_lines_at_most_every_two_seconds():
    lines = run(io.StringIO(), 40, 0.25).splitlines()
    assert lines[0] == "running:  10% 4/40 steps, 4 steps/s, 9 s left"
    assert len(lines) == 5
    assert not any("\r" in line for line in lines)


def test_a_terminal_line_is_rewritten():
    text = run(Terminal(), 2000, 0.25)
    assert text.endswith("\n") and text.count("\n") == 1
    states = text.rstrip("\n").split("\r")
    assert states[0] == "" and len(states) > 1000
    assert states[1].startswith("running:   0% 4/2000 steps, 4 steps/s, 8 min 19 s left")
    assert states[-1].startswith("running: 100% 2000/2000 steps, 4 steps/s, 0 s left")
    widths = [len(state.rstrip()) for state in states]
    for state, width in zip(states[1:], widths, strict=False):
        assert len(state) >= width


def test_the_last_state_stays_on_the_terminal():
    text = run(Terminal(), 250, 0.01)
    assert text.split("\r")[-1].startswith("running: 100% 250/250 steps")
    assert text.count("\r") < 20


def test_hours():
    line = run(io.StringIO(), 100, 100.0).splitlines()[0]
    assert line.endswith("2 h 45 min left")
