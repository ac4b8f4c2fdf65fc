# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""How a warp streams along the slowest axis: what it reads of a step, and which outputs that meets.

A warp owns a strip of 128 outputs along the last axis, in arrays of rank 3 a few rows of them.
Advancing along the slowest axis it reads each row of inputs once, multiplies it for every row of
outputs that it meets, and keeps the sums of those rows in registers until they are complete.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace

import numpy as np

from twofour.errors import TwofourError, Unsuitable
from twofour.layout.chunks import CHUNK, COLUMNS, OUTPUTS, column_places, row_places
from twofour.layout.fragments import LANES, SPARSE_16, TILES
from twofour.layout.patch import PatchOperator

Extents = tuple[int, ...]

STRIP = TILES * OUTPUTS  # outputs of a warp along the last axis
WARPS = (4, 8)  # warps of a block; more than the first where they can share rows of inputs
MAX_ROWS = 3
MAX_STAGES = 12
MIN_UNROLL = 6  # steps of a loop: fewer would spend too much on counting them
MARCH = 128  # about so many steps
# Registers of a thread: what is left for addresses, and how many ptxas may be asked for.
OTHER_REGISTERS, MAX_REGISTERS = 44, 246
WARP_REGISTERS, MAX_WARPS = 2048, 64  # of a multiprocessor, for 32 threads of one register


@dataclass(frozen=True)
class Term:
    """One instruction of a row of outputs: block of A number `block` times a fragment of B.

    The fragment begins `start` inputs from the strip's first output, in the row that lies `along`
    on the slowest axis and `across` on the one between from the output's (0 where there is none).
    """

    along: int
    across: int
    start: int
    block: int


@dataclass(frozen=True, eq=False)
class StreamLayout:
    """The work of one warp; extents are in elements, slowest axis first.

    Attributes:
        terms: the instructions of one row of outputs.
        blocks: distinct blocks of A, float64 (16, 32) each.
        reach_lo, reach_hi: how far the stencil reaches, per axis.
        rows: rows of outputs of a step, along the axis between; 1 where there is none.
        stages: fragments of B in registers, the one that is multiplied and those read ahead.
        march: steps of a warp along the slowest axis.
        warps: of a block, side by side.
        levels: time steps of a march; rows of a level that are complete are inputs of the next.
    """

    terms: tuple[Term, ...]
    blocks: tuple[np.ndarray, ...]
    reach_lo: Extents
    reach_hi: Extents
    rows: int
    stages: int
    march: int
    warps: int
    levels: int = 1

    @property
    def rank(self) -> int:
        """Rank of the arrays."""
        return len(self.reach_lo)

    @property
    def threads(self) -> int:
        """Threads of a block."""
        return LANES * self.warps

    @property
    def tile(self) -> Extents:
        """Outputs of a block per axis in one step; its warps lie side by side."""
        if self.rank == 3:
            return (1, self.warps * self.rows, self.width)
        return (1,) * (self.rank - 1) + (self.warps * self.width,)

    @property
    def input_lo(self) -> Extents:
        """How far all levels together reach below, per axis."""
        return tuple(self.levels * reach for reach in self.reach_lo)

    @property
    def trimmed(self) -> tuple[int, int]:
        """Outputs at both ends of a strip that miss inputs of the levels before the last."""
        ends = (self.reach_lo[-1], self.reach_hi[-1])
        lo, hi = (-(-(self.levels - 1) * max(0, end) // CHUNK) * CHUNK for end in ends)
        # Strips begin on sectors.
        return lo, hi + (lo + hi) % OUTPUTS

    @property
    def width(self) -> int:
        """Outputs of a strip that are written, along the last axis."""
        return STRIP - sum(self.trimmed)

    @property
    def first(self) -> int:
        """The first row of inputs that a row of outputs meets, along the slowest axis."""
        return min(term.along for term in self.terms)

    @property
    def depth(self) -> int:
        """Rows of outputs that a row of inputs meets, all but one."""
        return max(term.along for term in self.terms) - self.first

    @property
    def reads(self) -> list[tuple[int, int]]:
        """(row along the axis between, start) of the fragments of B that one step reads."""
        return sorted(
            {(row + term.across, term.start) for term in self.terms for row in range(self.rows)}
        )

    @property
    def steps_ahead(self) -> int:
        """How many steps ahead of its multiplication a fragment of B is read, at most."""
        return -(-(self.stages - 1) // len(self.reads))

    @property
    def unroll(self) -> int:
        """Steps of one round of the main loop: sums are back in the registers they began in."""
        turn = self.depth + 1
        return turn * -(-MIN_UNROLL // turn)

    @property
    def registers(self) -> int:
        """An estimate of the registers of a thread."""
        sums = 4 * self.levels * self.rows * (self.depth + 1)
        inputs = 4 * self.stages
        addresses = 3 * (len({row for row, _ in self.reads}) + self.rows)
        # Longer rounds of the main loop keep more on the way.
        rounds = 3 * self.depth + len(self.terms) // 4
        return sums + inputs + addresses + 5 * len(self.blocks) + rounds + OTHER_REGISTERS

    @property
    def resident(self) -> int:
        """Blocks of a multiprocessor at a time."""
        return max(1, min(MAX_WARPS, WARP_REGISTERS // self.registers) // self.warps)


def stream_layouts(
    operator: PatchOperator,
    reach: tuple[Extents, Extents],
    *,
    block: Extents | None = None,
    stages: int | None = None,
    march: int | None = None,
    levels: int = 1,
) -> list[StreamLayout]:
    """The streams of an operator whose columns stand in chunks of eight (see layout.chunks).

    Args:
        operator: of rank 1 to 3, from `chunk_operator`.
        reach: (lo, hi) of the stencil: minus the smallest and the largest offset per axis.
        block: outputs of a block per axis in one step; all that there are where it is not given.
        stages: fragments of B in registers; up to MAX_STAGES where it is not given.
        march: steps along the slowest axis; chosen where it is not given.
        levels: time steps of a march.

    Raises:
        Unsuitable: another order of columns, a higher rank, or more than registers hold.
        TwofourError: the block given is none of those that there are.
    """
    reach_lo, reach_hi = (tuple(side) for side in reach)
    rank = len(reach_lo)
    if rank > 3:
        raise Unsuitable(f"expected arrays of rank 1 to 3, got rank {rank}")
    if levels > 1 and rank > 2:
        raise Unsuitable(f"expected arrays of rank 1 or 2 for several levels, got rank {rank}")
    terms, blocks = _terms(operator)
    candidates = [
        _with_march(
            StreamLayout(terms, blocks, reach_lo, reach_hi, rows, count, 1, warps, levels), march
        )
        for warps in (WARPS if rank == 3 else WARPS[:1])
        for rows in (range(1, MAX_ROWS + 1) if rank == 3 else (1,))
        for count in ((stages,) if stages is not None else range(2, MAX_STAGES + 1))
    ]
    if block is not None:
        candidates = [layout for layout in candidates if layout.tile == tuple(block)]
        if not candidates:
            raise TwofourError(f"expected a block of {_blocks(rank)} outputs, got {list(block)}")
    fitting = [layout for layout in candidates if layout.registers <= MAX_REGISTERS]
    if not fitting:
        needed = min(layout.registers for layout in candidates)
        raise Unsuitable(f"expected at most {MAX_REGISTERS} registers, got about {needed}")
    return fitting


def _with_march(layout: StreamLayout, march: int | None) -> StreamLayout:
    """With a march that whole rounds of the main loop make up."""
    if march is None:
        others = max(layout.depth, layout.steps_ahead + 1)
        march = others + max(1, round((MARCH - others) / layout.unroll)) * layout.unroll
    return replace(layout, march=march)


def _blocks(rank: int) -> str:
    if rank < 3:
        return "x".join(["1"] * (rank - 1) + [str(WARPS[0] * STRIP)])
    between = sorted({warps * rows for warps in WARPS for rows in range(1, MAX_ROWS + 1)})
    return " or ".join(f"1x{extent}x{STRIP}" for extent in between)


def is_chunked(operator: PatchOperator) -> bool:
    """Whether the columns stand in chunks of eight, as `chunk_operator` orders them."""
    outputs = operator.output_offsets
    if operator.tile != (1,) * (len(operator.tile) - 1) + (OUTPUTS,):
        return False
    if operator.matrix.shape[1] % COLUMNS or not (outputs[:, -1] == row_places()).all():
        return False
    return all(
        (places[:, :-1] == places[0, :-1]).all()
        and (places[:, -1] - places[0, -1] == column_places()).all()
        and places[0, -1] % CHUNK == 0
        for places, _ in _fragments(operator)
    )


def _fragments(operator: PatchOperator) -> Iterator[tuple[np.ndarray, np.ndarray]]:
    """Input offsets and A of each fragment."""
    for begin in range(0, operator.matrix.shape[1], COLUMNS):
        part = slice(begin, begin + COLUMNS)
        yield operator.input_offsets[part], operator.matrix[:, part]


def _terms(operator: PatchOperator) -> tuple[tuple[Term, ...], tuple[np.ndarray, ...]]:
    """The instructions of a row of outputs, and the distinct blocks of A they share."""
    if not is_chunked(operator):
        raise Unsuitable("expected columns in chunks of eight, got another order")
    terms: list[Term] = []
    blocks: list[np.ndarray] = []
    for places, block in _fragments(operator):
        same = (n for n, other in enumerate(blocks) if np.array_equal(block, other))
        number = next(same, len(blocks))
        if number == len(blocks):
            blocks.append(block)
        *lead, start = places[0].tolist()
        along, across = (*lead, 0, 0)[:2]
        terms.append(Term(along, across, start, number))
    return tuple(terms), tuple(blocks)


def metadata_words(layout: StreamLayout) -> tuple[np.ndarray, list[int]]:
    """Distinct metadata of the blocks, uint32 (words, 32), and the number of each block's."""
    words: list[np.ndarray] = []
    numbers = []
    for block in layout.blocks:
        _, mine = SPARSE_16.stored(block)
        same = (n for n, other in enumerate(words) if np.array_equal(mine, other))
        number = next(same, len(words))
        if number == len(words):
            words.append(mine)
        numbers.append(number)
    return np.stack(words), numbers
