# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Time skewing: sweeps of several steps go over the rows together, and threads need not wait.

Actions in order form a chain. Each goes over the rows behind those before it, by as many rows as
it depends on: what one writes is in the caches when the next one reads it, and memory is passed
over once for all of them (Wonnacott, Using time skewing to eliminate idle time due to memory
bandwidth and network limitations, 2000). Threads have a part of the rows each. What depends on rows
of a neighbour is left to a seam between the two, which is wider for every action, and done by one
of them when all parts are (split tiling: Krishnamoorthy et al., Effective automatic parallelization
of stencil computations, 2007). Nothing is computed twice.

Copies between rows far apart, as to the halos of periodic axes, are done in the seam where the
parts of the last thread and of the first one meet.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple


@dataclass(frozen=True)
class Touch:
    """Rows `first` to `last` of a buffer, which are read, or written.

    They are relative to the row that an action is at, or absolute where it is anchored.
    """

    buffer: int
    first: int
    last: int
    written: bool


@dataclass(frozen=True)
class Footprint:
    """What an action touches at each row in [begin, end), or as a whole where it is `anchored`."""

    begin: int
    end: int
    touches: tuple[Touch, ...]
    anchored: bool = False


class Skew(NamedTuple):
    """How many rows an action of a chain leaves to the seams at the ends of a thread's part.

    `low` and `high` are for ends where it has a neighbour, `first_low` and `last_high` for those of
    all rows. On the way up it stays `high` rows behind the front, on the way down `low`.
    """

    low: int = 0
    high: int = 0
    first_low: int = 0
    last_high: int = 0

    @property
    def lag(self) -> int:
        """The rows that it is behind the front, whatever the direction."""
        return max(self.low, self.high)

    @property
    def leaves_rows(self) -> bool:
        """Whether there is anything for the seams."""
        return self != Skew()


@dataclass(frozen=True)
class Chain:
    """Actions that go over the rows [begin, end) together, and their skews.

    `reach` is how far from its row an action touches others. No thread's part has less than
    `least_part` rows. The first actions of a chain are a chain as well.
    """

    begin: int
    end: int
    footprints: tuple[Footprint, ...]
    skews: tuple[Skew, ...]
    reach: int
    least_part: int

    @cached_property
    def window(self) -> int:
        """The rows between the first and the last one in use, beside those of a block."""
        return max(skew.lag for skew in self.skews) + 2 * self.reach

    def has_parts(self, count: int) -> bool:
        """Whether there are rows for so many parts; any number may share what is anchored."""
        rows = self.end - self.begin
        return rows == 0 or rows >= count * self.least_part


class _End:
    """How far from an end of a part, counted inwards, actions touch each buffer later on."""

    def __init__(self, upper: bool):
        self._sign = -1 if upper else 1
        self._written: dict[int, int] = {}
        self._touched: dict[int, int] = {}

    def rows_to_leave(self, touches: Sequence[Touch]) -> int:
        """The rows that an action leaves, so as not to come before one that it depends on."""
        rows = 0
        for touch in touches:
            depths = self._touched if touch.written else self._written
            if touch.buffer in depths:
                outermost = min(self._sign * touch.first, self._sign * touch.last)
                rows = max(rows, depths[touch.buffer] - outermost)
        return rows

    def leave(self, touches: Sequence[Touch], rows: int) -> None:
        """An action leaves so many rows."""
        for touch in touches:
            self.touch_later(touch, rows + max(self._sign * touch.first, self._sign * touch.last))

    def touch_later(self, touch: Touch, depth: int) -> None:
        """Rows less than `depth` from the end are touched later."""
        for depths in [self._touched, self._written] if touch.written else [self._touched]:
            depths[touch.buffer] = max(depth, depths.get(touch.buffer, depth))


def _anchor(action: Footprint, begin: int, end: int, ends: tuple[_End, _End]) -> int:
    """Keep the rows of an anchored action for later, those from the nearer end on; how many."""
    deepest = 0
    for touch in action.touches:
        depths = touch.last + 1 - begin, end - touch.first
        nearer = depths.index(min(depths))
        ends[nearer].touch_later(touch, depths[nearer])
        deepest = max(deepest, depths[nearer])
    return deepest


def chain_of(footprints: Sequence[Footprint]) -> Chain:
    """The chain of actions with these footprints."""
    moving = [one for one in footprints if not one.anchored]
    begin = min((one.begin for one in moving), default=0)
    end = max((one.end for one in moving), default=0)
    inner, outer = (_End(False), _End(True)), (_End(False), _End(True))
    skews, deepest = [], 0
    for one in footprints:
        if one.anchored:
            deepest = max(deepest, _anchor(one, begin, end, outer))
            skews.append(Skew())
            continue
        left = [side.rows_to_leave(one.touches) for side in (*inner, *outer)]
        skews.append(Skew(*left))
        for side, rows in zip((*inner, *outer), left, strict=True):
            # Where there is no neighbour, nothing waits for an action that leaves no rows.
            if side in inner or rows:
                side.leave(one.touches, rows)
    touches = [touch for one in moving for touch in one.touches]
    reach = max((max(abs(one.first), abs(one.last)) for one in touches), default=0)
    seams = (max(s.low, s.first_low) + max(s.high, s.last_high) for s in skews)
    least_part = max(seams) + deepest + 2 * reach + 1
    return Chain(begin, end, tuple(footprints), tuple(skews), reach, least_part)
