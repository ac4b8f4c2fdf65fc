# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Prefetches: of planes that do not stay in the caches, and of lines that are stored to.

Of all rows that an output reads, the last one of the last plane is new, the others were read
before; the output's own line has to come as well. The processor sees what is next within a page
only, and rows of planes are short: it sees too late that one goes on where the other ended.

Some cores write to the first cache in order, and ask for the line of a store too late where several
rows are stored to: there a block of outputs asks for its lines before it is computed.
"""

from collections.abc import Sequence

from twofour.codegen.cpu.kernel_abi import EntryConstants, shifted
from twofour.codegen.cpu.row_sums import Offset
from twofour.mlir import arith, ir, memref
from twofour.runtime.page_offset import CACHE_LINE

# Bytes ahead, in whole rows: such that views that are parts of rows fetch nothing else.
AHEAD = 2048


def claim_lines(
    views: Sequence[ir.Value],
    rows: Sequence[Offset],
    bases: list[ir.Value],
    points: int,
    constants: EntryConstants,
) -> None:
    """Fetch the lines of `points` points of some rows of views, to store to them.

    The last row comes first: LLVM would keep the pointers, all of them on the stack, if the stores
    stepped from row to row the same way.
    """
    for view in views:
        for row in reversed(rows):
            _fetch(view, shifted(constants, bases, row), points, constants, is_write=True)


def _fetch(
    view: ir.Value, begin: list[ir.Value], points: int, constants: EntryConstants, is_write: bool
) -> None:
    line = CACHE_LINE * 8 // view.type.element_type.width
    for point in range(0, points, line):
        place = [*begin[:-1], *shifted(constants, begin[-1:], [point])]
        memref.prefetch(view, place, is_write, 3, True)


class ReadAhead:
    """Prefetches of outputs, and of inputs at the offset of the last row that an output reads."""

    def __init__(
        self,
        inputs: Sequence[tuple[ir.Value, Offset]],
        outputs: Sequence[ir.Value],
        constants: EntryConstants,
    ):
        kind = outputs[0].type
        rank, itemsize = kind.rank, kind.element_type.width // 8
        self._constants = constants
        self._reads = inputs
        self._writes = [(output, (0,) * rank) for output in outputs]
        extent = arith.maxui(memref.dim(outputs[0], constants.index(rank - 1)), constants.index(1))
        self._rows = arith.ceildivui(constants.index(AHEAD // itemsize), extent)

    def emit(self, outputs: Sequence[Offset], bases: list[ir.Value], points: int) -> None:
        """Fetch what comes some rows after `points` of each row of outputs."""
        for row in outputs:
            *planes, at, column = shifted(self._constants, bases, row)
            place = [*planes, arith.addi(at, self._rows), column]
            for views, is_write in ((self._reads, False), (self._writes, True)):
                for view, offset in views:
                    begin = shifted(self._constants, place, offset)
                    _fetch(view, begin, points, self._constants, is_write)
