# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""C compiled by gcc and loaded into this process."""

import ctypes
import os
import shutil
import subprocess
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

import numpy as np

from twofour.bench.cpu.arrays import Arrays
from twofour.bench.cpu.c_source import ACCUMULATORS, ceilings_source, sweep_source
from twofour.bench.cpu.contest import Sweeper
from twofour.bench.cpu.workload import NUMPY, Workload
from twofour.errors import TwofourError
from twofour.files import WRITE, system_errors, temporary_folder

GCC = "gcc"
FLAGS = ("-O3", "-march=native", "-ffast-math", "-fopenmp")
# A loop that copies is to stay one: memcpy chooses its own kind of stores.
CEILING_FLAGS = (
    "-O3",
    "-march=native",
    "-ffp-contract=fast",
    "-fno-tree-loop-distribute-patterns",
    "-fopenmp",
)
PEAK_ROUNDS = 1 << 14  # of one run: some 50 microseconds
COPY, COPY_STREAM, PEAK = "copy", "non-temporal copy", "multiply-add peak"


def gcc_version() -> str | None:
    """What gcc says of itself, None where there is none."""
    if shutil.which(GCC) is None:
        return None
    words = [GCC, "-dumpfullversion"]
    return subprocess.run(words, capture_output=True, text=True, check=False).stdout.strip()


def build(source: str, flags: Sequence[str] = FLAGS) -> ctypes.CDLL:
    """Compile and load C; raises TwofourError where gcc refuses it or is not there."""
    if shutil.which(GCC) is None:
        raise TwofourError("expected gcc, got no such command")
    with temporary_folder() as folder:
        path = folder / "code.c"
        with system_errors(WRITE, path):
            path.write_text(source, "utf-8")
        # Linked without -ffast-math: with it, loading would switch subnormals off in this process.
        _run([GCC, *flags, "-fPIC", "-c", "code.c", "-o", "code.o"], folder)
        _run([GCC, "-fopenmp", "-shared", "code.o", "-o", "code.so"], folder)
        with _openmp_settings():
            return ctypes.CDLL(str(path.with_suffix(".so")))


def _run(command: list[str], folder: Path) -> None:
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False)
    if done.returncode:
        first = next((line for line in done.stderr.splitlines() if "error" in line), done.stderr)
        raise TwofourError(f"expected gcc to compile the baseline, got: {first.strip()}")


@contextmanager
def _openmp_settings() -> Iterator[None]:
    """The settings that OpenMP's library reads when it is loaded: threads spin, and may move.

    What users have set for other programs would tie threads to processors.
    """
    ours = [name for name in os.environ if name.startswith(("OMP_", "GOMP_"))]
    before = {name: os.environ.pop(name) for name in ours}
    os.environ["OMP_WAIT_POLICY"] = "active"
    try:
        yield
    finally:
        del os.environ["OMP_WAIT_POLICY"]
        os.environ.update(before)


class PinnedThreads:
    """`prepare` and `rest` of a library, for threads on `cpus`."""

    def __init__(self, library: ctypes.CDLL, cpus: Sequence[int]):
        self._library = library
        self._cpus = (ctypes.c_int * len(cpus))(*cpus)

    def prepare(self) -> None:
        self._library.prepare(self._cpus, len(self._cpus))

    def rest(self) -> None:
        self._library.rest()


def gcc_sweeps(workload: Workload, arrays: Arrays, cpus: Sequence[int], steps: int) -> Sweeper:
    """The plain loops by gcc; a sweep is `steps` single steps in one parallel region."""
    library = build(sweep_source(workload))
    pointer, number = ctypes.c_void_p, ctypes.c_long
    library.run.argtypes = [pointer, pointer, number, ctypes.c_int]
    library.run.restype = None
    first, second = (array.ctypes.data for array in arrays.both)

    def run(sweeps: int) -> np.ndarray:
        library.run(first, second, sweeps * steps, workload.threads)
        return arrays.after(sweeps * steps)

    threads = PinnedThreads(library, cpus[: workload.threads])
    return arrays.sweeper(GCC, run, threads.prepare, threads.rest, steps)


class Ceilings:
    """What the machine can do at most: copies, and multiply-adds in registers.

    Raises TwofourError where they cannot be compiled.
    """

    def __init__(self):
        self._library = library = build(ceilings_source(), CEILING_FLAGS)
        pointer, number = ctypes.c_void_p, ctypes.c_long
        for name in ("copy", "copy_stream"):
            function = getattr(library, name)
            function.argtypes = [pointer, pointer, number, number, ctypes.c_int]
            function.restype = None
        for dtype, kind in (("f64", ctypes.c_double), ("f32", ctypes.c_float)):
            function = getattr(library, f"peak_{dtype}")
            function.argtypes, function.restype = [number, ctypes.c_int], kind
        self.vector_bytes: int = library.vector_bytes()

    def contestants(
        self, arrays: Arrays, dtype: str, threads: int, cpus: Sequence[int]
    ) -> list[Sweeper]:
        """Copies of the arrays, and the peak of a type; without non-temporal stores two of them."""
        names = {COPY: "copy"}
        if self._library.has_streams():
            names[COPY_STREAM] = "copy_stream"
        used = PinnedThreads(self._library, cpus[:threads])
        found = [
            arrays.sweeper(name, self._copy(function, arrays, threads), used.prepare, used.rest)
            for name, function in names.items()
        ]
        return [*found, self.peak(dtype, threads, cpus)]

    def peak(self, dtype: str, threads: int, cpus: Sequence[int]) -> Sweeper:
        """Multiply-adds in registers; a sweep is PEAK_ROUNDS of them."""
        function = getattr(self._library, f"peak_{dtype}")
        used = PinnedThreads(self._library, cpus[:threads])

        def run(sweeps: int) -> None:
            function(sweeps * PEAK_ROUNDS, threads)

        return Sweeper(PEAK, run, lambda: None, used.prepare, used.rest)

    def peak_flops(self, dtype: str, threads: int) -> int:
        """Floating-point operations of a sweep of `peak`."""
        lanes = self.vector_bytes // NUMPY[dtype].itemsize
        return 2 * PEAK_ROUNDS * ACCUMULATORS * lanes * threads

    def _copy(self, name: str, arrays: Arrays, threads: int) -> Callable[[int], None]:
        function = getattr(self._library, name)
        first, second = (array.ctypes.data for array in arrays.both)
        size = arrays.both[0].nbytes

        def run(sweeps: int) -> None:
            function(first, second, size, sweeps, threads)

        return run
