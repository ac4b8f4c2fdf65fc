# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Many single steps of a domain in two arrays of the runtime's own, which hold its halo.

The first step reads the caller's array, the last one writes the result; those between go from one
of the two arrays to the other. Interior rows begin on cache lines there.
"""

from collections.abc import Callable, Iterator

import numpy as np

from twofour.runtime.boundary import AxisBoundary, cells, storage_constant
from twofour.runtime.buffer_pool import BufferPool
from twofour.runtime.cells import Kind, pieces
from twofour.runtime.dtypes import ElementType
from twofour.runtime.page_offset import CACHE_LINE, empty_at, page_offset, spread_row
from twofour.runtime.tile_program import TileProgram
from twofour.runtime.tiles import Geometry, Layout


def resident_layout(geometry: Geometry, itemsize: int) -> Layout:
    """An array of the interior and its halo, rows of which share few sets of a cache."""
    box = geometry.read_by(geometry.interior)
    return Layout((*box.shape[:-1], spread_row(box.shape[-1], itemsize)), box.lower, halo=True)


class Residence:
    """The programs of such steps, for arrays of `shape`: to `enter`, stay `inside` and `leave`.

    `program` makes that from one layout to another.
    """

    def __init__(
        self,
        program: Callable[[tuple[Layout, Layout]], TileProgram],
        geometry: Geometry,
        shape: tuple[int, ...],
        element: ElementType,
    ):
        outside, inside = Layout.of_domain(shape), resident_layout(geometry, element.itemsize)
        self.enter = program((outside, inside))
        self.inside = program((inside, inside))
        self.leave = program((inside, outside))
        self._layout, self._dtype = inside, element.storage
        # Bytes from the begin of an array to its first interior row.
        self._lead = inside.offset(geometry.interior.lower) * element.itemsize
        self._pool = BufferPool(most=2)
        self._kept = list(_kept(geometry, inside, element))

    def arrays(self, u: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """The two arrays, with what never changes of the halo of `u`."""
        shape = self._layout.shape
        first = empty_at(-self._lead % CACHE_LINE, shape, self._dtype, self._pool.take)
        beside = first.ctypes.data + page_offset(first.strides[:-1])
        second = empty_at(beside, shape, self._dtype, self._pool.take)
        for target, source, value in self._kept:
            for array in (first, second):
                array[target] = value if source is None else u[source]
        return first, second


def _kept(geometry: Geometry, layout: Layout, element: ElementType) -> Iterator[tuple]:
    """What never changes of the halo: where it lies, and either its place in `u` or a number."""
    box = geometry.interior
    for piece in pieces(geometry.read_by(box), box, geometry.boundary):
        target = piece.target.relative_to(layout.origin).slices
        if piece.kind is Kind.RIM:
            runs = zip(piece.source, piece.steps, piece.target.shape, strict=True)
            yield target, tuple(cells(*run) for run in runs), None
        elif piece.kind is Kind.CONSTANT:
            yield target, None, storage_constant(AxisBoundary("constant", piece.value), element)
