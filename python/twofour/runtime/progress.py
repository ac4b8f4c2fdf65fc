# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Progress of a long run on standard error: nothing during the first second."""

import sys
import time
from collections.abc import Callable
from typing import TextIO

QUIET_SECONDS = 1.0
PLAIN_INTERVAL = 2.0  # seconds between two lines where the stream is no terminal
TERMINAL_INTERVAL = 0.1


class Progress:
    """A context that is called as `progress(done, total)` while something runs.

    On a terminal one line is rewritten in place, elsewhere plain lines are written. `unit` names
    what is counted. `clock` returns seconds.
    """

    def __init__(
        self,
        label: str = "running",
        unit: str = "steps",
        stream: TextIO | None = None,
        clock: Callable[[], float] = time.monotonic,
    ):
        self._label = label
        self._unit = unit
        self._stream = sys.stderr if stream is None else stream
        self._clock = clock
        self._terminal = self._stream is not None and self._stream.isatty()
        self._width = 0

    def __enter__(self) -> "Progress":
        self._start = self._clock()
        self._due = self._start + QUIET_SECONDS
        return self

    def __exit__(self, *exception: object) -> None:
        if self._width:
            self._stream.write("\n")
            self._stream.flush()

    def __call__(self, done: int, total: int) -> None:
        """Report that `done` of `total` are done; most calls write nothing."""
        now = self._clock()
        # A line that is on the terminal already is brought to its end.
        if now < self._due and not (self._width and done == total):
            return
        # Standard error is None where it is closed.
        if self._stream is None:
            return
        line = self._line(done, total, now - self._start)
        if self._terminal:
            self._due = now + TERMINAL_INTERVAL
            # Blanks cover what a longer line before this one has left.
            self._stream.write("\r" + line.ljust(self._width))
            self._width = len(line)
        else:
            self._due = now + PLAIN_INTERVAL
            self._stream.write(line + "\n")
        self._stream.flush()

    def _line(self, done: int, total: int, seconds: float) -> str:
        percent = 100 * done // total if total else 100
        rate = done / seconds if seconds else 0.0
        left = _duration((total - done) / rate) if rate else "?"
        return (
            f"{self._label}: {percent:3d}% {done}/{total} {self._unit}, "
            f"{rate:.4g} {self._unit}/s, {left} left"
        )


def _duration(seconds: float) -> str:
    whole = round(seconds)
    hours, minutes = whole // 3600, whole // 60 % 60
    if hours:
        return f"{hours} h {minutes:02d} min"
    return f"{minutes} min {whole % 60:02d} s" if minutes else f"{whole} s"
