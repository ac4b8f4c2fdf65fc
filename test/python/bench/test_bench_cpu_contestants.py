# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""What `twofour bench cpu` times: contestants that make the same steps, pinned, and ceilings."""

import importlib.util
import os
import shutil
import time
from pathlib import Path

import numpy as np
import pytest

from bench_cpu_cases import CASES, CPUS, LOPSIDED, SMALL, needs_gcc, step
from twofour.bench.cpu import peers
from twofour.bench.cpu.arrays import Arrays
from twofour.bench.cpu.c_library import GCC, Ceilings, gcc_sweeps
from twofour.bench.cpu.contest import ContestantFailed
from twofour.bench.cpu.llvm_loops import llvm_sweeps
from twofour.bench.cpu.own import OWN, OwnSweeps
from twofour.bench.cpu.packages import PACKAGES, Job
from twofour.bench.cpu.pinning import affinity_restored, pin_pool
from twofour.bench.cpu.workload import Workload, initial_values, random_stencil
from twofour.runtime.crew import JOB
from twofour.targets.cpu.crew import native_crew

pytestmark = pytest.mark.usefixtures("unpinned")


def check_steps(contestant, workload, arrays, steps):
    expected = arrays.initial
    for _ in range(steps):
        expected = step(expected, workload)
    inside = workload.interior.slices
    arrays.reset()
    result = contestant.result()[inside]
    assert not np.array_equal(result, arrays.initial[inside])
    np.testing.assert_allclose(result, expected[inside], rtol=0, atol=workload.bound(steps))


@pytest.mark.parametrize("workload", CASES, ids=lambda w: w.label)
def test_single_sweeps_are_the_stencil(workload):
    arrays = Arrays(workload)
    check_steps(OwnSweeps(workload, arrays, CPUS).native(1), workload, arrays, 1)
    check_steps(llvm_sweeps(workload, arrays, CPUS), workload, arrays, 1)


@pytest.mark.parametrize("steps", [3, 17])
def test_many_steps_of_channels_are_single_ones(steps):
    (workload,) = (one for one in CASES if one.label == "channels")
    arrays = Arrays(workload)
    own = OwnSweeps(workload, arrays, CPUS)
    check_steps(own.native(steps), workload, arrays, steps)
    check_steps(own.calls(steps), workload, arrays, steps)


@needs_gcc
@pytest.mark.parametrize("workload", CASES, ids=lambda w: w.label)
def test_sweeps_by_gcc_are_the_stencil(workload):
    arrays = Arrays(workload)
    check_steps(gcc_sweeps(workload, arrays, CPUS, 1), workload, arrays, 1)


@pytest.mark.parametrize("boundary", ["fixed", "periodic"])
@pytest.mark.parametrize("steps", [3, 17])
def test_many_steps_are_single_ones(boundary, steps):
    # 17 steps take tiles of several depths, some of them an odd number of times.
    workload = Workload("", LOPSIDED, (19, 21), "f64", min(2, len(CPUS)), boundary)
    arrays = Arrays(workload)
    own = OwnSweeps(workload, arrays, CPUS)
    check_steps(own.native(steps), workload, arrays, steps)
    check_steps(own.calls(steps), workload, arrays, steps)
    if shutil.which("gcc"):
        check_steps(gcc_sweeps(workload, arrays, CPUS, steps), workload, arrays, steps)


def test_repeated_sweeps_end_in_the_array_they_say():
    workload = Workload("", random_stencil("box", 1, "f64"), (20, 20), "f64", 1)
    arrays = Arrays(workload)
    for one in (OwnSweeps(workload, arrays, CPUS).native(1), llvm_sweeps(workload, arrays, CPUS)):
        arrays.reset()
        twice = one.run(2)
        expected = step(step(arrays.initial, workload), workload)
        np.testing.assert_allclose(twice, expected, rtol=0, atol=workload.bound(2))


@pytest.mark.parametrize("threads", range(1, min(2, len(CPUS)) + 1))
@pytest.mark.parametrize("name", PACKAGES)
def test_packages_make_the_same_steps(name, threads, tmp_path):
    # In processes of their own: Devito's code switches subnormals off wherever it is loaded.
    needed = PACKAGES[name][1]
    if needed is not None and importlib.util.find_spec(needed) is None:
        pytest.skip(f"needs {needed}")
    if name == GCC and shutil.which("gcc") is None:
        pytest.skip("needs gcc")
    workload = Workload("", random_stencil("box", 1, "f64"), (14, 18), "f64", threads)
    job = Job(workload.kernel, initial_values((16, 20), "f64"), 5, threads)
    expected = job.values
    for _ in range(5):
        expected = step(expected, workload)
    peers.write_job(tmp_path, job, CPUS[:threads])
    peer = peers.Peer(name, tmp_path, job)
    try:
        np.testing.assert_allclose(peer.result(), expected, rtol=0, atol=workload.bound(5))
    finally:
        peer.close()


@pytest.mark.parametrize("averages", [True, False])
def test_samples_of_other_operators_begin_afresh(averages):
    # Values would shrink into subnormals, which are slow, or grow.
    kernel = random_stencil("box", 1, "f64") if averages else LOPSIDED
    arrays = Arrays(Workload("", kernel, (8, 8), "f64", 1))
    seen = []
    one = arrays.sweeper("x", lambda n: seen.append(arrays.both[0].max()), lambda: None)
    arrays.both[0][...] = 0.0
    one.sample(1)
    assert (seen[0] > 0) != averages


def test_random_weights_keep_values_in_their_range():
    for dtype in ("f64", "f32"):
        kernel = random_stencil("star", 2, dtype)
        assert len(kernel.offsets) == 9 and len(set(kernel.weights)) == 9
        assert Workload("", kernel, (8, 8), dtype, 1).averages
    assert random_stencil("box", 3, "f64") == random_stencil("box", 3, "f64")
    assert not Workload("", LOPSIDED, (8, 8), "f64", 1).averages


@needs_gcc
def test_ceilings_copy_and_do_not_vanish():
    workload = Workload("", random_stencil("box", 1, "f64"), (57, 61), "f64", 1)
    arrays = Arrays(workload)
    ceilings = Ceilings()
    *copies, peak = ceilings.contestants(arrays, "f64", 1, CPUS)
    whole = arrays.both[0].nbytes // ceilings.vector_bytes * ceilings.vector_bytes // 8
    for copy in copies:
        arrays.both[1][...] = -1.0
        copy.run(1)
        assert np.array_equal(arrays.both[1].ravel()[:whole], arrays.initial.ravel()[:whole])
    few, many = (min(peak.sample(n) for _ in range(5)) for n in (10, 100))
    assert many > 3 * few
    rate = 10 * ceilings.peak_flops("f64", 1) / few
    assert 1e8 < rate < 1e12


@needs_gcc
def test_threads_of_openmp_end_and_subnormals_stay():
    # A contestant whose threads spin on would take a core from the next one.
    workload = Workload("", random_stencil("box", 1, "f64"), (16, 16), "f64", min(2, len(CPUS)))
    arrays = Arrays(workload)
    one = gcc_sweeps(workload, arrays, CPUS, 1)
    before = set(os.listdir("/proc/self/task"))
    one.prepare()
    one.run(1)
    assert len(set(os.listdir("/proc/self/task")) - before) == workload.threads - 1
    one.sample(1)
    deadline = time.monotonic() + 10
    while set(os.listdir("/proc/self/task")) - before and time.monotonic() < deadline:
        time.sleep(0.01)
    assert not set(os.listdir("/proc/self/task")) - before
    # As bits: comparisons would take a subnormal for zero, too.
    assert (np.array([2], np.int64).view(float) * 0.5).view(np.int64)[0] == 1


@pytest.mark.skipif(len(CPUS) < 2, reason="needs two processors")
def test_threads_are_on_processors_of_their_own():
    before = os.sched_getaffinity(0)
    with affinity_restored():
        pin_pool(CPUS[:2])
        assert affinities(2) == [{CPUS[0]}, {CPUS[1]}]
        # What was resolved before does not shrink to the one processor left.
        assert SMALL.thread_counts == [1]
    assert affinities(native_crew().size + 1) == [before] * (native_crew().size + 1)


def affinities(threads):
    """Where each of so many threads may run, the calling one first."""
    found = {}

    def note(context, number, count):
        found[number] = os.sched_getaffinity(0)

    native_crew().run(JOB(note), None, threads)
    return [found[number] for number in range(threads)]


def job_in(folder, steps=3):
    kernel = random_stencil("box", 1, "f64")
    job = Job(kernel, initial_values((16, 16), "f64"), steps, 1)
    peers.write_job(folder, job, CPUS[:1])
    return job


def test_packages_run_in_processes_that_stop(tmp_path):
    pytest.importorskip("scipy")
    job = job_in(tmp_path)
    peer = peers.Peer("SciPy", tmp_path, job)
    try:
        expected = job.values
        for _ in range(3):
            expected = step(expected, Workload("", job.kernel, (14, 14), "f64", 1))
        np.testing.assert_allclose(peer.result(), expected, rtol=0, atol=1e-14)
        assert 0 < peer.sample(2) < 60
        status = Path(f"/proc/{peer._process.pid}/stat").read_text().rpartition(")")[2].split()
        assert status[0] == "T"
    finally:
        peer.close()


def test_processes_that_fail_say_why(tmp_path, monkeypatch):
    job = Job(random_stencil("box", 1, "f64"), np.zeros((16, 16)), 1, 1)
    with pytest.raises(ContestantFailed, match="FileNotFoundError: .*job.json"):
        peers.Peer(OWN, tmp_path, job)
    job = job_in(tmp_path)
    with pytest.raises(ContestantFailed, match="no answer within 0.001 s"):
        peers.Peer(OWN, tmp_path, job, patience=0.001)
    monkeypatch.setattr(peers.sys, "executable", shutil.which("false"))
    with pytest.raises(ContestantFailed, match="ended with status 1"):
        peers.Peer(OWN, tmp_path, job)
