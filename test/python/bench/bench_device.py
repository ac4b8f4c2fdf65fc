# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""A simulated device with as much of CuPy as baselines ask for, and a clock that tells who ran.

RawKernel compiles by nvcc and executes the PTX in the simulator.
"""

import ctypes
import shutil
import subprocess
import tempfile
from pathlib import Path
from types import SimpleNamespace

import numpy as np

from twofour import sim
from twofour.bench.measured import baselines
from twofour.bench.measured.measurements import read_results
from twofour.bench.measured.plan import load_plan
from twofour.bench.measured.session import measure
from twofour.runtime.devices.simulated import SimulatedDevice

NVCC = shutil.which("nvcc")
CHIP = "sm_90"
ROUNDS = 3


class Module:
    """NumPy with `cuda.runtime` and RawKernel of CuPy."""

    def __init__(self, device):
        self.cuda = SimpleNamespace(
            runtime=SimpleNamespace(memcpyAsync=_copy, driverGetVersion=lambda: 13000)
        )
        self.RawKernel = lambda text, name, options: _RawKernel(device, text, name, options)

    def __getattr__(self, name):
        return getattr(np, name)


class BenchDevice(SimulatedDevice):
    def __init__(self):
        super().__init__(CHIP)
        self.array_module = Module(self)


class TickingClock:
    """Runs what it times, and says that it took as many seconds as sweeps were made."""

    def __init__(self):
        self.swept = []
        self.timed = []

    def seconds(self, work):
        self.swept.clear()
        work()
        self.timed.append(tuple(self.swept))
        return float(len(self.swept)) or 1.0


def run(folder, makers=None, rounds=ROUNDS):
    """Measure a plan; how many groups were measured, and the clock."""
    device, clock = BenchDevice(), TickingClock()
    with device.active():
        done = measure(folder, device, clock, makers or {"copy": baselines.copy}, rounds)
    return done, clock


def results(folder):
    """What was measured."""
    return read_results(folder, load_plan(folder))


class _RawKernel:
    def __init__(self, device, text, name, options):
        self._device = device
        with tempfile.TemporaryDirectory() as folder:
            source, target = Path(folder, "kernel.cu"), Path(folder, "kernel.ptx")
            source.write_text(text)
            command = [NVCC, f"-arch={CHIP}", "-ptx", *options, "-o", target, source]
            subprocess.run(command, check=True, capture_output=True)
            self._kernel = sim.parse(target.read_text(), name=f"{name}.ptx").kernels[name]

    def __call__(self, grid, block, arguments):
        self._device.gpu.launch(self._kernel, grid=grid, block=block, arguments=list(arguments))


def _copy(target, source, size, kind, stream):
    assert kind == 3
    ctypes.memmove(target, source, size)
