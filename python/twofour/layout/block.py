# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The search for a block layout: the tile of a thread block, then the places in shared memory.

The largest tile that fits is taken, then rows are spaced out, columns ordered and results placed so
that the fewest accesses to shared memory meet in a bank.
"""

from __future__ import annotations

import math
from dataclasses import replace
from itertools import product

import numpy as np

from twofour.errors import TwofourError, Unsuitable
from twofour.layout.banks import BANKS, WORD, compatible
from twofour.layout.block_layout import (
    BARRIER_BYTES,
    BOX_BYTES,
    COPY_BYTES,
    SECTOR,
    BlockLayout,
    halo_rows,
)
from twofour.layout.column_order import order_columns
from twofour.layout.fragments import LANES, TILES, Fragment
from twofour.layout.patch import PatchOperator
from twofour.reach import Extents, Reach
from twofour.tensor_map import MAX_BOX, MAX_RANK

MAX_ROW_BYTES = 1024
MAX_ROWS = 16  # per axis
MAX_BOXES = 8  # that a staging tile is written in
PREFERRED_SHARED = 80 * 1024  # leaves room for two blocks on a multiprocessor
MAX_SHARED = 99 * 1024  # what every chip from sm_80 on can give to a block
MAX_BULK_SHARED = 113 * 1024  # leaves room for two blocks on chips with a copy engine
MAX_SECTOR_WASTE = 1.12  # bytes in the sectors of a halo tile over bytes in the halo tile
# A block computes as many tiles as keep its tables below this share of what it loads.
TABLE_SHARE = 0.02
MIN_MARCH, MAX_MARCH = 4, 16
MAX_WARPS = 4


def fold(operator: PatchOperator) -> PatchOperator:
    """An operator of rank 1 as one of rank 2 whose tiles are single rows."""
    output_offsets, input_offsets = (
        np.insert(offsets, 0, 0, axis=1)
        for offsets in (operator.output_offsets, operator.input_offsets)
    )
    return PatchOperator(operator.matrix, output_offsets, input_offsets, (1, *operator.tile))


def takes_boxes(fragment: Fragment, itemsize: int) -> bool:
    """Whether tiles are to be moved as boxes where there is a copy engine.

    Boxes are narrower than the rows that threads copy, and hold the space between rows: they load
    up to 1.45 times what a tile and its halo hold. Sparse kernels of 16 bits stay below 1.15.
    """
    return not (fragment.sparse and itemsize == 2)


def lay_out_block(
    operator: PatchOperator,
    fragment: Fragment,
    itemsize: int,
    reach: Reach,
    *,
    tile: Extents | None = None,
    stages: int | None = None,
    march: int | None = None,
    bulk: bool = False,
) -> BlockLayout:
    """The block layout of an operator: the largest tile that fits, then the fewest conflicts.

    Args:
        operator: of any rank; for sparse fragments its columns stand in valid groups.
        fragment: the instruction.
        itemsize: bytes of a stored element.
        reach: (lo, hi) of the stencil: minus the smallest and the largest offset per axis.
        tile: outputs of a block per axis, of rank 1 also segments and the outputs of each; searched
            when it is not given.
        stages: halo tiles in shared memory; 2 where they fit when it is not given, 3 with `bulk`.
        march: block tiles along axis 0; chosen when it is not given.
        bulk: whether there is a copy engine. It moves tiles that fit into its boxes, and not the
            overlapping segments of a folded axis.

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
    chosen = None
    if bulk and not folded and len(operator.tile) <= MAX_RANK:
        chosen = _choose_tile(operator, itemsize, reach_lo, reach_hi, tile, stages, True)
    bulk = chosen is not None
    chosen = chosen or _choose_tile(operator, itemsize, reach_lo, reach_hi, tile, stages)
    if chosen is None:
        raise Unsuitable(
            f"expected a halo tile of at most {MAX_SHARED} bytes of shared memory, got more for a "
            f"reach of {list(reach_lo)} and {list(reach_hi)}"
        )
    tile, stages = chosen
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
        bulk=bulk,
        output_width=tile[-1],
    )
    for choose in (_spread_tiles, _order_columns, _space_staging):
        layout = choose(layout)
    return layout if march is not None else _choose_march(layout)


def _most_shared(bulk: bool) -> int:
    """Bytes of shared memory that a block may have."""
    return MAX_BULK_SHARED if bulk else MAX_SHARED


def _spread_tiles(layout: BlockLayout) -> BlockLayout:
    """Choose the group and the strides of the halo tile with which most columns read together."""
    patch, tile = layout.operator.tile, layout.tile
    best = None
    for group in _groups(patch, tile):
        for strides in _padded_strides(layout.halo_rows, layout.row, layout.itemsize, layout.bulk):
            candidate = replace(layout, group=group, input_strides=strides)
            if candidate.shared_bytes > _most_shared(layout.bulk):
                continue
            if layout.bulk and max(candidate.input_box) > MAX_BOX:
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
    if layout.bulk:
        candidates = (
            replace(layout, output_width=width, output_strides=_strides(tile[:-1], width))
            for width in _output_widths(layout)
        )
    else:
        candidates = (
            replace(layout, output_strides=strides)
            for strides in _padded_strides(tile[:-1], tile[-1], layout.itemsize)
        )
    return min(
        (c for c in candidates if c.shared_bytes <= _most_shared(layout.bulk)),
        key=lambda c: c.store_wavefronts(),
    )


def _output_widths(layout: BlockLayout) -> list[int]:
    """Widths of the boxes that a staging tile is made of, the widest first.

    A box holds whole tiles of the operator, and a group whole boxes.
    """
    patch, width = layout.operator.tile[-1], layout.tile[-1]
    group = layout.group[-1] * patch
    sector = SECTOR // layout.itemsize
    parts = [patch << n for n in range(12) if group % (patch << n) == 0]
    fits = [n for n in parts if n % sector == 0 and width // n <= MAX_BOXES and n < width]
    return [width, *reversed(fits)]


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
    bulk: bool = False,
) -> tuple[Extents, int] | None:
    """The block tile with the least halo, and its stages; None where nothing fits."""
    candidates = [tile] if tile is not None else _tiles(operator.tile, itemsize)
    best = None
    most = 3 if bulk else 2
    for extents in candidates:
        if not _groups(operator.tile, extents):
            continue
        if bulk and max(_halo_box(extents, itemsize, reach_lo, reach_hi)) > MAX_BOX:
            continue
        for count in (stages,) if stages is not None else range(most, 0, -1):
            loaded, waste, used = _bytes(extents, itemsize, reach_lo, reach_hi, count)
            if bulk:
                # A second staging tile, barriers, and what may lie between the tiles.
                used += math.prod(extents) * itemsize + count * BARRIER_BYTES
                used += (count + 2) * (BOX_BYTES - COPY_BYTES)
            if used > _most_shared(bulk):
                continue
            volume = math.prod(extents)
            key = (
                used > PREFERRED_SHARED and not bulk,
                waste > MAX_SECTOR_WASTE,
                most - count,
                round(loaded / (volume * itemsize), 2),
                -volume,
            )
            if best is None or key < best[0]:
                best = (key, (extents, count))
    return best and best[1]


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


def _halo_box(tile: Extents, itemsize: int, reach_lo: Extents, reach_hi: Extents) -> Extents:
    """The extents of a halo tile whose rows are whole copies."""
    copy = COPY_BYTES // itemsize
    lo, hi = (-(-side[-1] // copy) * copy for side in (reach_lo, reach_hi))
    return (*halo_rows(tile, reach_lo, reach_hi), lo + tile[-1] + hi)


def _bytes(
    tile: Extents, itemsize: int, reach_lo: Extents, reach_hi: Extents, stages: int
) -> tuple[int, float, int]:
    """Bytes loaded for a tile in whole sectors, their waste, and the shared memory it takes."""
    *rows, row = _halo_box(tile, itemsize, reach_lo, reach_hi)
    rows, sector = math.prod(rows), SECTOR // itemsize
    lo, hi = reach_lo[-1], reach_hi[-1]
    sectors = -(-lo // sector) + tile[-1] // sector + -(-hi // sector)
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


def _padded_strides(
    rows: Extents, row: int, itemsize: int, only_rows: bool = False
) -> list[Extents]:
    """Strides with rows and planes spaced out by whole copies, the least space first."""
    copy = COPY_BYTES // itemsize
    spaces = [n * copy for n in range(BANKS * WORD // COPY_BYTES)]
    pads = product(spaces, repeat=1 if only_rows else min(2, len(rows)))
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
