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
from twofour.layout.chunks import (
    CHUNK,
    COLUMNS,
    OUTPUTS,
    column_places,
    passed_column_places,
    passed_row_places,
    row_places,
)
from twofour.layout.fragments import LANES, SPARSE_16, TILES
from twofour.layout.march import March, Meeting
from twofour.layout.marches import marches
from twofour.layout.patch import PatchOperator
from twofour.reach import Reach

ITEMSIZE = 2  # bytes of f16 and bf16
MAX_ROWS = 3
MAX_INSTRUCTIONS = 1024  # matrix instructions in the code of a strip: more take too long to compile
# Where a fragment of a row that is passed on begins, and its registers that begin in other lanes.
PASSED_START, HALO_REGISTERS = -CHUNK, (0, 3)
TILE_LANES = LANES // TILES  # of a fragment of B
# Registers of a thread that do not depend on the stencil, by rank: those that ptxas takes, less
# some that it does without where it is asked to.
OTHER_REGISTERS = {1: 29, 2: 15, 3: 34}


@dataclass(frozen=True)
class Term:
    """One instruction of a row of outputs: block number `block` of A times a fragment of B."""

    meeting: Meeting
    block: int


@dataclass(frozen=True, eq=False, kw_only=True)
class StreamLayout(March):
    """The work of one warp.

    Attributes:
        terms: the instructions of one row of outputs.
        blocks: distinct blocks of A, float64 (16, 32) each, in the order of rows that are read from
            memory and written there.
    """

    terms: tuple[Term, ...]
    blocks: tuple[np.ndarray, ...]

    @cached_property
    def exchanged(self) -> tuple[int, ...]:
        """Registers of a fragment that lanes get from others where a level passes on a row.

        None where rows begin elsewhere than at PASSED_START: levels then keep their order in
        memory, and lanes get whole fragments.
        """
        if self.levels == 1 or {start for _, start in self.reads} != {PASSED_START}:
            return ()
        passed = [_in_passed_columns(block) for block in self.blocks]
        return tuple(n for n in HALO_REGISTERS if any(_uses(block, n) for block in passed))

    @cached_property
    def matrices(self) -> tuple[np.ndarray, ...]:
        """Distinct blocks of A of all levels, float64 (16, 32) each."""
        return self._matrices[0]

    def matrix(self, term: Term, level: int) -> int:
        """The number of the matrix of a term in a level, of which 0 reads from memory."""
        kind = (level > 0, level < self.levels - 1) if self.exchanged else (False, False)
        return self._matrices[1][kind][term.block]

    @cached_property
    def _matrices(self) -> tuple[tuple[np.ndarray, ...], dict[tuple[bool, bool], list[int]]]:
        """All matrices, and their numbers by block: of levels that are passed rows, and pass on."""
        kinds = [(False, False)]
        if self.exchanged:
            kinds = [(False, True), (True, True), (True, False)]
            kinds = [kind for kind in kinds if self.levels > 2 or not all(kind)]
        matrices: list[np.ndarray] = []
        numbers = {}
        for is_passed, passes in kinds:
            ordered = [_in_passed_columns(b) if is_passed else b for b in self.blocks]
            ordered = [_in_passed_rows(b) if passes else b for b in ordered]
            numbers[is_passed, passes] = [_number_of(block, matrices) for block in ordered]
        return tuple(matrices), numbers

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
    def shuffles(self) -> int:
        if not self.exchanged:
            return super().shuffles
        return len(self.exchanged) * len(self.reads)

    @property
    def instructions(self) -> int:
        """Matrix instructions in the code of a strip inside."""
        # Levels begin after each other, and end after each other.
        steps = sum(
            self.lead - level * (self.depth + 1) + self.unroll + self.steps_ahead + level
            for level in range(self.levels)
        )
        return steps * self.rows * len(self.terms)

    @cached_property
    def registers(self) -> int:
        """An estimate of the registers of a thread."""
        sums = 4 * self.levels * self.rows * (self.depth + 1)
        sums += self.written // 2 * self.rows * (self.levels - 1)
        addresses = 3 * (self.rows_addressed + self.rows)
        # On the only axis every level asks where its outputs lie.
        asked = 8 * (self.levels - 1) if self.rank == 1 else 0
        begun = {1: 4, 2: 4, 3: 32}[self.rank] if self.depth == 0 else len(self.terms) // 24
        other = self._waiting + asked + begun + OTHER_REGISTERS[self.rank]
        return sums + self.inputs_held + addresses + 5 * len(self.matrices) + other

    @property
    def _waiting(self) -> int:
        """Registers of results that wait, more of them where a step has several rows or levels."""
        if self.ring and self.levels == 1:
            return 0
        each = 4 if self.rank == 3 else 1 if self.levels == 1 else 2 * self.levels
        return max(0, self.depth - 2) * each


def stream_layouts(operator: PatchOperator, reach: Reach, **choices) -> list[StreamLayout]:
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
        number = _number_of(block, blocks)
        *lead, start = places[0].tolist()
        along, across = (*lead, 0, 0)[:2]
        terms.append(Term(Meeting(along, across, start), number))
    return tuple(terms), tuple(blocks)


def metadata_words(layout: StreamLayout) -> tuple[np.ndarray, list[int]]:
    """Distinct metadata of the matrices, uint32 (words, 32), and the number of each one's."""
    return _metadata_words(tuple(matrix.tobytes() for matrix in layout.matrices))


@lru_cache(maxsize=16)
def _metadata_words(matrices: tuple[bytes, ...]) -> tuple[np.ndarray, list[int]]:
    # The layouts of one stencil have the same matrices.
    words: list[np.ndarray] = []
    numbers = []
    for matrix in matrices:
        _, mine = SPARSE_16.stored(np.frombuffer(matrix).reshape(OUTPUTS, COLUMNS))
        numbers.append(_number_of(mine, words))
    return np.stack(words), numbers


def _number_of(array: np.ndarray, distinct: list[np.ndarray]) -> int:
    """The place of an array among distinct ones, which it joins if it is new."""
    same = (n for n, other in enumerate(distinct) if np.array_equal(array, other))
    number = next(same, len(distinct))
    if number == len(distinct):
        distinct.append(array)
    return number


def _in_passed_rows(block: np.ndarray) -> np.ndarray:
    """A block whose rows compute outputs in the order in which they are passed on."""
    return block[_places_in(row_places(), passed_row_places())]


def _in_passed_columns(block: np.ndarray) -> np.ndarray:
    """A block of a fragment that begins at PASSED_START, for a row that was passed on."""
    return block[:, _places_in(PASSED_START + column_places(), passed_column_places())]


def _places_in(order: np.ndarray, wanted: np.ndarray) -> np.ndarray:
    return np.argsort(order)[np.searchsorted(np.sort(order), wanted)]


def _uses(block: np.ndarray, register: int) -> bool:
    """Whether a block has nonzeros in the columns of a register of B."""
    return bool(block.reshape(OUTPUTS, -1, CHUNK)[:, register].any())
