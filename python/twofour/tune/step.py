# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""What is to be tuned."""

from dataclasses import dataclass

from twofour.analysis import LinearSweep
from twofour.cost import GpuModel
from twofour.cost.explore import reference_gpu


@dataclass(frozen=True)
class Step:
    """A step on an output of `shape`: `sweep`, which may fuse several of `single`."""

    sweep: LinearSweep
    single: LinearSweep
    element: str
    arithmetic: str
    gpu: GpuModel
    shape: tuple[int, ...]

    @property
    def reference(self) -> GpuModel:
        """The chip that the compiler lays out for."""
        return reference_gpu(self.gpu.architecture)
