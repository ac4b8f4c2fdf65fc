# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Prefetches for kernels of planes that do not stay in the caches.

Of all rows that an output reads, the last one of the last plane is new, the others were read
before; the output's own line has to come as well. The processor sees what is next within a page
only, and rows of planes are short: it sees too late that one goes on where the other ended.
"""

from collections.abc import Sequence

from twofour.mlir import arith, ir, memref
from twofour.runtime.page_offset import CACHE_LINE
from twofour.targets.cpu.kernel_abi import EntryConstants, shifted
from twofour.targets.cpu.row_sums import Offset

# Bytes ahead, in whole rows: such that views that are parts of rows fetch nothing else.
AHEAD = 2048


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
        self._constants, self._line = constants, CACHE_LINE // itemsize
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
                    for point in range(0, points, self._line):
                        at_line = [*begin[:-1], *shifted(self._constants, begin[-1:], [point])]
                        memref.prefetch(view, at_line, is_write, 3, True)
