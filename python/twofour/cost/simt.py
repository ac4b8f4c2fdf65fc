# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""What plain kernels of weighted sums cost (targets.gpu.simt_kernel).

A thread loads each of its inputs once and keeps it in a register; neighbouring threads read it
again. Assumptions about caches: what the threads of a block read counts once, the first-level cache
has it for the others. Blocks run in the order of memory, so that the halo that blocks share is
found in the second level, along all axes: every input is read from memory once, as long as that
cache holds a row of blocks (along axis 0) of the input and of the output. What rows end with beside
whole vectors, element by element, does not count.
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Sequence
from itertools import product
from typing import TYPE_CHECKING

from twofour.cost.costs import Costs
from twofour.cost.counts import LANES, SECTOR, Counts, lines, resident, sectors
from twofour.runtime.devices.launching import block_count
from twofour.runtime.dtypes import ELEMENT_TYPES
from twofour.sim.chips import Chip

if TYPE_CHECKING:
    from twofour.codegen.cpu.direct_kernel import DirectKernel, Terms
    from twofour.codegen.gpu.point_grid import PointGrid

# PTX instructions of a warp: which points a thread has, the first for the only axis, and with each
# further axis more, since there the number of the block is divided.
START, START_AXES, START_AXIS = 16, 10, 11
# Addresses: of a view's first point, by axis and pair of views; of a row from there.
VIEW_AXIS, ROW_ADDRESS = 4, 1
# Registers of a thread beside the inputs that it holds, more for each axis. Of one that reads
# vectors as well, and the part of its inputs that it holds at a time: fitted to what ptxas says of
# all built-in kernels.
REGISTERS, REGISTERS_AXIS = 2, 6
VECTOR_REGISTERS, VECTOR_REGISTERS_AXIS, VECTOR_HELD = 13, 1, 0.9
# So many of these a thread can do without where that makes room for all warps of a multiprocessor:
# of all built-in kernels ptxas spills 8 bytes of four for it, of bf16 for sm_80. Registers come
# in steps of REGISTER_STEP.
SPARED, REGISTER_STEP = 5, 8

Row = tuple[int, ...]


class _Launch:
    """The work of a thread, and where it lies in memory."""

    def __init__(self, kernel: DirectKernel, grid: PointGrid, element: str, shape: Sequence[int]):
        self.kernel, self.grid, self.element = kernel, grid, element
        self.itemsize = ELEMENT_TYPES[element].itemsize
        self.points = math.prod(shape)
        tile = grid.launch(self.itemsize).tile
        self.tile, self.threads = tile, math.prod(grid.threads)
        self.blocks = block_count(tile, 1, shape)
        self.warps = self.blocks * self.threads // LANES
        # Elements of an access.
        self.width = grid.points if grid.vectors else 1
        self.used = [_places(terms, grid.shifts) for terms in kernel.inputs]
        if kernel.has_addend:
            self.used.append(set(grid.shifts))
        self.reads = [self._accesses(places) for places in self.used]
        self.stores = self._accesses(set(grid.shifts))
        self.terms = sum(_terms(terms) for terms in kernel.inputs)

    def _accesses(self, places: set[Row]) -> set[Row]:
        """The first elements of the accesses to some places."""
        return {(*row, column // self.width * self.width) for *row, column in places}

    @property
    def loads(self) -> int:
        """Accesses of a thread to its inputs."""
        return sum(map(len, self.reads))

    def instructions(self) -> int:
        """Of one warp."""
        kernel, rank, outputs = self.kernel, self.grid.rank, self.grid.points
        start = START if rank == 1 else START_AXES + START_AXIS * rank
        views = VIEW_AXIS * rank * (len(self.reads) + 1)
        places = [*self.reads, self.stores]
        rows = sum(len({place[:-1] for place in of_view}) for of_view in places) if rank > 1 else 0
        converted = self._converted() if self.itemsize == 2 else 0
        sums = outputs * (self.terms + bool(kernel.has_addend and kernel.constant))
        accesses = self.loads + len(self.stores)
        return start + views + ROW_ADDRESS * rows + accesses + converted + sums

    def _converted(self) -> int:
        """Instructions of a thread that convert between types of 16 bits and those of sums.

        Vectors are of words of two elements: those are taken apart, and put together as they are
        converted.
        """
        used = sum(map(len, self.used))
        if not self.grid.vectors:
            return used + self.grid.points
        words = [{(*row, column // 2) for *row, column in places} for places in self.used]
        return used + sum(map(len, words)) + self.grid.points // 2

    def load_sectors(self) -> int:
        """Of the accesses of one warp."""
        return sum(self._sectors(place[-1]) for places in self.reads for place in places)

    def stored_sectors(self) -> int:
        """Of the accesses of one warp."""
        return sum(self._sectors(place[-1]) for place in self.stores)

    def registers(self) -> int:
        """Of a thread: an estimate."""
        inputs, rank = sum(map(len, self.used)), self.grid.rank
        if self.grid.vectors:
            held = VECTOR_HELD * inputs * self.itemsize / 4
            return VECTOR_REGISTERS + VECTOR_REGISTERS_AXIS * rank + round(held)
        return REGISTERS + REGISTERS_AXIS * rank + inputs * max(1, self.itemsize // 4)

    def lines(self) -> float:
        """Cache lines of the accesses of one warp."""
        size = LANES * self.width * self.itemsize
        places = [place for view in (*self.reads, self.stores) for place in view]
        return sum(lines(place[-1] * self.itemsize, size) for place in places)

    def block_sectors(self) -> int:
        """Sectors of the inputs of one block, those that its warps share counted once."""
        rows = list(product(*map(range, self.tile[:-1])))
        total = 0
        for terms in self.kernel.inputs:
            ends: dict[Row, tuple[int, int]] = {}
            for offset, (lo, hi) in _row_ends(terms).items():
                for row in rows:
                    at = tuple(map(sum, zip(row, offset, strict=True)))
                    first, last = ends.get(at, (lo, hi))
                    ends[at] = min(first, lo), max(last, hi)
            for first, last in ends.values():
                elements = self.tile[-1] + last - first
                total += sectors(first * self.itemsize, elements * self.itemsize)
        if self.kernel.has_addend:
            total += len(rows) * sectors(0, self.tile[-1] * self.itemsize)
        return total

    def _sectors(self, column: int) -> int:
        """Of a warp's access that begins `column` elements from the start of a sector."""
        return sectors(column * self.itemsize, LANES * self.width * self.itemsize)


def full_blocks(kernel: DirectKernel, grid: PointGrid, element: str, chip: Chip) -> int | None:
    """The blocks of a whole multiprocessor, where threads can do with the registers for that.

    Those of vectors are meant; None for all others.
    """
    blocks, registers = _full(chip, math.prod(grid.threads))
    launch = _Launch(kernel, grid, element, (1,) * grid.rank)
    return blocks if grid.vectors and launch.registers() <= registers + SPARED else None


def _full(chip: Chip, threads: int) -> tuple[int, int]:
    """The blocks that have all warps of a multiprocessor, and the registers of a thread then."""
    blocks = chip.warps * LANES // threads
    return blocks, chip.registers // (blocks * threads) // REGISTER_STEP * REGISTER_STEP


def _terms(terms: Terms) -> int:
    return sum(1 for weight in terms.weights if weight)


def _used(terms: Terms) -> list[Row]:
    """The offsets that count."""
    pairs = zip(terms.offsets, terms.weights, strict=True)
    return [tuple(offset) for offset, weight in pairs if weight]


def _places(terms: Terms, shifts: Sequence[Row]) -> set[Row]:
    """The points that a thread reads, relative to its first output."""
    return {
        tuple(map(sum, zip(offset, shift, strict=True)))
        for offset in _used(terms)
        for shift in shifts
    }


def _row_ends(terms: Terms) -> dict[Row, tuple[int, int]]:
    """By row: the first and the last column that an output reads, relative to its own."""
    columns = defaultdict(list)
    for offset in _used(terms):
        columns[offset[:-1]].append(offset[-1])
    return {row: (min(found), max(found)) for row, found in columns.items()}


def simt_counts(
    kernel: DirectKernel, grid: PointGrid, shape: Sequence[int], element: str
) -> Counts:
    """The counters of one launch on an output of `shape`; arguments as for `simt_costs`."""
    launch = _Launch(kernel, grid, element, shape)
    by_point = launch.warps / launch.points
    return Counts(
        instructions=launch.instructions() * by_point,
        mma=0.0,
        shared_wavefronts=0.0,
        global_load_bytes=SECTOR * launch.load_sectors() * by_point,
        global_store_bytes=SECTOR * launch.stored_sectors() * by_point,
    )


def simt_costs(
    kernel: DirectKernel,
    grid: PointGrid,
    shape: Sequence[int],
    element: str,
    chip: Chip,
    *,
    registers: int | None = None,
) -> Costs:
    """The costs of one launch on an output of `shape`, all of whose blocks count as whole.

    Args:
        kernel: the weighted sums.
        grid: the points of the threads.
        shape: outputs per axis.
        element: the type in memory.
        chip: what fits on a multiprocessor.
        registers: of a thread; estimated where they are not known.
    """
    launch = _Launch(kernel, grid, element, shape)
    itemsize, points = launch.itemsize, launch.points
    if registers is None:
        registers = launch.registers()
        if full_blocks(kernel, grid, element, chip):
            registers = min(registers, _full(chip, launch.threads)[1])
    warps, blocks = resident(chip, registers, launch.threads, 0)
    by_warp = launch.warps / points
    asked = launch.blocks * launch.block_sectors() + launch.warps * launch.stored_sectors()
    arithmetic = "f64" if element == "f64" else "f32"
    return Costs(
        instructions=launch.instructions() * by_warp,
        l1_wavefronts=launch.lines() * by_warp,
        l2_bytes=SECTOR * asked / points,
        dram_bytes=itemsize * (len(launch.reads) + 1),
        store_bytes=itemsize,
        # The halo is mostly in a cache.
        bytes_in_flight=LANES * itemsize * grid.points,
        resident_warps=warps,
        resident_blocks=blocks,
        blocks=launch.blocks,
        fma={arithmetic: launch.terms},
    )
