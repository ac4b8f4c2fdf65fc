# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Strips of skewed rounds: every cell once, and after all that it depends on."""

import itertools
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from twofour.runtime import Launch, View
from twofour.runtime.rounds.actions import Buffer, Copy
from twofour.runtime.rounds.strips import Cutting, along_strips, can_be_cut, cut

PLANES, ROWS, HALO = 5, 90, 3
BUFFERS = [Buffer((PLANES + 2 * HALO, ROWS + 2 * HALO, 4), np.dtype(np.float64))] * 3
INSIDE = slice(HALO, HALO + PLANES)


def view(buffer, first, last, below=0, above=0):
    """Rows [first, last) of the interior, and so many around them."""
    planes = slice(HALO - below, HALO + PLANES + above)
    return View(buffer, (planes, slice(HALO + first - below, HALO + last + above), slice(0, 4)))


@st.composite
def actions(draw):
    buffers, near = st.integers(0, 2), st.integers(0, HALO)
    kind = draw(st.sampled_from(["sweep", "sweep", "rows", "columns", "number"]))
    if kind == "sweep":
        first, last = draw(st.integers(0, 3)), ROWS - draw(st.integers(0, 3))
        target, inputs = draw(buffers), []
        for source in (draw(buffers), draw(buffers)):
            # Kernels read no neighbours of what they write over.
            reach = (0, 0) if source == target else (draw(near), draw(near))
            inputs.append(view(source, first, last, *reach))
        return Launch(None, tuple(inputs), (view(target, first, last),))
    buffer, end = draw(buffers), HALO + ROWS
    if kind == "rows":
        depth, up = draw(st.integers(1, HALO)), draw(st.booleans())
        low, high = (slice(0, depth), slice(depth, 2 * depth)) if up else (
            slice(end, end + depth), slice(HALO, HALO + depth))  # fmt: skip
        return Copy(buffer, (slice(None), low), buffer, (slice(None), high))
    column = (slice(None), slice(None), slice(0, 1))
    if kind == "number":
        return Copy(buffer, column, None, value=np.float64(1))
    return Copy(buffer, column, draw(buffers), (slice(None), slice(None), slice(3, 4)))


def views_of(action):
    """The (view, written) of an action."""
    if isinstance(action, Launch):
        yield from ((view, False) for view in action.inputs)
        yield from ((view, True) for view in action.outputs)
        return
    if action.read is not None:
        yield View(action.read, action.source), False
    yield View(action.written, action.target), True


def cells_of(view):
    """Which cells of its buffer a view has."""
    found = np.zeros(BUFFERS[view.buffer].shape, bool)
    found[view.slices] = True
    return found


def touched(action):
    """The cells that it reads, and those that it writes, of each buffer."""
    found = np.zeros((2, len(BUFFERS), *BUFFERS[0].shape), bool)
    for one, written in views_of(action):
        found[int(written), one.buffer] |= cells_of(one)
    return found


@given(st.lists(st.lists(actions(), min_size=1, max_size=3), min_size=1, max_size=3),
       st.integers(4, 40))  # fmt: skip
def test_every_cell_once_and_after_what_it_depends_on(rounds, width):
    rounds = [*rounds, [Launch(None, (view(0, 0, ROWS),), (view(1, 0, ROWS),))]]
    every = [action for one in rounds for action in one]
    along = along_strips(every, BUFFERS)
    if not along.has_parts(1):
        pytest.fail("too few rows for this test: fewer actions")
    strips = cut(rounds, BUFFERS, Cutting(width, along))
    assert all(len(strip.rounds) == len(rounds) for strip in strips)
    # Parts of the same action write other cells; what they are of is told by kind and views.
    for number, one in enumerate(rounds):
        parts = [part for strip in strips for part in strip.rounds[number]]
        written = sum(touched(part)[1].astype(int) for part in parts)
        expected = sum(touched(action)[1].astype(int) for action in one)
        np.testing.assert_array_equal(written, expected)
    assert_same_results(rounds, strips)


def assert_same_results(rounds, strips):
    """Of sweeps that add up what they read, in the order of the strips."""
    results = []
    for order in ([rounds], [strip.rounds for strip in strips]):
        rng = np.random.default_rng(0)
        arrays = [rng.integers(1, 9, buffer.shape).astype(np.int64) for buffer in BUFFERS]
        for action in itertools.chain(*itertools.chain(*order)):
            perform(action, arrays)
        results.append(arrays)
    for one, other in zip(*results, strict=True):
        np.testing.assert_array_equal(one, other)


def perform(action, arrays):
    """Run an action in integers, where the order of sums makes no difference."""
    if isinstance(action, Copy):
        source = 1 if action.read is None else arrays[action.read][action.source].copy()
        arrays[action.written][action.target] = source
        return
    target = action.outputs[0].of(arrays)
    total = np.zeros_like(target)
    for one in action.inputs:
        values = one.of(arrays)
        for corner in itertools.product(*({0, a - b} for a, b in zip(values.shape, target.shape,
                                                                     strict=True))):  # fmt: skip
            box = tuple(slice(at, at + n) for at, n in zip(corner, target.shape, strict=True))
            total = (3 * total + values[box]) % 1009
    target[...] = total


def test_what_can_be_cut():
    sweep = Launch(None, (view(0, 0, ROWS, 1, 1),), (view(1, 0, ROWS),))
    number, row = Buffer((), np.dtype(np.float64)), Buffer((ROWS,), np.dtype(np.float64))
    square = Buffer((9, 9), np.dtype(np.float64))
    buffers = [*BUFFERS, number, row, square]
    assert can_be_cut([sweep], buffers)
    assert can_be_cut([Launch(None, (*sweep.inputs, View(3, ())), sweep.outputs)], buffers)
    # Where points are must not matter, nor the rows of a field along one axis.
    assert not can_be_cut([sweep, replace(sweep, uses_index=True)], buffers)
    table = Launch(None, (*sweep.inputs, View(2, ())), sweep.outputs)
    assert can_be_cut([table], buffers)
    assert not can_be_cut([replace(table, tables=(1,))], buffers)
    along = Launch(None, (*sweep.inputs, View(4, (slice(0, ROWS),))), sweep.outputs)
    assert not can_be_cut([along], buffers)
    assert not can_be_cut([sweep, Copy(5, (slice(0, 1),), 5, (slice(1, 2),))], buffers)
    assert not can_be_cut([Launch(None, (View(5, ()),), (View(5, ()),))], buffers)


def test_a_number_is_read_by_every_part():
    buffers = [*BUFFERS, Buffer((), np.dtype(np.float64))]
    sweep = Launch(None, (view(0, 0, ROWS, 1, 2), View(3, ())), (view(1, 0, ROWS),))
    strips = cut([[sweep]], buffers, Cutting(40, along_strips([sweep], buffers)))
    assert [strip.rounds[0][0].outputs[0] for strip in strips] == [
        view(1, 0, 40), view(1, 40, 80), view(1, 80, 90)]  # fmt: skip
    assert strips[1].rounds[0][0].inputs == (
        View(0, (slice(HALO - 1, HALO + PLANES + 2), slice(HALO + 39, HALO + 82), slice(0, 4))),
        View(3, ()),
    )
