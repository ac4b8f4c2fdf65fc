# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Measuring on a stand-in for a GPU: contests, baselines, what is kept when it is interrupted."""

import json
import sys
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest

import fake_cupy
import without_compiler
from bench_device import CHIP, NVCC, ROUNDS, BenchDevice, TickingClock, results, run
from twofour.bench.__main__ import main as measure_main
from twofour.bench.measured import baselines, fields, prepare
from twofour.bench.measured.contest import SAMPLE_SECONDS, WARM_UP, Contestant, EventClock, compete
from twofour.bench.measured.fields import Fields
from twofour.bench.measured.measurements import FILE
from twofour.bench.measured.plan import Entry, Group, Plan, load_plan
from twofour.bench.measured.results import report_of
from twofour.bench.measured.session import measure
from twofour.cli.main import main
from twofour.errors import DeviceFailure, TwofourError, Unsuitable
from twofour.kernels import built_in_kernels
from twofour.runtime.devices.simulated import SimulatedDevice

ENTRIES = (("f16", "auto", 1), ("f16", "simt", 1), ("f16", "auto", 3), ("f64", "auto", 1))


@pytest.fixture(scope="module")
def prepared(tmp_path_factory):
    """A plan of Heat-2D on a small domain, in f16 and f64."""
    folder = tmp_path_factory.mktemp("bench")
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(prepare, "TABLE_2_ENTRIES", ENTRIES)
        said = prepare.prepare(str(folder), "sm_90", ("heat2d_ftcs",))
    assert said == "2 groups, 4 bundles for sm_90"
    plan = load_plan(str(folder))
    groups = tuple(replace(group, shape=(9, 130)) for group in plan.groups)
    replace(plan, groups=groups).save(str(folder))
    return folder


@pytest.fixture
def folder(prepared, tmp_path, monkeypatch):
    monkeypatch.setattr(fields, "MAX_SETS", 2)
    for file in prepared.iterdir():
        (tmp_path / file.name).write_bytes(file.read_bytes())
    return str(tmp_path)


@pytest.fixture
def bare(folder):
    """The same without kernels of this project, which take long to simulate."""
    plan = load_plan(folder)
    compared = (*baselines.BASELINES, "other")
    groups = tuple(replace(g, entries=(), baselines=compared) for g in plan.groups)
    replace(plan, groups=groups).save(folder)
    return folder


def test_every_kernel_is_measured_and_reported(folder):
    assert run(folder)[0] == 2
    header, found = results(folder)
    assert header["device"] == "sim:sm_90" and f"{ROUNDS} interleaved rounds" in header["protocol"]
    half = found["heat2d_ftcs-f16"]
    assert half["left_out"] == [] and half["sets"] == 2
    steps = {one["name"]: one["steps"] for one in half["timed"]}
    assert steps == {"copy": 1, "stream": 1, "simt": 1, "stream x 3": 3}
    assert all(len(one["seconds"]) == ROUNDS for one in half["timed"])
    report = report_of(folder)
    names = ["table2", "fused", "ablation", "fp64", "domains", "domains-f64"]
    assert [s.name for s in report.sections] == names
    single, fused = (section.tables[0] for section in report.sections[:2])
    # Every sweep takes half a second by that clock: one start of a set.
    assert single.column("stream, GStencil/s") == [pytest.approx(9 * 130 * 2e-9)]
    assert fused.column("chosen") == ["stream x 3"] and fused.column("chosen of copy") == [3.0]
    assert {c.basis for t in (single, fused) for c in t.columns} == {None, "measured"}
    assert "sim:sm_90" in report.markdown() and "Measured on a GPU" in report.markdown()
    uneven = Path(folder, FILE).read_text().replace("[0.5, 0.5, 0.5]", "[0.25, 5.0, 0.5]")
    Path(folder, FILE).write_text(uneven)
    again = report_of(folder).sections[0].tables[0]
    assert again.column("stream, GStencil/s") == single.column("stream, GStencil/s")
    assert again.column("largest spread, %") == [950.0]


def test_wrong_kernels_are_not_timed(folder):
    plan = load_plan(folder)
    (half, _) = plan.groups
    wrong = replace(half, weights=(half.weights[0] + 0.01, *half.weights[1:]))
    replace(plan, groups=(wrong,)).save(folder)
    run(folder)
    (found,) = results(folder)[1].values()
    assert [one["name"] for one in found["timed"]] == ["copy"]
    assert {one["name"] for one in found["left_out"]} == {"stream", "simt", "stream x 3"}
    assert all(one["reason"].startswith("wrong by 0.0") for one in found["left_out"])
    assert "wrong by" in report_of(folder).markdown()


def test_what_is_absent_is_named(bare, monkeypatch):

    def fails(_):
        raise RuntimeError("out of memory:\n 1 byte left")

    monkeypatch.setitem(sys.modules, "torch", None)
    monkeypatch.setitem(sys.modules, "triton", None)
    makers = {"cuDNN": baselines.cudnn, "Triton": baselines.triton, "other": fails}
    run(bare, makers)
    left = results(bare)[1]["heat2d_ftcs-f64"]["left_out"]
    assert [one["name"] for one in left] == ["cuDNN", "Triton", "other"]
    assert "import of torch halted" in left[0]["reason"]
    assert left[2]["reason"] == "out of memory: 1 byte left"


@pytest.mark.full
def test_kernels_outside_of_the_paper_have_few_baselines_in_f32_and_f64(tmp_path):
    prepare.prepare(str(tmp_path), "sm_90", ("klein_gordon1d_o6", "heat1d_ftcs"))
    plan = load_plan(str(tmp_path))
    few = {g.key for g in plan.groups if g.baselines == ("copy", "plain CUDA")}
    assert few == {"klein_gordon1d_o6-f32", "klein_gordon1d_o6-f64"}
    assert {g.baselines for g in plan.groups if g.key not in few} == {tuple(baselines.BASELINES)}
    assert len(plan.groups) == 6
    chosen = replace(plan.groups[0], entries=(), baselines=("copy",))
    replace(plan, groups=(chosen,)).save(str(tmp_path))
    run(str(tmp_path), {"copy": baselines.copy, "plain CUDA": None})
    (found,) = results(str(tmp_path))[1].values()
    assert [one["name"] for one in found["timed"]] == ["copy"] and found["left_out"] == []


def test_what_would_take_long_is_left_out(bare, monkeypatch):
    monkeypatch.setattr(baselines, "MAX_MACS", 9 * 9 * 130 - 1)
    monkeypatch.setitem(sys.modules, "torch", SimpleNamespace())
    run(bare, {"cuDNN": baselines.cudnn})
    (left,) = results(bare)[1]["heat2d_ftcs-f64"]["left_out"]
    assert left["reason"] == "1.1e+04 multiply-adds a sweep, more than 1e+04"


def test_large_copies_are_not_recorded(monkeypatch):
    device = BenchDevice()
    with device.active():
        arrays = Fields(group("heat2d_ftcs", "f16", (8, 128)), device)
        for least, recordable in ((2048, False), (2049, True)):
            monkeypatch.setattr(baselines, "GRAPH_COPY_BYTES", least)
            assert baselines.copy(arrays).recordable == recordable


def test_reports_say_what_was_not_measured(bare):
    run(bare)
    assert "groups of the plan" not in report_of(bare).basis
    kept = Path(bare, FILE).read_text().splitlines(keepends=True)[:2]
    Path(bare, FILE).write_text("".join(kept))
    assert report_of(bare).basis.endswith("1 of 2 groups of the plan were measured.")


def test_groups_that_do_not_fit_are_named(bare, monkeypatch):
    def full(*_):
        raise MemoryError("no 1 GiB left")

    monkeypatch.setattr(BenchDevice, "zeros", full)
    assert run(bare)[0] == 2
    one = results(bare)[1]["heat2d_ftcs-f64"]
    assert one["left_out"] == [{"name": "all", "reason": "arrays do not fit: no 1 GiB left"}]
    assert "arrays do not fit" in report_of(bare).markdown()


def test_what_the_device_cannot_take_is_named(folder, monkeypatch):
    load = BenchDevice.load

    def refuse(device, bundle):
        if bundle.manifest["schedule"] == "stream":
            raise Unsuitable("expected a device with more shared memory")
        return load(device, bundle)

    monkeypatch.setattr(BenchDevice, "load", refuse)
    assert run(folder)[0] == 2
    half = results(folder)[1]["heat2d_ftcs-f16"]
    assert [one["name"] for one in half["timed"]] == ["copy", "simt"]
    reason = "expected a device with more shared memory"
    assert half["left_out"] == [
        {"name": name, "reason": reason} for name in ("stream", "stream x 3")
    ]


@pytest.mark.parametrize("kind", [RuntimeError, DeviceFailure])
def test_a_group_on_which_the_device_fails_is_left_out_by_the_next_call(folder, kind, monkeypatch):
    load = BenchDevice.load

    def fail(device, bundle):
        if bundle.manifest["element"] == "f16":
            cause = RuntimeError("cudaErrorIllegalAddress:\nan illegal address")
            raise cause if kind is RuntimeError else kind("expected it to work") from cause
        return load(device, bundle)

    monkeypatch.setattr(BenchDevice, "load", fail)
    message = "expected heat2d_ftcs-f16 to run on sim:sm_90, got: .*; another call goes on without"
    with pytest.raises(TwofourError, match=message):
        run(folder)
    assert run(folder)[0] == 2
    half, double = results(folder)[1].values()
    assert half["timed"] == [] and [one["name"] for one in half["left_out"]] == ["all"]
    reason = "the device failed: cudaErrorIllegalAddress: an illegal address"
    assert half["left_out"][0]["reason"] == reason
    assert len(double["timed"]) == 2 and double["left_out"] == []


def test_an_interrupted_session_goes_on(bare):
    made = []

    def interrupting(found):
        made.append(found.group.key)
        if len(made) == 2:
            raise KeyboardInterrupt
        return baselines.copy(found)

    with pytest.raises(KeyboardInterrupt):
        run(bare, {"copy": interrupting})
    path = f"{bare}/{FILE}"
    first = open(path).read()
    assert list(results(bare)[1]) == ["heat2d_ftcs-f16"] == made[:1]
    with open(path, "a") as file:
        file.write('{"group": "heat2d_ftcs-f64", "ti')
    assert run(bare, {"copy": interrupting})[0] == 2
    assert made[2:] == ["heat2d_ftcs-f64"] and open(path).read().startswith(first)
    assert list(results(bare)[1]) == ["heat2d_ftcs-f16", "heat2d_ftcs-f64"]
    assert run(bare, {"copy": interrupting})[0] == 2 and len(made) == 3


def test_results_of_another_device_are_refused(bare):
    run(bare)
    device = BenchDevice()
    device.name = "NVIDIA Other"
    with pytest.raises(TwofourError, match="expected device sim:sm_90 as before, got NVIDIA Other"):
        measure(bare, device, TickingClock(), {})


def test_results_of_another_plan_are_refused(bare):
    run(bare)
    before = Path(bare, FILE).read_bytes()
    plan = load_plan(bare)
    larger = tuple(replace(group, shape=(9, 131)) for group in plan.groups)
    replace(plan, groups=larger).save(bare)
    for call in (run, report_of):
        with pytest.raises(TwofourError, match="jsonl:1:1: error: expected results of the plan be"):
            call(bare)
    with pytest.raises(TwofourError, match="jsonl:1:1: error: expected a folder without results"):
        prepare.prepare(bare, "sm_90", ("heat2d_ftcs",))
    assert Path(bare, FILE).read_bytes() == before and load_plan(bare).groups == larger


def test_bundles_that_are_not_of_the_plan_are_refused(folder):
    one, *_, other = sorted(Path(folder).glob("*.tfb"))
    other.write_bytes(one.read_bytes())
    with pytest.raises(TwofourError, match=f"{other}:1:1: error: expected the bundle of plan.json"):
        run(folder)
    assert not Path(folder, FILE).exists()


def test_rounds_are_interleaved_and_rotated():
    clock, device = TickingClock(), SimpleNamespace(record=lambda work: None)
    contestants = [
        Contestant(name, 1, lambda number, name=name: clock.swept.append((name, number)))
        for name in "abc"
    ]
    found = compete(contestants, device, clock, sets=2, rounds=4)
    sizes, rounds = clock.timed[:6], clock.timed[6:]
    assert "".join(timed[0][0] for timed in sizes) == "aabbcc"
    assert "".join(timed[0][0] for timed in rounds) == "abc" + "bca" + "cab" + "cba"
    assert all([number for _, number in timed] == [0, 1] for timed in rounds)
    assert found["a"].seconds == (1.0,) * 4 and found["a"].sweeps == 2


@pytest.mark.parametrize("recorded_speed", [1, 8])
def test_short_sweeps_are_repeated_until_they_fill_a_sample(recorded_speed):
    """Sweeps of 0.1 ms from the host, recorded ones as many times faster."""
    now, swept, kept, warm = 0.0, 0, [], []

    def sweep(number):
        nonlocal now, swept
        assert number == swept % 3
        now, swept = now + 1e-4, swept + 1

    def record(work):
        kept.append(work)

        def run():
            nonlocal now
            before = now
            work()
            now = before + (now - before) / recorded_speed

        return run

    def seconds(work):
        warm.append(swept)
        before = now
        work()
        return now - before

    clock, device = SimpleNamespace(seconds=seconds), SimpleNamespace(record=record)
    for recordable in (True, False):
        now, swept = 0.0, 0
        warm.clear()
        contestant = Contestant("own", 1, sweep, recordable=recordable)
        found = compete([contestant], device, clock, sets=3, rounds=2)["own"]
        speed = recorded_speed if recordable else 1
        assert found.seconds == pytest.approx([1e-4 / speed] * 2)
        assert SAMPLE_SECONDS <= found.sweeps * found.seconds[0] < 1.5 * SAMPLE_SECONDS
        assert found.sweeps % 3 == 0 and warm[0] == 3 * WARM_UP
    assert len(kept) == (1 if recorded_speed == 1 else 2)


def test_events_time_what_lies_between_them():
    log = []

    class Event:
        record = lambda self: log.append(("record", self))  # noqa: E731
        synchronize = lambda self: log.append(("synchronize", self))  # noqa: E731

    cuda = SimpleNamespace(Event=Event, get_elapsed_time=lambda begin, end: 4.0)
    seconds = EventClock(SimpleNamespace(cuda=cuda)).seconds(lambda: log.append(("work", None)))
    assert seconds == 4e-3
    assert [what for what, _ in log] == ["record", "work", "record", "synchronize"]
    assert log[0][1] is not log[2][1] is log[3][1]


def group(name, dtype, shape):
    kernel = built_in_kernels()[name]
    return Group(name, name, "", dtype, shape, kernel.offsets, kernel.weights, (), ())


@pytest.mark.skipif(NVCC is None, reason="no nvcc")
@pytest.mark.parametrize(
    "name, dtype, shape",
    [
        ("paper_1d5p", "f16", (1003,)),
        ("heat2d_ftcs", "f16", (19, 77)),
        ("paper_star2d13p", "f64", (9, 70)),
        ("heat3d_ftcs", "f32", (5, 9, 75)),
    ],
)
def test_the_plain_cuda_kernel(name, dtype, shape, monkeypatch):
    monkeypatch.setattr(fields, "MAX_SETS", 2)
    device = BenchDevice()
    with device.active():
        arrays = Fields(group(name, dtype, shape), device)
        arrays.clear(1)
        assert arrays.error(1, 1)[0] == np.inf
        baselines.plain(arrays).sweep(1)
        error, bound = arrays.error(1, 1)
    assert error <= bound / fields.SLACK


@pytest.mark.parametrize("maker", ["cudnn", "triton"])
@pytest.mark.parametrize(
    "name, dtype, shape",
    [("paper_1d5p", "f32", (1003,)), ("wrf_advection5_2d", "f64", (9, 70)),
     ("heat3d_ftcs", "f32", (5, 9, 75))],
)  # fmt: skip
def test_baselines_of_libraries(maker, name, dtype, shape, monkeypatch):
    pytest.importorskip("torch")
    if maker == "triton":
        monkeypatch.setenv("TRITON_INTERPRET", "1")
        pytest.importorskip("triton")
    monkeypatch.setattr(fields, "MAX_SETS", 2)
    device = SimulatedDevice(CHIP)
    with device.active():
        arrays = Fields(group(name, dtype, shape), device)
        contestant = getattr(baselines, maker)(arrays)
        for number in range(arrays.sets):
            arrays.clear(number)
            contestant.sweep(number)
            error, bound = arrays.error(number, 1)
            assert error <= bound


@pytest.mark.parametrize("span, sets", [(1, 2), (9 * 4000, 9), (1 << 30, 16)])
def test_sets_of_inputs_exceed_caches(span, sets, monkeypatch):
    monkeypatch.setattr(fields, "SPAN_BYTES", span)
    device = BenchDevice()
    with device.active():
        # An output is of 2000 bytes, an input of a little more.
        arrays = Fields(
            Group("k", "k", "", "f16", (1000,), ((-1,), (0,)), (0.5, 0.5), (), ()), device
        )
        first, second = (arrays.source(n, (1,), (0,)) for n in (0, 1))
        assert arrays.sets == sets == len(arrays.targets)
        assert first.shape == (1001,) and np.abs(first).max() <= 1
        assert not np.array_equal(first, second)


def test_measuring_does_not_import_the_compiler():
    done = without_compiler.run(
        "import twofour.bench.__main__, twofour.bench.measured.results\n"
        "print(*{name.partition('.')[0] for name in sys.modules})\n"
        "twofour.bench.__main__.main(['--help'])"
    )
    assert done.returncode == 0, done.stderr
    modules, _, usage = done.stdout.partition("\n")
    assert "numpy" in modules.split() and "cupy" not in modules.split()
    assert "--measure DIR" in usage


def test_errors_are_one_line(folder, tmp_path, capsys):
    assert measure_main(["--measure", str(tmp_path / "none")]) == 1
    assert capsys.readouterr().err == (
        f"{tmp_path}/none/plan.json:1:1: error: cannot read the file: no such file or directory\n"
    )
    (tmp_path / FILE).write_text("[1]\n")
    for words, message in (
        (["bench", "--report", folder], "expected what `python -m twofour.bench --measure` writes"),
        (["bench", "--report", folder + "/plan.json"], "cannot read the file: not a directory"),
    ):
        assert main(words) == 1
        error = capsys.readouterr().err
        assert message in error and error.count("\n") == 1


def test_a_machine_without_cupy_says_so(folder, monkeypatch, capsys):
    monkeypatch.setitem(sys.modules, "cupy", None)
    assert main(["bench", "--measure", folder]) == 1
    assert "expected CuPy to run on a GPU" in capsys.readouterr().err
    for words, message in (
        (
            ["--measure", folder, "--device", "sim"],
            "expected a CUDA device to measure on, got 'sim",
        ),
        (
            ["--measure", folder, "--device", "1"],
            "expected a device cuda, cuda:N, sim or sim:sm_XX",
        ),
        (["--report", folder, "--device", "cuda:1"], "expected no --device with --report"),
    ):
        assert main(["bench", *words]) == 1
        assert message in capsys.readouterr().err
    fake_cupy.install(monkeypatch)
    assert measure_main(["--measure", folder, "--device", "cuda:3"]) == 1
    assert "expected a CUDA device 3, got 1 devices" in capsys.readouterr().err


def test_a_plan_survives_its_file(tmp_path):
    entry = Entry("stream", 3, "x.tfb", "0" * 64, True)
    plan = Plan("sm_90", {"a": "1"}, (replace(group("heat3d_ftcs", "f16", (4, 5, 6)),
                                              entries=(entry,)),))  # fmt: skip
    plan.save(str(tmp_path))
    assert load_plan(str(tmp_path)) == plan
    found = json.loads((tmp_path / "plan.json").read_text())
    (tmp_path / "plan.json").write_text(json.dumps({**found, "format": 9}))
    with pytest.raises(TwofourError, match="bench --prepare` writes, got: format 9"):
        load_plan(str(tmp_path))
