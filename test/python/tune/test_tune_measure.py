# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""`tune --measure` on stand-ins for CuPy and the clock, and on the simulator."""

import datetime
import json
import math
import sys
from dataclasses import replace

import numpy as np
import pytest

import fake_cupy
import without_compiler
from ptx_cases import linear_bundle
from runtime_reference import convolved
from tune_cases import CHOICES, COSTS, STAR, prepared
from twofour.cost import find, predict
from twofour.errors import TwofourError
from twofour.tune.__main__ import main
from twofour.tune.checks import tolerance
from twofour.tune.commit import finished_result
from twofour.tune.launches import COMPARED, TOGETHER, slabs
from twofour.tune.measure import MAX_SETS, measure
from twofour.tune.plan import read_plan
from twofour.tune.result import MIN_ROUNDS, read_result, report

SECONDS = {"0": 3e-3, "1": 1e-3, "2": 2e-3}


class Machine:
    """A GPU whose kernels take as long as `SECONDS` says; its clock is theirs."""

    def __init__(self, monkeypatch, weights=STAR, fused=None):
        self.gpu = fake_cupy.install(monkeypatch)
        self.now, self.launches, self.loaded = 0.0, [], None
        single = fake_cupy.stencil_kernel(weights)
        self.gpu.kernels |= {"single": single, "edges": single}
        if fused:
            self.gpu.kernels["fused"] = fake_cupy.stencil_kernel(convolved(weights, fused))
        self.broken, self.idle = {}, set()
        execute = self.gpu.execute

        def timed(call):
            name, grid, block, arguments, shared = call
            which = str(shared)
            self.launches.append(which)
            self.now += SECONDS[which]
            if which not in self.idle or output(arguments).shape != (40, 70):
                execute(call)
            if which in self.broken:
                self.broken[which](output(arguments))

        self.gpu.execute = timed

    def clock(self):
        return self.now


def output(arguments):
    _, rest = fake_cupy.memref(arguments, 2, np.float64)
    return fake_cupy.memref(rest, 2, np.float64)[0]


def marked(number, **options):
    """A bundle whose launches tell which candidate they are of: by its shared memory."""
    bundle = linear_bundle(STAR, target="sm_90", **options)
    for entry in bundle.manifest["kernels"].values():
        entry["shared_bytes"] = number
    return bundle


@pytest.fixture
def machine(monkeypatch):
    return Machine(monkeypatch)


@pytest.fixture
def folder(tmp_path):
    prepared(tmp_path, [marked(n) for n in range(3)])
    return tmp_path


def measured(folder, machine, **options):
    today = lambda: datetime.date(2026, 11, 20)  # noqa: E731
    return measure(folder, clock=machine.clock, today=today, **options)


def test_medians_are_those_of_the_kernels(machine, folder):
    plan, result = measured(folder, machine)
    points = np.prod(plan.shape)
    expected = [SECONDS[str(n)] / points for n in range(3)]
    assert result.seconds_per_point(plan) == pytest.approx(expected)
    assert result.fastest(plan) == 1
    assert (result.basis, result.device, result.date) == ("measured", "NVIDIA Fake", "2026-11-20")
    assert result.sets == MAX_SETS
    assert all(len(samples.seconds) == MIN_ROUNDS for samples in result.samples)
    assert all(samples.launches % MAX_SETS == 0 for samples in result.samples)
    assert read_result(folder) == result
    lines = report(plan, result).splitlines()
    assert "star: f64 on NVIDIA Fake, measured (medians of 9 rounds)" in lines[0]
    assert str(CHOICES[1]) in lines[1] and "untuned" in lines[3]


def test_rounds_interleave_the_candidates(machine, folder):
    measured(folder, machine)
    runs = [machine.launches[0]]
    runs += [b for a, b in zip(machine.launches, machine.launches[1:], strict=False) if a != b]
    # Rounds begin with one candidate after the other.
    order = "".join(runs)
    assert order.endswith("012" + "120" + "201" + "012" + "120" + "201" + "012" + "120" + "201")


@pytest.mark.parametrize("done", [0, 1, 13])
def test_an_interrupted_run_goes_on(machine, folder, done):
    taken = 0

    def interrupt(samples, total):
        nonlocal taken
        taken = samples
        assert total == 3 * MIN_ROUNDS
        if samples == done + 1:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        measured(folder, machine, progress=interrupt)
    kept = read_result(folder)
    assert sum(len(samples.seconds) for samples in kept.samples) == taken
    assert not kept.is_complete()
    _, result = measured(folder, machine)
    assert result.is_complete()
    for before, after in zip(kept.samples, result.samples, strict=True):
        assert after.seconds[: len(before.seconds)] == before.seconds
    launches = len(machine.launches)
    measured(folder, machine)
    assert len(machine.launches) == launches


def test_more_rounds_add_to_what_was_measured(machine, folder):
    measured(folder, machine)
    _, result = measured(folder, machine, rounds=11)
    assert [len(samples.seconds) for samples in result.samples] == [11] * 3


def test_wrong_results_are_left_out(machine, folder):
    def add(target):
        target[5, 7] += 1e-9

    machine.broken["1"] = add
    plan, result = measured(folder, machine)
    assert result.fastest(plan) == 2
    assert "points differ from a NumPy reference" in result.samples[1].wrong
    assert result.samples[1].seconds == [] and "left out" in report(plan, result)


@pytest.mark.parametrize("which", ["0", "2"])
@pytest.mark.parametrize("change", [1.0, np.nan])
def test_results_on_the_large_domain_are_compared(machine, folder, which, change):
    def add(target):
        if target.shape == (40, 70):
            target[39, 69] += change

    machine.broken[which] = add
    plan, result = measured(folder, machine)
    assert result.samples[int(which)].wrong == (
        "from row 0 of the domain to measure on 1 of 2800 points differ from a NumPy reference by "
        f"more than {tolerance(plan):.3g}, the first at [39, 69]"
    )
    assert [s.wrong is None for s in result.samples] == [n != int(which) for n in range(3)]
    assert result.fastest(plan) == 1


@pytest.mark.parametrize("idle", ["0", "1", "012"])
def test_outputs_of_another_candidate_are_not_taken_for_results(machine, folder, idle):
    machine.idle |= {*idle}
    plan, result = measured(folder, machine)
    for n in map(int, idle):
        assert "2800 of 2800 points differ from a NumPy reference" in result.samples[n].wrong
    assert result.fastest(plan) == {"0": 1, "1": 2, "012": None}[idle] and result.is_complete()


@pytest.mark.parametrize(
    "shape", [(5,), (1 << 24,), (10240, 10240), (4097, 8192), (512,) * 3, (3, 1 << 13, 1 << 13)]
)
def test_slabs_are_spread_over_the_domain(shape):
    found = slabs(shape)
    starts, ends = [rows.start for rows in found], [rows.stop for rows in found]
    assert starts[0] == 0 and ends[-1] == shape[0] and starts == sorted(set(starts))
    (rows,) = {end - start for start, end in zip(starts, ends, strict=True)}
    row = math.prod(shape[1:])
    whole = len(found) == 1
    assert (
        whole or (rows == 1 or rows * row <= TOGETHER) and COMPARED // 2 < len(found) * rows * row
    )
    assert len(found) * rows * row <= max(COMPARED, 2 * row)
    gaps = np.diff(starts)
    assert whole or gaps.max() - gaps.min() <= 1


def test_a_kernel_that_the_device_cannot_take_is_left_out(machine, folder):
    machine.gpu.SHARED_MOST = 60_000
    prepared(folder, [marked(n) for n in (0, 60_001, 2)])
    plan, result = measured(folder, machine)
    assert result.samples[1].wrong.startswith("expected a device with 60001 bytes of shared memory")
    assert result.is_complete() and result.fastest(plan) == 2


@pytest.mark.parametrize("small", [True, False])
def test_a_kernel_that_fails_is_left_out_by_the_next_call(machine, folder, small):
    def fail(target):
        if small == (target.shape != (40, 70)):
            raise fake_cupy.CUDARuntimeError("cudaErrorIllegalAddress:\nan illegal address")

    machine.broken["1"] = fail
    with pytest.raises(TwofourError, match="expected sparse tile=4x4 to run on NVIDIA Fake, got: "):
        measured(folder, machine)
    plan, result = measured(folder, machine)
    assert result.samples[1].wrong == "cudaErrorIllegalAddress: an illegal address"
    assert result.is_complete() and result.fastest(plan) == 2


@pytest.mark.parametrize("steps", [2, 3])
def test_fused_steps_are_measured(monkeypatch, tmp_path, steps):
    machine = Machine(monkeypatch, fused=steps)
    prepared(tmp_path, [marked(n, fused=steps) for n in range(2)], steps=steps)
    plan, result = measured(tmp_path, machine)
    points = np.prod(plan.shape) * steps
    assert [samples.wrong for samples in result.samples] == [None, None]
    assert result.seconds_per_point(plan)[0] == pytest.approx(SECONDS["0"] / points)


def test_offsets_on_one_side(tmp_path):
    weights = {(1, 3): 0.5, (2, 4): 0.25}
    prepared(tmp_path, [linear_bundle(weights, target="sm_90")], weights)
    _, result = measure(tmp_path, "sim")
    assert result.samples[0].wrong is None and result.is_complete()


def altered(folder, name, change):
    content = json.loads((folder / name).read_text())
    change(content)
    (folder / name).write_text(json.dumps(content))


def test_samples_of_fewer_layouts_are_refused(machine, folder):
    measured(folder, machine)
    altered(folder, "result.json", lambda content: content["samples"].pop())
    with pytest.raises(TwofourError, match="expected samples of 3 layouts, got 2; remove the file"):
        measured(folder, machine)


def test_what_does_not_fit_is_refused(machine, folder):
    with pytest.raises(TwofourError, match="expected at least 9 rounds, got 8"):
        measured(folder, machine, rounds=8)
    measured(folder, machine)
    altered(folder, "result.json", lambda content: content.update(device="NVIDIA Other"))
    with pytest.raises(TwofourError, match="for device NVIDIA Fake, got NVIDIA Other; remove"):
        measured(folder, machine)
    altered(folder, "plan.json", lambda content: content.update(name="other"))
    with pytest.raises(TwofourError, match=r"result.json:1:1: .*for plan [0-9a-f]{64}, got"):
        measured(folder, machine)
    altered(folder, "plan.json", lambda content: content["key"].update(steps=2))
    with pytest.raises(TwofourError, match=r"0.tfb:1:1: error: expected a bundle of the step"):
        measured(folder, machine)
    altered(folder, "plan.json", lambda content: content["key"].update(steps=1))
    (folder / "1.tfb").write_bytes(marked(5).to_bytes())
    with pytest.raises(TwofourError, match=r"1.tfb:1:1: error: expected the bundle of plan.json"):
        measured(folder, machine)


def test_another_architecture_is_refused(machine, folder):
    machine.gpu.CAPABILITY = "100"
    with pytest.raises(
        TwofourError, match=r"expected a device of sm_90 to .*, got sm_100 \(NVIDIA"
    ):
        measured(folder, machine)


@pytest.mark.parametrize(
    "change, message",
    [
        (lambda c: c.pop("terms"), "got one without 'terms'"),
        (lambda c: c.update(format=2), "it has format 2 instead of 1"),
        (lambda c: c.update(shape=[8, 0]), "it has 0 in the place of a positive integer"),
        (lambda c: c.update(shape=[8]), "offsets or extents that do not fit rank 1"),
        (lambda c: c.update(shape=[8] * 4), "no domain of rank 1 to 3"),
        (lambda c: c.update(candidates=[]), "no candidates"),
        (lambda c: c["key"].update(element="f8"), "it has the unknown element type 'f8'"),
        (lambda c: c["key"].update(steps=0), "it has 0 in the place of a positive integer"),
        (lambda c: c.update(constant=1e999), "Infinity"),
        (lambda c: c["terms"][0].__setitem__(-1, "x"), "it has 'x' in the place of a number"),
        (
            lambda c: c["candidates"][0]["costs"].update(blocks=None),
            "in the place of a positive integer",
        ),
        (
            lambda c: c["candidates"][0]["costs"].update(resident_blocks=0),
            "it has 0 in the place of a positive integer",
        ),
        (
            lambda c: c["candidates"][0]["costs"].update(bytes_in_flight=0),
            "it has 0 in the place of a positive number",
        ),
        (
            lambda c: c["candidates"][0]["costs"].update(mma=[["f16", True, None, 8, 32, 1.0]]),
            "it has None in the place of a positive integer",
        ),
        (
            lambda c: c["candidates"][0].update(seconds_per_point=5e-324),
            "it has 5e-324 in the place of a positive number from 1e-30 to 1e",
        ),
        (
            lambda c: c["candidates"][0]["costs"].update(bytes_in_flight=5e-324),
            "it has 5e-324 in the place of a positive number",
        ),
        (
            lambda c: c["candidates"][0]["costs"].update(dram_bytes=1e308),
            "it has 1e.308 in the place of a positive number",
        ),
        (
            lambda c: c["candidates"][0]["costs"].update(l2_bytes=-1),
            "it has -1 in the place of a positive number",
        ),
        (
            lambda c: c["candidates"][0]["costs"].update(mma=[["f16", True, 16, 8, 32, 5e-324]]),
            "it has 5e-324 in the place of a positive number",
        ),
        (lambda c: c.update(constant=10**400), "in the place of a number"),
        (lambda c: c.update(shape=[2**70]), "in the place of a positive integer below"),
        (lambda c: c.update(name="\ud800"), "surrogates not allowed"),
        (lambda c: c.update(gpu="H300"), "expected a chip of"),
        (lambda c: c["candidates"][0]["costs"].update(other=1), "unexpected keyword"),
        (lambda c: c["candidates"][0].update(costs=4), "no attribute 'items'"),
        (lambda c: c["candidates"][0].update(file="../x.tfb"), "a bundle outside of its folder"),
        (lambda c: c["candidates"][0].update(choice=[]), "expected a choice as an object"),
    ],
)
def test_a_plan_that_is_none_is_refused(folder, change, message):
    altered(folder, "plan.json", change)
    with pytest.raises(TwofourError, match=f"plan.json:1:1: error: expected a plan.*{message}"):
        read_plan(folder)


@pytest.mark.parametrize(
    "change, message",
    [
        ({"seconds": [5e-324] * 9}, "it has 5e-324 in the place of a positive number from 1e-30"),
        ({"seconds": [1e308] * 9}, "it has 1e.308 in the place of a positive number"),
        ({"seconds": [0.0]}, "it has 0.0 in the place of a positive number"),
        ({"launches": 0}, "it has 0 launches for 9 samples"),
        ({"launches": 10**400}, "it has 10+ launches for 9 samples"),
    ],
)
def test_a_result_that_is_none_is_refused(machine, folder, change, message):
    measured(folder, machine)
    altered(folder, "result.json", lambda content: content["samples"][1].update(change))
    with pytest.raises(TwofourError, match=f"result.json:1:1: error: expected a res.*{message}"):
        measured(folder, machine)


def test_the_least_times_that_are_read_can_be_reported(machine, folder):
    least = {"seconds": [1e-30] * 9, "launches": 2**31 - 1}
    plan = json.loads((folder / "plan.json").read_text())
    plan["shape"] = [2**31 - 1] * 2
    (folder / "plan.json").write_text(json.dumps(plan))
    plan, digest = read_plan(folder)
    samples = [{"checked": True, "wrong": None, **least} for _ in plan.candidates]
    result = {"format": 1, "plan": digest, "basis": "measured", "device": "x", "date": "x"}
    (folder / "result.json").write_text(json.dumps(result | {"sets": 1, "samples": samples}))
    found = read_result(folder)
    assert found.fastest(plan) == 0 and "inf" not in report(plan, found)
    with pytest.raises(TwofourError, match="result.json:1:1: .*at least 1e-30 seconds for a point"):
        finished_result(folder)


def test_the_simulator_counts(tmp_path):
    bundles = [linear_bundle(STAR, target="sm_90"), linear_bundle(STAR, target="sm_90")]
    plan = prepared(tmp_path, bundles, shape=(4096, 4096))
    _, result = measure(tmp_path, "sim", today=lambda: datetime.date(2026, 11, 20))
    assert (result.basis, result.device) == ("simulated", "sim:sm_90")
    assert [samples.wrong for samples in result.samples] == [None] * 2
    # The instructions are those of this kernel, everything else is the plan's.
    expected = predict(find("H200"), COSTS, 4096 * 4096)
    bound = predict(find("H200"), replace(COSTS, instructions=0.0), 4096 * 4096)
    seconds = result.seconds_per_point(plan)[0]
    assert bound.seconds_per_point <= seconds < expected.seconds_per_point / 10
    assert result.is_complete() and result.fastest(plan) == 0


def test_measuring_needs_no_compiler(folder):
    code = f"import sys\nsys.argv[1:] = ['--measure', {str(folder)!r}, '--device', 'sim']\n"
    for module in ("twofour.tune.__main__", "twofour.cli.main"):
        begin = "sys.argv.insert(1, 'tune')\n" if module.endswith("cli.main") else ""
        done = without_compiler.run(f"{code}{begin}import {module}\nsys.exit({module}.main())")
        assert done.returncode == 0, done.stderr
        assert "star: f64 on sim:sm_90, simulated (by counters and the model)" in done.stdout


def test_no_device_is_one_line(folder, monkeypatch, capsys):
    monkeypatch.setitem(sys.modules, "cupy", None)
    assert main(["--measure", str(folder)]) == 1
    assert "error: expected CuPy to run on a GPU" in capsys.readouterr().err
    assert main(["--measure", str(folder / "none")]) == 1
    error = capsys.readouterr().err
    assert error.endswith("plan.json:1:1: error: cannot read the file: no such file or directory\n")
