# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""How a thread block computes a patch operator: its tile, shared memory, and who computes what.

A block advances along the slowest axis, one block tile after another. The halo tile of each lies in
shared memory, row by row; a warp multiplies A with eight tiles at a time (a group) and leaves the
outputs in a staging tile, which is then written row by row.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from itertools import product

import numpy as np

from twofour.errors import TwofourError, Unsuitable
from twofour.layout.banks import BANKS, WORD, compatible, wavefronts
from twofour.layout.column_order import order_columns
from twofour.layout.fragments import LANES, TILES, Fragment
from twofour.layout.patch import PatchOperator

Extents = tuple[int, ...]

COPY_BYTES = 16  # one asynchronous copy
SECTOR = 32  # bytes; rows start on sectors, so that stores fill them
MAX_ROW_BYTES = 1024
MAX_ROWS = 16  # per axis
PREFERRED_SHARED = 80 * 1024  # leaves room for two blocks on a multiprocessor
MAX_SHARED = 99 * 1024  # what every chip from sm_80 on can give to a block
MAX_SECTOR_WASTE = 1.12  # bytes in the sectors of a halo tile over bytes in the halo tile
# A block computes as many tiles as keep its tables below this share of what it loads.
TABLE_SHARE = 0.02
MIN_MARCH, MAX_MARCH = 4, 16
MAX_WARPS = 4
# 32-bit registers that A, metadata and offsets may occupy for the whole kernel.
MAX_RESIDENT = 64
# Groups whose sums are kept while A and the offsets of a step are read from tables.
MAX_BATCH = 4


@dataclass(frozen=True, eq=False)
class BlockLayout:
    """The work of one thread block; extents and offsets are in elements, slowest axis first.

    Attributes:
        operator: columns in the order of the fragments, both sides padded with zeros to whole
            fragments; rows from `outputs` on are padding. Of rank 2 at least: operators of rank 1
            become `folded` ones, whose axis 0 counts segments of a row.
        outputs: rows of A that are outputs.
        fragment: the instruction.
        reach_lo, reach_hi: how far the patch reaches, per axis.
        tile: outputs of the block per axis, without its march along axis 0.
        group: tiles of one instruction per axis; the product is 8.
        warps: warps per axis.
        lead: elements before the tile's first output in a shared row; whole copies.
        row: elements of a shared row that are loaded.
        input_strides, output_strides: of the halo tile and of the staging tile.
        stages: halo tiles in shared memory: 2 to load one while computing another.
        march: block tiles along axis 0.
        folded: whether axis 0 counts segments of the only axis there is.
    """

    operator: PatchOperator
    outputs: int
    fragment: Fragment
    itemsize: int
    reach_lo: Extents
    reach_hi: Extents
    tile: Extents
    group: Extents
    warps: Extents
    lead: int
    row: int
    input_strides: Extents
    output_strides: Extents
    stages: int
    march: int
    folded: bool

    @property
    def threads(self) -> int:
        """Threads of the block."""
        return LANES * math.prod(self.warps)

    @property
    def steps(self) -> int:
        """Instructions along the columns of A."""
        return self.operator.matrix.shape[1] // self.fragment.k

    @property
    def row_blocks(self) -> int:
        """Instructions along the rows of A."""
        return self.operator.matrix.shape[0] // self.fragment.m

    @property
    def groups(self) -> Extents:
        """Groups that one warp computes, per axis."""
        return tuple(
            extent // (tile * group * warps)
            for extent, tile, group, warps in zip(
                self.tile, self.operator.tile, self.group, self.warps, strict=True
            )
        )

    @property
    def halo_rows(self) -> Extents:
        """Rows of the halo tile per axis, all but the last."""
        return halo_rows(self.tile, self.reach_lo, self.reach_hi)

    @property
    def skipped(self) -> int:
        """Elements between the start of a sector in memory and the start of a shared row."""
        return -self.lead % (SECTOR // self.itemsize)

    @property
    def input_elements(self) -> int:
        """Elements of one halo tile in shared memory."""
        return self.halo_rows[0] * self.input_strides[0]

    @property
    def output_elements(self) -> int:
        """Elements of the staging tile."""
        return self.tile[0] * self.output_strides[0]

    @property
    def shared_bytes(self) -> int:
        """Shared memory of the block."""
        return (self.stages * self.input_elements + self.output_elements) * self.itemsize

    def block(self, row_block: int, step: int) -> np.ndarray:
        """The part of A that one instruction multiplies, float64 (m, k)."""
        m, k = self.fragment.m, self.fragment.k
        rows = slice(row_block * m, (row_block + 1) * m)
        return self.operator.matrix[rows, step * k : (step + 1) * k]

    def used_blocks(self) -> list[tuple[int, int]]:
        """(row block, step) of the instructions whose part of A is not all zero."""
        return [
            (row_block, step)
            for row_block in range(self.row_blocks)
            for step in range(self.steps)
            if self.block(row_block, step).any()
        ]

    def tile_offsets(self, strides: Extents) -> np.ndarray:
        """Where the eight tiles of a group begin, int (8,)."""
        places = np.indices(self.group).reshape(len(self.group), -1).T
        return places @ (np.array(self.operator.tile) * np.array(strides))

    def input_offsets(self) -> np.ndarray:
        """Where a tile finds the inputs of its columns in the halo tile, int (K,)."""
        first = np.array([*self.reach_lo[:-1], self.lead])
        return (self.operator.input_offsets + first) @ np.array(self.input_strides)

    def output_offsets(self) -> np.ndarray:
        """Where a tile leaves its outputs in the staging tile, int (outputs,)."""
        return self.operator.output_offsets[: self.outputs] @ np.array(self.output_strides)

    def load_accesses(self) -> np.ndarray:
        """Elements that the lanes read by each load of B of one group, int (loads, 32)."""
        columns = self.input_offsets().reshape(-1, self.fragment.k)
        tiles = self.tile_offsets(self.input_strides)[np.arange(LANES) // 4]
        places = columns[:, self.fragment.b_row] + tiles[None, :, None]  # steps, lanes, elements
        return places.transpose(0, 2, 1).reshape(-1, LANES)

    def store_accesses(self) -> np.ndarray:
        """Elements that the lanes write by each store of C of one group, int (stores, 32)."""
        fragment, offsets = self.fragment, self.output_offsets()
        rows = np.arange(-(-self.outputs // fragment.m)) * fragment.m
        # Padding rows are not stored; the last output stands in for them.
        row = np.minimum(rows[:, None, None] + fragment.c_row[None], self.outputs - 1)
        places = offsets[row] + self.tile_offsets(self.output_strides)[fragment.c_tile][None]
        return places.transpose(0, 2, 1).reshape(-1, LANES)


def halo_rows(tile: Extents, reach_lo: Extents, reach_hi: Extents) -> Extents:
    """Rows of a halo tile per axis, all axes but the last."""
    axes = zip(tile[:-1], reach_lo[:-1], reach_hi[:-1], strict=True)
    return tuple(extent + lo + hi for extent, lo, hi in axes)


def fold(operator: PatchOperator) -> PatchOperator:
    """An operator of rank 1 as one of rank 2 whose tiles are single rows."""
    output_offsets, input_offsets = (
        np.insert(offsets, 0, 0, axis=1)
        for offsets in (operator.output_offsets, operator.input_offsets)
    )
    return PatchOperator(operator.matrix, output_offsets, input_offsets, (1, *operator.tile))


def lay_out_block(
    operator: PatchOperator,
    fragment: Fragment,
    itemsize: int,
    reach: tuple[Extents, Extents],
    *,
    tile: Extents | None = None,
    stages: int | None = None,
    march: int | None = None,
) -> BlockLayout:
    """The block layout of an operator: the largest tile that fits, then the fewest conflicts.

    Args:
        operator: of any rank; for sparse fragments its columns stand in valid groups.
        fragment: the instruction.
        itemsize: bytes of a stored element.
        reach: (lo, hi) of the stencil: minus the smallest and the largest offset per axis.
        tile: outputs of a block per axis, of rank 1 also segments and the outputs of each; searched
            when it is not given.
        stages: halo tiles in shared memory; 2 where they fit when it is not given.
        march: block tiles along axis 0; chosen when it is not given.

    Raises:
        Unsuitable: no block fits into shared memory.
        TwofourError: the tile given does not fit the operator.
    """
    folded = len(operator.tile) == 1
    reach_lo, reach_hi = (tuple(side) for side in reach)
    if folded:
        operator = fold(operator)
        reach_lo, reach_hi = (0, *reach_lo), (0, *reach_hi)
        tile = None if tile is None else _fold_tile(tile)
    if tile is not None:
        _check_tile(operator.tile, tile, itemsize)
    outputs = len(operator.matrix)
    operator = _padded(operator, fragment)
    tile, stages = _choose_tile(operator, itemsize, reach_lo, reach_hi, tile, stages)
    copy = COPY_BYTES // itemsize
    lead = -(-reach_lo[-1] // copy) * copy
    row = lead + tile[-1] + -(-reach_hi[-1] // copy) * copy
    layout = BlockLayout(
        operator=operator,
        outputs=outputs,
        fragment=fragment,
        itemsize=itemsize,
        reach_lo=reach_lo,
        reach_hi=reach_hi,
        tile=tile,
        group=(1,) * len(tile),
        warps=(1,) * len(tile),
        lead=lead,
        row=row,
        input_strides=_strides(halo_rows(tile, reach_lo, reach_hi), row),
        output_strides=_strides(tile[:-1], tile[-1]),
        stages=stages,
        march=march or 1,
        folded=folded,
    )
    for choose in (_spread_tiles, _order_columns, _space_staging):
        layout = choose(layout)
    return layout if march is not None else _choose_march(layout)


def _spread_tiles(layout: BlockLayout) -> BlockLayout:
    """Choose the group and the strides of the halo tile with which most columns read together."""
    patch, tile = layout.operator.tile, layout.tile
    best = None
    for group in _groups(patch, tile):
        for strides in _padded_strides(layout.halo_rows, layout.row, layout.itemsize):
            candidate = replace(layout, group=group, input_strides=strides)
            if candidate.shared_bytes > MAX_SHARED:
                continue
            score = _sharing(candidate)
            if best is None or score > best[0]:
                best = (score, candidate)
    layout = best[1]
    return replace(layout, warps=_warps(patch, tile, layout.group))


def _order_columns(layout: BlockLayout) -> BlockLayout:
    """Order the columns of A so that those read together meet in no bank."""
    operator, offsets = layout.operator, layout.input_offsets()
    tiles = layout.tile_offsets(layout.input_strides)
    free = compatible(offsets[:, None] + tiles[None, :], layout.itemsize)
    order = order_columns(len(offsets), layout.fragment, free)
    operator = replace(
        operator,
        matrix=operator.matrix[:, order],
        input_offsets=operator.input_offsets[order],
    )
    return replace(layout, operator=operator)


def _space_staging(layout: BlockLayout) -> BlockLayout:
    """Choose the strides of the staging tile with the fewest conflicts."""
    tile = layout.tile
    candidates = (
        replace(layout, output_strides=strides)
        for strides in _padded_strides(tile[:-1], tile[-1], layout.itemsize)
    )
    return min(
        (c for c in candidates if c.shared_bytes <= MAX_SHARED),
        key=lambda c: wavefronts(c.store_accesses(), c.itemsize).sum(),
    )


def _choose_march(layout: BlockLayout) -> BlockLayout:
    """Choose how many tiles share one read of the tables."""
    fragment, operator = layout.fragment, layout.operator
    values = fragment.a_row.size * layout.itemsize + fragment.sparse * LANES * WORD
    columns = operator.matrix.shape[1]
    tables = math.prod(layout.warps) * (layout.row_blocks * layout.steps * values + columns * WORD)
    loaded, _, _ = _bytes(
        layout.tile, layout.itemsize, layout.reach_lo, layout.reach_hi, layout.stages
    )
    march = math.ceil(tables / loaded / TABLE_SHARE)
    return replace(layout, march=min(max(march, MIN_MARCH), MAX_MARCH))


def _fold_tile(tile: Extents) -> Extents:
    """A block of one axis as segments, one for each tile of a group; one of segments as it is."""
    if len(tile) == 2:
        return tuple(tile)
    if len(tile) != 1 or tile[0] % TILES:
        raise TwofourError(f"expected a block of one multiple of {TILES} outputs, got {list(tile)}")
    return (TILES, tile[0] // TILES)


def _check_tile(patch: Extents, tile: Extents, itemsize: int) -> None:
    row = SECTOR // itemsize
    fits = len(tile) == len(patch) and tile[-1] % row == 0
    if not fits or not _groups(patch, tile):
        raise TwofourError(
            f"expected a block of multiples of {list(patch)} that holds {TILES} tiles, its rows "
            f"multiples of {row} outputs, got {list(tile)}"
        )


def _padded(operator: PatchOperator, fragment: Fragment) -> PatchOperator:
    """The operator with zero rows and columns up to whole fragments."""
    rows, columns = operator.matrix.shape
    matrix = np.zeros((-(-rows // fragment.m) * fragment.m, -(-columns // fragment.k) * fragment.k))
    matrix[:rows, :columns] = operator.matrix
    # Zero columns read the first input, zero rows are never stored.
    inputs = np.repeat(operator.input_offsets[:1], matrix.shape[1], axis=0)
    inputs[:columns] = operator.input_offsets
    outputs = np.repeat(operator.output_offsets[:1], matrix.shape[0], axis=0)
    outputs[:rows] = operator.output_offsets
    return PatchOperator(matrix, outputs, inputs, operator.tile)


def _choose_tile(
    operator: PatchOperator,
    itemsize: int,
    reach_lo: Extents,
    reach_hi: Extents,
    tile: Extents | None,
    stages: int | None,
) -> tuple[Extents, int]:
    """The block tile with the least halo, and its stages; raises Unsuitable where nothing fits."""
    candidates = [tile] if tile is not None else _tiles(operator.tile, itemsize)
    best = None
    for extents in candidates:
        if not _groups(operator.tile, extents):
            continue
        for count in (stages,) if stages is not None else (2, 1):
            loaded, waste, used = _bytes(extents, itemsize, reach_lo, reach_hi, count)
            if used > MAX_SHARED:
                continue
            volume = math.prod(extents)
            key = (
                used > PREFERRED_SHARED,
                waste > MAX_SECTOR_WASTE,
                count == 1,
                round(loaded / (volume * itemsize), 2),
                -volume,
            )
            if best is None or key < best[0]:
                best = (key, (extents, count))
    if best is None:
        raise Unsuitable(
            f"expected a halo tile of at most {MAX_SHARED} bytes of shared memory, got more for a "
            f"reach of {list(reach_lo)} and {list(reach_hi)}"
        )
    return best[1]


def _tiles(patch: Extents, itemsize: int) -> list[Extents]:
    """Block tiles: multiples of the patch tile by powers of two, whole copies along a row."""
    sector = SECTOR // itemsize
    rows = [[p << n for n in range(6) if p << n <= max(p, MAX_ROWS)] for p in patch[:-1]]
    widths = [
        patch[-1] << n
        for n in range(12)
        if patch[-1] << n <= max(patch[-1], MAX_ROW_BYTES // itemsize)
        and (patch[-1] << n) % sector == 0
    ]
    return list(product(*rows, widths))


def _bytes(tile, itemsize, reach_lo, reach_hi, stages) -> tuple[int, float, int]:
    """Bytes loaded for a tile in whole sectors, their waste, and the shared memory it takes."""
    rows = math.prod(halo_rows(tile, reach_lo, reach_hi))
    sector, copy = SECTOR // itemsize, COPY_BYTES // itemsize
    lo, hi = reach_lo[-1], reach_hi[-1]
    sectors = -(-lo // sector) + tile[-1] // sector + -(-hi // sector)
    row = tile[-1] + (-(-lo // copy) + -(-hi // copy)) * copy
    waste = sectors * SECTOR / ((lo + tile[-1] + hi) * itemsize)
    return rows * sectors * SECTOR, waste, (stages * rows * row + math.prod(tile)) * itemsize


def _groups(patch: Extents, tile: Extents) -> list[Extents]:
    """Ways to spread the eight tiles of an instruction over the axes of a block."""
    counts = [t // p if t % p == 0 else 0 for t, p in zip(tile, patch, strict=True)]
    powers = [1, 2, 4, 8]
    return [
        group
        for group in product(powers, repeat=len(tile))
        if math.prod(group) == TILES
        and all(c >= g and c % g == 0 for c, g in zip(counts, group, strict=True))
    ]


def _warps(patch: Extents, tile: Extents, group: Extents) -> Extents:
    """Warps per axis: up to MAX_WARPS, the slowest axes first."""
    left, warps = MAX_WARPS, []
    for extent, p, g in zip(tile, patch, group, strict=True):
        count = math.gcd(extent // (p * g), left)
        warps.append(count)
        left //= count
    return tuple(warps)


def _padded_strides(rows: Extents, row: int, itemsize: int) -> list[Extents]:
    """Strides with rows and planes spaced out by whole copies, the least space first."""
    copy = COPY_BYTES // itemsize
    spaces = [n * copy for n in range(BANKS * WORD // COPY_BYTES)]
    pads = product(spaces, repeat=min(2, len(rows)))
    return [_strides(rows, row, *pad) for pad in pads]


def _strides(rows: Extents, row: int, row_space: int = 0, plane_space: int = 0) -> Extents:
    """Strides of a tile of rows of `row` elements, with space after each row and each plane."""
    strides = [1, row + row_space]
    for number, extent in enumerate(reversed(rows[1:])):
        strides.append(strides[-1] * extent + (plane_space if number == 0 else 0))
    return tuple(reversed(strides))


def _sharing(layout: BlockLayout) -> float:
    """The share of pairs of columns that can be read together; below 0 with self-conflicts."""
    sample = np.unique(layout.input_offsets())[:64]
    tiles = layout.tile_offsets(layout.input_strides)
    free = compatible(sample[:, None] + tiles[None, :], layout.itemsize)
    return float(free.mean()) if free.diagonal().all() else float(free.diagonal().mean()) - 1
