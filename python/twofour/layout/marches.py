# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""All marches of a stencil (see layout.march): warps, rows, stages in registers or rings, steps."""

from collections.abc import Callable
from dataclasses import replace

from twofour.errors import TwofourError, Unsuitable
from twofour.layout.march import RESERVED_BYTES, RING_BYTES, March
from twofour.reach import Extents, Reach

WARPS = (4, 8)  # warps of a block; more than the first where they can share rows of inputs
MAX_STAGES = 12
RING_STAGES, LONG_RING = (4, 8), 12
MARCHES = (12, 24, 48, 128)  # about so many steps
MAX_MARCH = 2**31 - 1  # of any kernel
# Warps of a multiprocessor: with fewer, loads to registers wait for each other (measured on an
# H200). What is read from a ring is there: an assumption.
ENOUGH_WARPS, ENOUGH_WITH_RING = 16, 12


def check_march(stages: int | None, march: int | None) -> None:
    """Raise TwofourError for fewer or more stages or steps than a march has."""
    if stages is not None and not 2 <= stages <= MAX_STAGES:
        raise TwofourError(f"expected 2 to {MAX_STAGES} stages, got {stages}")
    if march is not None and not 1 <= march <= MAX_MARCH:
        raise TwofourError(f"expected a march of 1 to {MAX_MARCH}, got {march}")


def marches(
    make: Callable[..., March],
    reach: Reach,
    max_rows: int,
    *,
    block: Extents | None = None,
    stages: int | None = None,
    march: int | None = None,
    levels: int = 1,
    ring: bool | None = None,
) -> list[March]:
    """All marches that registers and shared memory hold.

    Args:
        make: gives the march of some `reach_lo`, `reach_hi`, `rows`, `stages`, `march`, `warps`,
            `levels` and `ring`.
        reach: (lo, hi) of the stencil: minus the smallest and the largest offset per axis.
        max_rows: of a step, in arrays of rank 3.
        block: outputs of a block per axis in one step; all that there are where it is not given.
        stages: fragments in registers, or steps in a ring; up to MAX_STAGES where it is not given.
            Fragments, unless `ring` says otherwise.
        march: steps along the slowest axis; whole rounds of the main loop where it is not given,
            several numbers of them.
        levels: time steps of a march.
        ring: whether inputs wait in shared memory; both ways where it is not given.

    Raises:
        Unsuitable: a rank or levels that no march is for, or more than registers hold.
        TwofourError: stages, a march or a block that there is not.
    """
    reach_lo, reach_hi = (tuple(side) for side in reach)
    rank = len(reach_lo)
    if rank > 3:
        raise Unsuitable(f"expected arrays of rank 1 to 3, got rank {rank}")
    if levels > 1 and rank > 2:
        raise Unsuitable(f"expected arrays of rank 1 or 2 for several levels, got rank {rank}")
    check_march(stages, march)
    shape = {"reach_lo": reach_lo, "reach_hi": reach_hi, "levels": levels, "march": 1}
    ways = (ring,) if ring is not None else (False, True) if stages is None else (False,)
    found = [
        replace(layout, stages=count)
        for layout in (
            make(**shape, rows=rows, stages=2, warps=warps, ring=way)
            for way in ways
            for warps in (WARPS if rank == 3 else WARPS[:1])
            for rows in (range(1, max_rows + 1) if rank == 3 else (1,))
        )
        for count in ((stages,) if stages is not None else _stages_to_try(layout))
    ]
    if not found:
        raise Unsuitable(f"expected two axes for {levels} levels with a ring, got one")
    if block is not None:
        tiles = dict.fromkeys("x".join(map(str, layout.tile)) for layout in found)
        found = [layout for layout in found if layout.tile == tuple(block)]
        if not found:
            expected = " or ".join(tiles)
            raise TwofourError(f"expected a block of {expected} outputs, got {list(block)}")
    fitting = [layout for layout in found if layout.registers <= layout.max_registers]
    if not fitting:
        nearest = min(found, key=lambda layout: layout.registers - layout.max_registers)
        raise Unsuitable(
            f"expected at most {nearest.max_registers} registers, got about {nearest.registers}"
        )
    nearest, fitting = fitting[0], [layout for layout in fitting if layout.width > 0]
    if not fitting:
        raise Unsuitable(
            f"expected {levels} levels that trim a strip of {nearest.strip} outputs by less, got "
            f"{sum(nearest.trimmed)}"
        )
    most = RING_BYTES - RESERVED_BYTES
    fitting = [layout for layout in fitting if layout.shared_bytes <= most]
    if not fitting:
        raise Unsuitable(f"expected rings of at most {most} bytes, got larger ones")
    registers = [layout for layout in fitting if not layout.ring]
    if stages is None:
        # A round has one place for every read: those of the round before have to be there.
        short = [layout for layout in registers if layout.steps_ahead <= layout.unroll]
        registers = short or registers
    rings = [layout for layout in fitting if layout.ring]
    return [
        replace(layout, march=steps)
        for layout in (*_busy(registers, ENOUGH_WARPS), *_busy(rings, ENOUGH_WITH_RING))
        for steps in ([march] if march is not None else whole_marches(layout))
    ]


def _busy(layouts: list[March], warps: int) -> list[March]:
    """Those with so many warps on a multiprocessor, or all where there are none."""
    return [layout for layout in layouts if layout.warps * layout.resident >= warps] or layouts


def _stages_to_try(layout: March) -> list[int]:
    """All stages in registers; of a ring a few, and if it can be as many as a round has steps.

    Then each step of a round has a slot of its own, whose place is known. Other rings are not for
    several levels, long ones not for the only axis, and none for both: ptxas spills what so many
    steps in a row ask for.
    """
    if not layout.ring:
        return list(range(2, MAX_STAGES + 1))
    known = min(max(layout.unroll, RING_STAGES[0]), MAX_STAGES)
    if layout.levels > 1:
        return [known] if layout.rank > 1 else []
    return sorted({*RING_STAGES, known} | ({LONG_RING} if layout.rank > 1 else set()))


def whole_marches(layout: March) -> list[int]:
    """Steps that are whole rounds of the main loop and what was read ahead, short and long."""
    drained, unroll = layout.drained, layout.unroll
    rounds = dict.fromkeys(max(1, round((steps - drained) / unroll)) for steps in MARCHES)
    return [drained + count * unroll for count in rounds]
