# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The simulated device: kernels run in twofour.sim, on NumPy arrays of its memory."""

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from threading import RLock

import numpy as np

from twofour import sim
from twofour.errors import TwofourError
from twofour.runtime.bundle import Bundle
from twofour.runtime.devices.device import DeviceKernel, check_chip
from twofour.runtime.devices.launching import LaunchShape
from twofour.sim.tensor_map import encode
from twofour.tensor_map import TensorMap


@dataclass
class KernelProfile:
    """All launches of one kernel: how many, the points that they wrote, and what they cost."""

    launches: int
    points: int
    counters: sim.Counters


class SimulatedDevice:
    """A GPU of the chip `chip` (such as sm_90), executed on the CPU.

    `profiles` sums up all launches by kernel. Raises TwofourError for a chip that the simulator
    does not know.
    """

    array_module = np
    multiprocessors = None  # nothing is gained by whole waves

    def __init__(self, chip: str):
        self.gpu = sim.Gpu(chip)
        self.name = f"sim:{chip}"
        self.chip = chip
        self.profiles: dict[str, KernelProfile] = {}
        # Buffers of one call belong together, and end with it.
        self.stream = object()
        self._buffers: list[np.ndarray] = []
        self._one_call = RLock()

    def __reduce__(self) -> tuple[type, tuple]:
        """Copies are such devices with memory of their own."""
        return type(self), (self.chip,)

    @contextmanager
    def active(self) -> Iterator[None]:
        """A context for one call: buffers made in it are released at its end.

        Calls of other threads wait.
        """
        with self._one_call:
            kept, self._buffers = self._buffers, []
            self.stream = object()
            try:
                yield
            finally:
                for buffer in self._buffers:
                    self.gpu.memory.release(buffer)
                self._buffers = kept

    def empty(self, shape: Sequence[int], dtype: np.dtype | type) -> np.ndarray:
        return self._kept(self.gpu.memory.empty(shape, dtype))

    def zeros(self, shape: Sequence[int], dtype: np.dtype | type) -> np.ndarray:
        return self._kept(self.gpu.memory.zeros(shape, dtype))

    def array(self, values: np.ndarray) -> np.ndarray:
        return self._kept(self.gpu.memory.array(values))

    def _kept(self, buffer: np.ndarray) -> np.ndarray:
        self._buffers.append(buffer)
        return buffer

    def result(self, buffer: np.ndarray) -> np.ndarray:
        # What callers keep should not keep simulated memory.
        return np.array(buffer)

    def record(self, calls: Callable[[], None]) -> None:
        """Recording would save nothing."""
        return None

    def synchronize(self) -> None:
        """Launches have ended when their calls return."""

    def address(self, array: np.ndarray) -> int:
        return array.__array_interface__["data"][0]

    def holds(self, array: np.ndarray) -> bool:
        return self.gpu.memory.find(self.address(array)) is not None

    def encoded(self, tensor: TensorMap) -> bytes:
        return encode(tensor)

    def load(self, bundle: Bundle) -> dict[str, DeviceKernel]:
        """Read the PTX of a bundle; launches say what of it the simulator does not know."""
        check_chip(bundle.target, int(self.chip.removeprefix("sm_").rstrip("af")), self.name)
        name = f"{bundle.program.name}.ptx"
        module = sim.read(bundle.ptx, name=name)
        missing = sorted(bundle.kernels.keys() - module.kernels.keys())
        if missing:
            raise TwofourError(f"expected PTX with an entry {missing[0]}, got none of that name")
        return {
            spec.name: DeviceKernel(self, spec, module.kernels[spec.name])
            for spec in bundle.kernels.values()
        }

    def launch(self, code: "sim.Kernel", shape: LaunchShape, parameters: Sequence) -> None:
        done = self.gpu.launch(
            code,
            grid=(shape.blocks, 1, 1),
            block=(shape.threads, 1, 1),
            arguments=list(parameters),
            shared_bytes=shape.shared_bytes,
        )
        profile = self.profiles.get(code.name)
        if profile is None:
            self.profiles[code.name] = KernelProfile(1, shape.points, done.counters)
        else:
            profile.launches += 1
            profile.points += shape.points
            profile.counters += done.counters
