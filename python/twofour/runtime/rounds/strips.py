# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Strips: skewed rounds cut along the second of three axes, where whole planes are too large.

Strips of some rows of all planes are done one after the other, each with all rounds skewed along
the first axis. From action to action a strip lies some rows lower, as far as each depends on those
before it: time skewing along the second axis, with one part and its ends for last (see
twofour.runtime.rounds.time_skewing).
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import cache, partial

from twofour.runtime.loops import Launch
from twofour.runtime.rounds.actions import Action, Buffer, Copy, footprint, part_of
from twofour.runtime.rounds.time_skewing import Chain, Footprint, Skew, chain_of

# The axis that is cut, and how many there must be.
AXIS, LEAST_RANK = 1, 3


@dataclass(frozen=True)
class Strip:
    """The part of skewed rounds in a strip, a chain along the first axis."""

    rounds: tuple[tuple[Action, ...], ...]
    chain: Chain


@dataclass(frozen=True)
class Cutting:
    """Strips of `width` rows; `along` is the chain of all actions along their axis."""

    width: int
    along: Chain

    @property
    def share(self) -> float:
        """The part of a plane that has rows in use at a time."""
        return min(1, (self.width + self.along.window) / (self.along.end - self.along.begin))

    @property
    def passes(self) -> float:
        """How often rows are passed over: several strips have those at their ends."""
        return 1 + self.along.window / self.width


def can_be_cut(actions: Sequence[Action], buffers: Sequence[Buffer]) -> bool:
    """Whether all actions have the same three or more axes, and none reads more than is near."""
    launches = [action for action in actions if isinstance(action, Launch)]
    views = [view for one in launches for view in (*one.inputs, *one.outputs)]
    ranks = {len(buffers[view.buffer].shape) for view in views} - {0}
    ranks |= {len(buffers[one.written].shape) for one in actions if isinstance(one, Copy)}
    has_axes = len(ranks) == 1 and min(ranks) >= LEAST_RANK
    return has_axes and not any(one.uses_index or one.tables for one in launches)


def along_strips(actions: Sequence[Action], buffers: Sequence[Buffer]) -> Chain:
    """The chain of actions along the axis that is cut."""
    return chain_of([footprint(action, buffers, AXIS) for action in actions])


def cut(
    rounds: Sequence[Sequence[Action]], buffers: Sequence[Buffer], cutting: Cutting
) -> tuple[Strip, ...]:
    """Rounds as strips, in order, and then what these leave at both ends."""
    actions = [action for one in rounds for action in one]
    along, width = cutting.along, cutting.width
    # Parts of actions are theirs along the first axis.
    prints = [footprint(action, buffers) for action in actions]
    chain_of_some = cache(lambda *numbers: chain_of([prints[number] for number in numbers]))
    last = -(-(along.end - along.begin) // width) - 1
    places = [partial(_rows_of_strip, along, width * n, width, n == last) for n in range(last + 1)]
    strips = []
    for place in (*places, partial(_ends, along)):
        numbers, parts = _parts(rounds, along, buffers, place)
        if numbers:
            strips.append(Strip(parts, chain_of_some(*numbers)))
    return tuple(strips)


# Where a strip has rows of an action with such a footprint and skew along the axis that is cut.
Place = Callable[[Footprint, Skew], Sequence[tuple[int, int]]]


def _rows_of_strip(
    along: Chain, front: int, width: int, is_last: bool, footprint: Footprint, skew: Skew
) -> Sequence[tuple[int, int]]:
    if footprint.anchored:
        return ()
    begin, end = along.begin + skew.first_low, along.end - skew.last_high
    lower = along.begin + front - skew.high
    first = max(begin, lower) if front else begin
    return ((first, end if is_last else min(end, lower + width)),)


def _ends(along: Chain, footprint: Footprint, skew: Skew) -> Sequence[tuple[int, int]]:
    if footprint.anchored:
        return ((footprint.begin, footprint.end),)
    begin, end = along.begin + skew.first_low, along.end - skew.last_high
    return (footprint.begin, begin), (end, footprint.end)


def _parts(
    rounds: Sequence[Sequence[Action]], along: Chain, buffers: Sequence[Buffer], place: Place
) -> tuple[list[int], tuple[tuple[Action, ...], ...]]:
    """The parts of actions in a strip, round by round, and which of all actions they are of."""
    plans = iter(enumerate(zip(along.footprints, along.skews, strict=True)))
    numbers: list[int] = []
    found = []
    for one in rounds:
        parts: list[Action] = []
        for action, (number, (touched, skew)) in zip(one, plans, strict=False):
            for first, last in place(touched, skew):
                now = [*_part(action, buffers, touched, first, last)]
                numbers += [number] * len(now)
                parts += now
        found.append(tuple(parts))
    return numbers, tuple(found)


def _part(
    action: Action, buffers: Sequence[Buffer], touched: Footprint, first: int, last: int
) -> Iterator[Action]:
    """Rows [first, last) of an action, as far as it has any."""
    first, last = max(first, touched.begin), min(last, touched.end)
    if first >= last:
        return
    if (first, last) == (touched.begin, touched.end):
        yield action
        return
    below, above = first - touched.begin, touched.end - last
    yield part_of(action, buffers, (0,) * AXIS + (below,), (0,) * AXIS + (above,))
