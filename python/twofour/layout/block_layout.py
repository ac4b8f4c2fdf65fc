# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The work of a thread block: its tile, where everything lies in shared memory, who computes what.

A block advances along the slowest axis, one block tile after another. The halo tile of each lies in
shared memory, row by row; a warp multiplies A with eight tiles at a time (a group) and leaves the
outputs in a staging tile, which is then written row by row, or box by box.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from twofour.layout.banks import wavefronts
from twofour.layout.fragments import LANES, Fragment
from twofour.layout.patch import PatchOperator
from twofour.reach import Extents

COPY_BYTES = 16  # one asynchronous copy
SECTOR = 32  # bytes; rows start on sectors, so that stores fill them
BOX_BYTES = 128  # boxes of the copy engine begin at multiples of it in shared memory
BARRIER_BYTES = 8
MATRIX = 8  # rows and columns that stmatrix stores
# 32-bit registers that A, metadata and offsets may occupy for the whole kernel.
MAX_RESIDENT = 64
# Groups whose sums are kept while A and the offsets of a step are read from tables.
MAX_BATCH = 4
# Where those stay in registers: loads of a lane, and sums, that are written out one after another.
MAX_LOADS, MAX_SUMS = 64, 64


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
        bulk: whether the copy engine moves whole tiles. Then rows of the halo tile follow each
            other without planes being spaced out, tiles begin at multiples of BOX_BYTES, and there
            are two staging tiles and a barrier for each stage.
        output_width: outputs of a row of the staging tile that lie together; where it is less than
            the row, the staging tile is made of as many boxes of that width, one after another.
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
    bulk: bool
    output_width: int

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

    def batch(self, resident: bool) -> int:
        """Groups along the last axis that are multiplied together, a power of two.

        `resident` tells whether A and the offsets of inputs stay in registers.
        """
        fragment = self.fragment
        loads = self.steps * fragment.b_row.shape[1]
        sums = self.row_blocks * fragment.c_row.shape[1]
        most = min(MAX_LOADS // loads, MAX_SUMS // sums) if resident else MAX_BATCH
        return math.gcd(self.groups[-1], 1 << (max(most, 1).bit_length() - 1))

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
    def input_box(self) -> Extents:
        """The extents of a halo tile as it lies in shared memory, with the space between rows."""
        return (*self.halo_rows, self.input_strides[-2])

    @property
    def stage_elements(self) -> int:
        """Elements from one halo tile to the next."""
        return self._aligned(self.input_elements)

    @property
    def output_box(self) -> Extents:
        """The extents of a box of the staging tile."""
        return (*self.tile[:-1], self.output_width)

    @property
    def output_boxes(self) -> int:
        """The boxes of the staging tile."""
        return self.tile[-1] // self.output_width

    @property
    def output_base_strides(self) -> Extents:
        """Strides of the staging tile for places that are multiples of a group's extents."""
        return (
            (*self.output_strides[:-1], self._box_elements // self.output_width)
            if (self.output_boxes > 1)
            else self.output_strides
        )

    @property
    def _box_elements(self) -> int:
        return self.tile[0] * self.output_strides[0]

    @property
    def output_elements(self) -> int:
        """Elements of the staging tile."""
        return self.output_boxes * self._box_elements

    @property
    def stagings(self) -> int:
        """Staging tiles: two where one is still being read while the next is filled."""
        return 2 if self.bulk else 1

    @property
    def staging_elements(self) -> int:
        """Elements from one staging tile to the next."""
        return self._aligned(self.output_elements)

    @property
    def shared_bytes(self) -> int:
        """Shared memory of the block."""
        tiles = self.stages * self.stage_elements + self.stagings * self.staging_elements
        return tiles * self.itemsize + self.bulk * self.stages * BARRIER_BYTES

    def _aligned(self, elements: int) -> int:
        unit = BOX_BYTES // self.itemsize if self.bulk else 1
        return -(-elements // unit) * unit

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

    def output_tile_offsets(self) -> np.ndarray:
        """Where the eight tiles of a group begin in the staging tile, int (8,)."""
        places = np.indices(self.group).reshape(len(self.group), -1).T * self.operator.tile
        boxes, places[:, -1] = np.divmod(places[:, -1], self.output_width)
        return places @ np.array(self.output_strides) + boxes * self._box_elements

    def input_offsets(self) -> np.ndarray:
        """Where a tile finds the inputs of its columns in the halo tile, int (K,)."""
        first = np.array([*self.reach_lo[:-1], self.lead])
        return (self.operator.input_offsets + first) @ np.array(self.input_strides)

    def output_offsets(self) -> np.ndarray:
        """Where a tile leaves its outputs in the staging tile, int (outputs,)."""
        return self.operator.output_offsets[: self.outputs] @ np.array(self.output_strides)

    @property
    def stores_matrices(self) -> bool:
        """Whether results are stored as transposed matrices of 8 x 8 (stmatrix, as sm_90 has it).

        Then eight rows of A are eight outputs that follow each other, of 16 bits each.
        """
        if not self.bulk or self.itemsize != 2 or self.outputs % self.fragment.m:
            return False
        runs = self.output_offsets().reshape(-1, MATRIX)
        aligned = (runs[:, 0] % MATRIX == 0).all() and self.output_width % MATRIX == 0
        return bool(aligned and self.operator.tile[-1] % MATRIX == 0) and bool(
            (runs == runs[:, :1] + np.arange(MATRIX)).all()
        )

    def store_wavefronts(self) -> int:
        """Wavefronts in which the results of one group are stored."""
        if not self.stores_matrices:
            return int(wavefronts(self.store_accesses(), self.itemsize).sum())
        rows = self.output_offsets()[::MATRIX, None] + self.output_tile_offsets()
        # The rows of a matrix are served as a quarter of a warp that accesses 16 bytes a lane.
        quarters = np.tile(rows // MATRIX, 4)
        return int(wavefronts(quarters, COPY_BYTES).sum()) // 4

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
        places = offsets[row] + self.output_tile_offsets()[fragment.c_tile][None]
        return places.transpose(0, 2, 1).reshape(-1, LANES)


def halo_rows(tile: Extents, reach_lo: Extents, reach_hi: Extents) -> Extents:
    """Rows of a halo tile per axis, all axes but the last."""
    axes = zip(tile[:-1], reach_lo[:-1], reach_hi[:-1], strict=True)
    return tuple(extent + lo + hi for extent, lo, hi in axes)
