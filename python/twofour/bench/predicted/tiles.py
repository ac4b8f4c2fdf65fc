# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Operators of one tile: what they multiply, and how fast kernels through shared memory are."""

from collections.abc import Sequence
from math import prod

import numpy as np

from twofour.cost import GpuModel, Prediction, predict
from twofour.cost.explore import DOMAINS
from twofour.cost.tile import tile_costs
from twofour.layout.block import lay_out_block
from twofour.layout.fragments import DENSE_16, SPARSE_16
from twofour.layout.matching import ROWS_PER_MMA
from twofour.layout.patch import Offset, PatchOperator
from twofour.layout.search import mma_per_128_outputs
from twofour.reach import reach_of
from twofour.sim import chips

ITEMSIZE = 2  # bytes of f16


def instructions(matrix: np.ndarray, columns: int) -> float:
    """Matrix instructions for 128 outputs that take so many columns of A each."""
    return mma_per_128_outputs(np.pad(matrix, ((0, 0), (0, -matrix.shape[1] % columns))), columns)


def sparsity(matrix: np.ndarray, columns: int) -> float:
    """The share of zeros in A, with the rows and columns that make whole instructions."""
    rows = -(-matrix.shape[0] // ROWS_PER_MMA) * ROWS_PER_MMA
    width = -(-matrix.shape[1] // columns) * columns
    return 1 - np.count_nonzero(matrix) / (rows * width)


def predict_tile(
    gpu: GpuModel, operator: PatchOperator, offsets: Sequence[Offset], sparse: bool
) -> Prediction:
    """How fast f16 is on a large domain, by `sparse` or `dense` instructions.

    Raises Unsuitable where no thread block takes the tile.
    """
    reach = reach_of(offsets)
    layout = lay_out_block(operator, SPARSE_16 if sparse else DENSE_16, ITEMSIZE, reach)
    shape = DOMAINS[len(reach[0])]
    return predict(gpu, tile_costs(layout, shape, "f16", chips.find(gpu.architecture)), prod(shape))
