# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""What a refresh of a halo between two sweeps costs (targets.gpu.boundary_kernel).

One launch, a thread for every halo cell: it reads one element and writes one. Cells beside the
interior on the last axis touch a sector for each row, both times; all others are whole rows.
Everything comes from memory: the sweep before has long since written its borders.
"""

from collections.abc import Sequence
from math import prod

from twofour.cost.chips import GpuModel
from twofour.cost.costs import Costs
from twofour.cost.counts import LANES, LINE, SECTOR, ceil_div, resident, sectors
from twofour.cost.model import predict
from twofour.sim import chips

THREADS = 256
# PTX instructions of a warp by axis: where the cell is, and where its value comes from.
INSTRUCTIONS_AXIS = 60
REGISTERS = 40


def refresh_costs(
    shape: Sequence[int], below: Sequence[int], above: Sequence[int], itemsize: int, gpu: GpuModel
) -> tuple[Costs, int]:
    """The costs of one refresh, for each halo cell, and the number of these.

    Args:
        shape: the interior, in cells per axis.
        below, above: how deep the halo is per axis; somewhere it is at least one cell.
        itemsize: bytes of an element.
        gpu: the chip.
    """
    extents = [n + b + a for n, b, a in zip(shape, below, above, strict=True)]
    rows = prod(shape[:-1])
    beside = rows * (below[-1] + above[-1])
    cells = prod(extents) - prod(shape)
    whole_rows = (cells - beside) * itemsize
    ends = [depth * itemsize for depth in (below[-1], above[-1]) if depth]
    touched = rows * sum(sectors(0, size) for size in ends) + ceil_div(whole_rows, SECTOR)
    moved = 2 * SECTOR * touched / cells
    warps, blocks = resident(chips.find(gpu.architecture), REGISTERS, THREADS, 0)
    costs = Costs(
        instructions=INSTRUCTIONS_AXIS * len(shape) / LANES,
        l1_wavefronts=2 * (rows * len(ends) + whole_rows / LINE) / cells,
        l2_bytes=moved,
        dram_bytes=moved,
        store_bytes=itemsize,
        # What is read is on its way, then what is written.
        bytes_in_flight=LANES * moved / 2,
        resident_warps=warps,
        resident_blocks=blocks,
        blocks=ceil_div(cells, THREADS),
    )
    return costs, cells


def refresh_seconds(
    gpu: GpuModel, shape: Sequence[int], below: Sequence[int], above: Sequence[int], itemsize: int
) -> float:
    """The predicted time of one refresh, its launch included; 0 without a halo.

    Arguments are those of `refresh_costs`.
    """
    if not any((*below, *above)):
        return 0.0
    costs, cells = refresh_costs(shape, below, above, itemsize, gpu)
    return predict(gpu, costs, cells).seconds_per_point * cells
