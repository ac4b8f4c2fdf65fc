# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Single calls of programs over several fields: what they read in frames, and what they copy."""

import itertools
import math

import numpy as np
import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

import twofour
from field_programs import TEXTS
from kernel_cases import MODES
from native_cases import (
    assert_same_bits,
    executable_of,
    fill_new_buffers,
    inputs_of,
    one_by_one,
    share_small_work,
)
from random_programs import Apply, Load, Store, programs, text_of
from twofour.bench.plane_programs import FDTD
from twofour.dialects.stencil import large_arrays
from twofour.runtime import FieldStepper, Launch, NativeFieldStepper, parse_boundary
from twofour.runtime.fields import frames
from twofour.runtime.fields.call_plan import Ends
from twofour.runtime.fields.single_calls import Kind
from twofour.runtime.memory import address_of
from twofour.runtime.page_offset import PAGE
from twofour.runtime.rounds import single_round
from twofour.runtime.rounds.actions import Copy
from twofour.runtime.rounds.step_tables import Phase, StepCode, StepTables

# Two time levels, of which the older one is read beside its points as well.
DELAY = """
!field = !stencil.field<[-2,22]x[-1,31]xf32>
!temp = !stencil.temp<?x?xf32>
func.func @delay(%old : !field, %now : !field, %next : !field)
    attributes {stencil.rotation = array<i64: 1, 2, 0>} {
  %ot = stencil.load %old : !field -> !temp
  %nt = stencil.load %now : !field -> !temp
  %r = stencil.apply(%o = %ot : !temp, %u = %nt : !temp) -> (!temp) {
    %n = stencil.access %o[-2, 1] : !temp
    %w = stencil.access %u[1, -1] : !temp
    %d = arith.subf %w, %n : f32
    stencil.return %d : f32
  }
  stencil.store %r to %next(<[0, 0], [20, 30]>) : !temp to !field
  return
}
"""
# Results are made from coordinates: a part of the points would have others.
INDEXED = """
!field = !stencil.field<[-1,31]xf64>
!temp = !stencil.temp<?xf64>
func.func @indexed(%u : !field, %v : !field) {
  %t = stencil.load %u : !field -> !temp
  %r = stencil.apply(%a = %t : !temp) -> (!temp) {
    %i = stencil.index 0 <[0]>
    %n = arith.index_cast %i : index to i64
    %x = arith.sitofp %n : i64 to f64
    %w = stencil.access %a[-1] : !temp
    %0 = arith.mulf %w, %x : f64
    stencil.return %0 : f64
  }
  stencil.store %r to %v(<[0], [30]>) : !temp to !field
  return
}
"""
SMALL = TEXTS["levels"].replace("40", "8").replace("37", "5")
RESUMES = (False, True)


def single_call(text, folder, modes, gives=Ends.STORED):
    """A stepper of a program's single calls, and one of these."""
    executable = executable_of(text, folder)
    rank = executable.compiled.program.fields[0].box.rank
    stepper = executable.field_stepper(parse_boundary(modes, rank), 1)
    return stepper, stepper.single_calls.get(Kind(gives))


@pytest.fixture(params=[0, frames.LEAST_ROW], ids=["frames", "copies"])
def least_row(request, monkeypatch):
    """Rows that have frames, in bytes: all, or those that are long enough."""
    monkeypatch.setattr(frames, "LEAST_ROW", request.param)
    return request.param


@pytest.mark.parametrize(
    ("text", "modes", "framed"),
    [
        (TEXTS["wave2d"], "fixed", []),
        # The halo of the oldest level is not read.
        (TEXTS["wave2d"], "periodic", [1]),
        (TEXTS["wave2d"], "fixed,reflect", [1]),
        (TEXTS["levels"], "nearest", [0, 1]),
        (DELAY, "periodic", [0, 1]),
        # Only the second axis is refreshed, which has room.
        (TEXTS["drag"], "fixed,fixed,zero", [0]),
        (TEXTS["gray_scott"], "periodic", [0, 1]),
        # A frame would be all of the array.
        (SMALL, "periodic", []),
        # What is written must be another array anyway.
        (TEXTS["in_place"], "periodic", []),
        (INDEXED, "periodic", []),
    ],
)
def test_which_fields_are_read_in_frames(text, modes, framed, tmp_path, monkeypatch):
    monkeypatch.setattr(frames, "LEAST_ROW", 0)
    _, call = single_call(text, tmp_path, modes)
    assert list(call.plan.framed) == framed


@pytest.mark.parametrize(
    ("modes", "framed"),
    [("zero,fixed,fixed", [0]), ("zero,zero,fixed", [0]), ("fixed,fixed,zero", [])],
)
def test_short_rows_have_no_frames_at_their_ends(modes, framed, tmp_path):
    _, call = single_call(TEXTS["drag"], tmp_path, modes)
    assert list(call.plan.framed) == framed


def test_nothing_is_copied_to_fields_that_are_stored_as_a_whole(tmp_path):
    for gives in Ends:
        plan = single_call(TEXTS["bare"], tmp_path, "periodic", gives)[1].plan
        assert [type(action) for phase in plan.round for action in phase] == [Launch]


def test_parts_that_are_a_whole_field_are_stored_right_there(tmp_path):
    plan = single_call(TEXTS["halves"], tmp_path, "fixed")[1].plan
    actions = [action for phase in plan.round for action in phase]
    assert len(plan.buffers) == 2
    assert sum(isinstance(action, Launch) for action in actions) == 2
    rim = np.ones(plan.buffers[1].shape, bool)
    rim[1:9, 2:14] = False
    for action in actions:
        if not isinstance(action, Launch):
            assert rim[action.target].all()


@pytest.mark.parametrize("threads", [1, 3])
@pytest.mark.parametrize("text", [*TEXTS.values(), DELAY, INDEXED, SMALL, FDTD.mlir(21)])
def test_nothing_is_read_that_was_not_written(text, threads, tmp_path, monkeypatch, least_row):
    """Buffers hold NaN at first, those of frames as well."""
    fill_new_buffers(monkeypatch)
    share_small_work(monkeypatch)
    executable = executable_of(text, tmp_path)
    rank = executable.compiled.program.fields[0].box.rank
    for modes in itertools.islice(itertools.product(MODES, repeat=rank), 0, None, 5 ** (rank - 1)):
        boundary = parse_boundary(",".join(modes), rank)
        stepper = executable.field_stepper(boundary, threads)
        inputs, other = inputs_of(stepper), one_by_one(stepper, boundary)
        for steps, resume in itertools.product((1, 2), RESUMES):
            expected = other.advance(inputs, steps, resume=resume)
            assert_same_bits(stepper.advance(inputs, steps, resume=resume), expected)


# A neighbour on each axis of the field that the next call reads.
FRAMED = [Load(0), Apply((0, 0), ((-1, 0), (0, 1)), True), Store(1, 1, "<[0, 0], [81, 24]>")]


def leaves_its_input(program):
    return not any(isinstance(op, Store) and op.field == 0 for op in program[1])


def test_random_programs(tmp_path, monkeypatch):
    monkeypatch.setattr(frames, "LEAST_ROW", 0)
    fill_new_buffers(monkeypatch)
    share_small_work(monkeypatch)
    framed = []

    @settings(max_examples=15, deadline=None, suppress_health_check=list(HealthCheck))
    # Of random ones a third reads in frames, and once in a few hundred times none of fifteen.
    @example((2, FRAMED), ("periodic", "zero"), 2, False)
    @given(
        programs().filter(leaves_its_input),
        st.tuples(*[st.sampled_from(MODES)] * 2),
        st.integers(1, 3),
        st.booleans(),
    )
    def check(program, modes, threads, resume):
        boundary = parse_boundary(",".join(modes), 2)
        stepper = executable_of(text_of(*program), tmp_path).field_stepper(boundary, threads)
        framed.extend(
            stepper.single_calls.get(Kind(Ends.LOADED if resume else Ends.STORED)).plan.framed
        )
        inputs = inputs_of(stepper)
        expected = one_by_one(stepper, boundary).advance(inputs, 1, resume=resume)
        assert_same_bits(stepper.advance(inputs, 1, resume=resume), expected)

    check()
    assert framed


@pytest.mark.parametrize(
    ("points", "is_large", "is_one_phase"),
    [
        (128, False, True),
        # Its rows are long: sweeps store past the caches.
        (128, True, False),
        (96, True, True),
    ],
)
def test_rows_of_copies_and_sweeps_are_near(points, is_large, is_one_phase, tmp_path, monkeypatch):
    monkeypatch.setattr(large_arrays, "past_caches", lambda *_: is_large)
    text = TEXTS["wave2d"].replace("129", str(points + 1)).replace("128", str(points))
    stepper, call = single_call(text, tmp_path, "fixed")
    assert (stepper._steps[0].kernel.past_caches is not None) == is_large
    (_, phases, _) = call._tables._tables
    assert (len(phases) == 1) == is_one_phase


@pytest.mark.parametrize(
    ("rows", "threads", "turns"),
    [([20], 1, True), ([20], 2, True), ([20], 3, False), ([20, 20], 1, False), ([20, 8], 1, True)],
)
def test_phases_of_several_blocks_turn(rows, threads, turns):
    """Here of eight rows; an even number of them ends where the first one began."""
    tables = StepTables.__new__(StepTables)
    phases = [Phase(0, 1, count, 8) for count in rows]
    tables._tables = [np.array([0, len(rows)]), np.array(phases), None]
    assert tables.turns(threads) == turns


@pytest.mark.parametrize(
    ("share", "threads", "rounds"),
    [
        (0.5, 1, [0, 0, 0, 0]),
        # 126 rows in blocks of 8.
        (1e-9, 1, [0, 1, 0, 1]),
        # No more rows a thread than a block has.
        (1e-9, 20, [0, 0, 0, 0]),
    ],
)
def test_calls_go_on_where_others_ended(share, threads, rounds, tmp_path, monkeypatch):
    """An odd round goes down first, which is the same for calls in one block."""
    share_small_work(monkeypatch)
    monkeypatch.setattr(single_round, "BLOCK_SHARE", share)
    executable = executable_of(TEXTS["wave2d"], tmp_path)
    stepper = executable.field_stepper(parse_boundary("fixed", 2), threads)
    run, found = StepCode.run, []

    def spied(code, stretches, threads):
        # Behind the number of stretches and two addresses.
        found.append(stretches[3])
        run(code, stretches, threads)

    monkeypatch.setattr(StepCode, "run", spied)
    for _ in rounds:
        stepper.advance(inputs_of(stepper), 1)
    assert found == rounds


@pytest.mark.parametrize(
    ("text", "modes"),
    [
        (TEXTS["wave2d"], "fixed"),
        (TEXTS["wave2d"], "periodic"),
        (TEXTS["wave2d"], "constant(2)"),
        (TEXTS["wave2d"], "reflect,fixed"),
        # Three fields in place, two of which are read again after they were updated.
        (FDTD.mlir(100), "fixed"),
    ],
)
def test_copies_are_of_rims(text, modes, tmp_path):
    """All cells that a call copies are fewer than a quarter of a field."""
    stepper, call = single_call(text, tmp_path, modes)
    actions = [action for phase in call.plan.round for action in phase]
    copies = [action for action in actions if isinstance(action, Copy)]
    buffers = call.plan.buffers
    cells = sum(buffers[copy.written].model()[copy.target].size for copy in copies)
    assert 0 < cells < math.prod(stepper.fields[0].shape) / 4


@pytest.fixture
def delay(tmp_path):
    """A program that was called once, two arrays for it, and their result."""
    path = tmp_path / "delay.mlir"
    path.write_text(DELAY)
    program = twofour.compile(path, boundary="periodic,nearest")
    arrays = [np.random.default_rng(n).random((24, 32), np.float32) for n in range(2)]
    return program, arrays, program(*arrays)


def test_calls_that_are_made_again(delay, monkeypatch):
    """They go a shorter way, and earlier results keep their values."""
    program, arrays, first = delay
    kept = first.copy()
    monkeypatch.delattr(NativeFieldStepper, "_advanced")
    monkeypatch.delattr(FieldStepper, "advance")
    other = program(*arrays[::-1])
    assert other is not first and not np.array_equal(other, kept)
    results = [first, *(program(*arrays) for _ in range(5))]
    for result in results:
        assert_same_bits([result], [kept])
    assert not any(itertools.starmap(np.shares_memory, itertools.combinations(results, 2)))


def beside_words(array):
    """The same values, one byte behind where their type would have them."""
    space = np.frombuffer(b"0" + array.tobytes(), np.uint8)
    return np.ndarray(array.shape, array.dtype, space, offset=1)


@pytest.mark.parametrize(
    "change", [np.asfortranarray, lambda array: np.repeat(array, 2, axis=1)[:, ::2], beside_words]
)
def test_arrays_of_other_layouts(delay, change):
    program, (old, now), expected = delay
    changed = change(now)
    assert program._fields.single_calls.again([old, changed], 1, [], False, None) is None
    assert_same_bits([program(old, changed)], [expected])


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda array: array.astype(np.float64), "input 1: expected f32 .* got float64"),
        (lambda array: array.astype(">f4"), "input 1: expected f32 .* in native byte order"),
        (lambda array: array[1:], "input 1: expected an array of shape"),
        (lambda array: array.tolist(), "input 1: expected an array"),
        (lambda array: np.ma.array(array, mask=False), "without a mask"),
    ],
)
def test_other_inputs_are_refused_as_at_first(delay, change, message):
    program, (old, now), _ = delay
    with pytest.raises(twofour.TwofourError, match=message):
        program(old, change(now))
    with pytest.raises(twofour.TwofourError, match="expected 2 input fields, got 1"):
        program(old)
    with pytest.raises(twofour.TwofourError, match="steps"):
        program(old, now, steps=True)


def wave(folder, boundary):
    path = folder / "wave.mlir"
    path.write_text(TEXTS["wave2d"])
    return twofour.compile(str(path), boundary=boundary)


def test_a_level_that_moves_on_is_given_back_itself(tmp_path):
    program = wave(tmp_path, "fixed")
    old, now = inputs_of(program._fields)
    assert program(old, now, resume=True)[0] is now
    assert program(old, now, steps=0, resume=True)[1] is not now


def test_a_level_with_a_halo_is_given_back_itself_if_it_is_a_result(tmp_path):
    program = wave(tmp_path, "periodic")
    other = one_by_one(program._fields, parse_boundary("periodic", 2))
    state = inputs_of(program._fields)
    (given, *_), results = state[1:], []
    for _ in range(3):
        expected = other.advance(state, 1, resume=True)
        results.append(program(*state, resume=True))
        assert_same_bits(results[-1], expected)
        state = results[-1]
    assert results[0][0] is not given
    assert results[1][0] is results[0][1] and results[2][0] is results[1][1]
    # Nothing else is planned for another array that does not come back.
    kinds = len(program._fields.single_calls._calls)
    program(given.copy(), state[1], resume=True)
    assert len(program._fields.single_calls._calls) == kinds
    # What was changed since, beside a halo, is read in a frame.
    state[1][1, :] = 5
    (expected,) = other.advance(state, 1)
    assert_same_bits([program(*state)], [expected])


def test_memory_of_a_result_may_be_another_array_later(tmp_path, monkeypatch):
    program = wave(tmp_path, "periodic")
    state = program(*inputs_of(program._fields), resume=True)
    for _ in range(3):
        results = program(*state, resume=True)
        assert results[0] is state[1]
    monkeypatch.setattr(program._fields.single_calls, "_is_result", lambda array: False)
    again = program(*state, resume=True)
    assert again[0] is not state[1]
    assert_same_bits(again, results)


@pytest.mark.parametrize("boundary", ["fixed", "periodic"])
def test_results_lie_apart_from_those_of_the_call_before(boundary, tmp_path):
    program = wave(tmp_path, boundary)
    state, begins = inputs_of(program._fields), []
    for _ in range(6):
        state = program(*state, resume=True)
        begins.append(address_of(state[1]) % PAGE)
    assert all(len({*begins[n : n + 3]}) == 3 for n in range(4))


def test_a_level_of_another_program_is_not_given_back(tmp_path):
    """That one brought no halo of this program's boundary up to date."""
    program = wave(tmp_path, "periodic")
    old, now = inputs_of(program._fields)
    program(old, now)
    now = wave(tmp_path, "fixed")(old, now)
    other = one_by_one(program._fields, parse_boundary("periodic", 2))
    results = program(old, now, resume=True)
    assert results[0] is not now
    assert_same_bits(results, other.advance([old, now], 1, resume=True))
