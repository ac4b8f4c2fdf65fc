# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""`twofour bench cpu` on tiny domains: ratios, what is wrong or missing, the report."""

import json
import runpy
import shutil
import xml.etree.ElementTree as ElementTree
from dataclasses import replace
from statistics import median

import numpy as np
import pytest

from bench_cpu_cases import CPUS, DATE, ROOT, SMALL, needs_gcc
from twofour.bench import plots
from twofour.bench.cpu import (
    c_library,
    calls,
    evaluation,
    fields,
    llvm_loops,
    machine,
    short_rows,
    sweeps,
)
from twofour.bench.cpu import steps as many_steps
from twofour.bench.cpu.arrays import Arrays
from twofour.bench.cpu.c_library import COPY, COPY_STREAM, GCC, PEAK
from twofour.bench.cpu.comparison import Comparison, checked, compare
from twofour.bench.cpu.contest import ContestantFailed, Samples, Sweeper, compete
from twofour.bench.cpu.evaluation import EXPERIMENTS, evaluate
from twofour.bench.cpu.experiment import Bench
from twofour.bench.cpu.llvm_loops import LLVM
from twofour.bench.cpu.own import CALL, OWN, OwnSweeps
from twofour.bench.cpu.packages import PACKAGES
from twofour.bench.cpu.setting import CpuSetting
from twofour.bench.cpu.workload import Workload, random_stencil
from twofour.cli.main import main
from twofour.errors import TwofourError
from twofour.kernels import built_in_kernels

pytestmark = pytest.mark.usefixtures("unpinned")


class Counted:
    """A contestant that notes when it is sampled, and fails at some sample."""

    def __init__(self, name, log, seconds=1.0, fails_at=None):
        self.name, self.steps, self._log = name, 1, log
        self._seconds, self._fails_at = seconds, fails_at

    def sample(self, sweeps):
        if self._log.count(self.name) == self._fails_at:
            raise ContestantFailed("gone")
        self._log.append(self.name)
        return self._seconds * sweeps

    def result(self):
        return np.zeros((2, 2))


def test_rounds_are_interleaved_and_rotate():
    log = []
    samples, failed = compete([Counted("a", log), Counted("b", log, 1e-4)], 3)
    assert not failed
    assert log == [*"aabb", *"ab", *"ba", *"ab"]
    assert samples["a"] == Samples((1.0, 1.0, 1.0), 1)
    assert samples["b"].sweeps == 20 and samples["b"].seconds == pytest.approx((1e-4,) * 3)


@pytest.mark.parametrize("fresh, order", [(False, [3, 3]), (True, ["begin", 3, "begin", 1, 3])])
def test_samples_come_after_as_many_sweeps(fresh, order):
    log = []
    sweeper = Sweeper("x", log.append, lambda: log.append("begin"), lambda: None, fresh=fresh)
    assert sweeper.sample(3) >= 0
    assert log == order


def test_what_fails_on_the_way_is_named_and_not_timed():
    log = []
    samples, failed = compete([Counted("a", log), Counted("b", log, fails_at=3)], 3)
    assert failed == {"b": "gone"} and list(samples) == ["a"]
    assert len(samples["a"].seconds) == 3


def test_figures_follow_from_samples():
    workload = Workload("", random_stencil("box", 1, "f64"), (10, 10), "f64", 1)
    one = Comparison(workload, 4, copied_bytes=3200, peak_flops=14400)
    one.samples = {
        OWN: Samples((2e-6, 4e-6, 3e-6), 1),
        GCC: Samples((6e-6, 6e-6, 5e-6), 1),
        COPY: Samples((1e-6,) * 3, 1),
        COPY_STREAM: Samples((2e-6,) * 3, 1),
        PEAK: Samples((6e-6,) * 3, 1),
    }
    assert one.picoseconds(OWN) == pytest.approx(3e-6 / 400 * 1e12)
    assert one.over(GCC) == pytest.approx(2.0)
    assert one.range_over(GCC) == "1.50 to 3.00"
    # 6400 bytes in 3 us against 3200 bytes in 2 us; 7200 operations against 14400 in 6 us.
    assert one.of_copy() == pytest.approx(6400 / 3 / (3200 / 2))
    assert one.of_copy(COPY) == pytest.approx(6400 / 3 / 3200)
    assert one.of_peak() == pytest.approx(7200 / 3 / (14400 / 6))
    assert one.over(LLVM) is None and one.range_over(LLVM) is None


@pytest.mark.parametrize("change", [2e-14, np.nan, "shape"])
def test_wrong_results_are_not_timed(change):
    class Wrong(Counted):
        def result(self):
            return np.zeros((2, 3)) if change == "shape" else np.array([[0.0, 0.0], [0.0, change]])

    workload = Workload("", random_stencil("box", 1, "f64"), (2, 2), "f64", 1)
    found = Comparison(workload, 1)
    makers = {"right": lambda: Counted("right", []), "wrong": lambda: Wrong("wrong", [])}
    right = checked(makers, np.zeros((2, 2)), workload.bound(1), found)
    assert [one.name for one in right] == ["right"]
    ((name, reason, wrong),) = [(o.name, o.reason, o.wrong) for o in found.left_out]
    assert name == "wrong" and reason.startswith("wrong by") and wrong


def break_llvm(monkeypatch):
    right = llvm_loops.loops
    monkeypatch.setattr(
        llvm_loops, "loops", lambda workload: right(workload).replace("%v1, %w1", "%v1, %w0")
    )


def test_a_wrong_baseline_is_reported_and_is_an_error(tmp_path, monkeypatch, capsys):
    break_llvm(monkeypatch)
    words = ["bench", "cpu", "kernels", "--sizes", "16", "--rounds", "1", "--kernels", "1D5P"]
    assert main([*words, "--output", str(tmp_path)]) == 1
    # Slow machines see how far it is, too.
    lines = [line for line in capsys.readouterr().err.splitlines() if "measuring:" not in line]
    assert len(lines) == 1
    error = lines[0]
    assert "expected right results of all baselines, got 2 wrong ones: paper_1d5p LLVM" in error
    found = json.loads((tmp_path / "results.json").read_text())
    by_name = {section["name"]: section for section in found["sections"]}
    for sample in by_name["kernels"]["samples"]:
        assert LLVM not in sample["timed"] and OWN in sample["timed"]
        assert sample["left_out"][0]["wrong"]
    (rows,) = (one["rows"] for one in by_name["left_out"]["tables"])
    assert {row[0] for row in rows} >= {LLVM} and "wrong by" in (tmp_path / "README.md").read_text()


@needs_gcc
def test_a_wrong_c_program_is_noticed(monkeypatch):
    right = c_library.sweep_source
    monkeypatch.setattr(
        c_library, "sweep_source", lambda workload: right(workload).replace("* in[", "- in[", 1)
    )
    made = list(sweeps.compare_all(Bench(SMALL, CPUS, None)))
    assert all(GCC not in one.samples and LLVM in one.samples for one in made)
    assert all([o.name for o in one.left_out if o.wrong] == [GCC] for one in made)


def test_without_gcc_the_rest_is_measured(monkeypatch):
    monkeypatch.setattr(shutil, "which", lambda name: None)
    found = evaluate(["sweeps", "ceilings"], SMALL, DATE, "c")
    named = {row[0]: row[1] for row in found.report.sections[-1].tables[0].rows}
    assert named == {
        GCC: "expected gcc, got no such command",
        "ceilings by gcc": "expected gcc, got no such command",
    }
    (section,) = (one for one in found.report.sections if one.name == "sweeps")
    row = section.tables[0].rows[0]
    names = [column.name for column in section.tables[0].columns]
    assert row[names.index("over gcc")] is None and row[names.index("over LLVM")] > 0
    assert "gcc" not in found.report.versions and not found.wrong


def test_a_missing_package_is_named(monkeypatch):
    monkeypatch.setattr(calls, "OTHERS", ["nothing"])
    monkeypatch.setitem(PACKAGES, "nothing", (None, "no_such_package"))
    found = evaluate(["calls"], SMALL, DATE, "c")
    measured, left_out = found.report.sections
    ((name, reason, *_),) = [r for r in left_out.tables[0].rows if r[0] == "nothing"]
    assert (name, reason) == ("nothing", "not installed: pip install no_such_package")
    assert [row[1] for row in measured.tables[0].rows] == [OWN]


def test_the_report_holds_machine_and_samples(tmp_path):
    pytest.importorskip("matplotlib")
    words = ["bench", "cpu", "kernels", "--sizes", "16", "--rounds", "3", "--kernels", "Heat-2D"]
    assert main([*words, "--date", DATE, "--output", str(tmp_path)]) == 0
    found = json.loads((tmp_path / "results.json").read_text())
    page = (tmp_path / "README.md").read_text()
    drawn = " ".join(ElementTree.parse(tmp_path / "cpu-kernels-f64.svg").getroot().itertext())
    drawn = " ".join(drawn.split())
    assert found["chip"] == machine.describe_machine()
    for wanted in (found["chip"], DATE, f"numpy {np.__version__}", "llvmlite"):
        assert wanted in page and wanted in drawn, wanted
    assert found["versions"] == machine.all_versions()
    assert "    twofour bench cpu kernels --sizes 16 --rounds 3 --kernels Heat-2D" in page
    assert (tmp_path / "cpu-kernels-f64.png").read_bytes().startswith(b"\x89PNG")
    section = found["sections"][0]
    _, *tables = section["tables"]
    names = [column["name"] for column in tables[0]["columns"]]
    rows = [row for made in tables for row in made["rows"]]
    assert len(rows) == len(section["samples"]) == 2
    for row, sample in zip(rows, section["samples"], strict=True):
        timed = {name: one["seconds"] for name, one in sample["timed"].items()}
        assert all(len(seconds) == 3 for seconds in timed.values())
        ratio = median(timed[LLVM]) / median(timed[OWN])
        assert row[names.index("over LLVM")] == pytest.approx(ratio)


def check_labels(section):
    """Every figure of a section was measured."""
    for made in section.tables:
        assert made.rows
        for number, column in enumerate(made.columns):
            figures = [row[number] for row in made.rows if isinstance(row[number], float)]
            assert column.basis == "measured" or not figures, (made.title, column)
    for plot in section.plots:
        assert all(len(v) == len(plot.x) for v in plot.series.values())


@needs_gcc
def test_every_experiment_has_labelled_figures():
    """But for programs over several fields, see below, and calls, which need all packages."""
    setting = replace(SMALL, sizes=SMALL.sizes[:1], threads=(1,))
    names = [name for name in EXPERIMENTS if name not in ("calls", "fields")]
    found = evaluate(names, setting, DATE, "c")
    assert [section.name for section in found.report.sections] == [*names, "left_out"]
    for section in found.report.sections[:-1]:
        check_labels(section)
    steps = next(one for one in found.report.sections if one.name == "steps")
    assert [row[:2] for row in steps.tables[0].rows][:2] == [
        ("box r=1", "fixed"),
        ("box r=1", "periodic"),
    ]
    assert {CALL, OWN, GCC, COPY, PEAK} <= set(steps.samples[0]["timed"])
    assert found.report.sections[-1].tables == () and not found.wrong


@needs_gcc
@pytest.mark.parametrize("steps", [2, *(pytest.param(n, marks=pytest.mark.full) for n in (3, 4))])
def test_programs_over_several_fields_are_those_of_the_loops_in_c(steps):
    setting = replace(SMALL, sizes=SMALL.sizes[:1], threads=(1,), steps=steps)
    found = evaluate(["fields"], setting, DATE, "c")
    assert not found.wrong
    check_labels(found.report.sections[0])
    samples = found.report.sections[0].samples
    assert [one["stencil"] for one in samples] == [e.label for e in fields.EXAMPLES] * 2
    assert {one["steps"] for one in samples} == {1, steps}
    contestants = {1: {OWN, fields.INTO, GCC}, steps: {OWN, GCC}}
    assert all(set(one["timed"]) == contestants[one["steps"]] for one in samples)
    single, many = found.report.sections[0].tables
    assert [column.name for column in single.columns[3:]] == [
        "twofour, ps",
        "twofour, out, ps",
        "gcc, ps",
        "over gcc",
        "range",
        "out over gcc",
    ]
    assert len(many.columns) == 7


@needs_gcc
def test_a_wrong_program_over_several_fields_is_named(monkeypatch):
    wrong = replace(fields.EXAMPLES[0], loops=(("a[2][x] = a[1][x] - a[0][x];",),))
    monkeypatch.setattr(fields, "EXAMPLES", (wrong,))
    found = evaluate(["fields"], SMALL, DATE, "c")
    assert found.wrong == ("wave equation gcc",) * 4


def test_cubes_are_compared_with_squares():
    """Of three dimensions, what a square of the last size has of points and threads."""
    setting = CpuSetting((16, 64), (1, 2))
    found = [w for w in sweeps.workloads(setting) if len(w.extents) == 3]
    assert {(w.extents, w.threads) for w in found} == {((16, 16, 16), 2)}
    labels = ["box r=1", "star r=1", "star r=2", "star r=3"]
    assert [w.label for w in found] == labels * len(setting.dtypes)
    assert {len(w.kernel.weights) for w in found} == {27, 7, 13, 19}
    assert [w.extents for w in many_steps.workloads(setting)] == [(64, 64)] * 4 + [(16,) * 3] * 4


def test_short_rows_are_of_channels_and_layers():
    setting = CpuSetting((64, 128), (1, 2), dtypes=("f32",))
    found = short_rows.workloads(setting)
    assert [(w.label, w.extents, w.threads) for w in found] == [
        ("box r=1", (64, 64, 3), 1),
        ("box r=2", (64, 64, 3), 1),
        ("star r=1", (12, 12, 30), 1),
        ("box r=1", (128, 128, 3), 2),
        ("box r=2", (128, 128, 3), 2),
        ("star r=1", (23, 23, 30), 2),
    ]
    assert [w.above for w in found[:3]] == [(1, 1, 0), (2, 2, 0), (1, 1, 1)]
    assert EXPERIMENTS["short-rows"].count(setting) == len(found)


def test_all_kernels_are_compared():
    setting = CpuSetting((16,), (1,))
    assert EXPERIMENTS["kernels"].count(setting) == 2 * len(built_in_kernels()) == 158
    extents = {len(one.extents): one.extents for one in EXPERIMENTS["kernels"].workloads(setting)}
    assert extents == {1: (256,), 2: (16, 16), 3: (6, 6, 6)}


def test_an_interrupted_run_reports_what_it_has(tmp_path, monkeypatch, capsys):
    every = sweeps.compare_all

    def interrupted(bench):
        yield next(every(bench))
        raise KeyboardInterrupt

    monkeypatch.setattr(evaluation.sweeps, "compare_all", interrupted)
    words = ["bench", "cpu", "sweeps", "--sizes", "16", "--rounds", "1", "--output", str(tmp_path)]
    assert main(words) == 130
    found = json.loads((tmp_path / "results.json").read_text())
    assert len(found["sections"][0]["samples"]) == 1
    assert "**Interrupted: not all comparisons were made.**" in (tmp_path / "README.md").read_text()


def test_captions_stand_below_plots():
    pytest.importorskip("matplotlib")
    plot = plots.Plot("p", "T", "bars", "x", "y", "", "measured", ("a",), {"s": (1.0,)})
    plain, described = plots.draw(plot), plots.draw(plot, "Chip: one of many.")
    assert b"Chip: one of many." in described["svg"] and b"Chip" not in plain["svg"]


def test_threads_belong_to_sizes():
    several = min(2, len(CPUS))
    assert CpuSetting().pairs == [(512, 1), (4096, several)]
    assert CpuSetting((64, 128, 256)).pairs == [(64, 1), (128, several), (256, several)]
    assert CpuSetting((64, 128), (1,)).pairs == [(64, 1), (128, 1)]
    with pytest.raises(TwofourError, match="a number of threads for each of 1 sizes, got 2"):
        CpuSetting((64,), (1, 1))


def test_the_help_names_every_experiment(capsys):
    assert main(["bench", "--help"]) == 0
    named = " ".join(capsys.readouterr().out.split())
    assert all(f" {name}" in named for name in ("cpu", *EXPERIMENTS))


def test_the_tool_brings_the_packages(monkeypatch):
    tool = runpy.run_path(str(ROOT / "tools" / "bench"), run_name="tool")
    started = []
    monkeypatch.setattr("os.execv", lambda program, words: started.append(words))
    tool["main"](["cpu", "--rounds", "3"])
    assert started[0][1:] == ["bench,plot", "twofour", "bench", "cpu", "--rounds", "3"]


def test_the_machine_is_named(tmp_path, monkeypatch):
    for number, values in enumerate(
        [("Data", "1", "48K"), ("Instruction", "1", "32K"), ("Unified", "3", "32768K")]
    ):
        folder = tmp_path / f"index{number}"
        folder.mkdir()
        for name, value in zip(("type", "level", "size"), values, strict=True):
            (folder / name).write_text(value + "\n")
    told = {"model name": "Fast One", "cpu family": "7", "model": "9"}
    monkeypatch.setattr(machine, "cpuinfo", lambda: told)
    monkeypatch.setattr(machine, "CACHE_FOLDERS", str(tmp_path / "index*"))
    text = machine.describe_machine()
    assert text.startswith("Fast One (cpu family 7, model 9); ")
    assert "; L1d 48 KiB, L3 32 MiB; " in text and "vector registers" in text


def test_comparisons_leave_out_what_cannot_be_made():
    def missing():
        raise TwofourError("expected a compiler, got none")

    workload = Workload("", random_stencil("box", 1, "f64"), (16, 16), "f64", 1)
    arrays = Arrays(workload)
    own = [OwnSweeps(workload, arrays, CPUS).native(1)]
    found = compare(workload, arrays, 1, own, {"x": missing}, 1, None, CPUS)
    assert list(found.samples) == [OWN]
    assert [(o.name, o.reason, o.wrong) for o in found.left_out] == [
        ("x", "expected a compiler, got none", False)
    ]
