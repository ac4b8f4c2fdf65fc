# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""What kernels that march (layout.march) have in common: blocks, what they read, their rounds.

Warps that read to registers ask the second-level cache for all that they read, a ring once for what
the warps of a block share. What neighbouring blocks share comes from there as long as it holds it.
A ring takes wavefronts of shared memory, and instructions for its groups and slots, but has no
words to move.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from twofour.cost.costs import Costs
from twofour.cost.counts import LANES, LINE, SECTOR, WAITING, Counts, lines, sectors
from twofour.layout.march import ACCESS, March
from twofour.runtime.devices.launching import balanced_block_count, block_count

# Instructions of a warp, whatever it computes: who it is, where its strip lies, and whether it
# touches an edge; a read, and the address of a row of them; an address and the write of a row of
# outputs.
START = {1: 96, 2: 110, 3: 207}  # by rank of the arrays
READ, ADDRESS, WRITE = 1, 1, 2
STEP, ROUND = 2, 7  # of the march, and of its main loop
TRIMMED = 2  # with several levels: who holds outputs that are complete
MOVED = 0.75  # of the words that were read ahead, in loops of one step a round
CHECKED = 5  # more, where a row to read may not exist
EDGE_ROW = 5  # more, in strips at an edge
# Of a ring: a group of copies, and a step that was copied; less where slots are known.
GROUP, MET, KNOWN = 2, 6, 5
PREFETCHED_COUNT = 0.5  # of what plain threads prefetch is in flight: fitted to an H200
LOOPED = 4  # of a step of a looped march: whether it completes a row of outputs
PREFETCH, ROUND_PREFETCH = 4, 4  # of a row, and whether there are rows to prefetch
END_READ = 10  # more, in strips at the end of a row: whether a step meets it


@dataclass(frozen=True)
class Work:
    """What a family of kernels does for a row of outputs, in instructions of a warp.

    `start` is done once; `row` for a row of outputs that is complete, of every level; `added` what
    one row of outputs takes for all that it meets; `unpacked` for the fragments of a step, beside
    their reads; `passed` for a row that the next level takes, beside shuffles; `edge_read` more for
    a fragment in strips at an edge; `moved` for the sums in loops of one step a round. `transposed`
    are wavefronts of a row of every level, `table_bytes` those that a warp reads once.
    """

    row: float
    added: float
    edge_read: int
    start: int = 0
    unpacked: float = 0.0
    passed: int = 0
    transposed: int = 0
    moved: int = 0
    table_bytes: int = 0


def march_steps(layout: March, shape: Sequence[int], multiprocessors: int | None) -> tuple:
    """(steps of a block along the slowest axis, blocks) of a launch on an output of `shape`.

    As many blocks as the layout asks for, or those that a device with so many multiprocessors
    would be given.
    """
    spec = (layout.tile, layout.march, shape)
    if multiprocessors is None:
        blocks = block_count(*spec)
    else:
        blocks = balanced_block_count(*spec, at_once=layout.resident * multiprocessors)
    steps = -(-shape[0] // layout.tile[0])
    segments = blocks // (block_count(layout.tile, 1, shape) // steps)
    return -(-steps // segments), blocks


def rows_added(layout: March, steps: int) -> float:
    """Rows of outputs of all levels that a warp sums up, those begun in vain as far as they get.

    Earlier levels have rows beyond the march on either side. Looped marches add in every step to as
    many rows as a row of inputs can meet.
    """
    levels, depth = layout.levels, layout.depth
    if layout.looped:
        return layout.rows * (steps + layout.lead)
    rows = levels * steps + depth * levels * (levels - 1) / 2
    # The last rows are begun in vain, but not added to when nothing is left to read.
    vain = max(0, depth - layout.steps_ahead)
    rows += levels * vain * (vain + 1) / (2 * (depth + 1))
    return layout.rows * rows


def march_costs(
    layout: March,
    work: Work,
    shape: Sequence[int],
    multiprocessors: int | None,
    **products,
) -> Costs:
    """The costs of one launch on an output of `shape`.

    `products` are `mma` or `fma`, by kind those of one row of outputs of a warp.
    """
    steps, blocks = march_steps(layout, shape, multiprocessors)
    size, outputs = layout.itemsize, layout.width * layout.rows
    halo = (steps + layout.levels * layout.depth) / steps
    read = sum(lines(size * start, size * count) for start, count in loads(layout))
    wavefronts = halo * (rows_copied(layout) * read + sum(ring_wavefronts(layout)))
    wavefronts += lines(0, size * layout.width) * layout.rows
    wavefronts += halo * layout.shuffles * (layout.levels - 1)
    wavefronts += work.transposed * layout.rows * layout.levels
    room = outputs_of_strips(layout, shape)
    rows = room * rows_added(layout, steps) / (steps * outputs)
    read = read_bytes(layout, layout.warps)
    # Warps that load to registers are too far apart for the first level to hold what they share.
    asked = read_bytes(layout, layout.warps if layout.ring else 1)
    return Costs(
        instructions=room * march_instructions(layout, work, steps, shape) / (steps * outputs),
        l1_wavefronts=room * wavefronts / outputs,
        l2_bytes=halo * asked + work.table_bytes / (steps * outputs) + size,
        dram_bytes=2 * size,
        halo_bytes=halo * read - size,
        span_bytes=layout.resident * steps * layout.tile_outputs * size,
        store_bytes=size,
        bytes_in_flight=outputs * (rows_in_flight(layout, steps) * read + size),
        resident_warps=layout.warps * layout.resident,
        resident_blocks=layout.resident,
        blocks=blocks,
        steps=layout.levels,
        reads_to_registers=not layout.ring,
        **{
            name: {kind: count * rows for kind, count in of_row.items()}
            for name, of_row in products.items()
        },
    )


def loads(layout: March) -> list[tuple[int, int]]:
    """(start, length) in elements of what a warp loads for a step, or for a row of its ring.

    Each is one access. Lanes copy to a ring as far as there is something to copy.
    """
    if not layout.ring:
        return [(start, layout.strip + layout.overhang) for _, start in layout.reads]
    return [
        (
            layout.first_start + first * layout.chunk,
            min(LANES, layout.row_accesses - first) * layout.chunk,
        )
        for first in range(0, layout.row_accesses, LANES)
    ]


def rows_copied(layout: March) -> float:
    """How often a warp does what `loads` says for a step: once for every row, of a ring."""
    return len(layout.ring_rows) / layout.ring_warps if layout.ring else 1


def ring_wavefronts(layout: March) -> tuple[float, int]:
    """Wavefronts of shared memory of a step in a ring: to copy it, and to read it."""
    if not layout.ring:
        return 0, 0
    copied = sum(-(-length * layout.itemsize // LINE) for _, length in loads(layout))
    read = LANES * ACCESS // LINE * len(layout.reads)
    return rows_copied(layout) * copied, read


def rows_in_flight(layout: March, steps: int) -> float:
    """Rows of inputs that a warp has asked for, on average, prefetched ones for a part.

    Of tensor cores' fragments, and of a ring's steps, one more has arrived: results wait for each
    other longer.
    """
    if layout.ring:
        return max(1, layout.steps_ahead - 1)
    arrived, prefetched = (1, PREFETCHED_COUNT) if layout.compact else (2, PREFETCHED_COUNT / 2)
    ahead = max(1, layout.stages - arrived) / len(layout.reads)
    rounds = prefetching_rounds(layout, steps)
    ahead += prefetched * layout.prefetched * rounds * layout.unroll / steps
    return WAITING * ahead if layout.compact else ahead


def prefetching_rounds(layout: March, steps: int) -> int:
    """Rounds of the main loop that prefetch rows: all of theirs are needed."""
    return max(0, steps - layout.steps_ahead - layout.prefetched) // layout.unroll


def march_counts(layout: March, work: Work, shape: Sequence[int], mma: int = 0) -> Counts:
    """The counters of one launch on an output of `shape`, of as many blocks as the layout asks.

    `mma` are the matrix instructions of one row of outputs.
    """
    steps, _ = march_steps(layout, shape, None)
    outputs = steps * layout.width * layout.rows
    size, lo = layout.itemsize, layout.trimmed[0]
    parts = loads(layout)
    row = SECTOR * sum(sectors(size * (start - lo), size * count) for start, count in parts)
    row *= rows_copied(layout)
    rows = loaded = steps + layout.levels * layout.depth
    if layout.compact:
        # At an edge fragments are read ahead up to the end of the march, and beyond.
        ahead = layout.steps_ahead if layout.ring else (layout.stages - 1) / len(layout.reads)
        loaded += (1 if layout.looped else edge_share(layout, steps, shape[-1])) * ahead
    copied, met = ring_wavefronts(layout)
    room = outputs_of_strips(layout, shape)
    return Counts(
        instructions=room * march_instructions(layout, work, steps, shape) / outputs,
        mma=room * mma * rows_added(layout, steps) / outputs,
        shared_wavefronts=room * (copied * loaded + met * rows) / outputs,
        global_load_bytes=(row * loaded + work.table_bytes) / outputs,
        global_store_bytes=size,
    )


def outputs_of_strips(layout: March, shape: Sequence[int]) -> float:
    """Outputs that strips have room for, over those that there are: the last ones are partial."""
    extents = {-1: layout.width} | ({1: layout.rows} if layout.rank == 3 else {})
    return math.prod(-(-shape[axis] // n) * n / shape[axis] for axis, n in extents.items())


@dataclass(frozen=True)
class _Reading:
    """Instructions of a warp: what it begins with, to ask for a step, and to meet one that it has.

    Fragments that were read to registers are there; steps of a ring are read once more. `known` are
    those that rounds of the main loop save, where each has every step at a place of its own.
    """

    begun: int
    asked: int
    met: int
    known: int = 0

    @classmethod
    def of(cls, layout: March) -> _Reading:
        ahead, reads = layout.steps_ahead, READ * len(layout.reads)
        rows = ADDRESS * len({between for between, _ in layout.reads})
        onward = STEP if layout.rank > 1 else 0
        if layout.ring:
            copied = -(-len(layout.ring_rows) // layout.ring_warps)
            copies = copied * (READ * len(loads(layout)) + ADDRESS) + GROUP
            known = KNOWN if layout.unroll % layout.stages == 0 else 0
            return cls((copies + CHECKED) * ahead, copies + onward, reads + MET, known)
        begun = READ * (layout.stages - 1) + (ADDRESS + CHECKED) * ahead
        return cls(begun, reads + onward + (rows if layout.rank > 1 else 0), 0)


def march_instructions(layout: March, work: Work, steps: int, shape: Sequence[int]) -> float:
    """Instructions of one warp, on average over those inside and those at an edge."""
    rows, reads, depth, levels = layout.rows, len(layout.reads), layout.depth, layout.levels
    written = (work.row + WRITE) * rows
    # A row of a level before the last.
    passed = (work.row + work.passed) * rows + work.unpacked + layout.shuffles
    row = work.unpacked + written + (levels - 1) * passed + TRIMMED * (levels > 1)
    reading = _Reading.of(layout)
    step = row + reading.met + reading.asked
    always = (
        START[layout.rank]
        + work.start
        + reading.begun
        + work.added * rows_added(layout, steps)
        + layout.lead * (reading.met + reading.asked + work.unpacked)
        + depth * levels * (levels - 1) / 2 * passed
    )
    words = 0 if layout.ring else 4 * (layout.stages - 1)
    single = work.moved + MOVED * words
    drained = min(steps, layout.drained)
    rounds = (steps - drained) // layout.unroll
    rest = steps - drained - rounds * layout.unroll
    # A round uses up what was read before it, or moves it on.
    moves = layout.stages - 1 > layout.unroll * reads
    if layout.looped:
        inside = steps * (step + CHECKED) + (steps + layout.lead) * LOOPED
        inside += layout.lead * (work.row * rows + CHECKED)
    else:
        inside = drained * (row + reading.met) + (steps - drained) * step + rest * single
        inside += rounds * (ROUND + words * moves - layout.unroll * reading.known)
    if layout.prefetched:
        inside += rounds * ROUND_PREFETCH
        inside += prefetching_rounds(layout, steps) * layout.unroll * PREFETCH
    at_edge = inside
    if layout.compact and not layout.looped:
        at_edge = steps * (step + CHECKED + single)
    at_edge += steps * EDGE_ROW * rows
    if layout.rank == 1:
        at_edge += steps * END_READ * reads
    else:
        at_edge += (steps + levels * depth) * work.edge_read * reads
    return always + inside + edge_share(layout, steps, shape[-1]) * (at_edge - inside)


def edge_share(layout: March, steps: int, extent: int) -> float:
    """The share of warps that take care of an end of the last axis, of that extent.

    Those would read inputs beyond the halo, or write outputs beyond the end.
    """
    (lo, hi), width = layout.trimmed, layout.width
    below = lo - layout.first_start - layout.levels * layout.reach_lo[-1]
    above = hi + layout.beyond - layout.levels * layout.reach_hi[-1]
    whole = (extent - max(0, above)) // width
    first, strips = -(-max(0, below) // width), -(-extent // width)
    if layout.rank > 1:
        return min(1.0, (first + strips - whole) / strips)
    # A warp has every so many strips of a march, of which the first and the last ones meet an end.
    strips = -(-strips // layout.warps) * layout.warps
    at_ends = min(layout.warps, first) + min(layout.warps, strips - whole)
    return min(1.0, at_ends * steps / strips)


def read_bytes(layout: March, warps: int) -> float:
    """Bytes of the sectors that so many neighbouring warps read in a step, for an output of theirs.

    What several of them read counts once.
    """
    lo, hi = layout.trimmed
    if layout.rank < 3:
        rows, across = 1, warps * layout.width
    else:
        rows, across = warps * layout.rows, layout.width
    starts: dict[int, list[int]] = {}
    for meeting in layout.meetings:
        for row in range(rows):
            starts.setdefault(row + meeting.across, []).append(meeting.start)
    size, width = layout.itemsize, across + lo + hi + layout.overhang
    total = sum(
        sectors(size * (min(of_row) - lo), size * (max(of_row) - min(of_row) + width))
        for of_row in starts.values()
    )
    return SECTOR * total / (rows * across)
