# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""How deep and how large time tiles are: a model of compute, memory and redundant points.

A point and step costs `work` multiply-adds, and what neighbouring tiles compute as well comes on
top. The source is read and the target written once in T steps, at the rate of the memory that the
arrays fit; what lies beyond the ends of rows is gathered as often. Scratch arrays are to stay in
the second-level cache of a core, the windows of streamed tiles in the last one.
"""

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from twofour.runtime.processor import LARGE_SHARE, Caches
from twofour.runtime.slices import ordinary_points
from twofour.runtime.tiles.costs import (
    MULTIPLY_ADDS,
    kept_ends,
    near_cycles,
    row_ends,
    scratch_bytes,
    transfers,
    window_cycles,
)
from twofour.runtime.tiles.extents import extents_of
from twofour.runtime.tiles.parts import most_parts
from twofour.runtime.tiles.steps import Geometry
from twofour.runtime.tiles.streamed import is_streamed

# Steps of a tile that are considered, beside all of a run that has no more.
DEPTHS = (1, 2, 3, 4, 6, 8, 12, 16)
# More steps than any tile has, of runs of so many.
MANY_STEPS = DEPTHS[-1] + 1
# Bytes of a row from which on it is better stored past the caches.
LONG_ROW = 1024
# Points and steps between two meetings of threads that are worth the wait of each.
WAITING_POINTS = 1 << 15
# Part of the time of tiles from which on steps are skewed.
WORTH_SKEWING = 0.95

SHOWN = 0.25  # of the work beside the longest: it overlaps, but not all of it
SHOWN_OF_PLANES = 0.8  # in tiles that are small boxes of planes, of which rows are far apart
COMMAND = 60  # cycles to start a sweep of a tile
AGAIN = 50_000  # cycles to have a second array, where one sweep is not the whole run
STREAMED_COMMANDS = 4  # of a slab: its sweep, and copies of its halo
ROW = 50  # cycles that a row takes besides its points
BARRIER = 2000  # cycles to meet the other threads, where there are any
# In arrays that hold their halo: cycles of a cell of it that stays, once; to begin and end, where
# calls are prepared (no axis is `fixed`) and where not; and the part of the arithmetic that takes
# as long as all of it where rows are not aligned. In three axes that makes no difference.
KEPT, RESIDENCE, UNPREPARED, ALIGNED = 32, 12_000, 170_000, 0.95


@dataclass(frozen=True)
class ResidentChoice:
    """Extents of tiles, and the steps of a run from which on arrays with a halo pay."""

    least_steps: int
    extents: tuple[int, ...]


@dataclass(frozen=True)
class TileChoice:
    """Steps of a tile, its extents, and the cycles a point and step is expected to take.

    They are those of all threads together, also of such that wait or are left out.
    """

    steps: int
    extents: tuple[int, ...]
    cycles: float


def worth_threads(points: int, threads: int) -> int:
    """How many of so many threads a sweep over so many ordinary points (times steps) is worth."""
    return max(1, min(threads, points // WAITING_POINTS))


def past_caches(
    shape: Sequence[int],
    itemsize: int,
    machine: Caches,
    nontemporal: bool = True,
    arrays: int = 2,
) -> bool:
    """Whether sweeps over so many arrays of a shape are better made by a kernel for large ones.

    With `nontemporal` it stores past the caches: arrays are larger than these, and the ends of
    rows, which do not fill lines, are few. Otherwise it reads fewer rows at once and fetches them
    ahead, and a part of a cache that others use as well is enough.
    """
    size = arrays * math.prod(shape) * itemsize
    if not nontemporal:
        return size > LARGE_SHARE * machine.last
    long = len(shape) == 1 or shape[-1] * itemsize >= LONG_ROW
    return long and size > machine.last


def is_skewing_faster(tiles: TileChoice, data: float, work: float, itemsize: int) -> bool:
    """Whether skewed steps, whose data take so many cycles a point and step, take less than tiles.

    It must be more than a little: the two models are not one.
    """
    compute = work * itemsize / MULTIPLY_ADDS
    cycles = max(compute, data) + SHOWN * min(compute, data)
    return cycles < WORTH_SKEWING * tiles.cycles


def choose_tiles(
    geometry: Geometry, itemsize: int, work: float, steps: int, threads: int, machine: Caches
) -> TileChoice:
    """The tiles of a run of `steps` steps that are expected to be fastest."""

    def cycles(choice: TileChoice) -> tuple[float, int]:
        arrays = 2 if choice.steps < steps else 1
        again = AGAIN * (arrays - 1) / math.prod(geometry.interior.shape)
        kept = arrays * kept_ends(geometry, itemsize, choice.extents, machine)
        return choice.cycles + (again + kept / geometry.interior.shape[-1]) / steps, choice.steps

    return min(_of_run(geometry, itemsize, work, steps, threads, machine), key=cycles)


def choose_residence(
    geometry: Geometry, itemsize: int, work: float, threads: int, machine: Caches
) -> ResidentChoice | None:
    """The tiles of single steps in arrays that hold the halo, None where other tiles are faster.

    There rims need not be gathered row by row, and rows begin on cache lines.
    """
    single, inside = (
        min(_of_depth(geometry, itemsize, work, 1, threads, machine, haloed), key=_order)
        for haloed in (False, True)
    )
    best = min(_of_run(geometry, itemsize, work, MANY_STEPS, threads, machine), key=_order)
    if best.cycles <= inside.cycles:
        return None
    points = math.prod(geometry.interior.shape)
    is_prepared = all(axis.mode != "fixed" for axis in geometry.boundary)
    begins = RESIDENCE if is_prepared else UNPREPARED
    before = single.cycles - inside.cycles + begins / points
    if geometry.boundary[-1].mode == "fixed":
        before += KEPT * (geometry.below[-1] + geometry.above[-1]) / geometry.interior.shape[-1]
    least = 1 + math.ceil(before / (best.cycles - inside.cycles))
    return ResidentChoice(max(2, least), inside.extents)


def _order(choice: TileChoice) -> tuple[float, int]:
    return choice.cycles, choice.steps


def _of_run(
    geometry: Geometry, itemsize: int, work: float, steps: int, threads: int, machine: Caches
) -> Iterator[TileChoice]:
    """Tiles of some of so many steps."""
    for depth in DEPTHS if steps >= MANY_STEPS else {*DEPTHS, steps}:
        if depth <= steps:
            yield from _of_depth(geometry, itemsize, work, depth, threads, machine)


def _of_depth(
    geometry: Geometry,
    itemsize: int,
    work: float,
    depth: int,
    threads: int,
    machine: Caches,
    haloed: bool = False,
) -> Iterator[TileChoice]:
    """Tiles of so many steps; with `haloed` of one step, in arrays that hold the halo."""
    interior = geometry.interior.shape
    points = math.prod(interior)
    asked = threads
    threads = worth_threads(ordinary_points(points * depth, work), asked)
    grown = [
        (depth - 1) * (below + above)
        for below, above in zip(geometry.below, geometry.above, strict=True)
    ]
    for extents in extents_of(geometry, itemsize, depth, grown, threads, machine):
        most = (most_parts(geometry, axis) for axis in range(geometry.rank))
        counts = [min(-(-n // e), m) for n, e, m in zip(interior, extents, most, strict=True)]
        # Parts are of about one size, whatever was asked for.
        extents = tuple(-(-n // count) for n, count in zip(interior, counts, strict=True))
        tiles = math.prod(counts)
        # A tile shrinks by one reach a step: on average it is as large as at half its depth.
        redundancy = math.prod(
            1 + g / 2 / (n / count) for g, n, count in zip(grown, interior, counts, strict=True)
        )
        working = min(threads, tiles)
        balance = -(-tiles // working) * working / tiles * threads / working
        compute = work * itemsize / MULTIPLY_ADDS
        if haloed and geometry.rank == 2:
            compute *= ALIGNED
        transfer = itemsize * transfers(geometry, itemsize, extents, depth, threads, machine)
        commands, shown, near = tiles, SHOWN, 0.0
        if is_streamed(geometry, extents[0], depth):
            commands *= STREAMED_COMMANDS * -(-(extents[0] + grown[0]) // geometry.slab)
            near = window_cycles(geometry, itemsize, extents, grown, depth, machine)
        elif depth > 1:
            near = 3 * near_cycles(scratch_bytes(itemsize, extents, grown), machine)
            shown = SHOWN if geometry.rank < 3 else SHOWN_OF_PLANES
        parts = (compute * redundancy, itemsize * near * redundancy, transfer)
        overhead = COMMAND * commands / points
        overhead += ROW * redundancy * counts[-1] / interior[-1]
        ends = row_ends(geometry, itemsize, work, extents, depth, machine, haloed)
        overhead += ends / interior[-1] / depth
        longest = max(parts)
        cycles = (longest + shown * (sum(parts) - longest) + overhead) * balance
        if threads > 1:
            cycles += BARRIER * threads / depth / points
        # Those of all threads, so that choices of which fewer take part can be compared.
        yield TileChoice(depth, extents, cycles * asked / threads)
