# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Halos refilled on a device: one launch for all halo cells of an array.

A boundary kernel takes a source view, numbers for each axis, slowest first, and a target view of
the same shape. Elements are patterns of `bits` bits. The numbers of an axis are

    mode           i32, a Mode
    lower, upper   index, the interior [lower, upper) on this axis
    value          i`bits`, what the mode CONSTANT fills with

Every cell of the target outside the interior on some axis is written, from the source, as one
refresh axis by axis would leave it (twofour.runtime.boundary.HaloRefresh); nothing else is. The two
views may be the same memory: cells that are written are not read. An axis that is left alone has
its whole extent as the interior. Blocks count the cells that are written, along x.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from enum import IntEnum
from functools import partial
from math import prod

import numpy as np

from twofour.runtime.boundary import AxisBoundary, HaloRefresh, storage_constant
from twofour.runtime.box import Box
from twofour.runtime.devices.device import DeviceKernel
from twofour.runtime.dtypes import ElementType
from twofour.runtime.halos import SLICES, HaloCopy, Halos, Interior, Refresh
from twofour.runtime.manifest import FieldsProgram, LinearProgram, axis_numbers


class Mode(IntEnum):
    """Where a cell outside the interior takes its value from, on one axis."""

    COPY = 0  # the same place
    CONSTANT = 1
    NEAREST = 2
    PERIODIC = 3
    REFLECT = 4


_MODES = {"zero": Mode.CONSTANT} | {mode.name.lower(): mode for mode in Mode}


def halo_kernels(
    program: LinearProgram | FieldsProgram, kernels: Mapping[str, DeviceKernel]
) -> Halos:
    """How the halos of a bundle's program are refreshed on the device of its kernels."""
    return HaloKernels(kernels[name] for name in program.boundary_kernels)


class HaloKernels:
    """Halos refilled by boundary kernels; by slices where none fits the rank and the element."""

    def __init__(self, kernels: Iterable[DeviceKernel]):
        self._kernels = {
            (kernel.spec.rank, kernel.spec.scalars[: len(axis_numbers(0))]): kernel
            for kernel in kernels
        }

    def _find(self, rank: int, element: ElementType) -> DeviceKernel | None:
        return self._kernels.get((rank, axis_numbers(8 * element.itemsize)))

    def refresh(
        self,
        shape: Sequence[int],
        interior: Interior,
        boundary: Sequence[AxisBoundary],
        element: ElementType,
    ) -> Refresh:
        kernel = self._find(len(shape), element)
        if kernel is None:
            return SLICES.refresh(shape, interior, boundary, element)
        return KernelRefresh(kernel, shape, interior, boundary, element)

    def copy(self, cells: Box, interior: Interior, element: ElementType) -> HaloCopy:
        kernel = self._find(len(cells.lower), element)
        if kernel is None:
            return SLICES.copy(cells, interior, element)
        return _KernelCopy(kernel, cells, interior)


class KernelRefresh(HaloRefresh):
    """HaloRefresh by one launch of a boundary kernel; `axes` are the numbers of every axis."""

    def __init__(
        self,
        kernel: DeviceKernel,
        shape: Sequence[int],
        interior: Interior,
        boundary: Sequence[AxisBoundary],
        element: ElementType,
    ):
        super().__init__(shape, interior, boundary, element)
        axes = []
        for extent, lower, upper, entry in zip(shape, *interior, boundary, strict=True):
            if entry.mode == "fixed":
                axes.append((Mode.COPY, 0, extent, 0))
            else:
                axes.append((_MODES[entry.mode], lower, upper, _bits(entry, element)))
        self._kernel, self.axes = kernel, axes

    def bind(self, array: np.ndarray) -> Callable[[], None]:
        return bind_cells(self._kernel, self.axes, array, array)


class _KernelCopy:
    def __init__(self, kernel: DeviceKernel, cells: Box, interior: Interior):
        self._kernel, self._cells = kernel, cells.slices
        self._axes = [
            (Mode.COPY, lower - begin, upper - begin, 0)
            for begin, lower, upper in zip(cells.lower, *interior, strict=True)
        ]

    def bind(self, source: np.ndarray, target: np.ndarray) -> Callable[[], None]:
        return bind_cells(self._kernel, self._axes, source[self._cells], target[self._cells])


def _bits(entry: AxisBoundary, element: ElementType) -> int:
    """What an axis fills with, as a signed number of its bits."""
    value = np.asarray(storage_constant(entry, element))
    return int(value.view(f"i{element.itemsize}"))


def bind_cells(
    kernel: DeviceKernel,
    axes: Sequence[tuple[Mode, int, int, int]],
    source: np.ndarray,
    target: np.ndarray,
) -> Callable[[], None]:
    """Return a callable that writes the cells of `target` outside the interior, from `source`.

    `axes` are the numbers of every axis: mode, lower, upper, value.
    """
    inside = prod(upper - lower for _, lower, upper, _ in axes)
    cells = prod(target.shape) - inside
    covered = (1,) * (len(axes) - 1) + (cells,)
    numbers = [number for axis in axes for number in axis]
    bound = kernel.bind([source], [target], numbers, covered=covered)
    return partial(bound.run, 0, cells)
