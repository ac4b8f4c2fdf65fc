# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""`--fuse-steps auto`: the depth that is predicted to be fastest, and the same results."""

import json

import numpy as np
import pytest

import twofour
from runtime_reference import reference
from twofour.cli.main import main
from twofour.cost import explore
from twofour.errors import TwofourError
from twofour.frontend.source import ProgramText
from twofour.kernels import Kernel, built_in_kernels
from twofour.options import CompileOptions
from twofour.runtime import parse_boundary
from twofour.targets.gpu import fusion_depth
from twofour.targets.gpu.build import compile_gpu
from twofour.targets.gpu.fusion_depth import MAX_DEPTH, best_depth, fusion_depths

KERNELS = built_in_kernels()
HEAT = "docs/examples/heat2d.mlir"


def auto(dtype="f16", schedule="auto", **options):
    return CompileOptions("sim:sm_90", schedule, dtype, fuse_steps="auto", **options)


@pytest.mark.parametrize(
    "name, least, most",
    [("heat1d_ftcs", 8, 8), ("heat2d_ftcs", 4, 7), ("paper_box2d49p", 2, 4), ("heat3d_ftcs", 2, 4)],
)
def test_depths_of_built_in_kernels(name, least, most):
    depths = fusion_depths(KERNELS[name], auto())
    assert [depth.steps for depth in depths] == list(range(1, len(depths) + 1))
    chosen = best_depth(depths)
    assert least <= chosen <= most
    seconds = [depth.seconds_per_point for depth in depths]
    assert seconds[chosen - 1] <= 1.01 * min(seconds)
    # The comparison ends when deeper is slower.
    assert len(depths) == MAX_DEPTH or seconds[-1] > 1.01 * min(seconds[:-1])


def test_of_depths_about_as_fast_the_smallest_is_taken(monkeypatch):
    depths = fusion_depths(KERNELS["heat1d_ftcs"], auto())
    monkeypatch.setattr(explore, "TOLERANCE", 0.5)
    limit = 1.5 * depths[-1].seconds_per_point
    expected = next(d.steps for d in depths if d.seconds_per_point <= limit)
    assert best_depth(depths) == expected < MAX_DEPTH
    assert best_depth([]) == 1


def test_what_a_refresh_costs_decides(monkeypatch):
    kernel = KERNELS["paper_box2d49p"]
    assert best_depth(fusion_depths(kernel, auto("f32"))) == 1
    assert [d.refresh_seconds > 2e-6 for d in fusion_depths(kernel, auto("f32"))] == [True] * 2
    # Fewer refreshes are worth slower sweeps.
    monkeypatch.setattr(fusion_depth, "refresh_seconds", lambda *arguments: 1e-3)
    depths = fusion_depths(kernel, auto("f32"))
    assert best_depth(depths) > 1
    first = depths[0].prediction.seconds_per_point + 1e-3 / 10_240**2
    assert depths[0].seconds_per_point == pytest.approx(first)


def test_a_schedule_is_compared_with_itself():
    depths = fusion_depths(KERNELS["heat2d_ftcs"], auto(schedule="simt"))
    assert {depth.schedule for depth in depths} == {"simt"}


def test_the_bundle_is_that_of_the_depth():
    kernel = KERNELS["heat1d_ftcs"]
    compiled = compile_gpu(kernel, auto())
    steps = compiled.bundle.program.fused_steps
    assert steps == best_depth(compiled.depths) > 1
    fixed = compile_gpu(kernel, CompileOptions("sim:sm_90", dtype="f16", fuse_steps=steps))
    assert compiled.bundle.to_bytes() == fixed.bundle.to_bytes()


def test_results_are_those_of_single_steps():
    weights = {(0, 0): 0.5, (0, 1): 0.25, (-1, 0): 0.25}
    options = {"boundary": ("periodic", "reflect"), "dtype": "f64", "target": "sim:sm_90"}
    step = twofour.stencil(weights, fuse_steps="auto", **options)
    u = np.random.default_rng(0).uniform(-1, 1, (21, 70))
    expected = reference(u, weights, parse_boundary(("periodic", "reflect"), 2), 7)
    np.testing.assert_allclose(step(u, steps=7), expected, rtol=0, atol=1e-14)


def test_a_file_whose_bounds_end_it_is_fused_as_far_as_they_go():
    text = ProgramText.of(HEAT)
    full = fusion_depths(text, auto("f16"))
    assert len(full) > 3
    small = ProgramText(HEAT, text.text.replace("257", "6").replace("256", "5"))
    # Two steps leave three points of five, three steps one.
    assert [depth.steps for depth in fusion_depths(small, auto("f16"))] == [1, 2, 3]


def test_programs_that_cannot_be_fused_are_not():
    compiled = compile_gpu("docs/examples/gray_scott.mlir", auto(dtype=None))
    assert compiled.depths == [] and compiled.found.fused is None


def test_weights_that_f16_cannot_hold_together():
    # Those of two steps differ by more than 2^28; level by level they are multiplied one by one.
    kernel = Kernel("k", ((0, 0), (0, 1)), (1.0, 2.0**-20))
    compiled = compile_gpu(kernel, auto(schedule="stream"))
    assert compiled.schedule == "stream" and compiled.bundle.program.fused_steps > 1
    assert "levels=true" in compiled.bundle.manifest["pipeline"]


def test_explain_reports_what_was_compared(capsys):
    words = ["explain", "heat1d_ftcs", "--target", "sim:sm_90", "--dtype", "f16"]
    assert main([*words, "--fuse-steps", "auto", "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    depths = {d["steps"]: d for d in found["fusion_depths"]}
    assert max(depths, key=lambda n: depths[n]["step_gstencil_per_s"]) == found["steps_per_sweep"]
    chosen = depths[found["steps_per_sweep"]]
    assert chosen["gstencil_per_s"] == pytest.approx(found["predicted"]["gstencil_per_s"])
    # A sweep of several steps and one refresh.
    sweep = chosen["steps"] * 10_240_000 / chosen["gstencil_per_s"]
    step = chosen["steps"] * 10_240_000 / chosen["step_gstencil_per_s"]
    assert step - sweep == pytest.approx(1e9 * chosen["refresh_seconds"])
    assert 1e-6 < chosen["refresh_seconds"] < 4e-6


@pytest.mark.parametrize(
    "target, steps, message",
    [
        ("cpu", "auto", "expected a GPU target for --fuse-steps auto"),
        ("sim:sm_90", "most", "expected at least 1 fused step, got 'most'"),
    ],
)
def test_what_is_refused(target, steps, message):
    with pytest.raises(TwofourError, match=message):
        CompileOptions(target, fuse_steps=steps)
