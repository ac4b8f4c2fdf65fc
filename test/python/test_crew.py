# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Threads that wait in native code: every job is done once by each, and nobody is left behind."""

import os
import subprocess
import sys
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from ctypes import c_int64
from pathlib import Path

import pytest

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
    assert len(crew._started) == threads - 1


def test_parts_are_done_when_the_call_returns(new_crew):
    crew, done = new_crew(3), []

    def part(context, number, count):
        time.sleep(0.02 * number)
        done.append(number)

    for _ in range(3):
        crew.run(JOB(part), CONTEXT, 4)
        assert sorted(done) == [0, 1, 2, 3]
        done.clear()


def state_of(thread):
    return (
        Path(f"/proc/self/task/{thread.native_id}/stat").read_text().rpartition(")")[2].split()[0]
    )


@pytest.mark.skipif(not Path("/proc/self/task").exists(), reason="asks Linux for states of threads")
def test_threads_sleep_after_a_while_and_are_woken(new_crew):
    crew = new_crew(2)
    for _ in range(3):
        assert len(parts_of(crew, 3, meet=True)) == 3
        deadline = time.monotonic() + 20
        members = crew.start(2)
        while {state_of(thread) for thread in members} != {"S"} and time.monotonic() < deadline:
            time.sleep(0.01)
        assert [state_of(thread) for thread in members] == ["S", "S"]


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


def no_more_threads(thread):
    raise RuntimeError("can't start new thread")


def test_jobs_run_on_the_threads_that_there_are(new_crew, monkeypatch):
    crew = new_crew(8)
    with monkeypatch.context() as none_left:
        none_left.setattr(threading.Thread, "start", no_more_threads)
        assert [part[:2] for part in parts_of(crew, 4)] == [(0, 1)]
    assert len(parts_of(crew, 4)) == 4


def test_an_interrupt_leaves_the_threads_for_others(new_crew, monkeypatch):
    fleet = new_crew(8)
    fleet.start(1)

    def interrupted(name, code):
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(crew, "_Member", interrupted)
        with pytest.raises(KeyboardInterrupt):
            parts_of(fleet, 3)
    assert len(fleet._idle) == 1
    assert len(parts_of(fleet, 3)) == 3


def test_dismissed_threads_end(new_crew):
    crew = new_crew(8)
    parts_of(crew, 4)
    members = crew.start(0)
    assert len(members) == 3
    crew.dismiss()
    assert not any(thread.is_alive() for thread in members)
    assert [part[:2] for part in parts_of(crew, 4)] == [(0, 1)]


def test_threads_of_calls_that_run_end_after_them(new_crew):
    crew = new_crew(8)
    crew.run(JOB(lambda context, number, count: number or crew.dismiss()), CONTEXT, 3)
    for thread in threading.enumerate():
        if thread.name.startswith("twofour_crew") and thread not in native_crew().start(0):
            thread.join(20)
            assert not thread.is_alive()


PROGRAM = """
import numpy as np, os, threading, twofour
step = twofour.stencil({(0, 0): 0.5, (1, 0): 0.25, (0, -1): 0.25}, dtype="f64", threads=3)
u = np.random.default_rng(1).random((700, 700))
expected = step(u, 40)
crew = [thread for thread in threading.enumerate() if thread.name.startswith("twofour_crew")]
assert len(crew) == 2, crew
"""
FORKED = """
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


@pytest.mark.parametrize("ending", ["", FORKED, "step(u)\n" * 10, BUSY])
def test_processes_end(ending):
    if "fork" in ending and not hasattr(os, "fork"):
        pytest.skip("there is no fork")
    assert run(PROGRAM + ending) == ""


# What is registered first is called last.
LAST = """
import atexit
atexit.register(lambda: print([thread.is_alive() for thread in crew]))
"""


def test_no_thread_is_left_when_the_interpreter_lets_native_code_go():
    assert run(LAST + PROGRAM) == "[False, False]\n"


def run(program):
    command = [sys.executable, "-c", program]
    done = subprocess.run(command, timeout=100, capture_output=True, text=True)
    assert (done.returncode, done.stderr) == (0, "")
    return done.stdout
