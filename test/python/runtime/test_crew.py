# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Threads that wait in native code: every job is done once by each, and nobody is left behind."""

import ctypes
import errno
import os
import signal
import subprocess
import sys
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from ctypes import c_int64
from pathlib import Path
from types import SimpleNamespace

import pytest

from twofour.bench.cpu.pinning import affinity_restored, usable_cpus
from twofour.runtime import Crew, crew
from twofour.runtime.crew import JOB
from twofour.targets.cpu.crew import native_crew

CONTEXT = (c_int64 * 1)(7)


@pytest.fixture
def new_crew():
    """Makes crews of so many members; they are dismissed afterwards."""
    made = []

    def make(most):
        made.append(Crew(native_crew()._code, most))
        return made[-1]

    yield make
    for one in made:
        one.dismiss()


def parts_of(crew, threads, meet=False):
    """(number, count, thread) of each part of a job, which meet each other if asked to."""
    parts, barrier = [], threading.Barrier(threads, timeout=30)

    def part(context, number, count):
        assert c_int64.from_address(context).value == 7
        parts.append((number, count, threading.get_native_id()))
        if meet:
            barrier.wait()

    crew.run(JOB(part), CONTEXT, threads)
    return sorted(parts)


@pytest.mark.parametrize("threads", [1, 2, 3, 8])
def test_each_thread_has_its_part(threads, new_crew):
    crew = new_crew(8)
    for _ in range(20):
        parts = parts_of(crew, threads, meet=True)
        assert [part[:2] for part in parts] == [(number, threads) for number in range(threads)]
        assert len({thread for _, _, thread in parts}) == threads
        assert parts[0][2] == threading.get_native_id()
    assert crew.size == threads - 1


def test_parts_are_of_the_same_threads_each_time(new_crew):
    """What a part reads is in the caches of the processor that had it before."""
    crew = new_crew(8)
    parts_of(crew, 6, meet=True)
    parts = parts_of(crew, 4, meet=True)
    for _ in range(10):
        assert parts_of(crew, 4, meet=True) == parts


def test_parts_are_done_when_the_call_returns(new_crew):
    crew, done = new_crew(3), []

    def part(context, number, count):
        time.sleep(0.02 * number)
        done.append(number)

    for _ in range(3):
        crew.run(JOB(part), CONTEXT, 4)
        assert sorted(done) == [0, 1, 2, 3]
        done.clear()


TASKS = Path("/proc/self/task")
asks_linux = pytest.mark.skipif(not TASKS.exists(), reason="asks Linux for threads and their state")


def state_of(thread):
    """The letter of its state, "" where there is no such thread."""
    try:
        return (TASKS / str(thread) / "stat").read_text().rpartition(")")[2].split()[0]
    except (FileNotFoundError, ProcessLookupError):
        return ""


def come_to(state, threads):
    """Whether all threads do within some seconds."""
    deadline = time.monotonic() + 20
    while {state_of(thread) for thread in threads} != {state} and time.monotonic() < deadline:
        time.sleep(0.01)
    return {state_of(thread) for thread in threads} == {state}


@asks_linux
def test_threads_sleep_after_a_while_and_are_woken(new_crew):
    crew = new_crew(2)
    for _ in range(3):
        _, *others = parts_of(crew, 3, meet=True)
        assert len(others) == 2
        assert come_to("S", [thread for _, _, thread in others])


@pytest.mark.skipif(len(usable_cpus()) < 2, reason="needs two processors")
def test_threads_make_way_for_the_one_that_leads_them(new_crew):
    """They may run anywhere again afterwards, and stay where they may not run elsewhere."""
    crew, sched_getcpu = new_crew(1), ctypes.CDLL(None).sched_getcpu
    first, second, *_ = usable_cpus()
    both = {first, second}

    def processors():
        found = {}

        def part(context, number, count):
            found[number] = sched_getcpu(), os.sched_getaffinity(0)

        crew.run(JOB(part), CONTEXT, 2)
        return found

    def put(*cpus):
        def part(context, number, count):
            os.sched_setaffinity(0, cpus[number])

        crew.run(JOB(part), CONTEXT, 2)

    with affinity_restored():
        for one in both:
            put({one}, {one})
            assert processors() == {0: (one, {one}), 1: (one, {one})}
            put({one}, both)
            (other,) = both - {one}
            assert processors() == {0: (one, {one}), 1: (other, both)}


def test_many_callers_share_few_threads(new_crew):
    crew = new_crew(3)

    def call(_):
        for _ in range(50):
            parts = parts_of(crew, 3)
            count = len(parts)
            assert 1 <= count <= 3
            assert [part[:2] for part in parts] == [(number, count) for number in range(count)]

    with ThreadPoolExecutor(6) as callers:
        list(callers.map(call, range(6)))
    assert len(crew._idle) == len(crew._started) <= 3


def test_jobs_within_jobs(new_crew):
    crew, counts = new_crew(3), []

    def part(context, number, count):
        counts.append(len(parts_of(crew, 2)))

    crew.run(JOB(part), CONTEXT, 2)
    assert len(counts) == 2 and set(counts) <= {1, 2}


def test_a_signal_handler_may_call_while_the_crew_is_taken(new_crew):
    crew, found = new_crew(3), []

    def call():
        with crew._lock:
            found.extend(parts_of(crew, 2))

    thread = threading.Thread(target=call, daemon=True)
    thread.start()
    thread.join(timeout=20)
    assert found


def no_more_threads(code, argument):
    raise OSError(errno.EAGAIN, "can't start new thread")


def test_jobs_run_on_the_threads_that_there_are(new_crew, monkeypatch):
    fleet = new_crew(8)
    with monkeypatch.context() as none_left:
        none_left.setattr(crew, "_start_thread", no_more_threads)
        assert [part[:2] for part in parts_of(fleet, 4)] == [(0, 1)]
    assert len(parts_of(fleet, 4)) == 4


def test_what_the_system_says_of_a_thread_that_it_does_not_give(monkeypatch):
    full = SimpleNamespace(pthread_create=lambda *_: errno.EAGAIN)
    monkeypatch.setattr(ctypes, "CDLL", lambda name: full)
    with pytest.raises(OSError, match="Resource temporarily unavailable"):
        crew._start_thread(0, 0)


def test_an_interrupt_leaves_the_threads_for_others(new_crew, monkeypatch):
    fleet = new_crew(8)
    parts_of(fleet, 2)

    def interrupted(code):
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(crew, "_Member", interrupted)
        with pytest.raises(KeyboardInterrupt):
            parts_of(fleet, 3)
    assert len(fleet._idle) == 1
    assert len(parts_of(fleet, 3)) == 3


@asks_linux
def test_dismissed_threads_end(new_crew):
    crew = new_crew(8)
    _, *others = parts_of(crew, 4, meet=True)
    crew.dismiss()
    assert len(others) == 3 and come_to("", [thread for _, _, thread in others])
    assert [part[:2] for part in parts_of(crew, 4)] == [(0, 1)]


@asks_linux
def test_threads_of_calls_that_run_end_after_them(new_crew):
    crew, others = new_crew(8), []

    def part(context, number, count):
        if number == 0:
            crew.dismiss()
        else:
            others.append(threading.get_native_id())

    crew.run(JOB(part), CONTEXT, 3)
    assert len(others) == 2 and come_to("", others)


PROGRAM = """
import numpy as np, os, threading, twofour
tasks = lambda: set(os.listdir("/proc/self/task"))
step = twofour.stencil({(0, 0): 0.5, (1, 0): 0.25, (0, -1): 0.25}, dtype="f64", threads=3)
u = np.random.default_rng(1).random((700, 700))
before = tasks()
expected = step(u, 40)
crew = tasks() - before
assert len(crew) == 2, crew
"""
# Python 3.12 and newer warn of forks beside threads.
FORKED = """
import warnings
warnings.simplefilter("ignore", DeprecationWarning)
child = os.fork()
assert (step(u, 40) == expected).all()
if child:
    assert os.waitpid(child, 0)[1] == 0
"""
# A thread that goes on while the interpreter ends.
BUSY = """
threading.Thread(target=lambda: [step(u, 40) for _ in range(1000)], daemon=True).start()
step(u)
"""


@asks_linux
@pytest.mark.parametrize("ending", ["", FORKED, "step(u)\n" * 10, BUSY])
def test_processes_end(ending):
    assert run(PROGRAM + ending) == ""


# What is registered first is called last.
LAST = """
import atexit, time
def report():
    # Linux lists a thread for a moment after it was waited for.
    for _ in range(100):
        if crew & tasks():
            time.sleep(0.01)
    print(len(crew), crew & tasks())
atexit.register(report)
"""


@asks_linux
def test_no_thread_is_left_when_the_interpreter_lets_native_code_go():
    assert run(LAST + PROGRAM) == "2 set()\n"


def run(program):
    command = [sys.executable, "-c", program]
    pipes = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE}
    with subprocess.Popen(command, text=True, start_new_session=True, **pipes) as process:
        try:
            out, err = process.communicate(timeout=100)
        finally:
            # Children that hang must not stay behind.
            with suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)
    assert (process.returncode, err) == (0, "")
    return out
