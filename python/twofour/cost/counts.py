# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""What launches of all kinds of kernels have in common: counters, cache lines, resident warps."""

from dataclasses import dataclass

from twofour.sim.chips import Chip, occupancy

LANES = 32
SECTOR, LINE = 32, 128  # bytes
MAX_REGISTERS = 255  # of a thread
# Of what plain threads load to registers so much is on its way, since loads wait for each other:
# fitted to an H200.
WAITING = 0.5


@dataclass(frozen=True)
class Counts:
    """Counters of one launch per output point, as the simulator counts them.

    `instructions` and `mma` of warps; `shared_wavefronts`; `global_load_bytes` and
    `global_store_bytes` in the sectors that each access of a warp asks for, whichever cache has
    them.
    """

    instructions: float
    mma: float
    shared_wavefronts: float
    global_load_bytes: float
    global_store_bytes: float


def ceil_div(a: int, b: int) -> int:
    """The quotient of a and b rounded up, for b > 0."""
    return -(-a // b)


def sectors(first: int, size: int) -> int:
    """Sectors of `size` bytes from byte `first` on, counted from the start of a sector."""
    return (first + size - 1) // SECTOR - first // SECTOR + 1 if size > 0 else 0


def lines(first: int, size: int) -> float:
    """Cache lines of `size` bytes from byte `first` on, counted from the start of a row.

    Rows begin at any sector of a line: the mean over these.
    """
    if size <= 0:
        return 0.0
    begins = range(first, first + LINE, SECTOR)
    return sum((at + size - 1) // LINE - at // LINE + 1 for at in begins) * SECTOR / LINE


def spans(extent: int, tile: int, halo: int) -> int:
    """Rows along an axis of `extent` points that tiles read, with `halo` beyond their ends."""
    whole, rest = divmod(extent, tile)
    return whole * (tile + halo) + (rest + halo if rest else 0)


def resident(chip: Chip, registers: int, threads: int, shared_bytes: int) -> tuple[int, int]:
    """Warps and blocks that are on a multiprocessor at a time; at least one block."""
    warps = ceil_div(threads, LANES)
    part = occupancy(chip, min(registers, MAX_REGISTERS), threads, shared_bytes)
    blocks = max(1, round(part * chip.warps) // warps)
    return blocks * warps, blocks
