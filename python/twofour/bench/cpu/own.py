# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The project's own sweeps, as its steppers run them."""

from collections.abc import Sequence

import numpy as np

from twofour.bench.cpu.arrays import Arrays
from twofour.bench.cpu.contest import Sweeper
from twofour.bench.cpu.pinning import pin_pool
from twofour.bench.cpu.workload import Workload
from twofour.compiler import compile_cpu
from twofour.options import CompileOptions
from twofour.runtime import parse_boundary
from twofour.runtime.tile_choice import DEPTHS, worth_threads
from twofour.runtime.tile_program import TileProgram
from twofour.runtime.tiled_stepping import WAKING_POINTS
from twofour.runtime.tiles import Geometry
from twofour.targets.cpu.executable import CpuExecutable

OWN, CALL = "twofour", "twofour, a call"


class OwnSweeps:
    """A stencil compiled for arrays with a halo of their own."""

    def __init__(self, workload: Workload, arrays: Arrays, cpus: Sequence[int]):
        self._workload, self._arrays = workload, arrays
        self._cpus = cpus[: workload.threads]
        inside = workload.interior
        boundary = parse_boundary(workload.boundary, len(workload.shape))
        compiled = compile_cpu(workload.kernel, CompileOptions(dtype=workload.dtype))
        self._stepper = CpuExecutable(compiled).linear_stepper(
            boundary, workload.threads, (inside.lower, inside.upper)
        )
        single = self._stepper.single
        self._geometry = Geometry(inside, single.reach_lo, single.reach_hi, boundary)

    def native(self, steps: int) -> Sweeper:
        """Sweeps of `steps` time steps in native code, in the tiles that the model chooses."""
        programs, left = [], steps
        while left:
            program = self._stepper.program(
                self._geometry, self._workload.shape, min(left, DEPTHS[-1])
            )
            programs.append((program, left // program.steps))
            left %= program.steps
        tile_sweeps = sum(count for _, count in programs)

        def run(sweeps: int) -> np.ndarray:
            if len(programs) == 1:
                ((program, count),) = programs
                program.run(
                    *self._arrays.both, count * sweeps, self._threads(program, count * sweeps)
                )
                return self._arrays.after(count * sweeps)
            arrays = list(self._arrays.both)
            for _ in range(sweeps):
                for program, count in programs:
                    program.run(*arrays, count, self._threads(program, count))
                    if count % 2:
                        arrays.reverse()
            return self._arrays.after(tile_sweeps * sweeps)

        return self._arrays.sweeper(OWN, run, self._prepare, steps=steps)

    def calls(self, steps: int) -> Sweeper:
        """Calls of `steps` time steps on a NumPy array, each of which returns a new array."""

        def run(sweeps: int) -> np.ndarray:
            array = self._arrays.both[0]
            for _ in range(sweeps):
                array = self._stepper.advance(array, steps)
            return array

        return self._arrays.sweeper(CALL, run, self._prepare, steps=steps)

    def _threads(self, program: TileProgram, sweeps: int) -> int:
        """As many threads as TiledStepper gives to so much work."""
        work = self._workload.points * program.steps
        waking = max(1, work * sweeps // WAKING_POINTS)
        return min(worth_threads(work, self._workload.threads), waking)

    def _prepare(self) -> None:
        pin_pool(self._cpus)
