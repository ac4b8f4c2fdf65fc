# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The extents of time tiles that are considered."""

import itertools
import math
from collections.abc import Iterator, Sequence

from twofour.runtime.processor import Caches
from twofour.runtime.tiles.costs import SHARE, STAYS, stay_apart
from twofour.runtime.tiles.steps import Geometry
from twofour.runtime.tiles.streamed import is_streamed, window

# Shorter rows, and fewer of a plane for each one that kernels compute at once, would spend their
# time on starting.
SHORTEST_ROW, FEWEST_ROWS = 2048, 4  # bytes, rows
# Part of the last-level cache for the scratch arrays of all threads, and for windows.
SCRATCH_SHARE, WINDOW_SHARE = 0.125, 0.5
# Part of the second-level cache that tiles of one step take, so that sweeps can turn round, and the
# least extent along the slowest axis: kernels take several rows at once, and fetch planes in order.
TURNING_SHARE, SHORTEST_TURN = 0.125, 8
# The part that boxes of whole rows take, so that these are there when their ends are written, and
# planes of a box.
BOX_SHARE, BOX_PLANES = 0.5, 16


def extents_of(
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
        parts = threads if stay_apart(geometry, itemsize, threads, machine) else 4 * threads
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
