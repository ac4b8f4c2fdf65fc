# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""How a warp marches along the slowest axis: what it reads of a step, and which outputs that meets.

A warp owns a strip of outputs along the last axis, in arrays of rank 3 a few rows of them.
Advancing along the slowest axis it reads each row of inputs once, adds what it contributes to every
row of outputs that it meets, and keeps the sums of those rows in registers until they are complete.
Lanes read neighbouring inputs with one access each, a fragment for the warp. Inputs that are read
ahead wait in registers, or in a ring in shared memory: one for each warp or, where there is an axis
between, one for all warps of a block, since those meet mostly the same rows.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

from twofour.layout.fragments import LANES
from twofour.reach import Extents

ACCESS, SECTOR = 16, 32  # bytes: of a lane, and what strips begin on
PREFETCHED, FEW_ROWS = 4, 2  # rows that are prefetched where registers hold so few
MIN_UNROLL = 6  # steps of a loop: fewer would spend too much on counting them
REGISTER_UNIT = 8  # registers that a thread is given together
WARP_REGISTERS, MAX_WARPS = 2048, 64  # of a multiprocessor, for 32 threads of one register
# Shared memory of a multiprocessor for rings: all chips have as much, and leave caches the rest.
# Of that the system takes some for every block.
RING_BYTES, RESERVED_BYTES = 100 << 10, 1 << 10
MAX_REGISTERS = 217  # of a thread, as estimated: ptxas may take a quarter more
RING_REGISTERS = 6  # of a thread: where its ring is


class Meeting(NamedTuple):
    """A fragment that a row of outputs needs.

    It begins `start` inputs from the strip's first output, in the row that lies `along` on the
    slowest axis and `across` on the one between from the output's (0 where there is none).
    """

    along: int
    across: int
    start: int


@dataclass(frozen=True, eq=False, kw_only=True)
class March(ABC):
    """The work of one warp; extents are in elements, slowest axis first.

    Attributes:
        reach_lo, reach_hi: how far the stencil reaches, per axis.
        itemsize: bytes of an element.
        rows: rows of outputs of a step, along the axis between; 1 where there is none.
        stages: fragments in registers, the one that is added and those read ahead; steps in a ring.
        march: steps of a warp along the slowest axis.
        warps: of a block, side by side.
        levels: time steps of a march; rows of a level that are complete are inputs of the next.
        ring: whether inputs are read ahead to shared memory, rather than to registers.
    """

    reach_lo: Extents
    reach_hi: Extents
    itemsize: int
    rows: int
    stages: int
    march: int
    warps: int
    levels: int = 1
    ring: bool = False

    @property
    @abstractmethod
    def meetings(self) -> frozenset[Meeting]:
        """The fragments of a row of outputs."""

    @property
    @abstractmethod
    def written(self) -> int:
        """Neighbouring outputs of a lane."""

    @property
    @abstractmethod
    def group(self) -> int:
        """Neighbouring lanes that write neighbouring outputs, and read what those need."""

    @property
    @abstractmethod
    def overhang(self) -> int:
        """Elements that a fragment holds beyond the width of a strip."""

    @property
    @abstractmethod
    def registers(self) -> int:
        """An estimate of the registers of a thread."""

    @property
    def max_registers(self) -> int:
        """Registers of a thread, as estimated, from which on ptxas would spill some."""
        return MAX_REGISTERS

    @property
    @abstractmethod
    def compact(self) -> bool:
        """Whether edges have little code rather than fast code.

        Then strips at an edge take one step in a round.
        """

    @property
    def looped(self) -> bool:
        """Whether all steps, from the first one on, are rounds of one loop.

        Only marches of one level with a ring can be.
        """
        return False

    @property
    def rank(self) -> int:
        """Rank of the arrays."""
        return len(self.reach_lo)

    @property
    def threads(self) -> int:
        """Threads of a block."""
        return LANES * self.warps

    @property
    def chunk(self) -> int:
        """Neighbouring inputs of a lane."""
        return ACCESS // self.itemsize

    @property
    def strip(self) -> int:
        """Outputs of a warp along the last axis, before levels trim them."""
        return LANES * self.written

    @property
    def tile(self) -> Extents:
        """Outputs of a block per axis in one step; its warps lie side by side."""
        if self.rank == 3:
            return (1, self.warps * self.rows, self.width)
        return (1,) * (self.rank - 1) + (self.warps * self.width,)

    @property
    def tile_outputs(self) -> int:
        """Outputs of a block in one step."""
        return self.warps * self.rows * self.width

    @property
    def input_lo(self) -> Extents:
        """How far all levels together reach below, per axis."""
        return tuple(self.levels * reach for reach in self.reach_lo)

    @cached_property
    def trimmed(self) -> tuple[int, int]:
        """Outputs at both ends of a strip that miss inputs of the levels before the last."""
        ends, chunk = (self.reach_lo[-1], self.reach_hi[-1]), self.chunk
        lo, hi = (-(-(self.levels - 1) * max(0, end) // chunk) * chunk for end in ends)
        # Strips begin on sectors.
        return lo, hi + (lo + hi) % (SECTOR // self.itemsize)

    @property
    def width(self) -> int:
        """Outputs of a strip that are written, along the last axis."""
        return self.strip - sum(self.trimmed)

    @cached_property
    def first(self) -> int:
        """The first row of inputs that a row of outputs meets, along the slowest axis."""
        return min(meeting.along for meeting in self.meetings)

    @cached_property
    def depth(self) -> int:
        """Rows of outputs that a row of inputs meets, all but one."""
        return max(meeting.along for meeting in self.meetings) - self.first

    @property
    def lead(self) -> int:
        """Steps before the first row of outputs of the last level is complete.

        Each level takes in a step what the one before it completed in the step before.
        """
        return self.levels * (self.depth + 1) - 1

    @cached_property
    def reads(self) -> list[tuple[int, int]]:
        """(row along the axis between, start) of the fragments that one step reads."""
        return sorted(
            {
                (row + across, start)
                for _, across, start in self.meetings
                for row in range(self.rows)
            }
        )

    @cached_property
    def first_start(self) -> int:
        """Where the inputs begin that a strip reads of a row, from its first output on."""
        return min(start for _, start in self.reads)

    @cached_property
    def beyond(self) -> int:
        """Inputs that a strip reads of a row beyond its last output."""
        return max(start for _, start in self.reads) + self.overhang

    @property
    def shuffles(self) -> int:
        """Words of 32 bits that a lane gets from others for a step of the next level."""
        own = self.chunk == self.written
        return sum(ACCESS // 4 for _, start in self.reads if start or not own)

    @property
    def steps_ahead(self) -> int:
        """How many steps ahead of its use a fragment is read, at most."""
        return self.stages - 1 if self.ring else -(-(self.stages - 1) // len(self.reads))

    @property
    def drained(self) -> int:
        """The last steps of a march, which have nothing to read ahead."""
        return self.steps_ahead + self.levels - 1

    @property
    def ring_warps(self) -> int:
        """Warps that share a ring: those whose rows lie side by side on the axis between."""
        return self.warps if self.rank == 3 else 1

    @cached_property
    def ring_rows(self) -> range:
        """Rows of inputs of a step in a ring, on the axis between from its first row of outputs."""
        across = [row for row, _ in self.reads]
        return range(min(across), max(across) + (self.ring_warps - 1) * self.rows + 1)

    @property
    def row_accesses(self) -> int:
        """Neighbouring accesses of a row of a ring, the first of which begins at `first_start`."""
        return (self.strip + self.beyond - self.first_start) // self.chunk

    @property
    def slot_bytes(self) -> int:
        """Bytes of one step in a ring."""
        return ACCESS * self.row_accesses * len(self.ring_rows)

    @property
    def inputs_held(self) -> int:
        """Registers of a thread for inputs, or the fragments of one row of a ring: an estimate."""
        if not self.ring:
            return 4 * self.stages
        rows = [across for across, _ in self.reads]
        return RING_REGISTERS + 4 * max(map(rows.count, rows))

    @property
    def rows_addressed(self) -> int:
        """Rows of inputs of a step whose addresses a thread keeps.

        Those of a ring are copied one after the other: as if it were two in three axes.
        """
        if self.ring:
            return 2 if self.rank == 3 else 1
        return len({across for across, _ in self.reads})

    @property
    def shared_bytes(self) -> int:
        """Shared memory of a block."""
        rings = self.warps // self.ring_warps if self.ring else 0
        return rings * self.stages * self.slot_bytes

    @property
    def prefetched(self) -> int:
        """How many rows beyond those in registers a round asks the second-level cache for.

        None where registers hold many: on an H200 that took as much time as it saved.
        """
        few = not self.ring and self.steps_ahead <= FEW_ROWS
        wanted = few and self.rank > 1 and self.levels == 1
        return PREFETCHED if wanted else 0

    @property
    def unroll(self) -> int:
        """Steps of one round of the main loop: sums are back in the registers they began in."""
        turn = self.depth + 1
        return turn * -(-MIN_UNROLL // turn)

    @cached_property
    def resident(self) -> int:
        """Blocks of a multiprocessor at a time."""
        registers = -(-self.registers // REGISTER_UNIT) * REGISTER_UNIT
        blocks = min(MAX_WARPS, WARP_REGISTERS // registers) // self.warps
        if self.ring:
            blocks = min(blocks, RING_BYTES // (RESERVED_BYTES + self.shared_bytes))
        return max(1, blocks)
