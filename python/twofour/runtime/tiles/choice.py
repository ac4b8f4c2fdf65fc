# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""How deep and how large time tiles are: a model of compute, memory and redundant points.

A point and step costs `work` multiply-adds, and what neighbouring tiles compute as well comes on
top. The source is read and the target written once in T steps, at the rate of the memory that the
arrays fit; what lies beyond the ends of rows is gathered as often. Scratch arrays are to stay in
the second-level cache of a core, the windows of streamed tiles in the last one.
"""

import itertools
import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from twofour.runtime.processor import LARGE_SHARE, Caches
from twofour.runtime.slices import ordinary_points
from twofour.runtime.tiles.parts import most_parts
from twofour.runtime.tiles.steps import Geometry
from twofour.runtime.tiles.streamed import is_streamed, window

# Steps of a tile that are considered, beside all of a run that has no more.
DEPTHS = (1, 2, 3, 4, 6, 8, 12, 16)
# More steps than any tile has, of runs of so many.
MANY_STEPS = DEPTHS[-1] + 1
# Bytes of a row from which on it is better stored past the caches.
LONG_ROW = 1024
# Shorter rows, and fewer of a plane for each one that kernels compute at once, would spend their
# time on starting.
SHORTEST_ROW, FEWEST_ROWS = 2048, 4  # bytes, rows
# Points and steps between two meetings of threads that are worth the wait of each.
WAITING_POINTS = 1 << 15
# Part of a cache that is there for one kind of data, and of the last-level cache for the scratch
# arrays of all threads.
SHARE, SCRATCH_SHARE, WINDOW_SHARE = 0.8, 0.125, 0.5
# Scratch arrays of up to this part of the second-level cache stay there as a whole.
STAYS = 0.6
# Part of the second-level cache that tiles of one step take, so that sweeps can turn round, and the
# least extent along the slowest axis: kernels take several rows at once, and fetch planes in order.
TURNING_SHARE, SHORTEST_TURN = 0.125, 8
# The part that boxes of whole rows take, so that these are there when their ends are written, and
# planes of a box.
BOX_SHARE, BOX_PLANES = 0.5, 16

# Part of the time of tiles from which on steps are skewed.
WORTH_SKEWING = 0.95

# Nominal rates of one core, in cycles, of processors that do 64 bytes of multiply-adds a cycle (Zen
# 3 and 4; the memory of one was slower, 3.5, of the other faster, 6): they weigh memory against
# arithmetic, no more.
MULTIPLY_ADDS = 64  # bytes of multiply-adds a cycle
NEAR, MEMORY = 32, 5  # bytes a cycle from L2 and from memory
OTHERS = 4  # cycles a byte from the second-level cache of another core
SHOWN = 0.25  # of the work beside the longest: it overlaps, but not all of it
SHOWN_OF_PLANES = 0.8  # in tiles that are small boxes of planes, of which rows are far apart
COMMAND = 60  # cycles to start a sweep of a tile
AGAIN = 50_000  # cycles to have a second array, where one sweep is not the whole run
# Of a slab: its sweep, and copies of its halo. What moves on in windows is read and written again.
STREAMED_COMMANDS, MOVED = 4, 0.5
ROW = 50  # cycles that a row takes besides its points
BARRIER = 2000  # cycles to meet the other threads, where there are any
# Cycles of an end of a row whose halo is gathered, also for each multiply-add of a point.
RIM, RIM_WORK = 25, 4
# Cycles more of an end of a row that has left the second-level cache, which tiles write last.
LEFT = 40
# In arrays that hold their halo: cycles of a cell of it that is copied in each step, and of one
# that stays, once; to begin and end; and the part of the arithmetic that takes as long as all of
# it where rows are not aligned. In three axes that makes no difference.
IMAGE, KEPT, RESIDENCE, ALIGNED = 6, 32, 50_000, 0.95


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
        kept = arrays * _kept_ends(geometry, itemsize, choice.extents, machine)
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
    before = single.cycles - inside.cycles + RESIDENCE / points
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
    for extents in _extents(geometry, itemsize, depth, grown, threads, machine):
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
        transfer = itemsize * _transfers(geometry, itemsize, extents, depth, threads, machine)
        commands, shown, near = tiles, SHOWN, 0.0
        if is_streamed(geometry, extents[0], depth):
            commands *= STREAMED_COMMANDS * -(-(extents[0] + grown[0]) // geometry.slab)
            near = _windows(geometry, itemsize, extents, grown, depth, machine)
        elif depth > 1:
            near = 3 * _stays(_scratch(itemsize, extents, grown), machine)
            shown = SHOWN if geometry.rank < 3 else SHOWN_OF_PLANES
        parts = (compute * redundancy, itemsize * near * redundancy, transfer)
        overhead = COMMAND * commands / points
        overhead += ROW * redundancy * counts[-1] / interior[-1]
        ends = _row_ends(geometry, itemsize, work, extents, depth, machine, haloed)
        overhead += ends / interior[-1] / depth
        longest = max(parts)
        cycles = (longest + shown * (sum(parts) - longest) + overhead) * balance
        if threads > 1:
            cycles += BARRIER * threads / depth / points
        # Those of all threads, so that choices of which fewer take part can be compared.
        yield TileChoice(depth, extents, cycles * asked / threads)


def _transfers(
    geometry: Geometry,
    itemsize: int,
    extents: Sequence[int],
    depth: int,
    threads: int,
    machine: Caches,
) -> float:
    """Cycles a point and step, and byte of a point, that source and target take to come and go."""
    if _stay_apart(geometry, itemsize, threads, machine):
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


def _stay_apart(geometry: Geometry, itemsize: int, threads: int, machine: Caches) -> bool:
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


def _row_ends(
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
    left = LEFT * _gone(2 * itemsize * math.prod(extents), machine)
    if depth > 1:
        # What is written then is in scratch arrays.
        left /= 2
    return (RIM + RIM_WORK * work + left) * _ends(geometry)


def _kept_ends(geometry: Geometry, itemsize: int, extents: Sequence[int], machine: Caches) -> float:
    """Cycles that the rim at both ends of a row takes in the first step into an array."""
    if geometry.boundary[-1].mode != "fixed":
        return 0
    return LEFT * _gone(2 * itemsize * math.prod(extents), machine) * _ends(geometry)


def _ends(geometry: Geometry) -> int:
    """Ends of a row that a step reads beyond."""
    return bool(geometry.below[-1]) + bool(geometry.above[-1])


def _scratch(itemsize: int, extents: Sequence[int], grown: Sequence[int]) -> int:
    """Bytes of the two scratch arrays of a tile."""
    return 2 * itemsize * math.prod(e + g for e, g in zip(extents, grown, strict=True))


def _gone(size: int, machine: Caches) -> float:
    """The part of so many bytes that has left the second-level cache when it is read again."""
    return min(1, max(0, size / machine.second - STAYS) / (1 - STAYS))


def _stays(scratch: int, machine: Caches) -> float:
    """Cycles a byte of scratch arrays, a part of which is only in the last-level cache."""
    gone = _gone(scratch, machine)
    return gone / machine.last_rate + (1 - gone) / NEAR


def _windows(
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
    again = more / geometry.slab * _stays((more + geometry.slab) * plane, machine)
    return (3 + MOVED) * _stays(in_turn, machine) + again


def _extents(
    geometry: Geometry,
    itemsize: int,
    depth: int,
    grown: Sequence[int],
    threads: int,
    machine: Caches,
) -> Iterator[tuple[int, ...]]:
    """Extents of tiles whose scratch arrays fit the cache, the slowest axis as long as it may."""
    interior = geometry.interior.shape
    least = [FEWEST_ROWS * geometry.planes] * len(interior)
    least[-1] = max(1, SHORTEST_ROW // itemsize)
    choices = [list(_halved(*pair)) for pair in zip(interior, least, strict=True)][1:]
    if depth == 1:
        # Enough parts for the threads to share out, but where each finds its own in its cache: what
        # another one takes over has to move there, and back.
        parts = threads if _stay_apart(geometry, itemsize, threads, machine) else 4 * threads
        fair = -(-interior[0] // parts) if threads > 1 else interior[0]
        for rest in itertools.product(*choices):
            yield (fair, *rest)
        # For sweeps to turn round.
        section = itemsize * math.prod(interior[1:])
        short = max(SHORTEST_TURN, int(TURNING_SHARE * machine.second / 2 / section))
        if short < fair:
            yield (short, *interior[1:])
        # For ends of rows.
        if geometry.rank > 2:
            row = itemsize * math.prod(interior[2:])
            rows = int(BOX_SHARE * machine.second / 2 / BOX_PLANES / row)
            if FEWEST_ROWS <= rows < interior[1]:
                yield (BOX_PLANES, rows, *interior[2:])
        return
    budgets = {
        STAYS * machine.second,
        SHARE * machine.second,
        SCRATCH_SHARE * machine.last / threads,
    }
    for rest, budget in itertools.product(itertools.product(*choices), sorted(budgets)):
        section = math.prod(e + g for e, g in zip(rest, grown[1:], strict=True))
        longest = int(budget / itemsize / 2 / section) - grown[0]
        if longest >= 1:
            yield (min(longest, interior[0]), *rest)
            if threads > 1:
                even = -(-interior[0] // (-(-interior[0] // longest // threads) * threads))
                yield (max(1, min(even, longest)), *rest)
    for rest in itertools.product(*choices):
        section = math.prod(e + g for e, g in zip(rest, grown[1:], strict=True))
        windows = itemsize * (depth - 1) * window(geometry) * section
        if windows > WINDOW_SHARE * machine.last / threads:
            continue
        # One tile along the axis, or one for each thread.
        for planes in {interior[0], -(-interior[0] // threads)}:
            if is_streamed(geometry, planes, depth):
                yield (planes, *rest)


def _halved(extent: int, least: int) -> Iterator[int]:
    """The extent, its half, its quarter ... down to `least`."""
    yield extent
    parts = 2
    while -(-extent // parts) >= least:
        yield -(-extent // parts)
        parts *= 2
