# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Local memory: bytes that each thread has for itself."""

import numpy as np

from twofour.sim.machine import Machine
from twofour.sim.memory import UNSIGNED
from twofour.sim.ptx import Instruction


class LocalSpace:
    """`size` bytes for every lane of the batch."""

    def __init__(self, machine: Machine, size: int):
        self.machine = machine
        self.size = size
        self.stride = -(-size // 32) * 32
        self.bytes = np.zeros(machine.lanes * self.stride, np.uint8)
        self._defined = np.zeros(self.bytes.size, bool)

    def clear(self) -> None:
        self._defined[:] = False

    def _locate(
        self, instruction: Instruction, offsets: np.ndarray, lanes: np.ndarray | None, size: int
    ) -> np.ndarray:
        self.machine.check_offsets(instruction, offsets, lanes, size, "local", self.size)
        everyone = np.arange(self.machine.lanes) if lanes is None else lanes
        return (everyone * self.stride + offsets) // size

    def _rows(self, element: int, count: int) -> np.ndarray:
        view = self.bytes.view(UNSIGNED[element])
        return view.reshape(-1, count) if count > 1 else view

    def load(
        self,
        instruction: Instruction,
        offsets: np.ndarray,
        lanes: np.ndarray | None,
        element: int,
        count: int,
    ) -> np.ndarray:
        """[n] or [n, count] unsigned elements, after the checks."""
        size = element * count
        rows = self._locate(instruction, offsets, lanes, size)
        missing = ~self._defined.reshape(-1, size)[rows].all(axis=1)
        if missing.any():
            message = f"{size} bytes of local memory that the thread has not written"
            index = int(np.flatnonzero(missing)[0])
            self.machine.fault_of(instruction, "uninitialised read", message, lanes, index, offsets)
        return self._rows(element, count)[rows]

    def store(
        self,
        instruction: Instruction,
        offsets: np.ndarray,
        lanes: np.ndarray | None,
        values: np.ndarray,
        element: int,
        count: int,
    ) -> None:
        """Write [n] or [n, count] unsigned elements, after the checks."""
        size = element * count
        rows = self._locate(instruction, offsets, lanes, size)
        self._rows(element, count)[rows] = values
        self._defined.reshape(-1, size)[rows] = True
