# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Buffers come back when, and only when, the last array in them is gone."""

import gc
import sys
from concurrent.futures import ThreadPoolExecutor
from threading import Thread

import numpy as np

import twofour
from twofour.runtime import buffer_pool
from twofour.runtime.buffer_pool import BufferPool


def idle_sizes(pool):
    """The sizes of the buffers that a pool keeps."""
    return [given_back.buffer.size for given_back in pool._idle]


def test_buffers_are_used_again():
    pool = BufferPool()
    first = pool.take(1000)
    address = first.ctypes.data
    assert pool.take(1000).ctypes.data != address
    del first
    gc.collect()
    again = [pool.take(1000) for _ in range(3)]
    assert address in [array.ctypes.data for array in again]


def test_any_view_keeps_its_buffer():
    pool = BufferPool()
    view = pool.take(1024).view(np.float64).reshape(8, 16)[2:, ::3]
    gc.collect()
    others = [pool.take(1024) for _ in range(5)]
    assert not any(np.shares_memory(view, other) for other in others)
    capsule = view.T.__dlpack__()
    del view
    gc.collect()
    assert len({other.ctypes.data for other in [*others, pool.take(1024)]}) == 6
    del capsule


def test_other_sizes_are_let_go():
    pool = BufferPool(most=2)
    arrays = [pool.take(100) for _ in range(4)]
    del arrays
    gc.collect()
    assert idle_sizes(pool) == [100, 100]
    held = [pool.take(100) for _ in range(4)]
    pool.take(200)
    gc.collect()
    assert idle_sizes(pool) == [200]
    # Also of those that come back later, while others of their size are there.
    del held[1:]
    assert len(idle_sizes(pool)) == 2
    pool.take(200)
    assert idle_sizes(pool) == [200]


def test_buffers_come_back_at_any_line():
    """A garbage collection gives back buffers wherever a thread is."""
    # What there is besides need not be looked through each time.
    gc.freeze()
    pool = BufferPool(most=2)
    rings = []
    for size in [100, 200] * 40:
        ring = [pool.take(size)]
        ring.append(ring)
        rings.append(ring)
    del ring
    taken = []

    def collect(frame, event, argument):
        if frame.f_code.co_filename != buffer_pool.__file__:
            return None
        if rings:
            rings.pop()
            gc.collect()
        return collect

    def take():
        sys.settrace(collect)
        taken.extend(pool.take(size) for size in [100, 100, 200, 200, 100])
        sys.settrace(None)

    thread = Thread(target=take, daemon=True)
    thread.start()
    thread.join(timeout=30)
    gc.unfreeze()
    assert [array.size for array in taken] == [100, 100, 200, 200, 100]
    assert len(rings) < 60
    assert len(idle_sizes(pool)) <= 2


def test_buffers_come_back_without_code_in_which_interrupts_would_be_lost():
    pool, frames = BufferPool(), []
    array = pool.take(100)
    sys.setprofile(lambda frame, event, _: frames.append(event))
    del array
    sys.setprofile(None)
    assert frames == ["c_call"]
    assert idle_sizes(pool) == [100]


def test_results_stay_as_they_are():
    step = twofour.stencil({(0,): 0.5, (1,): 0.25}, boundary="periodic", dtype="f64", threads=1)
    u = np.random.default_rng(0).random(5000)
    first = step(u, steps=3)
    kept = first.copy()
    parts = [step(u, steps=n)[::2] for n in range(1, 8)]
    copies = [part.copy() for part in parts]
    for _ in range(10):
        u = step(u, steps=2)
    np.testing.assert_array_equal(first, kept)
    for part, copy in zip(parts, copies, strict=True):
        np.testing.assert_array_equal(part, copy)


def test_threads_do_not_share_buffers():
    step = twofour.stencil({(0,): 0.5, (1,): 0.25}, boundary="periodic", dtype="f64", threads=1)
    inputs = [np.full(20000, float(n)) for n in range(8)]
    with ThreadPoolExecutor(4) as pool:
        results = list(pool.map(lambda u: step(u, steps=9), inputs * 4))
    for u, result in zip(inputs * 4, results, strict=True):
        np.testing.assert_allclose(result, u * 0.75**9, rtol=1e-14)
