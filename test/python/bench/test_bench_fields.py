# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Measuring programs over several fields on a stand-in for a GPU, beside plain CUDA loops."""

from dataclasses import replace
from types import SimpleNamespace

import numpy as np
import pytest

from bench_device import NVCC, results, run
from twofour.bench.cube_programs import SOUND
from twofour.bench.measured import field_contest, field_source, prepare
from twofour.bench.measured.plan import load_plan
from twofour.bench.measured.results import report_of
from twofour.bench.plane_programs import FDTD, GRAY_SCOTT, WAVE


@pytest.fixture
def programs(tmp_path, monkeypatch):
    """A plan of three programs over several fields on few points."""
    monkeypatch.setattr(prepare, "built_in_kernels", dict)
    monkeypatch.setattr(prepare, "TABLE_2", {})
    monkeypatch.setattr(prepare, "PLANE_EXAMPLES", (WAVE, FDTD))
    monkeypatch.setattr(prepare, "CUBE_EXAMPLES", (SOUND,))
    monkeypatch.setattr(prepare, "FIELD_TYPES", ("f32",))
    monkeypatch.setattr(prepare, "FIELD_EDGES", {2: 21, 3: 5})
    monkeypatch.setattr(field_contest, "STEPS", 3)
    assert prepare.prepare(str(tmp_path), "sm_90") == "3 groups, 3 bundles for sm_90"
    return str(tmp_path)


@pytest.mark.skipif(NVCC is None, reason="needs nvcc")
def test_programs_over_several_fields_are_measured_and_reported(programs):
    assert run(programs)[0] == 3
    _, found = results(programs)
    assert all(line["left_out"] == [] for line in found.values())
    steps = {one["name"]: one["steps"] for one in found["wave-f32"]["timed"]}
    assert steps == {"copy": 1, "plain CUDA": 3, "twofour": 3}
    (section,) = report_of(programs).sections
    (rows,) = section.tables
    assert rows.column("program") == [
        "wave equation",
        "FDTD, in place",
        "sound in three axes, in place",
    ]
    assert rows.column("points") == ["21 x 21", "21 x 21", "5 x 5 x 5"]
    # Every sweep takes as long by that clock; a step moves 3, 9 and 12 fields, a copy 2.
    assert rows.column("of a copy") == [pytest.approx(3 * n / 2) for n in (3, 9, 12)]
    assert rows.column("over plain CUDA") == [1, 1, 1]
    # What was measured is kept: the next call has nothing to do.
    assert run(programs)[0] == 3 and results(programs)[1] == found


@pytest.mark.skipif(NVCC is None, reason="needs nvcc")
def test_programs_that_differ_from_the_plain_loops_are_not_timed(programs):
    plan = load_plan(programs)
    wrong = [
        replace(one, loops=[[s.replace("0.5", "0.51") for s in loop] for loop in one.loops])
        for one in plan.fields
    ]
    replace(plan, fields=tuple(wrong)).save(programs)
    run(programs)
    lines = results(programs)[1].items()
    left = {key: [one["name"] for one in line["left_out"]] for key, line in lines}
    assert left == {"wave-f32": [], "fdtd-f32": ["twofour"], "sound-f32": ["twofour"]}
    assert "wrong by 0.0" in report_of(programs).markdown()


def test_programs_without_plain_loops_are_not_timed(programs, monkeypatch):
    monkeypatch.setattr(field_source, "source_text", lambda *_: 1 / 0)
    run(programs)
    left = results(programs)[1]["fdtd-f32"]["left_out"]
    assert [one["name"] for one in left] == ["plain CUDA", "twofour"]
    assert left[1]["reason"] == "nothing to compare with"


def test_plain_loops_are_of_the_type_of_the_fields():
    text = field_source.source_text("f32", 2, 1, GRAY_SCOTT.loops)
    assert "double" not in text and "real(0.035) * (1 - u)" in text
    assert "const real* __restrict__ a1, real* __restrict__ a2" in text
    assert "a2[x] = u + real(0.16) * ul" in text
    loops = [["a[1][x] = 1.5e-05 * a[0][x + q] + 2. * q1;"]]
    assert "a1[x] = real(1.5e-05) * a0[x + q] + real(2.) * q1;" in field_source.source_text(
        "f64", 3, 4, loops
    )
    assert field_source.moved([["a[0][x] = a[0][x] + a[1][x];"], ["a[1][x] = a[0][x];"]]) == 5
    assert field_source.moved([["a[0][x] -= a[1][x];"]]) == 3


def test_results_that_are_no_numbers_are_wrong():
    group = SimpleNamespace(dtype="f32")
    apart, most = field_contest.difference(group, np.float32([1, np.nan]), np.float32([1, 2]))
    assert apart == np.inf and 0 < most < 0.01
