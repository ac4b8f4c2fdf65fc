# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""What a launch costs, on any chip: the input of the model."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import NamedTuple


class Mma(NamedTuple):
    """A kind of matrix instruction: m x n x k multiply-adds, the zeros of a sparse A among them."""

    operand: str
    sparse: bool
    m: int
    n: int
    k: int

    @property
    def macs(self) -> int:
        return self.m * self.n * self.k


@dataclass(frozen=True)
class Costs:
    """Costs of one launch of `blocks` blocks that advances its output by `steps` time steps.

    For every output point, that is divided by the points of the output and not by the steps:
    `instructions` of warps; `l1_wavefronts` of 128 bytes, of shared and global accesses;
    `l2_bytes`, in the sectors that warps ask of the second-level cache or write to it;
    `dram_bytes`, read and written; `store_bytes`, the size of the output, so that a copy moves
    twice that; `mma`, instructions of warps by kind; `fma`, multiply-adds of scalars by type.

    `bytes_in_flight` are those that one warp has asked for and waits for, on average over its life;
    `resident_warps` and `resident_blocks` are those of one multiprocessor at a time. Counts are not
    negative, and all numbers of warps, blocks, steps and bytes in flight are positive.

    Blocks that march read `halo_bytes` for every output point besides `dram_bytes`, which their
    neighbours read, too; they come from the second-level cache as far as it holds what marches at
    work have read. `span_bytes` are the inputs of the marches at work on one multiprocessor, from
    their first rows to their last ones; 0 for blocks that do not march. `reads_to_registers` tells
    whether warps read ahead to registers, and wait there, rather than to shared memory.
    """

    instructions: float
    l1_wavefronts: float
    l2_bytes: float
    dram_bytes: float
    store_bytes: float
    bytes_in_flight: float
    resident_warps: int
    resident_blocks: int
    blocks: int
    steps: int = 1
    halo_bytes: float = 0.0
    span_bytes: float = 0.0
    reads_to_registers: bool = False
    mma: Mapping[Mma, float] = field(default_factory=dict)
    fma: Mapping[str, float] = field(default_factory=dict)
