# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Descriptors and calls of native kernels; the machine code is a ctypes callback."""

import ctypes
import gc
import threading
import weakref

import numpy as np
import pytest

from twofour.errors import TwofourError
from twofour.runtime import LinearKernel, LinearStepper, NativeKernel, element_type, parse_boundary
from twofour.runtime.threads import WAKING_POINTS
from twofour.targets.cpu.crew import native_crew


def memref(rank):
    class Memref(ctypes.Structure):
        _fields_ = [
            ("allocated", ctypes.c_void_p),
            ("aligned", ctypes.c_void_p),
            ("offset", ctypes.c_int64),
            ("sizes", ctypes.c_int64 * rank),
            ("strides", ctypes.c_int64 * rank),
        ]

    return Memref


def as_array(address, rank, dtype):
    """The view that a memref descriptor of `rank` describes."""
    descriptor = memref(rank).from_address(address)
    assert descriptor.allocated == descriptor.aligned and descriptor.offset == 0
    itemsize = np.dtype(dtype).itemsize
    sizes, strides = tuple(descriptor.sizes), tuple(s * itemsize for s in descriptor.strides)
    assert descriptor.strides[rank - 1] == 1
    span = itemsize + sum((n - 1) * s for n, s in zip(sizes, strides, strict=True))
    memory = (ctypes.c_char * span).from_address(descriptor.aligned)
    return np.ndarray(sizes, dtype, memory, 0, strides)


def native(body, ranks, outputs=1, dtype=np.float64):
    """A NativeKernel whose code is `body(arrays, begin, end)`."""

    def code(*arguments):
        *pointers, begin, end = arguments
        body([as_array(p, r, dtype) for p, r in zip(pointers, ranks, strict=True)], begin, end)

    pointers = [ctypes.c_void_p] * len(ranks)
    callback = ctypes.CFUNCTYPE(None, *pointers, ctypes.c_int64, ctypes.c_int64)(code)
    address = ctypes.cast(callback, ctypes.c_void_p).value
    inputs = len(ranks) - outputs
    return NativeKernel("body", address, ranks[-1], inputs, outputs, callback, crew=native_crew)


def test_descriptors_of_strided_views_and_of_lower_rank():
    seen = []

    def body(arrays, begin, end):
        plane, line, out = arrays
        seen.append((plane.shape, line.shape, out.shape, begin, end))
        out[begin:end] = plane[begin:end, 1:-1] * line

    kernel = native(body, (2, 1, 2))
    plane = np.arange(42.0).reshape(6, 7)
    line = np.arange(3.0)
    out = np.zeros((9, 9))
    bound = kernel.bind([plane[1:5, 1:6], line], [out[2:6, 3:6]])
    bound.run(1, 3)
    assert seen == [((4, 5), (3,), (4, 3), 1, 3)]
    expected = np.zeros((9, 9))
    expected[3:5, 3:6] = plane[2:4, 2:5] * line
    np.testing.assert_array_equal(out, expected)


def test_the_inner_stride_of_one_element_is_one():
    def body(arrays, begin, end):
        arrays[1][begin:end] = arrays[0][begin:end] + 1

    kernel = native(body, (2, 2))
    out = np.zeros((4, 3))
    source = np.arange(20.0).reshape(4, 5)[:, ::2][:, 1:2]
    assert source.strides[1] == 16
    kernel.bind([source], [out[:, 1:2]]).run(0, 4)
    np.testing.assert_array_equal(out[:, 1], [3, 8, 13, 18])
    assert not out[:, [0, 2]].any()


def test_bound_kernels_keep_views_and_code_alive():
    kernel = native(lambda *_: None, (1, 1))
    source, out = np.zeros(3), np.zeros(3)
    owned = [weakref.ref(kernel), weakref.ref(source), weakref.ref(out)]
    bound = kernel.bind([source], [out])
    del kernel, source, out
    gc.collect()
    assert all(reference() is not None for reference in owned)
    del bound
    gc.collect()
    assert all(reference() is None for reference in owned)


def test_outputs_may_be_several():
    def body(arrays, begin, end):
        source, first, second = arrays
        first[begin:end] = source[begin:end]
        second[begin:end] = -source[begin:end]

    kernel = native(body, (1, 1, 1), outputs=2, dtype=np.float32)
    first, second = np.zeros(5, np.float32), np.zeros(5, np.float32)
    kernel.bind([np.arange(5, dtype=np.float32)], [first, second]).run(0, 5)
    np.testing.assert_array_equal(first, -second)
    assert first.sum() == 10


def unfit_views():
    good = np.zeros((4, 4))
    read_only = np.zeros((4, 4))
    read_only.flags.writeable = False
    record = np.zeros((4, 4), [("a", np.float64), ("b", np.float32)])["a"]
    return [
        ([], [good], "expected 1 input views, got 0"),
        ([good], [good, good], "expected 1 output views, got 2"),
        ([good], [np.zeros(4)], "expected outputs of rank 2, got 1"),
        ([good], [read_only], "expected writable outputs, got a read-only array"),
        ([good[:, ::2]], [good], "expected an inner stride of 1 element, got 2"),
        ([good.T], [good], "expected an inner stride of 1 element, got 4"),
        ([good[:, ::-1]], [good], "expected an inner stride of 1 element, got -1"),
        ([record], [good], "expected aligned elements"),
    ]


@pytest.mark.parametrize(("views_in", "views_out", "message"), unfit_views())
def test_unfit_views(views_in, views_out, message):
    kernel = native(lambda *_: None, (2, 2))
    with pytest.raises(TwofourError, match=f"kernel body: {message}"):
        kernel.bind(views_in, views_out)


@pytest.mark.parametrize("extent", [1, 2, 5, 64, 1001])
@pytest.mark.parametrize("threads", [1, 2, 3, 8])
def test_ranges_of_threads_cover_the_rows_once(extent, threads):
    ranges, ran_on = [], set()

    def body(arrays, begin, end):
        source, target = arrays
        target[begin:end] += source[begin:end]
        ranges.append((begin, end))
        ran_on.add(threading.get_native_id())

    source, target = np.arange(extent * 3.0).reshape(extent, 3), np.ones((extent, 3))
    bound = native(body, (2, 2)).bind([source], [target])
    bound.run_together(extent, threads)
    np.testing.assert_array_equal(target, source + 1)
    assert len(ranges) == len(ran_on) == threads
    sizes = [end - begin for begin, end in ranges]
    assert sum(sizes) == extent and max(sizes) - min(sizes) <= 1


def test_small_sweeps_stay_on_the_calling_thread():
    ran_on = []

    def body(arrays, begin, end):
        ran_on.append(threading.get_native_id())

    boundary = parse_boundary("periodic", 2)
    kernel = LinearKernel(native(body, (2, 2)), (0, 0), (0, 0))
    stepper = LinearStepper(kernel, element_type("f64"), boundary, threads=2)
    stepper.advance(np.zeros((2, WAKING_POINTS // 2)), 1)
    assert ran_on == [threading.get_native_id()]
    stepper.advance(np.zeros((2, WAKING_POINTS)), 1)
    assert len(set(ran_on)) == 2


def test_stepping_through_descriptors():
    def body(arrays, begin, end):
        source, target = arrays
        rows = slice(begin, end)
        target[rows] = (source[:-2, 1:-1][rows] + source[1:-1, 2:][rows]) / 2

    # out[x] = (in[x + (-1, 0)] + in[x + (0, 1)]) / 2, the reach being one on all sides.
    kernel = LinearKernel(native(body, (2, 2)), (1, 1), (1, 1))
    u = np.arange(30.0).reshape(5, 6)
    for boundary, mode in (("periodic", "wrap"), ("reflect", "symmetric")):
        stepper = LinearStepper(kernel, element_type("f64"), parse_boundary(boundary, 2))
        expected = u
        for _ in range(3):
            padded = np.pad(expected, 1, mode=mode)
            expected = (padded[:-2, 1:-1] + padded[1:-1, 2:]) / 2
        np.testing.assert_array_equal(stepper.advance(u, 3), expected)
