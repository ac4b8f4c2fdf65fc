# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""What tensor-core kernels cost that go through shared memory (targets.gpu.tensor_kernel).

Bytes, wavefronts and matrix instructions follow from the layout; cost.tile_parts has the
instructions of each part of a kernel.

Assumptions about caches: copies of halo tiles go past the first-level cache, so that all their
sectors are asked of the second one. Tables go through the first-level cache: what the warps of a
block read of them counts once where they stay in registers, once for every block tile where they
are read again. Halos that blocks share along other axes than the slowest are found in the second
level, since such blocks march side by side; where one march ends and the next begins, inputs are
read from memory twice.
"""

import math
from collections.abc import Sequence

from twofour.cost.costs import Costs, Mma
from twofour.cost.counts import (
    LINE,
    SECTOR,
    Counts,
    ceil_div,
    lines,
    resident,
    sectors,
    spans,
)
from twofour.cost.tile_parts import BULK_LEAD_START, BlockTile, Operand
from twofour.layout.block_layout import COPY_BYTES, BlockLayout
from twofour.layout.fragments import TILES
from twofour.runtime.devices.launching import block_count
from twofour.sim.chips import Chip

QUARTER = 8  # lanes that a wavefront of 16 bytes a lane serves


class _Launch:
    """A launch on an output of `shape`: how often each part happens, and what it adds up to."""

    def __init__(self, tile: BlockTile, shape: Sequence[int]):
        layout = tile.layout
        self.tile, self.layout = tile, layout
        self.points = math.prod(shape)
        block = (math.prod(layout.tile),) if layout.folded else layout.tile
        self.blocks = block_count(block, layout.march, shape)
        # Segments of a folded axis are rows.
        width = layout.tile[-1]
        rows = (ceil_div(shape[0], width),) if layout.folded else tuple(shape[:-1])
        self.tiles = block_count(layout.tile[:-1], 1, rows)
        self.across = 1
        if not layout.folded:
            self.tiles *= ceil_div(shape[-1], width)
            self.across = ceil_div(shape[-1], width)
        self.copied_rows = self.tiles * math.prod(layout.halo_rows)
        halo = [lo + hi for lo, hi in zip(layout.reach_lo, layout.reach_hi, strict=True)][:-1]
        axes = zip(rows, layout.tile[:-1], halo, strict=True)
        self.read_rows = math.prod(spans(*axis) for axis in axes)  # of one tile across
        self.written_rows = math.prod(rows)
        self.last = shape[-1] - (self.across - 1) * width  # outputs of the last tile across
        # Inputs that marches read from memory, over those there are.
        self.halo = spans(rows[0], layout.march * layout.tile[0], halo[0]) / rows[0]

    def instructions(self) -> float:
        tile = self.tile
        march = tile.warps * (self.blocks * tile.start() + self.tiles * tile.march())
        if self.layout.bulk:
            return march + self.tiles * tile.lead() + self.blocks * BULK_LEAD_START
        return (
            march
            + self.copied_rows * tile.copy_row()
            + self.written_rows * self.across * tile.write_row()
        )

    def mma(self) -> int:
        tile = self.tile
        groups = self.tiles * tile.warps * tile.groups
        return groups * len(tile.used) * tile.operand.products

    def shared_wavefronts(self) -> int:
        tile, layout = self.tile, self.layout
        product = self.tiles * tile.warps * tile.product_wavefronts()
        if layout.bulk:
            boxes = (layout.input_box, *[layout.output_box] * layout.output_boxes)
            sizes = (math.prod(box) * layout.itemsize for box in boxes)
            return product + self.tiles * sum(ceil_div(size, LINE) for size in sizes)
        copied = tile.row_accesses(layout.row, layout.skipped)
        written = tile.row_accesses(layout.tile[-1], 0)
        return (
            self.copied_rows * _quarters(copied)
            + product
            + self.written_rows * self.across * _quarters(written)
        )

    def copied_sectors(self) -> int:
        """Sectors of the halo tiles."""
        if self.layout.bulk:
            return self.read_rows * self._box_row_sectors()
        whole, last = self._read_elements()
        return self.read_rows * (
            (self.across - 1) * self._row_sectors(whole) + self._row_sectors(last)
        )

    def table_sectors(self) -> int:
        """Sectors of tables that single warps ask for."""
        tile = self.tile
        # Where a lane has more of A than one access reads, each access meets all sectors.
        tables = tile.table_sectors(tile.a_loads)
        starts = self.blocks * (tile.staged_rows + tile.resident * tables)
        return tile.warps * (starts + self.tiles * tile.table_rounds * tables)

    def shared_table_sectors(self) -> int:
        """The same, those that warps of a block share in a block tile counted once."""
        tile = self.tile
        tables = tile.table_sectors()
        starts = self.blocks * (tile.staged_rows + tile.resident * tables)
        return starts + self.tiles * (not tile.resident) * tables

    def stored_sectors(self) -> int:
        size = self.layout.itemsize
        if self.layout.folded:
            return sectors(0, self.points * size)
        whole, last = (sectors(0, n * size) for n in (self.layout.tile[-1], self.last))
        return self.written_rows * ((self.across - 1) * whole + last)

    def global_lines(self) -> float:
        """Cache lines of every access, of 16 bytes a lane at least one for each quarter warp."""
        tile, layout = self.tile, self.layout
        tables = self.blocks * (tile.staged_rows + tile.resident * tile.table_lines())
        tables += self.tiles * tile.table_rounds * tile.table_lines()
        if layout.bulk:
            # The copy engine goes past the first-level cache.
            return tables * tile.warps
        copied = tile.row_accesses(layout.row, layout.skipped)
        written = tile.row_accesses(layout.tile[-1], 0)
        return (
            self.read_rows * self.across * _lines(copied)
            + self.written_rows * self.across * _lines(written)
            + tables * tile.warps
        )

    def _read_elements(self) -> tuple[int, int]:
        """Elements of a row that a tile across and the last one read."""
        layout = self.layout
        whole = layout.row
        if layout.folded:
            return whole, whole
        return whole, min(whole, layout.lead + self.last + max(layout.reach_hi[-1], 0))

    def _box_row_sectors(self) -> int:
        """Sectors of a row of all boxes across; those at its end are cut off."""
        layout = self.layout
        size, width = layout.itemsize, layout.input_box[-1]
        end = layout.lead + (self.across - 1) * layout.tile[-1] + self.last + layout.reach_hi[-1]
        whole = max(0, (end - width) // layout.tile[-1] + 1)
        cut = (end - number * layout.tile[-1] for number in range(whole, self.across))
        found = whole * sectors(layout.skipped * size, width * size)
        return found + sum(sectors(layout.skipped * size, left * size) for left in cut)

    def _row_sectors(self, elements: int) -> int:
        tile, layout = self.tile, self.layout
        whole = ceil_div(elements, tile.copies) * tile.copies
        return sum(sectors(*access) for access in tile.row_accesses(whole, layout.skipped))


def _quarters(accesses: Sequence[tuple[int, int]]) -> int:
    """Wavefronts of accesses of 16 bytes a lane."""
    return sum(ceil_div(size, QUARTER * COPY_BYTES) for _, size in accesses)


def _lines(accesses: Sequence[tuple[int, int]]) -> float:
    return sum(
        max(lines(*access), ceil_div(access[1], QUARTER * COPY_BYTES)) for access in accesses
    )


def tile_counts(
    layout: BlockLayout,
    shape: Sequence[int],
    operand: str,
    *,
    parts: int = 1,
    scaled: bool = False,
) -> Counts:
    """The counters of one launch on an output of `shape`; arguments as for `tile_costs`."""
    launch = _Launch(BlockTile(layout, Operand(operand, parts), scaled), shape)
    points = launch.points
    return Counts(
        instructions=launch.instructions() / points,
        mma=launch.mma() / points,
        shared_wavefronts=launch.shared_wavefronts() / points,
        global_load_bytes=SECTOR * (launch.copied_sectors() + launch.table_sectors()) / points,
        global_store_bytes=SECTOR * launch.stored_sectors() / points,
    )


def tile_costs(
    layout: BlockLayout,
    shape: Sequence[int],
    operand: str,
    chip: Chip,
    *,
    parts: int = 1,
    scaled: bool = False,
    registers: int | None = None,
) -> Costs:
    """The costs of one launch on an output of `shape`.

    Args:
        layout: the work of a block.
        shape: outputs per axis, of the rank of the stencil.
        operand: what is multiplied: f16, bf16, tf32 or f64.
        chip: what fits on a multiprocessor.
        parts: 2 for numbers of f32 as sums of two of tf32.
        scaled: whether A is scaled, and sums are scaled back.
        registers: of a thread; estimated where they are not known.
    """
    tile = BlockTile(layout, Operand(operand, parts), scaled)
    launch = _Launch(tile, shape)
    points, fragment = launch.points, layout.fragment
    if registers is None:
        registers = tile.registers()
    warps, blocks = resident(chip, registers, layout.threads, layout.shared_bytes)
    asked = launch.copied_sectors() + launch.shared_table_sectors() + launch.stored_sectors()
    kind = Mma(operand, fragment.sparse, fragment.m, TILES, fragment.k)
    return Costs(
        instructions=launch.instructions() / points,
        l1_wavefronts=(launch.shared_wavefronts() + launch.global_lines()) / points,
        l2_bytes=SECTOR * asked / points,
        dram_bytes=layout.itemsize * (launch.halo + 1),
        store_bytes=layout.itemsize,
        bytes_in_flight=_bytes_in_flight(layout) / tile.warps,
        resident_warps=warps,
        resident_blocks=blocks,
        blocks=launch.blocks,
        mma={kind: launch.mma() / points},
    )


def _bytes_in_flight(layout: BlockLayout) -> int:
    """New inputs on their way to a block, and outputs on their way from it.

    All halo tiles but the one that is multiplied are being copied while outputs are written. With
    one halo tile both are on their way half the time, since the product is between them.
    """
    return math.prod(layout.tile) * layout.itemsize * layout.stages
