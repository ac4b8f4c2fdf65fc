# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""What the parts of a tensor-core kernel cost: its start, and the parts of a block tile.

Instructions are counted as PTX: what LLVM makes of the addresses and loops of a part is a constant
with a name, read off the code of kernels for stencils of one axis to three.
"""

import math
from dataclasses import dataclass

import numpy as np

from twofour.cost.counts import LANES, LINE, SECTOR, ceil_div, sectors
from twofour.layout.banks import WORD, wavefronts
from twofour.layout.block_layout import COPY_BYTES, MAX_RESIDENT, BlockLayout

# PTX instructions of a warp. START: who it is, where its block lies, what does not change along the
# march, with START_OFFSET for each offset of an input. TILE: of the march, its waits and barriers.
START, START_OFFSET, TILE = 140, 3, 36
# A row to copy: the loop, its bounds and address; more for each coordinate that a table gives, and
# for a segment of a folded axis. A chunk: address, whether it lies inside, the copy; the last one,
# which only some lanes copy, is branched around; around the first one of several there are two
# ways, on which the others' address is found.
COPY_ROW, COPY_COORDINATE, COPY_SEGMENT = 8, 6, 7
COPY_CHUNK, COPY_SEGMENT_CHUNK, COPY_FIRST, COPY_LAST = 7, 11, 8, 2
# The same of a row to write: a chunk is compared, read, and written.
WRITE_ROW, WRITE_COORDINATE, WRITE_SEGMENT, WRITE_CHUNK, WRITE_LAST = 16, 3, 10, 11, 2
# With the copy engine: of the march; of the warp whose first lane starts the copies of a tile, and
# of the first ones; of a box of results.
BULK_TILE, BULK_LEAD, BULK_LEAD_START, BULK_BOX = 18, 17, 30, 1
# Groups that are multiplied together: what a round of a loop over them costs beside its body. An
# input and a row of results have one address for all of them.
ROUND, LOOP, ADDRESS = 4, 10, 1
# Tables that are read step by step: the loop, and from an offset in the table to an address.
STEP, STEP_OFFSET = 5, 1

# Registers of a thread, beside A and the sums: of the march, more where an axis is folded and where
# numbers take two each; with the copy engine; of an element of B and its address, by and large.
MARCH_REGISTERS, FOLDED_REGISTERS, DOUBLE_REGISTERS = 88, 12, 20
BULK_REGISTERS, INPUT_REGISTERS = 34, 1.5


@dataclass(frozen=True)
class Operand:
    """What one instruction takes: the type of A and B, and the parts that numbers are split in."""

    kind: str
    parts: int

    @property
    def products(self) -> int:
        """Matrix instructions for one product of A and B."""
        return 3 if self.parts == 2 else 1

    @property
    def conversions(self) -> float:
        """Instructions from a loaded element of B to its part of a register."""
        if self.kind == "tf32":
            return 3 if self.parts == 2 else 1
        return 0 if self.kind == "f64" else 0.5

    @property
    def size(self) -> int:
        """Bytes of an element of A."""
        return {"f64": 8, "tf32": 4 * self.parts}.get(self.kind, 2)


class BlockTile:
    """The parts of one block tile, and of the start of a block.

    Attributes:
        b, c: elements of B and of C that a lane has.
        used: (row block, step) of the parts of A that are multiplied.
        resident: whether A and the offsets of inputs stay in registers.
        batch: groups for which each step reads its tables once.
        copies: elements of 16 bytes.
        warps: of the block; groups: that each of them multiplies.
    """

    def __init__(self, layout: BlockLayout, operand: Operand, scaled: bool):
        self.layout, self.operand, self.scaled = layout, operand, scaled
        fragment = layout.fragment
        self.b, self.c = fragment.b_row.shape[1], fragment.c_row.shape[1]
        self.used = layout.used_blocks()
        self.a_bytes = fragment.a_row.shape[1] * operand.size  # of a lane
        self.a_loads = ceil_div(self.a_bytes, COPY_BYTES)
        self.a_registers = registers = self.a_bytes // WORD + fragment.sparse
        offsets = layout.steps * self.b
        self.resident = len(self.used) * registers + offsets <= MAX_RESIDENT
        self.batch = layout.batch(self.resident)
        if not self.resident:
            # A loop over the steps does not know which parts of A are zero.
            self.used = [(b, s) for s in range(layout.steps) for b in range(layout.row_blocks)]
        self.copies = COPY_BYTES // layout.itemsize
        self.warps = layout.threads // LANES
        self.groups = math.prod(layout.groups)

    def table_sectors(self, accesses: int = 1) -> int:
        """Sectors of A, metadata and offsets of inputs, read once by one warp.

        `accesses` is the number of those to A of a block that each sector of it counts for.
        """
        layout = self.layout
        of_block = accesses * self.a_bytes * LANES + layout.fragment.sparse * LANES * WORD
        of_step = sectors(0, 4 * min(4, self.b) * WORD) * ceil_div(self.b, 4)
        return len(self.used) * of_block // SECTOR + layout.steps * of_step

    def table_loads(self) -> int:
        """Accesses to A, metadata and offsets of inputs, of one warp."""
        layout = self.layout
        of_block = self.a_loads + layout.fragment.sparse
        return len(self.used) * of_block + layout.steps * ceil_div(self.b, 4)

    def table_lines(self) -> int:
        """Cache lines of the same; whole tables begin lines."""
        layout = self.layout
        of_block = self.a_loads * ceil_div(self.a_bytes * LANES, LINE) + layout.fragment.sparse
        return len(self.used) * of_block + layout.steps * ceil_div(self.b, 4)

    @property
    def staged_rows(self) -> int:
        """Rows of C whose places a lane needs."""
        return self.layout.row_blocks * len(np.unique(self.layout.fragment.c_row[0]))

    @property
    def table_rounds(self) -> int:
        """How often a warp reads all tables in a block tile that do not stay in registers."""
        return 0 if self.resident else self.groups // self.batch

    def start(self) -> float:
        """Instructions of a warp before its march."""
        offsets = self.layout.steps * self.b if self.resident else self.b
        return START + START_OFFSET * offsets + (self.table_loads() if self.resident else 0)

    def lead(self) -> float:
        """Instructions of the warp that starts the copies of a block tile, beside its march."""
        return BULK_LEAD + BULK_BOX * self.layout.output_boxes

    def copy_row(self) -> float:
        """Instructions of a warp for a row of a halo tile."""
        layout = self.layout
        starts = self._starts(layout.row, layout.skipped)
        chunk = COPY_SEGMENT_CHUNK if layout.folded else COPY_CHUNK
        return (
            COPY_ROW
            + layout.folded * COPY_SEGMENT
            + self._coordinates * COPY_COORDINATE
            + len(starts) * chunk
            + (layout.skipped > 0 and len(starts) > 1) * COPY_FIRST
            + self._is_partial(starts, layout.row) * COPY_LAST
        )

    def write_row(self) -> float:
        """Instructions of a warp for a row of outputs."""
        layout = self.layout
        width = layout.tile[-1]
        starts = self._starts(width, 0)
        return (
            WRITE_ROW
            + layout.folded * WRITE_SEGMENT
            + self._coordinates * WRITE_COORDINATE
            + len(starts) * WRITE_CHUNK
            + self._is_partial(starts, width) * WRITE_LAST
        )

    def march(self) -> float:
        """Instructions of a warp for a block tile, those for its rows aside."""
        tile = BULK_TILE if self.layout.bulk else TILE
        *outer, last = self.layout.groups
        rounds, loops = 1, 0
        for count in (*outer, last // self.batch):
            rounds *= count
            loops += rounds * (count > 1)
        multiply = self._from_registers() if self.resident else self._step_by_step()
        return tile + rounds * (ROUND + multiply) + loops * LOOP

    def _from_registers(self) -> float:
        """Multiply a batch of groups whose A is in registers."""
        operand = self.operand
        elements = len({step for _, step in self.used}) * self.b
        work = elements * (1 + operand.conversions) + len(self.used) * operand.products
        addresses = elements + self.staged_rows
        return addresses * ADDRESS + self.batch * (work + self._stage())

    def _step_by_step(self) -> float:
        layout, operand, batch = self.layout, self.operand, self.batch
        step = (
            STEP
            + self.table_loads() / layout.steps
            + self.b * (STEP_OFFSET + ADDRESS)
            + batch * self.b * (1 + operand.conversions)
            + batch * layout.row_blocks * operand.products
        )
        sums = batch * layout.row_blocks * self.c
        return layout.steps * step + sums + batch * self._stage() + self.staged_rows * ADDRESS

    def _stage(self) -> float:
        """Leave the sums of a group in the staging tile, their addresses aside."""
        stored = self.layout.row_blocks * self.c
        if self.layout.stores_matrices:
            # Two sums become a word at a time; an instruction stores four words, or two.
            words = 2 * self.layout.row_blocks
            return words + stored * self.scaled + words / (4 if self.batch > 1 else 2)
        return stored * (1 + (self.layout.itemsize == 2) + self.scaled)

    @property
    def _coordinates(self) -> int:
        """Coordinates of a row that a table gives."""
        rows = len(self.layout.tile) - 1
        return rows if rows > 1 else 0

    def _starts(self, elements: int, skipped: int) -> range:
        """Where the chunks of a row begin that the lanes of a warp take together."""
        return range(-skipped, elements, LANES * self.copies)

    def _is_partial(self, starts: range, elements: int) -> bool:
        return starts[-1] + starts.step > elements

    def registers(self) -> int:
        """Registers of a thread, estimated."""
        layout, words = self.layout, 2 if self.operand.kind == "f64" else 1
        blocks, steps = len(self.used), layout.steps
        if not self.resident:
            blocks, steps = layout.row_blocks, 1
        march = MARCH_REGISTERS + layout.folded * FOLDED_REGISTERS + (words - 1) * DOUBLE_REGISTERS
        return math.ceil(
            (BULK_REGISTERS if layout.bulk else march)
            + blocks * self.a_registers
            + steps * self.b * INPUT_REGISTERS
            + self.batch * layout.row_blocks * self.c * words
        )

    def row_accesses(self, elements: int, skipped: int) -> list[tuple[int, int]]:
        """(first byte, bytes) of the accesses of a warp to a row; lanes count from `skipped`."""
        size = self.layout.itemsize
        found = []
        for start in self._starts(elements, skipped):
            first, end = max(start, 0), min(start + LANES * self.copies, elements)
            if first < end:
                found.append(((first + skipped) * size, (end - first) * size))
        return found

    def product_wavefronts(self) -> int:
        """Wavefronts of the loads and stores of a warp's groups."""
        layout = self.layout
        loads = wavefronts(layout.load_accesses(), layout.itemsize).reshape(layout.steps, -1)
        loads = loads[sorted({step for _, step in self.used})].sum()
        return self.groups * int(loads + layout.store_wavefronts())
