# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Halos that hold already what would be copied to them are left alone, at every boundary."""

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from twofour.runtime import FieldSpec, FieldStepper, Launch, Loop, View, element_type
from twofour.runtime.boundary import MODES, AxisBoundary, parse_boundary
from twofour.runtime.fields.refills import Refill, refills_of_calls
from twofour.runtime.fields.writes import covered_fields, read_halos, written_interiors
from twofour.runtime.loops import Recurring

F64 = element_type("f64")
# Three time levels: the newest one is made from the two before it.
LEVELS = (1, 2, 0)


def refills(refreshed, inherited, alike=(), written=(2,), rotation=LEVELS):
    return refills_of_calls(Refill(refreshed, inherited), alike, written, rotation)


def test_levels_with_a_fixed_halo_take_it_over_once():
    """The array of the oldest level has another one until it becomes that of the newest."""
    found = refills((), ((1, 2),), alike=[(1, 2)])
    assert found == Recurring((Refill(), Refill((), ((1, 2),)), Refill()), 2)
    # Where all three are the same nothing is ever copied, and where the newest one differs as well
    # two are.
    assert refills((), ((1, 2),), alike=[(1, 2), (1, 0)]) == Recurring((Refill(),))
    takes_over = Refill((), ((1, 2),))
    assert refills((), ((1, 2),)) == Recurring((takes_over, takes_over, Refill()), 2)


def test_levels_with_other_halos_are_refreshed_once():
    """The oldest one was when it was the one before."""
    assert refills((0, 1), ()) == Recurring((Refill((0, 1)), Refill((1,))), 1)


def test_halos_are_refreshed_again_where_another_axis_took_one_over():
    """At first: the array of the oldest level is refreshed, and then takes over new cells."""
    found = refills((0, 1), ((1, 2),), alike=[(1, 2)])
    pair = ((1, 2),)
    assert found == Recurring((Refill((0, 1)), Refill((1,), pair), Refill((1,))), 2)
    # Nobody writes to a field that takes over halos from two others in turn.
    found = refills((2,), ((0, 2), (1, 2)), written=(), rotation=(0, 1, 2))
    assert found == Recurring((Refill((2,), ((0, 2), (1, 2))),))


def test_halos_that_a_call_does_not_read_are_left_to_one_that_does():
    found = refills_of_calls(Refill((0, 1)), (), (2,), LEVELS, read=(1,))
    assert found == Recurring((Refill((1,)),))
    # The halo of the newest level is read when it is the oldest one.
    found = refills_of_calls(Refill((0, 1)), (), (2,), LEVELS, read=(0,))
    assert found == Recurring((Refill((0,)),))
    assert refills_of_calls(Refill((0, 1)), (), (2,), LEVELS, read=()) == Recurring((Refill(),))


def test_fields_that_change_places_or_are_updated_in_place_are_always_refreshed():
    swap = refills((0,), (), written=(1,), rotation=(1, 0))
    assert swap == Recurring((Refill((0,)),))
    assert refills((0,), (), written=(0,), rotation=(0,)) == Recurring((Refill((0,)),))
    # What nobody writes to is refreshed once.
    once = refills((0,), (), written=(), rotation=(0,))
    assert once == Recurring((Refill((0,)), Refill()), 1)


@given(st.lists(st.integers(0, 2), min_size=1, max_size=9), st.data())
def test_the_simplest_form_of_what_recurs(items, data):
    found = Recurring(tuple(items), data.draw(st.integers(0, len(items) - 1)))
    simplest = found.simplest()
    assert [simplest.at(n) for n in range(30)] == [found.at(n) for n in range(30)]
    assert len(simplest.items) <= len(items) and simplest.period <= found.period
    assert simplest.simplest() == simplest


BOUNDARIES = st.sampled_from(MODES).map(lambda mode: AxisBoundary(mode, 0.5))


@st.composite
def programs(draw):
    """Fields, what a call reads and writes of them, and how they change places."""
    count, rank = draw(st.integers(1, 4)), draw(st.integers(1, 2))
    shape = tuple(draw(st.integers(4, 6)) for _ in range(rank))
    boxes = st.tuples(*[st.sampled_from([(1, 1), (0, 2), (1, 2)])] * rank)
    one_box = draw(boxes) if draw(st.integers(0, 3)) else None
    flags = [draw(st.sampled_from([(1, 0), (0, 1), (1, 1), (0, 0)])) for _ in range(count)]
    fields = []
    for position, (loaded, stored) in enumerate(flags):
        below, above = zip(*(one_box or draw(boxes)), strict=True)
        interior = below, tuple(n - cells for n, cells in zip(shape, above, strict=True))
        fields.append(FieldSpec(position, F64, shape, bool(loaded), bool(stored), interior))
    rotation = tuple(draw(st.permutations(range(count))))
    boundary = tuple(draw(BOUNDARIES) for _ in range(rank))
    return fields, rotation, boundary, draw(st.integers(1, 9))


def stepper_of(fields, rotation, boundary, knows_what_is_written, around_read=None, left=()):
    """A stepper whose calls write interiors alone, of the fields `left` not the last row.

    They read all cells of what they load, or of some the interior alone where `around_read` has
    those that they read around it; the stepper is told what it is to know.
    """
    loaded = [field.position for field in fields if field.loaded]
    inside_read = set() if around_read is None else {*loaded}.difference(around_read)
    interiors = {field.position: field.interior for field in fields}
    written = [field for field in fields if field.stored]

    def call(arguments):
        around = 0
        for position in inside_read:
            inside = arguments[position][tuple(map(slice, *interiors[position]))]
            around = around + inside.sum() / 7
        for position in sorted({*loaded}.difference(inside_read)):
            for axis in range(arguments[position].ndim):
                for shift in (-1, 1):
                    around = around + np.roll(arguments[position], shift, axis) * (position + 0.25)
        for field in written:
            lower, (rows, *others) = field.interior
            box = tuple(map(slice, lower, (rows - (field.position in left), *others)))
            mine = np.broadcast_to(around, field.shape)[box]
            arguments[field.position][box] = 0.1 * mine - field.position / 3

    known = frozenset(field.position for field in written) if knows_what_is_written else None
    read = around_read if knows_what_is_written else None
    covered = {field.position for field in written}.difference(left)
    return FieldStepper(
        fields, rotation, lambda: call, boundary, written=known, read=read, covered=covered
    )


@given(programs(), st.sets(st.integers(0, 3)), st.booleans())
@settings(max_examples=300, deadline=None)
def test_results_are_those_of_refilling_all_halos_before_each_call(program, around_read, resume):
    fields, rotation, boundary, steps = program
    rng = np.random.default_rng(3)
    inputs = [rng.uniform(-1, 1, field.shape) for field in fields if field.loaded]
    steppers = [
        stepper_of(fields, rotation, boundary, known, around_read) for known in (True, False)
    ]
    if inputs and not steppers[0]._feeds_back():
        steps = 1
    one, other = (stepper.advance(inputs, steps, resume=resume) for stepper in steppers)
    for mine, expected in zip(one, other, strict=True):
        assert mine.tobytes() == expected.tobytes()
    assert len(steppers[1].halos.refills.items) == 1


@given(programs(), st.sets(st.integers(0, 3)), st.booleans())
@settings(max_examples=300, deadline=None)
def test_several_calls_are_single_ones_that_follow_each_other(program, left, resume):
    """Also at cells that calls leave as they are."""
    fields, rotation, boundary, steps = program
    # What is not loaded is stored, and becomes an input sooner or later.
    for field in fields:
        heir = rotation.index(field.position)
        while not fields[heir].loaded and heir != field.position:
            heir = rotation.index(heir)
        assume(field.loaded or (field.stored and fields[heir].loaded))
    # Halos that are refreshed are those of all that take the place of a field.
    interiors = [one.interior for one in fields]
    assume(
        interiors == [interiors[source] for source in rotation]
        or all(axis.mode == "fixed" for axis in boundary)
    )
    rng = np.random.default_rng(3)
    inputs = [rng.uniform(-1, 1, field.shape) for field in fields if field.loaded]
    stepper = stepper_of(fields, rotation, boundary, True, None, left)
    if inputs and not stepper._feeds_back():
        steps = 1
    found = stepper.advance(inputs, steps, resume=resume)
    for _ in range(steps - 1):
        inputs = stepper.advance(inputs, 1, resume=True)
    for mine, expected in zip(found, stepper.advance(inputs, 1, resume=resume), strict=True):
        assert mine.tobytes() == expected.tobytes()


@pytest.mark.parametrize(
    "boundary", ["fixed", "periodic", "zero", "reflect", "fixed,periodic", "zero,fixed"]
)
def test_what_is_left_to_do(boundary):
    """For three levels: nothing under fixed halos, and one refresh under others."""
    box = ((1, 1), (5, 6))
    fields = [FieldSpec(n, F64, (7, 8), n < 2, n == 2, box) for n in range(3)]
    parsed = parse_boundary(boundary, 2)
    refills = stepper_of(fields, LEVELS, parsed, True).halos.refills
    refreshed = () if boundary == "fixed" else (1,)
    assert refills.period == 1 and refills.at(100) == Refill(refreshed)
    every = stepper_of(fields, LEVELS, parsed, False).halos.refills
    inherits = ((1, 2),) if "fixed" in boundary else ()
    assert every == Recurring((Refill((0, 1) if refreshed else (), inherits),))


def test_which_fields_take_over_cells():
    """Those that change places hold the same, unless calls store more to one of them."""
    boundary = parse_boundary("fixed", 1)

    def inherited(interiors, in_place=False, left=()):
        fields = [
            FieldSpec(n, F64, (7,), n == 0, n == 1 or in_place, interior)
            for n, interior in enumerate(interiors)
        ]
        return list(stepper_of(fields, (1, 0), boundary, True, None, left).halos.inherited)

    one, other = ((1,), (6,)), ((1,), (5,))
    assert inherited((one, one)) == inherited((one, other)) == []
    assert inherited((one, one), left=[1]) == []
    assert inherited((one, one), in_place=True) == []
    assert inherited((one, other), in_place=True) == [(0, 1)]
    assert inherited((one, one), in_place=True, left=[1]) == [(0, 1)]


def test_fields_of_different_interiors_are_always_refilled():
    fields = [FieldSpec(n, F64, (7,), n < 2, n == 2, ((1,), (6 - n,))) for n in range(3)]
    found = stepper_of(fields, LEVELS, parse_boundary("periodic", 1), True).halos.refills
    # Cells between the two interiors are taken over.
    assert found == Recurring((Refill((0, 1), ((1, 2),)),))


def test_where_steps_write_every_cell():
    fields = [FieldSpec(n, F64, (7, 8), False, True, ((1, 1), (5, 6))) for n in range(2)]

    def covered(*boxes):
        views = [View(1, tuple(map(slice, *box))) for box in boxes]
        return covered_fields([Launch(None, (), (view,)) for view in views], fields)

    halves = ((0, 1), (3, 6)), ((3, 1), (5, 8))
    assert covered(*halves) == {1}
    assert covered(*halves[::-1]) == {1}
    assert covered(((1, 1), (5, 5)), ((1, 5), (4, 6))) == set()
    assert covered(((1, 1), (5, 5)), ((6, 0), (7, 8))) == set()
    whole = Launch(None, (), (View(1, (slice(0, 7), slice(0, 8))),))
    assert covered_fields([whole], fields) == {1}
    assert covered_fields([Loop(9, 0, 3, 1, (), (whole,))], fields) == set()


def test_where_steps_write():
    fields = [FieldSpec(n, F64, (7, 8), True, True, ((1, 1), (5, 6))) for n in range(2)]
    fields.append(FieldSpec(2, F64, (7, 8), True, False, None))
    inside, whole = (slice(1, 5), slice(2, 6)), (slice(1, 5), slice(0, 6))

    def written(*views):
        steps = [Launch(None, (View(0, whole),), (view,)) for view in views]
        return written_interiors(steps, fields)

    assert written(View(0, inside)) == {0}
    # Buffers that are no fields may be anywhere.
    assert written(View(0, inside), View(1, inside), View(7, ())) == {0, 1}
    assert written(View(1, whole)) is None and written(View(1, ())) is None
    assert written(View(2, inside)) is None
    assert written_interiors([Loop(9, 0, 3, 1, (), ())], fields) is None


def test_whose_halos_steps_read():
    box = ((1, 1), (5, 6))
    fields = [FieldSpec(n, F64, (7, 8), True, True, box) for n in range(3)]
    fields.append(FieldSpec(3, F64, (7, 8), True, False, None))
    inside, above = (slice(1, 5), slice(1, 6)), (slice(0, 4), slice(1, 6))

    def read(*inputs, tables=()):
        return read_halos([Launch(None, inputs, (View(0, inside),), tables=tables)], fields)

    assert read(View(0, inside), View(1, above), View(2, (slice(2, 5), slice(1, 3)))) == {1}
    assert read(View(1, above), View(1, inside)) == {1}
    # A view without slices is the whole, and tables are read anywhere.
    assert read(View(2, ())) == {2}
    assert read(View(0, inside), View(2, inside), tables=(1,)) == {2}
    # Fields that no call updates have no halo, and other buffers are no fields.
    assert read(View(3, ()), View(9, ())) == frozenset()
    assert read_halos([Loop(9, 0, 3, 1, (), ())], fields) is None
