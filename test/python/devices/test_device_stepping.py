# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Time stepping on devices: against index arithmetic, with kernels that check what they are given.

All data are small integers and all weights dyadic: results must be equal exactly.
"""

import itertools
import weakref
from contextlib import nullcontext

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from runtime_reference import LinearKernel, NumpyKernel, convolved, reach, reference
from twofour.errors import TwofourError
from twofour.runtime import DeviceLinearStepper, element_type, parse_boundary
from twofour.runtime.devices.stepping import RECORDED_SWEEPS, aligned_rows
from twofour.runtime.fields.spec import FieldSpec
from twofour.runtime.fields.stepping import RECORDED_CALLS, FieldStepper

F64 = element_type("f64")
BOUNDARIES = ("fixed", "zero", "constant(2.5)", "periodic", "reflect", "nearest")
STAR_1D = {(-1,): 0.25, (0,): 0.5, (1,): 0.25}
ASYMMETRIC_1D = {(-2,): 0.5, (1,): 0.25, (0,): -0.125}
ASYMMETRIC_2D = {(-2, 1): 0.5, (0, 0): 0.25, (1, 0): -0.25, (0, 3): 0.125}
LOPSIDED_2D = {(1, -3): 0.5, (2, -1): 0.25}
ALL_BELOW_2D = {(-1, -3): 0.5, (-2, -1): 0.25}
ASYMMETRIC_3D = {(-1, 0, 1): 0.5, (0, 2, 0): 0.25, (1, 0, 0): -0.25, (0, 0, -1): 0.5}


class AlignedMemory:
    """Memory of the process whose buffers are known, and begin at multiples of 256 bytes."""

    array_module = np
    name = "test"
    stream = None

    def __init__(self):
        self.buffers = []
        self.recordings = 0
        self.active = nullcontext

    def zeros(self, shape, dtype):
        size = int(np.prod(shape)) * np.dtype(dtype).itemsize
        raw = np.zeros(size + 256, np.uint8)
        start = -raw.ctypes.data % 256
        self.buffers.append((raw.ctypes.data + start, size))
        return raw[start : start + size].view(dtype).reshape(shape)

    def empty(self, shape, dtype):
        array = self.zeros(shape, dtype)
        array.view(np.uint8).fill(0xFF)
        return array

    def array(self, values):
        array = self.empty(values.shape, values.dtype)
        array[...] = values
        return array

    def address(self, array):
        return array.ctypes.data

    def result(self, buffer):
        return buffer.copy()

    def record(self, calls):
        self.recordings += 1
        return calls

    def synchronize(self):
        pass

    def holds(self, begin, end):
        return any(start <= begin and end <= start + size for start, size in self.buffers)


class CheckedKernel(NumpyKernel):
    """A kernel that asks for alignment and for memory at the ends of rows."""

    def __init__(self, weights, memory, alignment):
        super().__init__(weights)
        self.memory, self.alignment = memory, alignment

    def bind(self, views_in, views_out):
        for view, reach_below in ((views_in[0], self.lo[-1]), (views_out[0], 0)):
            start = view.__array_interface__["data"][0]
            assert (start + reach_below * view.itemsize) % self.alignment == 0
            assert all(stride % self.alignment == 0 for stride in view.strides[:-1])
            for row in np.ndindex(view.shape[:-1]):
                begin = start + int(np.dot(row, view.strides[:-1]))
                end = begin + view.shape[-1] * view.itemsize
                end += -end % self.alignment
                assert self.memory.holds(begin - begin % self.alignment, end)
        return super().bind(views_in, views_out)


def stepper_of(weights, boundary, fused=None, interior=None, alignment=32):
    memory = AlignedMemory()

    def kernel(table, steps=1, bytes_=alignment):
        return LinearKernel(CheckedKernel(table, memory, bytes_), *reach(table), steps)

    return DeviceLinearStepper(
        kernel(weights),
        F64,
        boundary,
        memory,
        alignment=alignment,
        fused=fused and kernel(convolved(weights, fused), fused),
        edges=fused and kernel(weights, 1, 8),
        interior=interior,
    )


def check(weights, boundary, shape, steps, fused=None, interior=None, alignment=32):
    entries = parse_boundary(boundary, len(shape))
    stepper = stepper_of(weights, entries, fused, interior, alignment)
    # The second time, buffers may be those of the first.
    for seed in (0, 1):
        u = np.random.default_rng(seed).integers(-8, 9, shape).astype(np.float64)
        before = u.copy()
        result = stepper.advance(u, steps)
        np.testing.assert_array_equal(u, before)
        np.testing.assert_array_equal(result, reference(u, weights, entries, steps, interior))
        assert result.dtype == u.dtype and result.flags.c_contiguous
    return stepper


@pytest.mark.parametrize("boundary", BOUNDARIES)
@pytest.mark.parametrize("weights", [STAR_1D, ASYMMETRIC_1D, {(3,): 0.5, (1,): 1.0}])
def test_one_axis(weights, boundary):
    for extent, steps, fused in itertools.product((1, 2, 7, 41), (1, 5), (None, 2, 3)):
        check(weights, boundary, (extent,), steps, fused)


@pytest.mark.parametrize("boundary", list(itertools.product(BOUNDARIES, BOUNDARIES)))
def test_two_axes(boundary):
    for weights in (ASYMMETRIC_2D, LOPSIDED_2D, ALL_BELOW_2D):
        check(weights, boundary, (2, 7), 2, fused=2)
        check(weights, boundary, (21, 43), 3, fused=2, alignment=128)
    check(ASYMMETRIC_2D, boundary, (31, 41), 4, fused=3)


@pytest.mark.parametrize("boundary", [("fixed", "zero", "periodic"), ("periodic", "fixed", "zero")])
def test_three_axes(boundary):
    check(ASYMMETRIC_3D, boundary, (7, 10, 12), 3, fused=2)
    check(ASYMMETRIC_3D, boundary, (2, 7, 1), 2)


def test_buffers_of_another_domain_are_let_go_before_new_ones_are_made(monkeypatch):
    stepper = stepper_of(STAR_1D, parse_boundary("zero", 1))
    stepper.advance(np.ones(100), 2)
    buffers = [weakref.ref(buffer) for buffer in stepper._idle[0][2]._buffers]
    alive = []
    zeros = stepper.memory.zeros

    def counted(shape, dtype):
        alive.append(sum(buffer() is not None for buffer in buffers))
        return zeros(shape, dtype)

    monkeypatch.setattr(stepper.memory, "zeros", counted)
    stepper.advance(np.ones(100), 2)
    assert alive == []
    stepper.advance(np.ones(101), 2)
    assert alive == [0, 0]


@pytest.mark.parametrize("boundary", BOUNDARIES)
def test_explicit_interior(boundary):
    for fused, steps in itertools.product((None, 2), (1, 4)):
        check(ASYMMETRIC_2D, boundary, (20, 34), steps, fused, interior=((3, 1), (18, 30)))
    check(ASYMMETRIC_2D, boundary, (4, 5), 3, 2, interior=((2, 0), (3, 1)))


def test_fused_sweeps_are_taken():
    stepper = check(ASYMMETRIC_2D, "fixed", (31, 63), 7, fused=3)
    assert len(stepper.fused.native.runs) == 2 * 2
    assert len(stepper.single.native.runs) == 2
    # Four slabs of three levels each.
    assert len(stepper.edges.native.runs) == 2 * 2 * 3 * 3


@st.composite
def problems(draw):
    rank = draw(st.integers(1, 3))
    radius = {1: 4, 2: 3, 3: 2}[rank]
    offset = st.tuples(*[st.integers(-radius, radius)] * rank)
    weight = st.integers(-4, 4).map(lambda k: k / 4)
    weights = draw(st.dictionaries(offset, weight, min_size=1, max_size=5))
    boundary = [draw(st.sampled_from(BOUNDARIES)) for _ in range(rank)]
    shape = tuple(draw(st.integers(1, {1: 80, 2: 34, 3: 14}[rank])) for _ in range(rank))
    fused = draw(st.sampled_from((None, 2, 3)))
    return weights, boundary, shape, draw(st.integers(0, 5)), fused


@given(problems())
@settings(max_examples=100, deadline=None)
def test_random_stencils(problem):
    check(*problem)


@pytest.mark.parametrize("boundary", ["fixed", "periodic", "zero"])
@pytest.mark.parametrize("fused", [None, 2])
def test_long_runs_are_recorded(boundary, fused):
    steps = 3 * RECORDED_SWEEPS * (fused or 1) + 5
    # Values must stay exact through many steps.
    shift = {(1,): 1.0} if boundary != "fixed" else {(0,): -1.0, (1,): 0.0}
    stepper = check(shift, boundary, (37,), steps, fused)
    runs = 2 if fused and boundary != "periodic" else 1
    assert stepper.memory.recordings >= runs
    launches = len((stepper.fused or stepper.single).native.runs)
    assert launches == 2 * (steps // (fused or 1))


def test_buffers_are_kept_for_the_next_run_of_the_same_shape():
    stepper = stepper_of(STAR_1D, parse_boundary("zero", 1))
    for shape, buffers in (((9,), 2), ((9,), 2), ((10,), 4), ((9,), 6)):
        stepper.advance(np.zeros(shape), 3)
        assert len(stepper.memory.buffers) == buffers
    stepper.memory.stream = 7
    stepper.advance(np.zeros(9), 3)
    assert len(stepper.memory.buffers) == 8


def test_rows_end_at_multiples_of_the_granule():
    memory = AlignedMemory()
    rows = aligned_rows(memory, (3, 9), 5, np.dtype(np.float32), 8)
    start = rows.__array_interface__["data"][0]
    assert (start + 5 * 4) % 32 == 0 and rows.strides == (64, 4)
    assert memory.buffers[0][1] == 3 * 64


def test_progress_is_reported_when_the_device_is_done():
    stepper = stepper_of(STAR_1D, parse_boundary("zero", 1))
    events = []
    stepper.memory.synchronize = lambda: events.append("wait")
    stepper.advance(np.zeros(9), 4, lambda done, total: events.append((done, total)))
    assert events[-2:] == ["wait", (4, 4)]


def test_unfit_arrays_are_refused():
    stepper = stepper_of(ASYMMETRIC_2D, parse_boundary("fixed", 2), interior=((1, 1), (8, 8)))
    with pytest.raises(TwofourError, match="expected a halo of 2 and 1 cells on axis 0, got 1"):
        stepper.advance(np.zeros((12, 12)), 1)
    with pytest.raises(TwofourError, match="expected f64"):
        stepper.advance(np.zeros((12, 12), np.float32), 1)
    with pytest.raises(TwofourError, match="expected a number of steps >= 0, got -1"):
        stepper.advance(np.zeros((12, 12)), -1)


class Replaying(AlignedMemory):
    """Recordings must always touch the buffers that they did at first: a device knows no others.

    `touched` is where calls note their buffers.
    """

    def __init__(self):
        super().__init__()
        self.touched = []

    def record(self, calls):
        self.recordings += 1
        first = []

        def replay():
            begin = len(self.touched)
            calls()
            now = self.touched[begin:]
            first.extend(now if not first else [])
            assert now == first

        return replay


@pytest.mark.parametrize("stored", ["all", "newest"])
@pytest.mark.parametrize("rotation", [(1, 0), (1, 2, 0), (1, 0, 3, 4, 2)])
def test_recorded_calls_of_fields_equal_single_ones(rotation, stored):
    """Every call adds its arguments' places to what they hold, at places that tell them apart.

    Or it makes the newest field from all others, whose halos are not always refilled.
    """
    count = len(rotation)
    kept = range(count) if stored == "all" else [count - 1]

    def run(memory, steps):
        def call(arguments):
            memory.touched.append([array.ctypes.data for array in arguments])
            values = [0.25 * (array[:-2] + array[2:]) + i for i, array in enumerate(arguments)]
            for place in kept:
                arguments[place][1:-1] = sum(values) if len(kept) == 1 else values[place]

        fields = [
            FieldSpec(i, F64, (6,), stored == "all" or i not in kept, i in kept, ((1,), (5,)))
            for i in range(count)
        ]
        stepper = FieldStepper(
            fields, rotation, lambda: call, parse_boundary("periodic", 1), memory, written=kept
        )
        inputs = [np.arange(6.0) + field.position for field in fields if field.loaded]
        return stepper.advance(inputs, steps)

    class Plain(Replaying):
        def record(self, calls):
            return None

    memory = Replaying()
    for steps in (1, RECORDED_CALLS, 3 * RECORDED_CALLS + 7):
        np.testing.assert_array_equal(run(memory, steps), run(Plain(), steps))
    assert memory.recordings == 1
