# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Limits of the chips: what a kernel may use, and how many of its warps fit on a multiprocessor."""

from dataclasses import dataclass

from twofour.errors import TwofourError


@dataclass(frozen=True)
class Chip:
    """One multiprocessor of a chip; sizes in bytes.

    `block_shared` is the most that a block may ask for, 1 KiB less than there is since the system
    takes that for every block. `copy_engine` tells whether there are bulk tensor copies.
    """

    name: str
    block_shared: int
    shared: int
    warps: int
    blocks: int
    registers: int = 65536
    block_threads: int = 1024
    copy_engine: bool = False


SYSTEM_SHARED = 1024
CHIPS = {
    chip.name: chip
    for chip in (
        Chip("sm_80", 163 << 10, 164 << 10, 64, 32),
        Chip("sm_86", 99 << 10, 100 << 10, 48, 16),
        Chip("sm_89", 99 << 10, 100 << 10, 48, 24),
        Chip("sm_90", 227 << 10, 228 << 10, 64, 32, copy_engine=True),
        Chip("sm_100", 227 << 10, 228 << 10, 64, 32, copy_engine=True),
    )
}


def find(name: str) -> Chip:
    """The chip of a name such as sm_90 or sm_90a."""
    base = name.rstrip("af")
    if base not in CHIPS:
        raise TwofourError(f"expected a chip of {', '.join(CHIPS)}, got {name!r}")
    return CHIPS[base]


def occupancy(chip: Chip, registers: int, threads: int, shared_bytes: int) -> float:
    """The part of a multiprocessor's warps that can be resident, from 0 to 1.

    `registers` a thread, `shared_bytes` a block. Registers are handed out to warps in units of
    256, shared memory in units of 128 bytes.
    """
    warps = -(-threads // 32)
    warp_registers = -(-registers * 32 // 256) * 256
    # Warps belong to one of four partitions, each with a quarter of the registers.
    register_warps = chip.registers // 4 // max(warp_registers, 1) * 4
    shared = -(-(shared_bytes + SYSTEM_SHARED) // 128) * 128
    blocks = min(chip.blocks, chip.warps // warps, register_warps // warps, chip.shared // shared)
    return blocks * warps / chip.warps
