# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Which sweeps follow each other, and between which arrays."""

from types import SimpleNamespace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from twofour.runtime.tiles.itinerary import Itinerary, Pair, Stage


def array(value=0):
    return np.full(1, value)


def fresh_pair():
    return Pair(array, lambda _: array())


def program(steps):
    return SimpleNamespace(steps=steps)


def follow(itinerary, steps):
    """Carry out legs that add the steps of their programs, so many steps at a time."""
    while itinerary.left:
        for leg in itinerary.legs(steps):
            arrays = [leg.source, leg.target]
            for _ in range(leg.sweeps):
                arrays[1][:] = arrays[0] + leg.program.steps
                arrays.reverse()
    return itinerary.current


@given(
    st.lists(st.tuples(st.integers(1, 5), st.integers(1, 6)), min_size=1, max_size=4),
    st.integers(1, 20),
    st.booleans(),
)
def test_every_sweep_reads_what_the_one_before_wrote(parts, slice_of, another_pair):
    begin, outside = array(), fresh_pair()
    inside = Pair.of(array(), array())
    stages = [
        Stage(program(steps), sweeps, inside if another_pair and number % 2 else outside)
        for number, (steps, sweeps) in enumerate(parts)
    ]
    itinerary = Itinerary(stages, begin)
    total = sum(steps * sweeps for steps, sweeps in parts)
    assert itinerary.left == total
    assert follow(itinerary, slice_of) == total and begin == 0


@given(
    st.lists(st.tuples(st.integers(1, 3), st.integers(1, 5)), min_size=1, max_size=3),
    st.integers(1, 12),
    st.booleans(),
)
def test_sweeps_are_counted_and_write_empty_arrays_as_a_whole(parts, slice_of, empty):
    pair = Pair(array, lambda _: array(), empty)
    itinerary = Itinerary([Stage(program(*part[:1]), part[1], pair) for part in parts], array())
    known, before = [], 0
    while itinerary.left:
        for leg in itinerary.legs(slice_of):
            is_new = all(leg.target is not one for one in known)
            assert leg.whole == (is_new and empty) and leg.before == before
            assert leg.sweeps == 1 or not leg.whole
            known += [leg.target] if is_new else []
            before += leg.sweeps
    assert before == sum(sweeps for _, sweeps in parts)
    assert len(known) == min(2, before)


def test_slices_are_as_long_as_they_may():
    itinerary = Itinerary([Stage(program(3), 10, fresh_pair())], array())
    taken = []
    while itinerary.left:
        taken.append(sum(leg.sweeps for leg in itinerary.legs(10)))
    assert taken == [3, 3, 3, 1]
    # A sweep of more steps is taken nevertheless, and nothing else then.
    pair = fresh_pair()
    itinerary = Itinerary([Stage(program(8), 1, pair), Stage(program(1), 2, pair)], array())
    assert [leg.sweeps for leg in itinerary.legs(2)] == [1] and itinerary.left == 2


@pytest.mark.parametrize("sweeps", [1, 2, 3])
def test_arrays_are_made_when_they_are_written(sweeps):
    made = []

    def make():
        made.append(array())
        return made[-1]

    follow(Itinerary([Stage(program(1), sweeps, Pair(make, lambda _: make()))], array()), 100)
    assert len(made) == min(sweeps, 2)
