# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Child processes that run packages, one each, stopped while others are timed."""

import importlib.util
import json
import os
import select
import signal
import subprocess
import sys
from collections.abc import Callable, Sequence
from pathlib import Path

import numpy as np

from twofour.bench.cpu.contest import ContestantFailed
from twofour.bench.cpu.packages import OPENMP, PACKAGES, Job
from twofour.files import temporary_file

# Imports and compilation, or the calls of a sample, take less, or something hangs.
PATIENCE = 180.0  # seconds
PINNED = {"OMP_WAIT_POLICY": "active", "OMP_PROC_BIND": "true"}


def write_job(folder: Path, job: Job, cpus: Sequence[int]) -> None:
    """The files that workers read."""
    spec = {
        "offsets": job.kernel.offsets,
        "weights": job.kernel.weights,
        "steps": job.steps,
        "threads": job.threads,
        "cpus": list(cpus),
    }
    (folder / "job.json").write_text(json.dumps(spec), "utf-8")
    np.save(folder / "values.npy", job.values)


class Peer:
    """A contestant: a process that runs a package on the job of a folder. A sweep is one call.

    close() ends the process. Raises ContestantFailed where the package is missing, cannot do the
    job, ends, or does not answer within `patience` seconds.
    """

    def __init__(self, package: str, folder: Path, job: Job, patience: float = PATIENCE):
        self.name, self.steps = package, job.steps
        self._folder, self._patience = folder, patience
        needed = PACKAGES[package][1]
        if needed is not None and importlib.util.find_spec(needed) is None:
            raise ContestantFailed(f"not installed: pip install {needed}")
        self._errors = temporary_file()
        self._process = subprocess.Popen(
            [sys.executable, "-m", "twofour.bench.cpu.worker", str(folder), package],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=self._errors,
            env=_environment(package, job.threads),
        )
        self._received = b""
        try:
            self._answer("ready")
        except ContestantFailed:
            self.close()
            raise
        self._stop()

    def result(self) -> np.ndarray:
        """What one call gives, from the values of the job."""
        self._resumed(lambda: self._ask(0))
        return np.load(self._folder / f"{self.name}.npy")

    def sample(self, calls: int) -> float:
        """Seconds of so many calls, by the child's clock, after one more that warms up."""

        def warm() -> float:
            self._ask(1)
            return self._ask(calls)

        return self._resumed(warm)

    def close(self) -> None:
        """End the process."""
        self._process.kill()
        self._process.communicate()
        self._errors.close()

    def _resumed(self, work: Callable[[], float]) -> float:
        """Let the process run for `work` only."""
        self._process.send_signal(signal.SIGCONT)
        try:
            return work()
        finally:
            self._stop()

    def _ask(self, calls: int) -> float:
        try:
            self._process.stdin.write(f"{calls}\n".encode())
            self._process.stdin.flush()
        except OSError:
            raise ContestantFailed(self._last_words()) from None
        return self._answer("seconds")

    def _answer(self, wanted: str) -> float:
        stream = self._process.stdout
        while b"\n" not in self._received:
            if not select.select([stream], [], [], self._patience)[0]:
                raise ContestantFailed(f"no answer within {self._patience:g} s")
            some = os.read(stream.fileno(), 1 << 16)
            if not some:
                raise ContestantFailed(self._last_words())
            self._received += some
        line, _, self._received = self._received.partition(b"\n")
        found = json.loads(line)
        if wanted not in found:
            raise ContestantFailed(found.get("error", "an unexpected answer"))
        return found[wanted]

    def _stop(self) -> None:
        """Return when it has stopped: the next contestant begins at once."""
        if self._process.poll() is None:
            self._process.send_signal(signal.SIGSTOP)
            states = os.WSTOPPED | os.WEXITED | os.WNOWAIT
            os.waitid(os.P_PID, self._process.pid, states)

    def _last_words(self) -> str:
        """How a process ended, by its status and the last line that it printed."""
        status = self._process.wait()
        self._errors.seek(0)
        lines = self._errors.read().decode(errors="replace").split("\n")
        last = next((line.strip() for line in reversed(lines) if line.strip()), "")
        return f"ended with status {status}{': ' if last else ''}{last}"


def _environment(package: str, threads: int) -> dict[str, str]:
    """The variables of a child: so many threads, whatever its package reads for that."""
    kept = {k: v for k, v in os.environ.items() if not k.startswith(("OMP_", "GOMP_"))}
    counts = dict.fromkeys(("OMP_NUM_THREADS", "NUMBA_NUM_THREADS"), str(threads))
    return {**kept, **counts, **(PINNED if package in OPENMP else {})}
