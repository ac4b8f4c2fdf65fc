# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""What memory and the ends of rows cost in time tiles: parts of the model that chooses these.

Cycles are those of one core. `machine` has its caches, `extents` are those of a tile, `depth` is
the number of its steps, and `grown` says how much larger its first one is on each axis.
"""

import math
from collections.abc import Sequence

from twofour.runtime.processor import Caches
from twofour.runtime.tiles.steps import Geometry
from twofour.runtime.tiles.streamed import window

# Part of a cache that is there for one kind of data.
SHARE = 0.8
# Scratch arrays of up to this part of the second-level cache stay there as a whole.
STAYS = 0.6
# Nominal rates of one core, in cycles, of processors that do 64 bytes of multiply-adds a cycle (Zen
# 3 and 4; the memory of one was slower, 3.5, of the other faster, 6): they weigh memory against
# arithmetic, no more.
MULTIPLY_ADDS = 64  # bytes of multiply-adds a cycle
NEAR, MEMORY = 32, 5  # bytes a cycle from L2 and from memory
OTHERS = 4  # cycles a byte from the second-level cache of another core
MOVED = 0.5  # of what moves on in the windows of streamed tiles is read and written again
# Cycles of an end of a row whose halo is gathered, also for each multiply-add of a point.
RIM, RIM_WORK = 25, 4
# Cycles more of an end of a row that has left the second-level cache, which tiles write last; and
# bytes of a row beside which that is nothing.
LEFT, LONG = 40, 4096
# Cycles of a cell of a halo that is copied in each step, in arrays that hold it.
IMAGE = 6


def transfers(
    geometry: Geometry,
    itemsize: int,
    extents: Sequence[int],
    depth: int,
    threads: int,
    machine: Caches,
) -> float:
    """Cycles a point and step, and byte of a point, that source and target take to come and go."""
    if stay_apart(geometry, itemsize, threads, machine):
        # Tiles of several steps read much of what others wrote.
        grown = math.prod(_grown(geometry, extents, depth))
        others = OTHERS * (grown - 1) if threads > 1 and depth > 1 else 0
        return (3 / NEAR + others) / depth
    second = SHARE * machine.second
    footprint = _footprint(geometry, itemsize)
    # Arrays that are twice too large leave nothing behind for the next sweep.
    cached = min(1, max(0, 2 - footprint / (SHARE * machine.last)))
    rate = cached / machine.last_rate + (1 - cached) / MEMORY
    farther = 1 / machine.last_rate - 1 / NEAR
    reads = _reads(geometry, itemsize, extents, depth, second)
    if depth > 1:
        return (2 + reads) * rate / depth
    # Sweeps turn round: each finds what the one before it did last in the nearer cache.
    tile = 2 * math.prod(extents) * itemsize
    found = min(1, max(0, machine.second - tile) * threads / footprint)
    return 3 * (rate - found * farther) + (reads - 1) * farther


def _grown(geometry: Geometry, extents: Sequence[int], depth: int) -> list[float]:
    """How much larger what a tile reads is than the tile, on axes that have several."""
    reach = [below + above for below, above in zip(geometry.below, geometry.above, strict=True)]
    interior = geometry.interior.shape
    return [
        1 + depth * r / e if e < n else 1 for r, e, n in zip(reach, extents, interior, strict=True)
    ]


def _footprint(geometry: Geometry, itemsize: int) -> int:
    """Bytes of source and target."""
    return 2 * math.prod(geometry.interior.shape) * itemsize


def stay_apart(geometry: Geometry, itemsize: int, threads: int, machine: Caches) -> bool:
    """Whether the second-level caches of all threads hold source and target."""
    return _footprint(geometry, itemsize) <= SHARE * machine.second * threads


def _reads(
    geometry: Geometry, itemsize: int, extents: Sequence[int], depth: int, second: float
) -> float:
    """How often a cell of the source comes to the second-level cache in a sweep.

    Tiles read what lies around them as well. In single steps neighbours find it there, but for
    planes that do not fit it.
    """
    along, *across = _grown(geometry, extents, depth)
    if depth > 1:
        return along * math.prod(across)
    interior, reach = geometry.interior.shape, geometry.below[0] + geometry.above[0]
    planes = itemsize * (reach + geometry.slab)
    if geometry.rank < 3 or planes * math.prod(interior[1:]) <= second:
        return math.prod(across)
    stay = planes * math.prod(extents[1:]) <= second
    return (along if stay else 1 + reach / geometry.planes) * math.prod(across)


def row_ends(
    geometry: Geometry,
    itemsize: int,
    work: float,
    extents: Sequence[int],
    depth: int,
    machine: Caches,
    haloed: bool,
) -> float:
    """Cycles that the halo at both ends of a row takes in a step that reads the source."""
    if geometry.boundary[-1].mode == "fixed":
        return 0
    if haloed:
        return IMAGE * (geometry.below[-1] + geometry.above[-1])
    left = _left(geometry, itemsize, extents, machine)
    if depth > 1:
        # What is written then is in scratch arrays.
        left /= 2
    return (RIM + RIM_WORK * work + left) * _ends(geometry)


def kept_ends(geometry: Geometry, itemsize: int, extents: Sequence[int], machine: Caches) -> float:
    """Cycles that the rim at both ends of a row takes in the first step into an array."""
    if geometry.boundary[-1].mode != "fixed":
        return 0
    return _left(geometry, itemsize, extents, machine) * _ends(geometry)


def _left(geometry: Geometry, itemsize: int, extents: Sequence[int], machine: Caches) -> float:
    """Cycles more of an end of a row, of source and target, that a tile writes last."""
    if geometry.interior.shape[-1] * itemsize >= LONG:
        return 0
    return LEFT * _gone(2 * itemsize * math.prod(extents), machine)


def _ends(geometry: Geometry) -> int:
    """Ends of a row that a step reads beyond."""
    return bool(geometry.below[-1]) + bool(geometry.above[-1])


def scratch_bytes(itemsize: int, extents: Sequence[int], grown: Sequence[int]) -> int:
    """Bytes of the two scratch arrays of a tile."""
    return 2 * itemsize * math.prod(e + g for e, g in zip(extents, grown, strict=True))


def _gone(size: int, machine: Caches) -> float:
    """The part of so many bytes that has left the second-level cache when it is read again."""
    return min(1, max(0, size / machine.second - STAYS) / (1 - STAYS))


def near_cycles(scratch: int, machine: Caches) -> float:
    """Cycles a byte of scratch arrays, a part of which is only in the last-level cache."""
    gone = _gone(scratch, machine)
    return gone / machine.last_rate + (1 - gone) / NEAR


def window_cycles(
    geometry: Geometry,
    itemsize: int,
    extents: Sequence[int],
    grown: Sequence[int],
    depth: int,
    machine: Caches,
) -> float:
    """Cycles a point and step of streamed tiles, and byte of a point, that windows take.

    A slab reads the planes that the slabs before it read as well.
    """
    plane = itemsize * math.prod(e + g for e, g in zip(extents[1:], grown[1:], strict=True))
    more = geometry.below[0] + geometry.above[0]
    in_turn = (depth - 1) * window(geometry) * plane
    again = more / geometry.slab * near_cycles((more + geometry.slab) * plane, machine)
    return (3 + MOVED) * near_cycles(in_turn, machine) + again
