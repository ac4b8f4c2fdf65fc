# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""How halos are refilled between sweeps: what steppers ask for, and slice copies that do it."""

from collections.abc import Callable, Sequence
from functools import partial
from typing import Protocol

import numpy as np

from twofour.runtime.boundary import AxisBoundary, HaloRefresh
from twofour.runtime.box import Box, around
from twofour.runtime.dtypes import ElementType

# (lower, upper), the index tuples of a half-open box.
Interior = tuple[Sequence[int], Sequence[int]]


class Refresh(Protocol):
    """What refills the halos of arrays of one shape; see HaloRefresh."""

    empty: bool

    def bind(self, array: np.ndarray) -> Callable[[], None]: ...

    def __call__(self, array: np.ndarray) -> None: ...


class HaloCopy(Protocol):
    """What copies cells of a box outside of the interior, between arrays of one shape."""

    def bind(self, source: np.ndarray, target: np.ndarray) -> Callable[[], None]: ...


class Halos(Protocol):
    """A way to refill halos: `refresh` is called as HaloRefresh is, and does what that does."""

    def refresh(
        self,
        shape: Sequence[int],
        interior: Interior,
        boundary: Sequence[AxisBoundary],
        element: ElementType,
    ) -> Refresh: ...

    def copy(self, cells: Box, interior: Interior, element: ElementType) -> HaloCopy: ...


class HaloSlices:
    """Halos refilled by assignments of slices, several to each axis."""

    def refresh(
        self,
        shape: Sequence[int],
        interior: Interior,
        boundary: Sequence[AxisBoundary],
        element: ElementType,
    ) -> HaloRefresh:
        return HaloRefresh(shape, interior, boundary, element)

    def copy(self, cells: Box, interior: Interior, element: ElementType) -> HaloCopy:
        return _SliceCopy(cells, interior)


class _SliceCopy:
    def __init__(self, cells: Box, interior: Interior):
        self.boxes = around(cells, Box(*map(tuple, interior)))

    def bind(self, source: np.ndarray, target: np.ndarray) -> Callable[[], None]:
        return partial(_copy, self.boxes, source, target)


def _copy(boxes: Sequence[Box], source: np.ndarray, target: np.ndarray) -> None:
    for box in boxes:
        target[box.slices] = source[box.slices]


SLICES = HaloSlices()
