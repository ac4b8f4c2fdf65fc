# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""What kernels that stream through registers cost (targets.gpu.stream_kernel)."""

from collections.abc import Sequence

from twofour.cost.costs import Costs, Mma
from twofour.cost.counts import SECTOR, Counts
from twofour.layout.chunks import COLUMNS, OUTPUTS
from twofour.layout.fragments import TILES
from twofour.layout.stream import STRIP, StreamLayout, metadata_words
from twofour.runtime.launching import balanced_block_count, block_count

ITEMSIZE = 2  # bytes
# A warp reads 16 bytes a lane, in quarters; it writes 8, in halves.
READ_WAVEFRONTS, WRITE_WAVEFRONTS = 4, 2
# Instructions, apart from those that read, multiply and write.
START = 110  # who a warp is, where its strip lies, and whether it touches an edge
ROW = 6  # of outputs: two conversions, two transpositions, an address, the write
READ = 2  # an address, the read
STEP, ROUND = 2, 7  # of the march, and of its main loop
# Between levels: conversions and transpositions of a row, shuffles of a fragment; and in the end
# who holds outputs that are complete.
PACKED, SHUFFLES, TRIMMED = 4, 4, 2
CHECKED = 5  # more, where a row to read may not exist
EDGE_READ, EDGE_ROW = 5, 5  # more, in strips at an edge: masks, and which outputs exist
END_READ = 10  # more, in strips at the end of a row: whether a step meets it


def stream_costs(
    layout: StreamLayout, shape: Sequence[int], operand: str, multiprocessors: int | None = None
) -> Costs:
    """The costs of one launch on an output of `shape`, for operands f16 or bf16.

    The blocks are those that a device with so many multiprocessors would be given.

    Rows of inputs that warps of one block share in a step come from the first-level cache, those
    that neighbouring blocks share from the second: only where one march ends and the next begins
    are inputs read from memory twice.
    """
    outputs = layout.width * layout.rows
    spec = (layout.tile, layout.march, shape)
    if multiprocessors is None:
        blocks = block_count(*spec)
    else:
        blocks = balanced_block_count(*spec, at_once=layout.resident * multiprocessors)
    steps = _march(layout, shape, blocks)
    halo = (steps + layout.levels * layout.depth) / steps
    reads = len(layout.reads)
    wavefronts = READ_WAVEFRONTS * reads * halo + WRITE_WAVEFRONTS * layout.rows
    wavefronts += SHUFFLES * (layout.levels - 1) * reads * halo
    kind = Mma(operand, True, 16, TILES, 32)
    return Costs(
        instructions=_instructions(layout, steps, shape) / (steps * outputs),
        l1_wavefronts=wavefronts / outputs,
        l2_bytes=halo * _block_bytes(layout) + _table_bytes(layout) / (steps * outputs) + ITEMSIZE,
        dram_bytes=ITEMSIZE * (halo + 1),
        store_bytes=ITEMSIZE,
        bytes_in_flight=outputs * ((layout.stages - 1) / reads * _block_bytes(layout) + ITEMSIZE),
        resident_warps=layout.warps * layout.resident,
        resident_blocks=layout.resident,
        blocks=blocks,
        steps=layout.levels,
        mma={kind: _mma(layout, steps) / (steps * outputs)},
    )


def stream_counts(layout: StreamLayout, shape: Sequence[int]) -> Counts:
    """The counters of one launch on an output of `shape`, of as many blocks as the layout asks."""
    steps = _march(layout, shape, block_count(layout.tile, layout.march, shape))
    outputs = steps * layout.width * layout.rows
    rows = len(layout.reads) * (steps + layout.levels * layout.depth)
    return Counts(
        instructions=_instructions(layout, steps, shape) / outputs,
        mma=_mma(layout, steps) / outputs,
        shared_wavefronts=0.0,
        global_load_bytes=(rows * _row_bytes(layout, STRIP) + _table_bytes(layout)) / outputs,
        global_store_bytes=ITEMSIZE,
    )


def _march(layout: StreamLayout, shape: Sequence[int], blocks: int) -> int:
    """Steps of a block along the slowest axis, which `blocks` blocks share."""
    steps = -(-shape[0] // layout.tile[0])
    segments = blocks // (block_count(layout.tile, 1, shape) // steps)
    return -(-steps // segments)


def _mma(layout: StreamLayout, steps: int) -> int:
    """Matrix instructions of a warp: earlier levels have rows beyond the march on either side."""
    levels = layout.levels
    rows = levels * steps + layout.depth * levels * (levels - 1) // 2
    return len(layout.terms) * layout.rows * rows


def _instructions(layout: StreamLayout, steps: int, shape: Sequence[int]) -> float:
    """Instructions of one warp, on average over those inside and those at an edge."""
    rows, reads, depth, levels = layout.rows, len(layout.reads), layout.depth, layout.levels
    carried = 4 * levels * rows * (depth + 1) + 4 * (layout.stages - 1)
    full = max(0, steps - depth)
    rounds = max(0, steps - max(depth, layout.steps_ahead + 1)) // layout.unroll
    left = full - rounds * layout.unroll
    address = READ if layout.rank > 1 else 1
    step = address * reads + ROW * rows + (STEP if layout.rank > 1 else 0)
    step += (levels - 1) * (PACKED * rows + SHUFFLES * reads) + (TRIMMED if levels > 1 else 0)
    begin = START + 4 * len(layout.blocks) + (layout.stages - 1) * (READ + CHECKED)
    inside = (
        begin
        + _mma(layout, steps)
        + rounds * (layout.unroll * step + ROUND)
        + left * (step + CHECKED + carried)
        + depth * ((levels + 1) * step + CHECKED)
    )
    at_edge = (steps + levels * depth) * EDGE_READ * reads + steps * EDGE_ROW * rows
    strips = -(-shape[-1] // layout.width)
    if layout.rank == 1:
        # Of all warps, one of the first march and one of the last.
        strips, at_edge = -(-strips // steps), steps * (END_READ * reads + EDGE_ROW)
    return inside + min(2, strips) / strips * at_edge


def _row_bytes(layout: StreamLayout, outputs: int) -> int:
    """Bytes of the sectors of a row of inputs that a run of outputs meets."""
    first = min(start for _, start in layout.reads) - layout.trimmed[0]
    read = ITEMSIZE * (outputs + COLUMNS - OUTPUTS)
    return -(-(ITEMSIZE * first % SECTOR + read) // SECTOR) * SECTOR


def _block_bytes(layout: StreamLayout) -> float:
    """Bytes of the sectors that a block reads in a step, for each output of it."""
    if layout.rank < 3:
        row = layout.warps * layout.width
        return _row_bytes(layout, row + sum(layout.trimmed)) / row
    across = [term.across for term in layout.terms]
    rows = layout.warps * layout.rows + max(across) - min(across)
    return rows * _row_bytes(layout, STRIP) / (layout.warps * layout.rows * STRIP)


def _table_bytes(layout: StreamLayout) -> int:
    """Bytes of A and its metadata that a warp reads once."""
    words, _ = metadata_words(layout)
    return len(layout.blocks) * 32 * 16 + len(words) * 32 * 4
