# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Chains of sweeps: every row once, and after what it depends on, for any threads and blocks."""

import itertools

import pytest
from hypothesis import given
from hypothesis import strategies as st

from twofour.runtime.rounds.time_skewing import Footprint, Skew, Touch, chain_of

ROWS = 200


def sweep(*touches, begin=0, end=ROWS):
    return Footprint(begin, end, tuple(Touch(*touch) for touch in touches))


def reading(source, target, below, above, **rows):
    """A sweep that writes a row of `target` from `source`'s rows -below to above around it."""
    return sweep((source, -below, above, False), (target, 0, 0, True), **rows)


def copy(buffer, target, source):
    """An anchored copy of rows [source) to rows [target) of a buffer."""
    touches = (
        Touch(buffer, first, end - 1, written)
        for (first, end), written in ((target, True), (source, False))
    )
    return Footprint(*target, tuple(touches), anchored=True)


def test_steps_of_two_arrays_in_turn():
    chain = chain_of([reading(0, 1, 2, 1), reading(1, 0, 2, 1), reading(0, 1, 2, 1)])
    assert chain.skews == (Skew(), Skew(2, 2, 0, 0), Skew(4, 4, 0, 0))
    assert chain.window == 4 + 2 * 2


def test_phases_in_place():
    """What the second reads is written by the first in the same row, and read by it one further."""
    magnetic = sweep((0, 0, 0, True), (1, 0, 1, False))
    electric = sweep((1, 0, 0, True), (0, -1, 0, False))
    chain = chain_of([magnetic, electric, magnetic, electric])
    assert [skew.high for skew in chain.skews] == [0, 0, 1, 1]
    assert [skew.low for skew in chain.skews] == [0, 1, 1, 2]


def test_fields_that_are_only_read_keep_nothing_back():
    chain = chain_of([reading(0, 1, 3, 3), reading(0, 2, 3, 3)])
    assert chain.skews == (Skew(), Skew())


def test_periodic_rows():
    """Ends of rows wait for copies between them: the more, the later."""
    halos = [copy(0, (0, 1), (ROWS - 2, ROWS - 1)), copy(0, (ROWS - 1, ROWS), (1, 2))]
    inner = {"begin": 1, "end": ROWS - 1}
    step = [*halos, reading(0, 1, 1, 1, **inner), reading(1, 0, 0, 0, **inner)]
    chain = chain_of(step * 2)
    ends = [(skew.first_low, skew.last_high) for skew in chain.skews]
    # The first row is computed from a halo row, so that the next one must not be written before.
    assert ends[:4] == [(0, 0), (0, 0), (1, 1), (2, 2)]
    # The second step has its halo rows later still.
    assert ends[6:] == [(3, 3), (4, 4)]


def touched(footprint, row):
    """The (buffer, row, written) that an action touches at a row."""
    base = 0 if footprint.anchored else row
    return {
        (touch.buffer, base + at, touch.written)
        for touch in footprint.touches
        for at in range(touch.first, touch.last + 1)
    }


def order_of(chain, threads, block, down):
    """When each (action, row) is done: (thread, place) before the seams, and behind them.

    Anchored actions have one row, None.
    """
    height = chain.end - chain.begin
    cuts = [chain.begin + height * n // threads for n in range(threads + 1)]
    parts, seams = [], []
    pairs = list(enumerate(zip(chain.footprints, chain.skews, strict=True)))
    for n in range(threads):
        done, low, high = [], cuts[n], cuts[n + 1]
        fronts = range(low - 2 * ROWS, high + 2 * ROWS, block)
        for front in reversed(fronts) if down else fronts:
            for number, (one, skew) in pairs:
                if one.anchored:
                    continue
                first = max(one.begin, low + (skew.low if n else skew.first_low))
                last = min(one.end, high - (skew.high if n + 1 < threads else skew.last_high))
                begin = front + (skew.low if down else -skew.high)
                rows = range(max(begin, first), min(begin + block, last))
                done += [(number, row) for row in rows]
        parts.append(done)
        seam = []
        for number, (one, skew) in pairs:
            if n == 0 and one.anchored:
                seam.append((number, None))
            elif n == 0:
                seam += [(number, row) for row in range(one.begin, low + skew.first_low)]
                seam += [(number, row) for row in range(chain.end - skew.last_high, one.end)]
            elif not one.anchored:
                seam += [
                    (number, row)
                    for row in range(max(one.begin, low - skew.high), min(one.end, low + skew.low))
                ]
        seams.append(seam)
    return parts, seams


@st.composite
def chains(draw):
    buffers = st.integers(0, 2)
    near, side = st.integers(-3, 3), st.integers(0, 3)
    actions = []
    for _ in range(draw(st.integers(2, 6))):
        if draw(st.integers(0, 3)) == 0:
            depth = draw(st.integers(1, 3))
            ends = [(0, depth), (ROWS - depth, ROWS), (depth, 2 * depth)]
            target, source = draw(st.permutations(ends))[:2]
            actions.append(copy(draw(buffers), target, source))
            continue
        touches = []
        for number in range(draw(st.integers(1, 3))):
            first = draw(near)
            last = first if number == 0 else first + draw(side)
            touches.append((draw(buffers), first, last, number == 0))
        actions.append(sweep(*touches, begin=3 + draw(side), end=ROWS - 3 - draw(side)))
    return [*actions, sweep((0, 0, 0, True))]


@given(chains(), st.integers(1, 3), st.integers(1, 9), st.booleans())
def test_whatever_is_needed_comes_before(actions, threads, block, down):
    chain = chain_of(actions)
    if (chain.end - chain.begin) < threads * chain.least_part:
        pytest.fail("parts are too small for this test: fewer actions")
    parts, seams = order_of(chain, threads, block, down)
    when = {}
    for stage, groups in enumerate((parts, seams)):
        for thread, group in enumerate(groups):
            for place, item in enumerate(group):
                assert item not in when, "done twice"
                when[item] = stage, thread, place
    everything = [
        (number, row)
        for number, one in enumerate(actions)
        for row in ([None] if one.anchored else range(one.begin, one.end))
    ]
    assert sorted(when, key=str) == sorted(everything, key=str)
    users: dict = {}
    for number, row in everything:
        for buffer, at, written in touched(actions[number], row):
            users.setdefault((buffer, at), []).append(((number, row), written))
    for uses in users.values():
        for (one, writes), (other, overwrites) in itertools.combinations(uses, 2):
            if (writes or overwrites) and one[0] != other[0]:
                before, after = (when[item] for item in sorted((one, other), key=lambda x: x[0]))
                assert before[0] < after[0] or (before[:2] == after[:2] and before[2] < after[2])
