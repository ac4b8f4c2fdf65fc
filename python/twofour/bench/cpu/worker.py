# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""A child process that runs one package: `python -m twofour.bench.cpu.worker FOLDER PACKAGE`.

The folder holds job.json and values.npy. On the standard output it was given it says, a JSON object
a line, `{"ready": 0}` or `{"error": "..."}`; then, for each number read from standard input, it
makes so many calls and says `{"seconds": ...}` of them all; 0 stands for one call whose result goes
to PACKAGE.npy. What packages print goes to standard error.
"""

import ctypes
import json
import os
import signal
import sys
import time
from pathlib import Path

import numpy as np

from twofour.bench.cpu.packages import OWN, PACKAGES, Job
from twofour.kernels import Kernel

PR_SET_PDEATHSIG = 1


def main(folder: str, package: str) -> None:
    """Answer until standard input ends."""
    _end_with_parent()
    answers = os.fdopen(os.dup(1), "w", buffering=1)
    os.dup2(2, 1)

    def answer(**values: float | str) -> None:
        answers.write(json.dumps(values) + "\n")

    try:
        spec = json.loads(Path(folder, "job.json").read_text("utf-8"))
        if hasattr(os, "sched_setaffinity"):
            # Before the package is imported: it counts processors then.
            os.sched_setaffinity(0, spec["cpus"])
        offsets = tuple(map(tuple, spec["offsets"]))
        kernel = Kernel("job", offsets, tuple(spec["weights"]))
        values = np.load(Path(folder, "values.npy"))
        job = Job(kernel, values, spec["steps"], spec["threads"])
        call = PACKAGES[package][0](job)
        answer(ready=0)
        for line in sys.stdin:
            calls = int(line)
            if package == OWN:
                from twofour.bench.cpu.pinning import pin_pool

                pin_pool(spec["cpus"])
            started = time.perf_counter()
            for _ in range(max(1, calls)):
                result = call()
            seconds = time.perf_counter() - started
            if calls == 0:
                np.save(Path(folder, f"{package}.npy"), np.asarray(result))
            answer(seconds=seconds)
    except Exception as failure:
        # Packages raise what they like; the parent names it.
        text = " ".join(str(failure).split())
        answer(error=f"{type(failure).__name__}: {text}" if text else type(failure).__name__)


def _end_with_parent() -> None:
    """A stopped process would never notice that nobody is there to wake it up."""
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, signal.SIGKILL)


if __name__ == "__main__":
    main(*sys.argv[1:])
