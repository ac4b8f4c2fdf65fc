# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Many single steps of a domain in two arrays of the runtime's own, which hold its halo.

The first step reads the caller's array, the last one writes the result; those between go from one
of the two arrays to the other. Interior rows begin on cache lines there.
"""

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager

import numpy as np

from twofour.runtime.boundary import AxisBoundary, cells, storage_constant
from twofour.runtime.dtypes import ElementType
from twofour.runtime.page_offset import CACHE_LINE, empty_at, fresh_bytes, page_offset, spread_row
from twofour.runtime.tiles.cells import Kind, pieces
from twofour.runtime.tiles.itinerary import Pair, Stage
from twofour.runtime.tiles.program import TileProgram
from twofour.runtime.tiles.steps import Geometry, Layout


def resident_layout(geometry: Geometry, itemsize: int) -> Layout:
    """An array of the interior and its halo, rows of which share few sets of a cache."""
    box = geometry.read_by(geometry.interior)
    return Layout((*box.shape[:-1], spread_row(box.shape[-1], itemsize)), box.lower, halo=True)


class Residence:
    """The programs of such steps, for arrays of `shape`: to `enter`, stay `inside` and `leave`.

    `program` makes that from one layout to another. `take(n)` gives n bytes for an array.
    """

    def __init__(
        self,
        program: Callable[[tuple[Layout, Layout]], TileProgram],
        geometry: Geometry,
        shape: tuple[int, ...],
        element: ElementType,
        take: Callable[[int], np.ndarray] = fresh_bytes,
    ):
        outside, inside = Layout.of_domain(shape), resident_layout(geometry, element.itemsize)
        self.enter = program((outside, inside))
        self.inside = program((inside, inside))
        self.leave = program((inside, outside))
        self._layout, self._dtype, self._take = inside, element.storage, take
        # Bytes from the begin of an array to its first interior row.
        self._lead = inside.offset(geometry.interior.lower) * element.itemsize
        self._rims = list(_rims(geometry, inside))
        self._constants = list(_constants(geometry, inside, element))
        self._idle: list[tuple[np.ndarray, np.ndarray]] = []

    def stages(self, steps: int, pair: Pair, result: Pair) -> list[Stage]:
        """So many steps, two at least, in a pair of such arrays and from there to a result."""
        stages = [
            Stage(self.enter, 1, pair),
            Stage(self.inside, steps - 2, pair),
            Stage(self.leave, 1, result),
        ]
        return [stage for stage in stages if stage.sweeps]

    @contextmanager
    def lent(self, u: np.ndarray) -> Iterator[tuple[np.ndarray, np.ndarray]]:
        """The two arrays for one run, with what never changes of the halo of `u`."""
        arrays = self.take(u)
        yield arrays
        # Not after a failure, when threads may still write them.
        self.give_back(arrays)

    def take(self, u: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """As `lent`, until they are given back."""
        try:
            arrays = self._idle.pop()
        except IndexError:
            arrays = self._make()
        for target, source in self._rims:
            for array in arrays:
                array[target] = u[source]
        return arrays

    def give_back(self, arrays: tuple[np.ndarray, np.ndarray]) -> None:
        """Let another run have the arrays."""
        if not self._idle:
            self._idle.append(arrays)

    def _make(self) -> tuple[np.ndarray, np.ndarray]:
        shape = self._layout.shape
        first = empty_at(-self._lead % CACHE_LINE, shape, self._dtype, self._take)
        beside = first.ctypes.data + page_offset(first.strides[:-1])
        second = empty_at(beside, shape, self._dtype, self._take)
        for target, value in self._constants:
            first[target] = second[target] = value
        return first, second


def _rims(geometry: Geometry, layout: Layout) -> Iterator[tuple[Sequence, Sequence]]:
    """Where parts of the rim lie that keep their values, and where these are in `u`."""
    box = geometry.interior
    for piece in pieces(geometry.read_by(box), box, geometry.boundary):
        if piece.kind is Kind.RIM:
            runs = zip(piece.source, piece.steps, piece.target.shape, strict=True)
            target = piece.target.relative_to(layout.origin).slices
            yield target, tuple(cells(*run) for run in runs)


def _constants(
    geometry: Geometry, layout: Layout, element: ElementType
) -> Iterator[tuple[Sequence, np.generic]]:
    """Where parts of the halo lie that are constant, and their values."""
    box = geometry.interior
    for piece in pieces(geometry.read_by(box), box, geometry.boundary):
        if piece.kind is Kind.CONSTANT:
            value = storage_constant(AxisBoundary("constant", piece.value), element)
            yield piece.target.relative_to(layout.origin).slices, value
