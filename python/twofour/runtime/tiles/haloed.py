# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Tiles of one step between arrays that hold the halo which a step reads.

A sweep of such an array reads the halo where it lies: nothing is gathered, not even at the ends of
rows. Each tile then writes the images of its own cells to the halo of the target. Hence tiles need
nothing of each other, and all the halo is there when all tiles are done. Rims of `fixed` axes and
constants never change, and are there from the begin.
"""

from collections.abc import Iterator

from twofour.runtime.box import Box
from twofour.runtime.tiles.cells import Kind, Piece, pieces
from twofour.runtime.tiles.steps import TARGET, Action, Cells, Copy, Geometry, Layout, TileSteps


class HaloedSteps(TileSteps):
    """What one tile does in one step from and to arrays that hold their halo, or one that does."""

    def __init__(self, geometry: Geometry, box: Box, source: Layout, target: Layout):
        self._reads_halo, self._writes_halo = source.halo, target.halo
        super().__init__(geometry, box, 1, lambda points: points)

    def _in_order(self) -> Iterator[Action]:
        yield from super()._in_order()
        if self._writes_halo:
            yield from self._images()

    def _free_of_halo(self) -> Box:
        return self._geometry.interior if self._reads_halo else super()._free_of_halo()

    def _images(self) -> Iterator[Copy]:
        """The halo cells that are images of the tile's own."""
        g = self._geometry
        for piece in pieces(g.read_by(g.interior), g.interior, g.boundary):
            if piece.kind is Kind.IMAGE and (image := _image_of(piece, self._box)):
                yield image


def _image_of(piece: Piece, box: Box) -> Copy | None:
    """The part of a piece that is an image of a box, None where there is no such part."""
    lower, source, shape = [], [], []
    limits = zip(piece.target.lower, piece.source, piece.steps, piece.target.shape, strict=True)
    for (begin, first, step, count), least, most in zip(limits, box.lower, box.upper, strict=True):
        inside = [at for at in range(count) if least <= first + at * step < most]
        if not inside:
            return None
        lower.append(begin + inside[0])
        source.append(first + inside[0] * step)
        shape.append(len(inside))
    ones = (1,) * len(lower)
    return Copy(
        Cells(TARGET, tuple(source), piece.steps),
        Cells(TARGET, tuple(lower), ones),
        tuple(shape),
    )
