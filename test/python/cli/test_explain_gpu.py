# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""`twofour explain` for GPU targets: schedules, costs, and what is not known."""

import json

import pytest

import twofour
from twofour.cli.main import main
from twofour.codegen.gpu.cuda_toolkit import find_ptxas
from twofour.targets.gpu import report as gpu_costs

COUNTERS = {
    "instructions",
    "mma",
    "shared_wavefronts",
    "shared_conflicts",
    "global_load_bytes",
    "global_store_bytes",
}


def explain(capsys, *words: str) -> dict:
    assert main(["explain", *words, "--json"]) == 0
    return json.loads(capsys.readouterr().out)


@pytest.mark.parametrize(
    "dtype, asked, got",
    [
        ("f16", "auto", "stream"),
        ("f16", "sparse", "sparse"),
        ("tf32", "auto", "simt"),
        ("tf32", "sparse", "sparse"),
        ("f32", "auto", "simt"),
        ("f64", "sparse", "dense"),
        ("f16", "dense", "dense"),
    ],
)
def test_schedules_and_costs(capsys, dtype, asked, got):
    words = ["--target", "sm_90", "--dtype", dtype, "--schedule", asked]
    found = explain(capsys, "lbm_d2q9_diffusion", *words)
    assert (found["schedule"], found["dtype"], found["target"]) == (got, dtype, "sm_90")
    assert set(found["counters"]) == COUNTERS
    size = {"f16": 2, "f64": 8}.get(dtype, 4)
    assert found["counters"]["global_store_bytes"] == size
    assert (found["counters"]["mma"] > 0) == (got != "simt")
    assert found["layout_executed"] == (got in ("stream", "sparse"))
    if find_ptxas() is not None:
        assert found["registers"] > 0 and found["spills"] == 0
        assert 0 < found["occupancy"] <= 1


def test_what_is_not_known_is_null(capsys, monkeypatch):
    monkeypatch.setattr(gpu_costs, "assemble", lambda ptx, chip: None)
    monkeypatch.setattr(gpu_costs, "MAX_POINTS", 10)
    found = explain(capsys, "docs/examples/gray_scott.mlir", "--target", "sim:sm_80")
    assert found["schedule"] == "simt" and found["left_on_general_path"]
    assert found["counters"] is found["registers"] is found["spills"] is found["occupancy"] is None
    assert main(["explain", "docs/examples/gray_scott.mlir", "--target", "sim:sm_80"]) == 0
    text = capsys.readouterr().out
    assert "bytes of shared memory" in text and "registers" not in text


def test_text_names_the_sources_of_figures(capsys):
    assert main(["explain", "heat1d_ftcs", "--target", "sm_80", "--dtype", "f16"]) == 0
    text = capsys.readouterr().out
    assert "simulated, per output point: instructions" in text
    assert ("(ptxas)" in text) == (find_ptxas() is not None)


@pytest.mark.parametrize(
    "weights, reason",
    [
        ({(0,): 1.0, (1,): 2.0**-29}, "weights within a factor of 2^28"),
        ({(200000, 0): 1.0, (0, 0): 1.0}, "registers"),
        ({(200000, 0, 0, 0): 1.0, (0, 0, 0, 0): 1.0}, None),
    ],
)
def test_auto_takes_plain_threads_where_tensor_cores_cannot(weights, reason):
    step = twofour.stencil(weights, dtype="f16", target="sim:sm_90")
    assert step.schedule == "simt"
    why = step.explain()["why"]
    assert (reason is None) == ("not on tensor cores: " not in why)
    if reason is not None:
        assert reason in why
        with pytest.raises(twofour.TwofourError, match=reason.replace("^", r"\^")):
            twofour.stencil(weights, dtype="f16", target="sim:sm_90", schedule="stream")


@pytest.mark.parametrize("schedule", ["auto", "simt"])
@pytest.mark.parametrize(
    ("weight", "message"),
    [
        (1e-300, "expected at least one weight that is not zero in f32"),
        (1e300, "expected weights in the range of f16"),
    ],
)
def test_weights_that_the_type_cannot_hold(weight, message, schedule):
    with pytest.raises(twofour.TwofourError, match=message):
        twofour.stencil({(0,): weight}, dtype="f16", target="sim:sm_90", schedule=schedule)
