# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""`twofour tune` from end to end: what it prepares, commits, and what the compiler makes of it."""

import json
import re
import sys
from dataclasses import replace
from pathlib import Path
from unittest.mock import patch

import pytest

import fake_cupy
import twofour
from twofour.cli.main import main
from twofour.errors import TwofourError
from twofour.explain import as_text
from twofour.kernels import Kernel, built_in_kernels
from twofour.options import CompileOptions
from twofour.runtime import Bundle
from twofour.targets.gpu import build
from twofour.targets.gpu.build import compile_gpu
from twofour.tune.plan import read_plan
from twofour.tune.result import MIN_ROUNDS, Result, Samples
from twofour.tuned.choice import Choice
from twofour.tuned.database import Tuned, store

KERNEL = "heat1d_ftcs"
WORDS = (KERNEL, "--target", "sim:sm_90", "--dtype", "f16")
OPTIONS = CompileOptions("sim:sm_90", dtype="f16")


@pytest.fixture(autouse=True)
def empty_folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("TWOFOUR_TUNED", raising=False)


def tune(*words):
    assert main(["tune", *words]) == 0


def measured(folder, fastest):
    """Write a result as if candidate `fastest` had been measured to be the fastest."""
    plan, digest = read_plan(folder)
    seconds = [1e-3 * (1 + (number != fastest)) for number in range(len(plan.candidates))]
    samples = [Samples(True, None, 10, [each] * MIN_ROUNDS) for each in seconds]
    Result(digest, "measured", "NVIDIA H200", "2026-11-20", 2, samples).save(folder)
    return plan


@pytest.mark.parametrize("count", [2, pytest.param(5, marks=pytest.mark.full)])
def test_from_prepare_to_a_report_on_the_simulator(capsys, count):
    tune(*WORDS, "--count", str(count), "--prepare", "d")
    assert f"d: {count} layouts of heat1d_ftcs for sm_90" in capsys.readouterr().out
    plan, _ = read_plan("d")
    schedules = [planned.choice.schedule for planned in plan.candidates]
    assert schedules[0] == "simt"
    assert count < 5 or {*schedules} == {"stream", "sparse", "dense", "simt"}
    assert len({planned.sha256 for planned in plan.candidates}) == count
    tune("--measure", "d", "--device", "sim")
    report = capsys.readouterr().out
    assert "heat1d_ftcs: f16 on sim:sm_90, simulated (by counters and the model)" in report
    assert "left out" not in report
    # The model expects what the simulator counts.
    for rate, expected in re.findall(r": (\d+) GStencil/s \(predicted (\d+)", report):
        assert int(rate) == pytest.approx(int(expected), rel=0.05)
    tune("--commit", "d", "--tuned", "x.json")
    assert "nothing is stored: these times are simulated" in capsys.readouterr().out
    assert not Path("x.json").exists()


@pytest.mark.parametrize(
    "name, words",
    [
        ("heat2d_ftcs", ("--dtype", "f16", "--schedule", "stream")),
        ("heat1d_ftcs", ("--dtype", "f32")),
        ("heat1d_ftcs", ("--dtype", "f16", "--fuse-steps", "2")),
        ("heat1d_ftcs", ("--dtype", "f64", "--schedule", "sparse")),
        ("heat1d_ftcs", ("--dtype", "tf32", "--schedule", "sparse")),
        pytest.param(
            "heat3d_ftcs", ("--dtype", "bf16", "--schedule", "stream"), marks=pytest.mark.full
        ),
    ],
)
def test_the_first_candidate_is_what_the_compiler_takes(name, words):
    options = (name, "--target", "sim:sm_90", *words)
    tune(*options, "--count", "1", "--prepare", "d")
    assert main(["compile", *options, "-o", "x.tfb"]) == 0
    tuned, compiled = map(kernel_text, ("d/0.tfb", "x.tfb"))
    assert tuned == compiled


def kernel_text(path):
    """The PTX of the kernel that a choice is for; single steps beside it may differ."""
    bundle = Bundle.load(path)
    name = bundle.program.fused or bundle.program.single
    (text,) = re.findall(rf"\.entry {name}\(.*?\n}}\n", bundle.ptx, re.DOTALL)
    return text


def test_what_was_committed_is_compiled(capsys, monkeypatch):
    tune(*WORDS, "--count", "2", "--prepare", "d")
    plan = measured("d", fastest=1)
    tune("--commit", "d", "--tuned", "x.json")
    chosen = plan.candidates[1].choice
    assert f"x.json: {chosen} for heat1d_ftcs on NVIDIA H200, 2.000 times as fast as untuned" in (
        capsys.readouterr().out
    )
    (entry,) = json.loads(Path("x.json").read_text())["entries"]
    assert (entry["basis"], entry["choice"]) == ("measured", chosen.as_json())
    for path in ("a.tfb", "b.tfb"):
        assert main(["compile", *WORDS, "--tuned", "x.json", "-o", path]) == 0
    assert Path("a.tfb").read_bytes() == Path("b.tfb").read_bytes()
    assert Bundle.load("a.tfb").ptx == Bundle.load("d/1.tfb").ptx
    found = twofour.compile(KERNEL, target="sim:sm_90", dtype="f16", tuned=Path("x.json"))
    assert found.bundle.ptx == Bundle.load("d/1.tfb").ptx
    with pytest.raises(TwofourError, match="expected the path of a file of measured choices, got"):
        twofour.compile(KERNEL, target="sim:sm_90", tuned=3)
    assert compile_gpu(built_in_kernels()[KERNEL], OPTIONS).tuned is None
    monkeypatch.setenv("TWOFOUR_TUNED", "x.json")
    for others in ({"fuse_steps": 2}, {"schedule": "sparse"}, {"dtype": "bf16"}):
        assert compile_gpu(built_in_kernels()[KERNEL], replace(OPTIONS, **others)).tuned is None
    capsys.readouterr()
    assert main(["explain", *WORDS, "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert found["schedule"] == chosen.schedule
    assert found["tuned"]["choice"] == chosen.as_json()
    assert (found["tuned"]["device"], found["tuned"]["basis"]) == ("NVIDIA H200", "measured")
    assert "tuned on NVIDIA H200, 2026-11-20" in as_text(found)


def test_an_entry_that_does_not_fit_is_located(capsys):
    tune(*WORDS, "--count", "1", "--prepare", "d")
    plan, _ = read_plan("d")
    choice = Choice("stream", block=(1, 2, 3))
    entry = Tuned("heat", plan.key, "auto", "NVIDIA H200", choice, 1e-12, "2026-11-20", "0.0.9")
    store("x.json", entry)
    assert main(["compile", *WORDS, "--tuned", "x.json", "-o", "x.tfb"]) == 1
    error = capsys.readouterr().err.splitlines()[-1]
    assert error.startswith("x.json:1:1: error: expected a choice for heat that twofour can")
    assert "tune it anew" in error and not Path("x.tfb").exists()


@pytest.mark.parametrize(
    "choice, words",
    [
        (Choice("stream", stages=11, march=40), ("chip=sm_90", "stages=11", "march=40")),
        (Choice("sparse", (16,), (2048,), 3, 5), ("tile=16", "block=2048", "stages=3", "march=5")),
        (Choice("dense", (32,), None, 1), ("tile=32", "stages=1")),
    ],
)
def test_a_choice_is_followed(choice, words):
    options = CompileOptions("sim:sm_90", dtype="f16")
    compiled = compile_gpu(built_in_kernels()[KERNEL], options, choice=choice)
    assert compiled.schedule == choice.schedule
    assert all(word in compiled.bundle.manifest["pipeline"] for word in words)
    spec = compiled.bundle.kernels[compiled.bundle.program.single]
    assert choice.march in (None, spec.march)


@pytest.mark.parametrize("levels", [True, False])
def test_a_choice_of_levels_is_followed(levels):
    options = CompileOptions("sim:sm_90", dtype="f16", fuse_steps=2)
    choice = Choice("stream", stages=4, levels=levels)
    kernel = built_in_kernels()["heat2d_ftcs"]
    bundle = compile_gpu(kernel, options, choice=choice).bundle
    assert ("levels=true" in bundle.manifest["pipeline"]) == levels


@pytest.mark.parametrize(
    "options, choice, message",
    [
        ({"schedule": "dense"}, Choice("simt"), "a choice of schedule 'dense', got 'simt'"),
        ({"dtype": "f32"}, Choice("stream"), "fields of f16 or bf16 for schedule 'stream'"),
        ({}, Choice("stream", levels=True), "fused steps that march for levels"),
        ({}, Choice("stream", stages=13), "expected 1 to 12 stages, got 13"),
        ({}, Choice("stream", stages=1), "expected 2 to 12 stages, got 1"),
        ({}, Choice("simt", stages=1, rolling=True), "expected 2 to 12 stages, got 1"),
    ],
)
def test_a_choice_that_does_not_fit_is_refused(options, choice, message):
    wanted = CompileOptions("sim:sm_90", **{"dtype": "f16", **options})
    with pytest.raises(TwofourError, match=message):
        compile_gpu(built_in_kernels()[KERNEL], wanted, choice=choice)


def test_a_choice_gives_way_to_nothing():
    kernel = Kernel("k", ((0, 0), (0, 1)), (1.0, 2.0**-40))
    assert compile_gpu(kernel, OPTIONS).schedule == "simt"
    with pytest.raises(TwofourError, match=r"weights within a factor of 2\^28 of each other"):
        compile_gpu(kernel, OPTIONS, choice=Choice("stream"))


@pytest.mark.parametrize(
    "words, message",
    [
        ((), "expected a FILE or KERNEL to tune, or --measure or --commit"),
        ((KERNEL, "--measure", "d"), "expected no program with --measure"),
        (
            ("--measure", "d", "--dtype", "f64"),
            "expected no --dtype with --measure, since the plan",
        ),
        (("--commit", "d", "--fuse-steps", "3"), "expected no --fuse-steps with --commit, since"),
        (("--commit", "d", "--count", "5"), "expected no --count with --commit, since the plan"),
        (("--commit", "d", "--no-reassociate"), "expected no --no-reassociate with --commit,"),
        (("--commit", "d", "--device", "cuda:7"), "expected no --device with --commit, which"),
        ((*WORDS, "--prepare", "d", "--rounds", "9000"), "expected no --rounds with --prepare,"),
        ((*WORDS, "--prepare", "d", "--tuned", "x"), "expected no --tuned with --prepare, which"),
        (("--measure", "d", "--tuned", "x"), "expected no --tuned with --measure, which stores"),
        (("--measure", ""), "expected the name of a folder, got ''"),
        ((KERNEL,), "expected a GPU target such as sm_90 to tune for, got 'cpu'"),
        ((KERNEL, "--prepare", "d"), "expected a GPU target such as sm_90 to tune for, got 'cpu'"),
        ((*WORDS, "--prepare", "d", "--count", "0"), "expected --count of at least 1, got '0'"),
        ((*WORDS, "--prepare", "d", "--shape", "4,4"), "expected a domain of rank 1"),
        ((*WORDS, "--prepare", "d", "--shape", "x"), "expected extents as N,N,..., got 'x'"),
        ((*WORDS, "--prepare", "d", "--chip", "A100"), "expected a chip of sm_90, got A100"),
        ((*WORDS, "--prepare", "d/x/y.txt", "--commit", "d"), "not allowed with argument"),
        (
            (*WORDS, "--schedule", "simt", "--prepare", "/dev/null/d"),
            "cannot make the folder",
        ),
        (("--commit", "d"), "plan.json:1:1: error: cannot read the file"),
        ((KERNEL, "--target", "sm_90"), "expected CuPy to run on a GPU"),
        ((*WORDS, "--device", "gpu"), "expected a device cuda, cuda:N, sim or sim:sm_XX"),
        ((*WORDS, "--rounds", "8"), "expected at least 9 rounds, got 8"),
    ],
)
def test_wrong_commands_are_one_line(words, message, capsys, monkeypatch):
    monkeypatch.setitem(sys.modules, "cupy", None)
    assert main(["tune", *words]) == 1
    error = capsys.readouterr().err
    assert message in error and error.count("\n") == 1
    assert not Path("d").exists()


def test_a_device_of_another_chip_is_found_out_before_anything_is_compiled(capsys, monkeypatch):
    fake_cupy.install(monkeypatch).CAPABILITY = "100"
    assert main(["tune", KERNEL, "--target", "sm_90", "--tuned", "x.json"]) == 1
    error = capsys.readouterr().err
    assert "expected a device of sm_90 to tune for it, got sm_100 (NVIDIA Fake)" in error
    assert error.count("\n") == 1 and not list(Path().iterdir())


def test_programs_that_are_no_linear_step_are_refused(capsys):
    example = Path(__file__).parents[3] / "docs/examples/gray_scott.mlir"
    assert main(["tune", str(example), "--target", "sm_90", "--prepare", "d"]) == 1
    error = capsys.readouterr().err
    assert (
        error
        == f"{example}:8:1: error: 'func.func' op expected one linear step of one field to tune\n"
    )


def test_the_same_plan_has_the_same_bytes():
    for folder in ("a", "b"):
        tune(*WORDS, "--schedule", "stream", "--count", "1", "--prepare", folder)
    for name in ("plan.json", "0.tfb"):
        assert Path("a", name).read_bytes() == Path("b", name).read_bytes()


def test_what_cannot_be_committed(capsys):
    tune(*WORDS, "--schedule", "stream", "--count", "1", "--prepare", "d")
    assert main(["tune", "--commit", "d", "--tuned", "x.json"]) == 1
    assert "result.json:1:1: error: expected a result, got no file" in capsys.readouterr().err
    plan, digest = read_plan("d")
    Result(digest, "measured", "NVIDIA H200", "2026-11-20", 2, [Samples(True)]).save("d")
    assert main(["tune", "--commit", "d", "--tuned", "x.json"]) == 1
    assert "expected a complete result: --measure goes on" in capsys.readouterr().err
    Result(digest, "measured", "NVIDIA H200", "2026-11-20", 2, [Samples(True, "bad")]).save("d")
    assert main(["tune", "--commit", "d", "--tuned", "x.json"]) == 1
    assert "expected a candidate with right results on NVIDIA H200" in capsys.readouterr().err
    measured("d", fastest=0)
    assert main(["tune", "--commit", "d"]) == 1
    assert "expected --tuned FILE.json or TWOFOUR_TUNED" in capsys.readouterr().err
    Path("x.json").write_text("{")
    assert main(["tune", "--commit", "d", "--tuned", "x.json"]) == 1
    assert capsys.readouterr().err.startswith("x.json:1:2: error: expected a database")
    assert Path("x.json").read_text() == "{"


def test_all_parts_in_a_row_on_the_simulator(capsys):
    # The database to store in is none that the compiler takes choices from.
    tune(*WORDS, "--schedule", "stream", "--count", "1", "--tuned", "x.json")
    assert "nothing is stored" in capsys.readouterr().out
    assert read_plan("tune-heat1d_ftcs-sm_90-f16-stream-1")[0].name == KERNEL


@pytest.mark.parametrize(
    "choice, options, message",
    [
        # Marches that the pass would do without.
        (Choice("simt", rolling=True, levels=True), {"fuse_steps": 2}, "rank 1 or 2 for several"),
        (Choice("simt", stages=13, rolling=True), {}, "expected 2 to 12 stages, got 13"),
        (Choice("simt", march=2**31, rolling=True), {}, "expected a march of 1 to 2147483647"),
        (Choice("stream", march=2**70), {}, "expected a march of 1 to 2147483647"),
        (Choice("stream", levels=True), {}, "expected fused steps that march for levels"),
        (Choice("sparse", stages=100), {}, "expected 1 to 12 stages, got 100"),
    ],
)
def test_an_entry_that_cannot_be_followed_is_an_error_in_the_database(choice, options, message):
    kernel = built_in_kernels()["heat3d_ftcs"]
    wanted = CompileOptions("sim:sm_90", dtype="f16", tuned="d.json", **options)
    entry = Tuned("k", None, "auto", "H200", choice, 1e-12, "2026-11-20", "0.1.0", "d.json")
    with patch.object(build, "find_tuned", lambda *_: entry):
        with pytest.raises(TwofourError, match=message) as caught:
            compile_gpu(kernel, wanted)
    assert caught.value.location.file == "d.json"


def test_a_measured_plan_is_not_overwritten(capsys):
    tune(*WORDS, "--count", "1", "--prepare", "d")
    measured("d", 0)
    before = Path("d/plan.json").read_bytes()
    assert main(["tune", *WORDS, "--count", "2", "--prepare", "d"]) == 1
    assert "result.json:1:1: error: expected no result of another plan" in capsys.readouterr().err
    assert Path("d/plan.json").read_bytes() == before and not Path("d/1.tfb").exists()
    # The same plan may be prepared again.
    tune(*WORDS, "--count", "1", "--prepare", "d")
