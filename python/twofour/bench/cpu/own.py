# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The project's own sweeps, as its steppers run them."""

from collections.abc import Sequence

import numpy as np

from twofour.bench.cpu.arrays import Arrays
from twofour.bench.cpu.contest import Sweeper
from twofour.bench.cpu.pinning import pin_pool
from twofour.bench.cpu.workload import Workload
from twofour.options import CompileOptions
from twofour.runtime import parse_boundary
from twofour.runtime.tiles.itinerary import Itinerary, Pair
from twofour.runtime.tiles.runs import Leg
from twofour.targets.cpu.build import compile_cpu
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

    def native(self, steps: int) -> Sweeper:
        """Sweeps of `steps` time steps in native code, in tiles or skewed as the model chooses."""
        programs = self._stepper.plan(self._workload.shape).programs
        # Of fewer axes where some are folded.
        seen = [array.reshape(programs.shape) for array in self._arrays.both]

        def one(array: np.ndarray, other: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
            """The array that `steps` steps from one of the two end in, then the other one."""
            skewed = programs.skewed(steps)
            if skewed is not None:
                return skewed.run(array, steps, None, self._stepper.pool.take), array
            pair = Pair.of(other, array)
            with programs.stages(array, steps, pair) as stages:
                itinerary = Itinerary(stages, array)
                programs.run(itinerary.legs(steps))
            return itinerary.current, pair.beside(itinerary.current)

        def run(sweeps: int) -> np.ndarray:
            if steps == 1:
                # Single steps follow each other in native code, others are runs of their own.
                programs.run([Leg(programs.program(1), *seen, sweeps)])
                return self._arrays.after(sweeps)
            arrays = seen
            for _ in range(sweeps):
                arrays = one(*arrays)
            return arrays[0].reshape(self._workload.shape)

        return self._arrays.sweeper(OWN, run, self._prepare, steps=steps)

    def calls(self, steps: int) -> Sweeper:
        """Calls of `steps` time steps on a NumPy array, each of which returns a new array."""

        def run(sweeps: int) -> np.ndarray:
            array = self._arrays.both[0]
            for _ in range(sweeps):
                array = self._stepper.advance(array, steps)
            return array

        return self._arrays.sweeper(CALL, run, self._prepare, steps=steps)

    def _prepare(self) -> None:
        pin_pool(self._cpus)
