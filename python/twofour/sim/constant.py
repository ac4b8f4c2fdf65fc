# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Constant memory: the same bytes for every thread."""

import numpy as np

from twofour.sim.machine import Machine
from twofour.sim.memory import UNSIGNED
from twofour.sim.ptx import Instruction


class ConstantSpace:
    """The constant memory of a module; `data` is padded to a multiple of 32 bytes."""

    def __init__(self, machine: Machine, data: np.ndarray):
        self.machine = machine
        self.data = data

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
        self.machine.check_offsets(instruction, offsets, lanes, size, "constant", self.data.size)
        view = self.data.view(UNSIGNED[element])
        rows = view.reshape(-1, count) if count > 1 else view
        return rows[offsets // size]
