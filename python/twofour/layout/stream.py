# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Rows of inputs that stream through sparse tensor cores as they lie in memory.

A warp owns a strip of 128 outputs along the last axis (see layout.march): eight tiles of sixteen.
Each row of inputs that it reads is multiplied once for every row of outputs that it meets.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property, lru_cache, partial

import numpy as np

from twofour.errors import Unsuitable
from twofour.layout.chunks import CHUNK, COLUMNS, OUTPUTS, column_places, row_places
from twofour.layout.fragments import LANES, SPARSE_16, TILES
from twofour.layout.march import Extents, March, Meeting
from twofour.layout.marches import marches
from twofour.layout.patch import PatchOperator

ITEMSIZE = 2  # bytes of f16 and bf16
MAX_ROWS = 3
MAX_INSTRUCTIONS = 1024  # matrix instructions in the code of a strip: more take too long to compile
# Registers of a thread that do not depend on the stencil, by rank: those that ptxas takes, less
# some that it does without where it is asked to.
OTHER_REGISTERS = {1: 29, 2: 15, 3: 34}


@dataclass(frozen=True)
class Term:
    """One instruction of a row of outputs: block of A number `block` times a fragment of B."""

    meeting: Meeting
    block: int


@dataclass(frozen=True, eq=False, kw_only=True)
class StreamLayout(March):
    """The work of one warp.

    Attributes:
        terms: the instructions of one row of outputs.
        blocks: distinct blocks of A, float64 (16, 32) each.
    """

    terms: tuple[Term, ...]
    blocks: tuple[np.ndarray, ...]

    @cached_property
    def meetings(self) -> frozenset[Meeting]:
        """The fragments of B of a row of outputs."""
        return frozenset(term.meeting for term in self.terms)

    @property
    def written(self) -> int:
        """Neighbouring outputs of a lane, after a transposition."""
        return TILES * OUTPUTS // LANES

    @property
    def group(self) -> int:
        """The lanes of a quad have a tile."""
        return OUTPUTS // self.written

    @property
    def overhang(self) -> int:
        """Elements that a fragment holds beyond the width of a strip."""
        return COLUMNS - OUTPUTS

    @property
    def compact(self) -> bool:
        """Sums are not moved from register to register."""
        return False

    @property
    def instructions(self) -> int:
        """Matrix instructions in the code of a strip inside."""
        steps = self.levels * self.depth + self.unroll + self.steps_ahead
        return steps * self.levels * self.rows * len(self.terms)

    @cached_property
    def registers(self) -> int:
        """An estimate of the registers of a thread."""
        # On the only axis levels follow each other, unless inputs in registers keep them apart.
        levels = 1 if self.ring and self.rank == 1 else self.levels
        sums = 4 * levels * self.rows * (self.depth + 1)
        addresses = 3 * (self.rows_addressed + self.rows)
        # On the only axis every level asks where its outputs lie.
        asked = 8 * (levels - 1) if self.rank == 1 else 0
        begun = {1: 4, 2: 4, 3: 32}[self.rank] if self.depth == 0 else len(self.terms) // 24
        other = self._waiting + asked + begun + OTHER_REGISTERS[self.rank]
        return sums + self.inputs_held + addresses + 5 * len(self.blocks) + other

    @property
    def _waiting(self) -> int:
        """Registers of results that wait, more of them where a step has several rows or levels."""
        if self.ring and self.levels == 1:
            return 0
        each = 4 if self.rank == 3 else 1 if self.levels == 1 else 2 * self.levels
        return max(0, self.depth - 2) * each


def stream_layouts(
    operator: PatchOperator, reach: tuple[Extents, Extents], **choices
) -> list[StreamLayout]:
    """The streams of an operator whose columns stand in chunks of eight (see layout.chunks).

    `operator` is of rank 1 to 3, from `chunk_operator`; `reach` and `choices` are as for
    `layout.marches.marches`, which says what else is refused. Raises Unsuitable for another order
    of columns.
    """
    terms, blocks = _terms(operator)
    make = partial(StreamLayout, itemsize=ITEMSIZE, terms=terms, blocks=blocks)
    found = marches(make, reach, MAX_ROWS, **choices)
    small = [layout for layout in found if layout.instructions <= MAX_INSTRUCTIONS]
    if not small:
        least = min(layout.instructions for layout in found)
        raise Unsuitable(
            f"expected at most {MAX_INSTRUCTIONS} matrix instructions in a kernel, got {least}"
        )
    return small


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
        terms.append(Term(Meeting(along, across, start), number))
    return tuple(terms), tuple(blocks)


def metadata_words(layout: StreamLayout) -> tuple[np.ndarray, list[int]]:
    """Distinct metadata of the blocks, uint32 (words, 32), and the number of each block's."""
    return _metadata_words(tuple(block.tobytes() for block in layout.blocks))


@lru_cache(maxsize=16)
def _metadata_words(blocks: tuple[bytes, ...]) -> tuple[np.ndarray, list[int]]:
    # The layouts of one stencil have the same blocks.
    words: list[np.ndarray] = []
    numbers = []
    for block in blocks:
        _, mine = SPARSE_16.stored(np.frombuffer(block).reshape(OUTPUTS, COLUMNS))
        same = (n for n, other in enumerate(words) if np.array_equal(mine, other))
        number = next(same, len(words))
        if number == len(words):
            words.append(mine)
        numbers.append(number)
    return np.stack(words), numbers
