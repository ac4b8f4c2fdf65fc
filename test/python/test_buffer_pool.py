# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Buffers come back when, and only when, the last array in them is gone."""

import gc
from concurrent.futures import ThreadPoolExecutor

import numpy as np

import twofour
from twofour.runtime.buffer_pool import BufferPool


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
    assert len(pool._idle) == 2
    pool.take(200)
    gc.collect()
    assert [buffer.size for buffer in pool._idle] == [200]


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
