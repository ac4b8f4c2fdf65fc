# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Chunks of 16 bytes of shared memory, in which the copy engine moves data."""

import numpy as np

from twofour.sim.decode import Binder, PerLane
from twofour.sim.machine import SHARED_WINDOW, Active
from twofour.sim.ptx import Instruction, Operand

CHUNK = 16


def shared_offsets(binder: Binder, instruction: Instruction, operand: Operand) -> PerLane:
    """Offsets in shared memory, from addresses of either kind."""
    addresses = binder.address(instruction, operand)

    def offsets(active: Active) -> np.ndarray:
        values = addresses(active)
        return np.where(values >= SHARED_WINDOW, values - SHARED_WINDOW, values)

    return offsets


def lanes_of(binder: Binder, active: Active) -> np.ndarray:
    """The numbers of the active lanes."""
    return np.arange(binder.machine.lanes) if active.lanes is None else active.lanes


def write_chunks(
    binder: Binder,
    instruction: Instruction,
    offsets: np.ndarray,
    lanes: np.ndarray,
    values: np.ndarray,
) -> np.ndarray:
    """Write 16 bytes ([n, 2] uint64) at each offset, in flight, for the lane of each.

    Gives the granules, [n] or [parts, n].
    """
    shared = binder.shared
    positions = shared.locate(instruction, offsets, lanes, CHUNK)
    granules = shared.granules(positions, CHUNK)
    shared.check_write(instruction, granules, lanes, in_flight=True)
    shared.rows(8, 2)[positions // CHUNK] = values
    return granules


def read_chunks(
    binder: Binder, instruction: Instruction, offsets: np.ndarray, lanes: np.ndarray
) -> np.ndarray:
    """The 16 bytes ([n, 2] uint64) at each offset, which the engine reads from now on."""
    shared = binder.shared
    values = shared.load(instruction, offsets, lanes, 8, 2)
    granules = shared.granules(shared.locate(instruction, offsets, lanes, CHUNK), CHUNK)
    shared.check_engine(instruction, granules, lanes)
    binder.bulk_reads.read(instruction, lanes, granules)
    return values
