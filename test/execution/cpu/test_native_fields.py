# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Programs over several fields whose steps run in native code: the bits of calls one by one."""

import itertools
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest

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
from twofour.runtime import NativeFieldStepper, buffer_pool, parse_boundary, slices
from twofour.runtime.fields.host import COPYING_STEPS, FEW_STEPS
from twofour.runtime.fields.refills import Refill
from twofour.runtime.page_offset import PAGE
from twofour.runtime.rounds.step_tables import BoundTables


@pytest.fixture
def small_work_is_shared(monkeypatch):
    share_small_work(monkeypatch)


@pytest.mark.parametrize("name", TEXTS)
def test_bits_of_calls_one_by_one(name, tmp_path, small_work_is_shared):
    executable = executable_of(TEXTS[name], tmp_path)
    rank = executable.compiled.program.fields[0].box.rank
    for modes in itertools.islice(itertools.product(MODES, repeat=rank), 0, None, 5 ** (rank - 1)):
        boundary = parse_boundary(",".join(modes), rank)
        first = executable.field_stepper(boundary, 1)
        assert isinstance(first, NativeFieldStepper)
        inputs = inputs_of(first)
        expected = {
            steps: one_by_one(first, boundary).advance(inputs, steps) for steps in (1, 2, 3, 7)
        }
        for threads in (1, 3):
            stepper = executable.field_stepper(boundary, threads)
            for steps, states in expected.items():
                assert_same_bits(stepper.advance(inputs, steps), states)


def test_threads_share_out_all_rows(tmp_path, small_work_is_shared, monkeypatch):
    """Also of a copy along an axis of one cell, and of fewer rows than there are threads."""
    stepper = executable_of(TEXTS["drag"], tmp_path).field_stepper(
        parse_boundary("periodic", 3), 16
    )
    inputs = inputs_of(stepper)
    expected = one_by_one(stepper, parse_boundary("periodic", 3)).advance(inputs, 4)
    assert_same_bits(stepper.advance(inputs, 4), expected)


@pytest.mark.parametrize("name", ["wave2d", "coupled"])
def test_slices_of_a_run_and_progress(name, tmp_path, monkeypatch):
    boundary = parse_boundary("periodic", 2)
    stepper = executable_of(TEXTS[name], tmp_path).field_stepper(boundary, 1)
    inputs, told = inputs_of(stepper), []
    expected = one_by_one(stepper, boundary).advance(inputs, 11)
    points = stepper._program_for((), stepper._taken(11)).points
    monkeypatch.setattr(slices, "CALL_SECONDS", slices.POINT_SECONDS * points * 2.5)
    monkeypatch.setattr(slices, "PROGRESS_INTERVAL", 0)
    results = stepper.advance(inputs, 11, progress=lambda *now: told.append(now))
    assert_same_bits(results, expected)
    assert told[0] == (2, 11) and told[-1] == (11, 11)


def test_runs_leave_nothing_behind(tmp_path):
    """One stepper on other values, for other times, and in several threads at once."""
    boundary = parse_boundary("reflect,fixed", 2)
    stepper = executable_of(TEXTS["wave2d"], tmp_path).field_stepper(boundary, 2)
    runs = list(itertools.product((1, 2, 3), (0, 1, 5, 4)))
    inputs = {seed: inputs_of(stepper, seed) for seed in (1, 2, 3)}
    expected = {run: one_by_one(stepper, boundary).advance(inputs[run[0]], run[1]) for run in runs}
    with ThreadPoolExecutor(4) as pool:
        results = list(pool.map(lambda run: stepper.advance(inputs[run[0]], run[1]), runs * 4))
    kept = [[array.copy() for array in result] for result in results]
    for run, result in zip(runs * 4, results, strict=True):
        assert_same_bits(result, expected[run])
    stepper.advance(inputs[1], 3)
    for result, copy in zip(results, kept, strict=True):
        assert_same_bits(result, copy)


@pytest.fixture
def bound_begins(monkeypatch):
    """The addresses of the buffers of each run of a program, in order."""
    found, place = [], BoundTables.place

    def seen(self, begins):
        found.append(begins)
        place(self, begins)

    monkeypatch.setattr(BoundTables, "place", seen)
    return found


def test_levels_that_calls_store_as_a_whole_take_over_nothing(tmp_path):
    """In the end, where halos do not change either."""
    executable = executable_of(TEXTS["wave2d"], tmp_path)
    halos = executable.field_stepper(parse_boundary("fixed", 2), 1).halos
    assert halos.refills.at(100) == Refill()


@pytest.mark.parametrize("name", TEXTS)
def test_inputs_are_left_as_they_are(name, tmp_path):
    executable = executable_of(TEXTS[name], tmp_path)
    rank = executable.compiled.program.fields[0].box.rank
    for mode in MODES:
        stepper = executable.field_stepper(parse_boundary(",".join([mode] * rank), rank), 1)
        inputs = inputs_of(stepper)
        before = [array.copy() for array in inputs]
        for array in inputs:
            array.flags.writeable = False
        for steps, resume in itertools.product((0, 1, 2, 3, COPYING_STEPS), (False, True)):
            results = stepper.advance(inputs, steps, resume=resume)
            # A run goes on with inputs that it does not change.
            new = [one for one in results if not (resume and any(one is u for u in inputs))]
            assert not any(np.shares_memory(one, array) for one in new for array in inputs)
            assert_same_bits(inputs, before)


@pytest.mark.parametrize(
    ("name", "mode", "in_place"),
    [
        ("wave2d", "fixed", {1: [0, 1], 2: [1], 3: []}),
        # The halo of the oldest level is not read, and that of the other one in a frame.
        ("wave2d", "periodic", {1: [0, 1], 2: [1], 3: []}),
        ("drag", "fixed", {1: [0, 1], 2: [1], COPYING_STEPS - 1: [1], COPYING_STEPS: []}),
        ("drag", "periodic", {1: [0, 1], 2: [1], COPYING_STEPS: []}),
    ],
)
def test_short_runs_do_not_copy_what_they_only_read(name, mode, in_place, tmp_path, bound_begins):
    executable = executable_of(TEXTS[name], tmp_path)
    rank = executable.compiled.program.fields[0].box.rank
    stepper = executable.field_stepper(parse_boundary(",".join([mode] * rank), rank), 1)
    inputs = inputs_of(stepper)
    for steps, expected in in_place.items():
        stepper.advance(inputs, steps)
        begins = bound_begins[-1]
        if steps > stepper._single_steps:
            # What it copies comes behind its arguments.
            begins = begins[: len(stepper.rotation)]
        shared = [number for number, one in enumerate(inputs) if one.ctypes.data in begins]
        assert shared == expected, steps


def test_fields_that_are_overwritten_start_with_their_halo(tmp_path, monkeypatch):
    """Whatever else was in their memory."""
    copied, positions = NativeFieldStepper._copied, []

    def recorded(self, position, values):
        positions.append(position)
        return copied(self, position, values)

    fill_new_buffers(monkeypatch)
    monkeypatch.setattr(NativeFieldStepper, "_copied", recorded)
    for name, text in TEXTS.items():
        executable = executable_of(text, tmp_path)
        rank = executable.compiled.program.fields[0].box.rank
        for mode in MODES:
            boundary = parse_boundary(",".join([mode] * rank), rank)
            stepper = executable.field_stepper(boundary, 1)
            inputs = inputs_of(stepper)
            for steps in (0, 1, 2, 3):
                expected = one_by_one(stepper, boundary).advance(inputs, steps)
                positions.clear()
                assert_same_bits(stepper.advance(inputs, steps), expected)
                only_stored = {field.position for field in stepper.fields if not field.loaded}
                if name in ("wave2d", "drag"):
                    assert only_stored.isdisjoint(positions) == (steps > 0)


def test_inputs_that_are_not_aligned_are_copied(tmp_path, bound_begins):
    stepper = executable_of(TEXTS["drag"], tmp_path).field_stepper(parse_boundary("fixed", 3), 1)
    inputs = inputs_of(stepper)
    shifted = []
    for array in inputs:
        space = np.empty(array.nbytes + 1, np.uint8)
        shifted.append(np.ndarray(array.shape, array.dtype, space, offset=1))
        shifted[-1][...] = array
    assert_same_bits(stepper.advance(shifted, 1), stepper.advance(inputs, 1))
    assert bound_begins
    assert all(begin % 8 == 0 for begins in bound_begins for begin in begins)


def test_buffers_lie_apart_in_a_page(tmp_path, bound_begins):
    """A load of one field must not wait for a store to another at the same place of a page."""
    stepper = executable_of(TEXTS["wave2d"], tmp_path).field_stepper(parse_boundary("fixed", 2), 1)
    inputs = inputs_of(stepper)
    for _ in range(2):
        stepper.advance(inputs, COPYING_STEPS)
    begins = [[begin % PAGE for begin in one[: len(inputs) + 1]] for one in bound_begins]
    assert begins[0] == begins[1]
    pitch = stepper.fields[0].shape[-1] * 8
    for one, other in itertools.combinations(begins[0], 2):
        rows = [(one - other + row * pitch) % PAGE for row in range(-1, 2)]
        assert all(64 <= row <= PAGE - 64 for row in rows)
    # A load or store of two lines takes longer.
    assert all((begin + pitch + 8) % 64 == 0 for begin in begins[0])


@pytest.mark.parametrize("mode", ["fixed", "periodic"])
@pytest.mark.parametrize("name", ["wave2d", "gray_scott"])
def test_buffers_are_used_again(name, mode, tmp_path, monkeypatch):
    """The results of a call are there while the next one is made."""
    made, new = [], buffer_pool._Buffer.__init__

    def counted(buffer, size):
        made.append(size)
        new(buffer, size)

    monkeypatch.setattr(buffer_pool._Buffer, "__init__", counted)
    boundary = parse_boundary(mode, 2)
    for steps in (1, 2, FEW_STEPS, FEW_STEPS + 1, COPYING_STEPS):
        stepper = executable_of(TEXTS[name], tmp_path).field_stepper(boundary, 1)
        inputs, results = inputs_of(stepper), None
        for _ in range(2):
            results = stepper.advance(inputs, steps)
        made.clear()
        for _ in range(3):
            results = stepper.advance(inputs, steps)
        assert results and not made, steps
