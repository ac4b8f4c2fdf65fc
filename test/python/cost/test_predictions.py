# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""How fast built-in kernels are predicted to be, and what is chosen for that."""

import json
import math
from dataclasses import replace
from functools import partial

import pytest

import layout_cases
from twofour import cost
from twofour.analysis import LinearSweep
from twofour.cli.main import main
from twofour.cost.explore import DOMAINS, TOLERANCE, about_fastest, best_stream, reference_gpu
from twofour.cost.model import dram_bytes
from twofour.cost.stream import stream_costs, stream_counts
from twofour.kernels import TABLE_2, built_in_kernels
from twofour.layout.chunks import chunk_operator
from twofour.layout.stream import stream_layouts
from twofour.options import CompileOptions
from twofour.targets.gpu import candidates as gpu_candidates
from twofour.targets.gpu.build import compile_gpu
from twofour.targets.gpu.candidates import Ranking, candidates, fastest

KERNELS = built_in_kernels()
H200 = cost.find("H200")


def ranking(name, *, steps=1, gpu=H200, schedules=("stream", "simt")):
    kernel = KERNELS[name]
    offsets, weights = layout_cases.fused(list(kernel.offsets), list(kernel.weights), steps)
    sweep = LinearSweep("f", name, tuple(offsets), tuple(weights), steps)
    return candidates(sweep, "f16", "f16", gpu, schedules)


# Asked for before there were measurements; fitted to those, the model says that it does not hold.
not_reached = partial(pytest.mark.xfail, strict=True)
LESS = not_reached(reason="stencils of 15 points and more in three axes share too much: 58 of 79")
BOX_LESS = not_reached(reason="nothing is free beside DRAM: 0.84 predicted, 0.85 measured")
FUSED_LESS = not_reached(reason="63 points in three axes are limited by mma: 1.4, as measured")
BARELY_LESS = not_reached(reason="2.698 predicted")


@pytest.mark.parametrize("name", TABLE_2.values())
def test_single_steps_of_table_2_stay_within_every_resource(name):
    best = ranking(name).candidates[0]
    busy = best.prediction.busy
    if best.prediction.fraction_of_copy > 0.9:
        assert max(busy[resource] for resource in ("l2", "l1", "mma", "fma", "issue")) <= 0.7
    assert busy["latency"] <= 1
    points = math.prod(DOMAINS[len(KERNELS[name].offsets[0])])
    assert dram_bytes(H200, best.costs, points) <= 1.1 * 4
    assert best.prediction.fraction_of_copy >= 0.8


@pytest.mark.parametrize(
    "name",
    [
        *(name for name in TABLE_2.values() if name != "paper_box3d27p"),
        pytest.param("paper_box3d27p", marks=BOX_LESS),
    ],
)
def test_single_steps_of_table_2_run_at_90_percent_of_a_copy(name):
    assert ranking(name).candidates[0].prediction.fraction_of_copy >= 0.9


@pytest.fixture(scope="module")
def fractions_of_a_copy():
    """Predicted for every kernel."""
    return [ranking(name).candidates[0].prediction.fraction_of_copy for name in KERNELS]


@pytest.mark.parametrize("least", [58, pytest.param(75, marks=LESS)])
def test_kernels_run_at_85_percent_of_a_copy(fractions_of_a_copy, least):
    assert sum(fraction >= 0.85 for fraction in fractions_of_a_copy) >= least


@pytest.mark.parametrize(
    "name, factor",
    [
        ("heat1d_ftcs", 2.7),
        ("heat2d_ftcs", 2.7),
        ("lbm_d2q9_diffusion", 2.65),
        pytest.param("lbm_d2q9_diffusion", 2.7, marks=BARELY_LESS),
        ("heat3d_ftcs", 1.35),
        pytest.param("heat3d_ftcs", 2, marks=FUSED_LESS),
    ],
)
def test_three_fused_steps_run_beyond_a_copy(name, factor):
    assert ranking(name, steps=3).candidates[0].prediction.fraction_of_copy >= factor


@not_reached(
    reason="levels wait for each other's matrix instructions: 2.4, on an H200 2.3 measured"
)
def test_five_steps_in_one_kernel_run_at_four_times_a_copy():
    kernel = KERNELS["heat2d_ftcs"]
    operator = chunk_operator(kernel.offsets, kernel.weights)
    layout = best_stream(stream_layouts(operator, ((1, 1), (1, 1)), levels=5), "f16", H200)
    costs = stream_costs(layout, DOMAINS[2], "f16", H200.multiprocessors)
    assert cost.predict(H200, costs, math.prod(DOMAINS[2])).fraction_of_copy >= 4


def test_fused_steps_that_do_not_stream_as_one_kernel_stream_in_levels():
    kernel = KERNELS["paper_box2d49p"]
    offsets, weights = layout_cases.fused(list(kernel.offsets), list(kernel.weights), 3)
    fused = LinearSweep("f", "k", tuple(offsets), tuple(weights), 3)
    single = LinearSweep("f", "k", kernel.offsets, kernel.weights, 1)
    alone = candidates(fused, "f16", "f16", H200, ("stream",))
    assert "registers" in alone.refused["stream"]
    (levels,) = candidates(fused, "f16", "f16", H200, ("stream",), single).candidates
    single = ranking("paper_box2d49p").candidates[0].prediction.fraction_of_copy
    assert levels.costs.steps == 3 and levels.prediction.fraction_of_copy > 1.4 * single


BUDGETS = [("heat2d_ftcs", 18), ("lbm_d2q9_diffusion", 18), ("paper_box2d49p", 26)]


@pytest.mark.parametrize("name, limit", BUDGETS)
def test_instructions_of_128_outputs_of_long_marches(name, limit):
    kernel = KERNELS[name]
    columns = list(zip(*kernel.offsets, strict=True))
    reach = tuple(-min(c) for c in columns), tuple(max(c) for c in columns)
    layouts = stream_layouts(chunk_operator(kernel.offsets, kernel.weights), reach, ring=False)
    longest = max(layout.march for layout in layouts)
    for layout in layouts:
        if layout.march == longest:
            shape = (layout.march, 16 * layout.tile_outputs)
            assert 128 * stream_counts(layout, shape).instructions <= limit


@not_reached(reason="short marches take more instructions and less time: docs/guide/cost_model.md")
@pytest.mark.parametrize("name, limit", BUDGETS)
def test_instructions_of_128_outputs(name, limit, capsys):
    words = ("--target", "sm_90", "--dtype", "f16", "--schedule", "stream")
    assert 128 * explain(capsys, name, *words)["counters"]["instructions"] <= limit


@pytest.mark.parametrize(
    "target", ["sm_90", *(pytest.param(t, marks=pytest.mark.full) for t in ("sm_80", "sm_89"))]
)
@pytest.mark.parametrize(
    "dtype", ["f16", "f64", *(pytest.param(t, marks=pytest.mark.full) for t in ("tf32", "f32"))]
)
@pytest.mark.parametrize("name", ["heat1d_ftcs", "paper_box2d49p", "acoustic_iso3d_o8"])
def test_what_is_chosen_is_never_predicted_slower_than_plain_threads(name, dtype, target):
    compiled = compile_gpu(KERNELS[name], CompileOptions(f"sim:{target}", dtype=dtype))
    element = compiled.found.element
    ranked = candidates(compiled.found.single, element, dtype, reference_gpu(target)).candidates
    seconds = {c.schedule: c.prediction.seconds_per_point for c in ranked}
    assert seconds[compiled.schedule] <= (1 + TOLERANCE) * seconds["simt"]


@pytest.mark.parametrize("dtype", ["f32", "f64"])
@pytest.mark.parametrize("name", TABLE_2.values())
def test_plain_threads_run_at_the_rate_of_a_copy(name, dtype):
    """But for 27 and 49 multiply-adds a point, and wide reach."""
    kernel = KERNELS[name]
    sweep = LinearSweep("f", name, kernel.offsets, kernel.weights, 1)
    (plain,) = candidates(sweep, dtype, dtype, H200, ("simt",)).candidates
    least = {"paper_box2d49p": 0.75, "paper_star2d13p": 0.85, "paper_box3d27p": 0.85}.get(name, 0.9)
    assert plain.prediction.fraction_of_copy >= least


def test_steps_of_f64_in_levels_run_beyond_a_copy():
    kernel = KERNELS["heat2d_ftcs"]
    single = LinearSweep("f", "k", kernel.offsets, kernel.weights, 1)
    offsets, weights = layout_cases.fused(list(kernel.offsets), list(kernel.weights), 4)
    fused = LinearSweep("f", "k", tuple(offsets), tuple(weights), 4)
    (plain,) = candidates(fused, "f64", "f64", H200, ("simt",), single).candidates
    assert plain.prediction.fraction_of_copy >= 3


def test_what_is_about_as_fast_keeps_its_order():
    seconds = {"a": 2.0, "b": 1.019, "c": 1.0, "d": 1.021, "e": 1.02}
    assert about_fastest([*seconds], seconds.__getitem__) == ["b", "c", "e"]


def test_of_schedules_about_as_fast_streams_come_first(monkeypatch):
    kernel = KERNELS["heat2d_ftcs"]
    sweep = LinearSweep("f", "k", kernel.offsets, kernel.weights, 1)
    streams, simt = candidates(sweep, "f16", "f16", H200, ("stream", "simt")).candidates
    for found in ([streams, simt], [simt, streams]):
        ranking = Ranking([replace(c, prediction=streams.prediction) for c in found], {})
        monkeypatch.setattr(gpu_candidates, "candidates", lambda *_, found=ranking: found)
        assert fastest(sweep, "f16", "f16", H200)[0].schedule == "stream"


@pytest.mark.parametrize(
    "offsets, reach, expected",
    [
        (((-3,), (6,)), ((3,), (6,)), True),
        (((-3,), (5,)), ((3,), (5,)), False),
        (((-2,), (6,)), ((2,), (6,)), False),
    ],
)
def test_sweeps_of_levels_reach_as_far_as_these(offsets, reach, expected):
    single = LinearSweep("f", "k", ((-1,), (2,)), (0.5, 0.5), 1)
    fused = LinearSweep("f", "k", offsets, (0.5, 0.5), 3)
    assert fused.reach == reach
    assert fused.has_levels_of(single) == expected


def test_fused_steps_are_counted():
    single, fused = (ranking("heat2d_ftcs", steps=n).candidates for n in (1, 3))
    assert fused[0].costs.steps == 3
    # Memory is read and written once for three steps.
    ratio = single[0].prediction.seconds_per_point / fused[0].prediction.seconds_per_point
    assert 2 < ratio <= 3


def explain(capsys, *words):
    assert main(["explain", *words, "--json"]) == 0
    return json.loads(capsys.readouterr().out)


def test_explain_reports_a_prediction_for_a_chip(capsys):
    words = ("heat2d_ftcs", "--target", "sim:sm_90", "--dtype", "f16")
    found = explain(capsys, *words, "--chip", "h100")
    assert found["chip"] == "H100"
    predicted = found["predicted"]
    points = math.prod(DOMAINS[2])
    assert predicted["gstencil_per_s"] == pytest.approx(1e-9 / predicted["seconds_per_point"])
    assert points * predicted["seconds_per_point"] > 4 * points / 3.35e12
    assert 0 < predicted["fraction_of_copy"] <= 1 and predicted["limited_by"] in predicted["busy"]
    ranked = found["candidates"]
    assert [c["schedule"] for c in ranked if c["chosen"]] == [found["schedule"]]
    rates = [c["gstencil_per_s"] for c in ranked]
    assert rates == sorted(rates, reverse=True) and len(ranked) == 4
    assert explain(capsys, *words)["chip"] == "H200"
    newer = ("heat2d_ftcs", "--target", "sim:sm_100", "--dtype", "f16", "--chip", "H200")
    assert explain(capsys, *newer)["chip"] == "H200"
    assert main(["explain", *words]) == 0
    assert "predicted for H200: " in capsys.readouterr().out


def test_nothing_is_predicted_for_programs_that_are_no_linear_step(capsys):
    found = explain(capsys, "docs/examples/gray_scott.mlir", "--target", "sim:sm_90")
    assert found["predicted"] is None and found["candidates"] == []


@pytest.mark.parametrize(
    "target, chip, message",
    [
        ("sm_90", "A100", "expected a chip of sm_90, got A100, which is sm_80"),
        ("sm_100", "A100", "expected H200, which stands for sm_100, got A100, which is sm_80"),
        ("sm_90", "V100", "expected a chip of A100, H100, H200, RTX4090, got 'V100'"),
        ("cpu", "H200", "expected a GPU target for chip H200, got target 'cpu'"),
    ],
)
def test_a_chip_that_does_not_fit_is_refused(target, chip, message, capsys):
    assert main(["explain", "heat1d_ftcs", "--target", target, "--chip", chip]) == 1
    assert message in capsys.readouterr().err


# Measured on H200s, in GStencil/s: a vector a thread, and marches; the last two kernels by plain
# CUDA.
@pytest.mark.parametrize(
    "name, dtype, vectors, marches",
    [
        ("heat1d_ftcs", "f32", 491, 463),
        ("laplacian1d_o8", "f64", 253, 242),
        ("fdtd24_dx_3d", "f32", 509, 481),
        ("ddx_central8_hypterm", "f16", 898, 849),
        ("lbm_d2q9_diffusion", "f64", 239, 257),
        ("laplacian2d_o4", "f32", 482, 498),
        ("emboss3x3", "f64", 246, 257),
        ("paper_box2d49p", "f32", 279, 451),
        ("laplacian3d_o6", "f64", 71, 209),
    ],
)
def test_threads_march_where_that_was_measured_to_be_faster(name, dtype, vectors, marches):
    kernel = KERNELS[name]
    sweep = LinearSweep("f", name, kernel.offsets, kernel.weights, 1)
    found = gpu_candidates.best_way("simt", sweep, sweep, dtype, H200)
    assert found.rolling == (marches > vectors)
    if vectors > marches:
        (taken,) = candidates(sweep, dtype, dtype, H200, ["simt"]).candidates
        assert taken.prediction.gstencil_per_s == pytest.approx(vectors, rel=0.06)


# Of a copy, on an H200: docs/measurements/h200.
MEASURED_TILES = {
    "heat2d_ftcs": {"sparse": 0.79, "dense": 0.78},
    "lbm_d2q9_diffusion": {"sparse": 0.64, "dense": 0.87},
    "paper_star2d13p": {"sparse": 0.65, "dense": 0.72},
    "paper_box2d49p": {"sparse": 0.43, "dense": 0.66},
    "heat3d_ftcs": {"sparse": 0.47, "dense": 0.63},
    "paper_box3d27p": {"sparse": 0.41, "dense": 0.62},
}


def test_tiles_of_tensor_cores_are_about_as_fast_as_they_were_measured():
    errors = []
    for name, rates in MEASURED_TILES.items():
        for schedule, rate in rates.items():
            best = ranking(name, schedules=(schedule,)).candidates[0]
            errors.append(math.log(best.prediction.fraction_of_copy / rate))
    assert max(map(abs, errors)) < 0.3
    # Those along one axis, which are not here, are predicted too fast.
    assert -0.15 < sum(errors) / len(errors) < 0.05
