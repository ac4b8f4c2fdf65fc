# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The state of a batch of blocks that run together, and the sets of lanes that run one step.

A *lane* is a thread of a block of the batch; blocks are padded to whole warps, so that lane
`block * padded + thread` of the batch is in warp `lane // 32`. Registers are arrays over lanes.
"""

from functools import cached_property
from typing import Literal, NoReturn

import numpy as np

from twofour.sim.faults import Fault, Place
from twofour.sim.ptx import Instruction, Kernel

# Generic addresses of shared, local and constant memory and of parameters: beyond any address of
# the host.
SHARED_WINDOW = 1 << 56
LOCAL_WINDOW = 2 << 56
CONSTANT_WINDOW = 3 << 56
PARAMETER_WINDOW = 4 << 56


class Active:
    """The lanes that execute a step together.

    `mask` is what NumPy's `where=` takes: True where no thread waits elsewhere, so that lanes which
    have exited may be written too. `here` marks the lanes; `lanes` are their numbers, None if all
    lanes of the batch are here.
    """

    def __init__(self, here: np.ndarray, count: int, alone: bool):
        self.here = here
        self.count = count
        self.mask: Literal[True] | np.ndarray = True if alone else here
        self.full = count == here.size

    @cached_property
    def lanes(self) -> np.ndarray | None:
        return None if self.full else np.flatnonzero(self.here)

    @cached_property
    def by_warp(self) -> np.ndarray:
        """[warps, 32]."""
        return self.here.reshape(-1, 32)

    @cached_property
    def warp_rows(self) -> np.ndarray:
        """The warps that have some lane here."""
        return np.flatnonzero(self.by_warp.any(axis=1))

    @cached_property
    def warps(self) -> int:
        return len(self.warp_rows)

    @cached_property
    def partial_warps(self) -> np.ndarray:
        """The warps that have some lanes here, but not all."""
        if self.full:
            return np.empty(0, np.int64)
        return self.warp_rows[~self.by_warp[self.warp_rows].all(axis=1)]

    def narrowed(self, condition: np.ndarray) -> "Active | None":
        """The lanes here where the condition holds; None if there are none."""
        here = self.here & condition
        count = int(np.count_nonzero(here))
        if count == self.count:
            return self
        return Active(here, count, False) if count else None


class Machine:
    """Lanes of `blocks` blocks of `threads` threads, before their registers and memories."""

    def __init__(
        self, kernel: Kernel, blocks: int, grid: tuple[int, int, int], block: tuple[int, int, int]
    ):
        self.kernel = kernel
        self.blocks = blocks
        self.grid_shape, self.block_shape = grid, block
        self.threads = int(np.prod(block, dtype=np.int64))
        self.padded = -(-self.threads // 32) * 32
        self.lanes = blocks * self.padded
        self.warps = self.lanes // 32
        lane = np.arange(self.lanes)
        self.local_block = lane // self.padded
        self.thread = lane % self.padded
        self.block = self.local_block.copy()
        self.real = self.thread < self.threads
        # Steps number the accesses and barriers of a launch; `trace` has their instructions.
        self.trace: list[Instruction | None] = [None]
        # Per lane: accesses of its block up to this step happened before. Per warp: of its warp.
        self.ordered = np.zeros(self.lanes, np.uint32)
        self.warp_ordered = np.zeros(self.warps, np.uint32)
        # Per lane: what it wrote up to this step the copy engine sees.
        self.fenced = np.zeros(self.lanes, np.uint32)
        self.shared_bytes = self.dynamic_bytes = 0
        self.executed = 0
        # The lanes that have not exited; set by the executor.
        self.live: np.ndarray

    def start(self, first_block: int) -> None:
        """Prepare for the blocks from a linear block number on."""
        self.block[:] = self.local_block + first_block
        self.ordered[:] = self.step
        self.warp_ordered[:] = self.step
        self.fenced[:] = self.step

    @property
    def step(self) -> int:
        return len(self.trace) - 1

    def next_step(self, instruction: Instruction) -> int:
        self.trace.append(instruction)
        return len(self.trace) - 1

    def global_thread(self) -> np.ndarray:
        """The number of every lane's thread in the grid, from 1."""
        return self.block * self.threads + self.thread + 1

    def place(self, lane: int) -> Place:
        def indices(linear: np.integer, shape: tuple[int, int, int]) -> tuple[int, int, int]:
            x, y, _ = shape
            return (int(linear % x), int(linear // x % y), int(linear // (x * y)))

        return Place(
            self.kernel.name,
            indices(self.block[lane], self.grid_shape),
            indices(self.thread[lane], self.block_shape),
        )

    def fault(
        self,
        instruction: Instruction,
        kind: str,
        message: str,
        lane: int | None = None,
        address: int | None = None,
    ) -> NoReturn:
        place = None if lane is None else self.place(lane)
        raise Fault(kind, message, instruction.location, place, address)

    def fault_of(
        self,
        instruction: Instruction,
        kind: str,
        message: str,
        lanes: np.ndarray | None,
        index: int,
        addresses: np.ndarray | None = None,
    ) -> NoReturn:
        """As `fault`, of the access `index` of these lanes, all in order where that is None."""
        lane = index if lanes is None else int(lanes[index])
        self.fault(
            instruction, kind, message, lane, None if addresses is None else int(addresses[index])
        )

    def check_aligned(
        self, instruction: Instruction, places: np.ndarray, lanes: np.ndarray | None, size: int
    ) -> None:
        """Fault where a place, a byte address or offset, is no multiple of `size`, a power of 2."""
        if size > 1 and int(np.bitwise_or.reduce(places)) & (size - 1):
            bad = int(np.flatnonzero(places & places.dtype.type(size - 1))[0])
            message = f"expected a multiple of {size}"
            self.fault_of(instruction, "misaligned", message, lanes, bad, places)

    def check_offsets(
        self,
        instruction: Instruction,
        offsets: np.ndarray,
        lanes: np.ndarray | None,
        size: int,
        space: str,
        limit: int,
    ) -> None:
        """Fault where `size` bytes at an int64 offset do not lie, aligned, in `limit` bytes."""
        self.check_aligned(instruction, offsets, lanes, size)
        # Negative offsets are large as unsigned numbers.
        if int(offsets.view(np.uint64).max()) > limit - size:
            bad = int(np.flatnonzero((offsets < 0) | (offsets > limit - size))[0])
            message = f"{size} bytes of {space} memory, which has {limit}"
            self.fault_of(instruction, "out of bounds", message, lanes, bad, offsets)

    def order_warps(self, active: Active, instruction: Instruction) -> None:
        """A warp-synchronising instruction: what its warp did before is ordered before the rest."""
        step = self.next_step(instruction)
        if active.full:
            self.warp_ordered[:] = step
            rows = slice(None)
        else:
            rows = active.warp_rows
            self.warp_ordered[rows] = step
        # One lane's wait at an mbarrier counts for the lanes that synchronise with it.
        by_warp = self.ordered.reshape(-1, 32)
        part = by_warp[rows]
        latest = part.max(axis=1)
        if (part.min(axis=1) != latest).any():
            by_warp[rows] = latest[:, None]

    def require_whole_warps(
        self, active: Active, instruction: Instruction, live: np.ndarray
    ) -> None:
        """Fault unless every live lane of a warp with an active lane is active."""
        if active.mask is True:
            return
        missing = live.reshape(-1, 32) & ~active.by_warp
        rows = active.warp_rows
        bad = np.flatnonzero(missing[rows].any(axis=1))
        if bad.size:
            row = rows[bad[0]]
            lane = int(row * 32 + np.flatnonzero(active.by_warp[row])[0])
            self.fault(
                instruction,
                "divergent warp",
                f"expected all threads of the warp at {instruction.opcode}, got "
                f"{np.count_nonzero(active.by_warp[row])} of "
                f"{np.count_nonzero(live.reshape(-1, 32)[row])}",
                lane,
            )
