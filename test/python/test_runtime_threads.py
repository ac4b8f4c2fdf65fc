# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The number of threads and the split of sweeps over them."""

import os
import signal
import threading
import weakref
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest

from twofour.errors import TwofourError
from twofour.runtime import parallel_run, resolve_threads, threads
from twofour.runtime.threads import run_together
from twofour.runtime.workers import Worker, WorkerPool

LARGE = 1 << 30  # points enough for any number of chunks


class Recorder:
    def __init__(self, fail_at=None):
        self.chunks, self.threads = [], set()
        self.fail_at = fail_at

    def run(self, begin, end):
        self.chunks.append((begin, end))
        self.threads.add(threading.get_ident())
        if self.fail_at is not None and begin <= self.fail_at < end:
            raise RuntimeError("kernel failed")


def test_the_argument_goes_before_the_environment(monkeypatch):
    monkeypatch.setenv("TWOFOUR_NUM_THREADS", "3")
    assert resolve_threads() == 3
    assert resolve_threads(5) == 5
    assert resolve_threads(np.int64(2)) == 2
    monkeypatch.delenv("TWOFOUR_NUM_THREADS")
    assert resolve_threads() >= 1
    if hasattr(os, "sched_getaffinity"):
        assert resolve_threads() == len(os.sched_getaffinity(0))


@pytest.mark.parametrize("text", ["0", "-1", "two", "", "1.5"])
def test_bad_environment(text, monkeypatch):
    monkeypatch.setenv("TWOFOUR_NUM_THREADS", text)
    with pytest.raises(TwofourError, match="TWOFOUR_NUM_THREADS: expected a positive number"):
        resolve_threads()


@pytest.mark.parametrize("threads", [0, -2, 1.5, "4", True])
def test_bad_argument(threads):
    with pytest.raises(TwofourError, match="expected a positive number of threads, got"):
        resolve_threads(threads)


@pytest.mark.parametrize("extent", [1, 2, 5, 64, 1001])
@pytest.mark.parametrize("threads", [1, 2, 3, 8])
def test_chunks_cover_the_range_once(extent, threads):
    recorder = Recorder()
    parallel_run(recorder, extent, threads, LARGE)
    chunks = sorted(recorder.chunks)
    assert len(chunks) == min(extent, threads)
    assert chunks[0][0] == 0 and chunks[-1][1] == extent
    assert all(a[1] == b[0] for a, b in zip(chunks, chunks[1:], strict=False))
    sizes = [end - begin for begin, end in chunks]
    assert max(sizes) - min(sizes) <= 1


def test_small_sweeps_stay_on_the_calling_thread():
    recorder = Recorder()
    parallel_run(recorder, 100, 8, 100 * 100)
    assert recorder.chunks == [(0, 100)]
    assert recorder.threads == {threading.get_ident()}


def test_chunks_run_at_the_same_time():
    barrier = threading.Barrier(2, timeout=30)

    class Meeting:
        def run(self, begin, end):
            barrier.wait()

    parallel_run(Meeting(), 2, 2, LARGE)


@pytest.mark.parametrize("fail_at", [0, 99])
def test_exceptions_are_raised_after_all_chunks(fail_at):
    recorder = Recorder(fail_at)
    with pytest.raises(RuntimeError, match="kernel failed"):
        parallel_run(recorder, 100, 4, LARGE)
    assert len(recorder.chunks) == 4


def no_more_threads(thread):
    raise RuntimeError("can't start new thread")


def test_sweeps_run_on_the_threads_that_there_are(monkeypatch):
    monkeypatch.setattr(threads, "_pool", WorkerPool(8))
    first, second = Recorder(), Recorder()
    with monkeypatch.context() as none_left:
        none_left.setattr(threading.Thread, "start", no_more_threads)
        parallel_run(first, 100, 4, LARGE)
    assert first.chunks == [(0, 100)]
    parallel_run(second, 100, 4, LARGE)
    assert first.chunks == [(0, 100)]
    assert len(second.chunks) == 4


def meet(wanted, meetings=1):
    """Threads wait for each other so many times; the numbers they had, and how many they were."""
    lock, barriers, met = threading.Lock(), {}, []

    def work(number, count):
        with lock:
            barrier = barriers.setdefault(count, threading.Barrier(count, timeout=20))
        for _ in range(meetings):
            barrier.wait()
        met.append(number)

    run_together(work, wanted)
    (count,) = barriers
    return sorted(met), count


def test_calls_that_want_more_threads_than_there_are_get_fewer(monkeypatch):
    monkeypatch.setattr(threads, "_pool", WorkerPool(5))
    for _ in range(3):
        assert meet(100) == ([*range(6)], 6)
    assert meet(3) == ([0, 1, 2], 3)


def test_an_interrupt_while_jobs_begin_leaves_none_waiting(monkeypatch):
    """Those that have begun know that there are no more."""
    monkeypatch.setattr(threads, "_pool", WorkerPool(8))
    begin, begun, counts = Worker.begin, [], []

    def interrupted(self, job, ended):
        if len(begun) == 2:
            raise KeyboardInterrupt
        begun.append(self)
        begin(self, job, ended)

    monkeypatch.setattr(Worker, "begin", interrupted)
    with pytest.raises(KeyboardInterrupt):
        run_together(lambda number, count: counts.append((number, count)), 6)
    assert sorted(counts) == [(1, 3), (2, 3)]


def test_calls_at_the_same_time_share_the_threads(monkeypatch):
    monkeypatch.setattr(threads, "_pool", WorkerPool(12))
    with ThreadPoolExecutor(8) as callers:
        for met, count in callers.map(lambda _: meet(10, meetings=20), range(200)):
            assert 1 <= count <= 10
            assert met == [*range(count)]
    assert meet(13) == ([*range(13)], 13)


def test_calls_meet_after_a_thread_could_not_be_started(monkeypatch):
    monkeypatch.setattr(threads, "_pool", WorkerPool(8))
    start = threading.Thread.start
    with monkeypatch.context() as few_left:
        starts = iter([start, no_more_threads])
        few_left.setattr(threading.Thread, "start", lambda thread: next(starts)(thread))
        assert meet(4) == ([0, 1], 2)
    assert meet(4) == ([*range(4)], 4)


def test_waiting_threads_keep_nothing_of_a_call(monkeypatch):
    monkeypatch.setattr(threads, "_pool", WorkerPool(2))
    recorder = Recorder()
    parallel_run(recorder, 100, 3, LARGE)
    kept = weakref.ref(recorder)
    del recorder
    assert kept() is None


@pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork on this system")
@pytest.mark.filterwarnings("ignore:.*multi-threaded.*fork:DeprecationWarning")
def test_threads_work_after_a_fork():
    parallel_run(Recorder(), 8, 2, LARGE)
    child = os.fork()
    if child == 0:
        # A child that waits for threads it does not have must not hang the tests.
        signal.alarm(30)
        recorder = Recorder()
        parallel_run(recorder, 8, 2, LARGE)
        os._exit(0 if len(recorder.chunks) == 2 else 1)
    assert os.waitpid(child, 0)[1] == 0
