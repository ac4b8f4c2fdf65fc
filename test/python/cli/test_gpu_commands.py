# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""`twofour compile` and `twofour run` for GPU targets, and the same from Python."""

import pickle
import sys
from collections import defaultdict
from pathlib import Path

import numpy as np
import pytest

import fake_cupy
import twofour
from bad_input import refused
from runtime_reference import reference
from twofour.cli.main import main
from twofour.runtime import Bundle, load, parse_boundary
from twofour.runtime.devices.cuda import CudaDevice

KERNEL = "heat1d_ftcs"
STAR = {(-1,): 0.25, (0,): 0.5, (1,): 0.25}


@pytest.fixture(autouse=True)
def empty_folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)


def test_compile_writes_a_bundle(tmp_path, capsys):
    words = ["compile", KERNEL, "--target", "sm_80", "--dtype", "f64", "--boundary", "nearest"]
    assert main([*words, "-o", "x.tfb"]) == 0
    assert main([*words, "-o", "y.tfb"]) == 0
    report = capsys.readouterr().out.splitlines()[0]
    data = (tmp_path / "x.tfb").read_bytes()
    assert report.startswith(f"x.tfb: {KERNEL} for sm_80 (simt, f64), 2 kernels, PTX")
    assert report.endswith(f"{len(data)} bytes")
    assert (tmp_path / "y.tfb").read_bytes() == data
    assert Bundle.load("x.tfb").manifest["boundary"] == ["nearest"]


@pytest.mark.parametrize(
    "stage, beginning", [("stencil", "module"), ("gpu", "module"), ("ptx", "//")]
)
def test_compile_shows_a_stage(capfdbinary, tmp_path, stage, beginning):
    words = ["compile", KERNEL, "--target", "sm_80", "--dtype", "f64", "--emit", stage]
    assert main(words) == 0
    shown = capfdbinary.readouterr().out
    assert shown.decode().strip().startswith(beginning)
    assert main([*words, "-o", "x.txt"]) == 0
    assert (tmp_path / "x.txt").read_bytes() == shown


@pytest.mark.parametrize(
    "words, message",
    [
        (["compile", KERNEL, "-o", "x"], "expected a GPU target such as sm_90 to compile for"),
        (["compile", KERNEL, "--target", "sm_90"], "expected -o FILE to write the bundle to"),
        (["compile", KERNEL, "--target", "sm_90", "--emit", "cubin"], "expected -o FILE to write"),
        (["compile", KERNEL, "--target", "sm_91", "-o", "x"], "unknown target 'sm_91'"),
        (["compile", KERNEL, "--target", "sm_90", "--emit", "asm", "-o", "x"], "invalid choice"),
        (
            ["compile", KERNEL, "--target", "sm_90", "-o", "x", "--boundary", "zero,zero"],
            "expected 1 boundary, got 'zero,zero'",
        ),
        (
            ["run", KERNEL, "--target", "sim:sm_90", "--dtype", "tf16"],
            "expected a dtype out of f16, bf16, f32, f64, tf32, got 'tf16'",
        ),
        (["run", KERNEL, "--profile"], "expected --profile with a target such as sim:sm_90"),
        (
            ["run", KERNEL, "--target", "sim:sm_90", "--device", "cuda:1"],
            "expected a GPU target such as sm_90 for device 'cuda:1', got target 'sim:sm_90'",
        ),
        (
            ["run", KERNEL, "--target", "sm_90", "--device", "gpu"],
            "expected a device cuda, cuda:N, sim or sim:sm_XX, got 'gpu'",
        ),
    ],
)
def test_what_cannot_be_done_is_said(capfd, words, message):
    refused(capfd, main, words, message)


def test_an_output_that_cannot_be_written(capfd):
    words = ["compile", KERNEL, "--target", "sm_90", "-o", "none/x.tfb"]
    refused(capfd, main, words, "cannot write the file: no directory 'none'", "none/x.tfb:1:1")


def test_run_on_the_simulator(capsys, tmp_path):
    u = np.random.default_rng(0).integers(-8, 9, 70).astype(np.float64)
    np.save("u.npy", u)
    words = ["run", KERNEL, "--dtype", "f64", "--boundary", "periodic", "--steps", "3"]
    words += ["--input", "u.npy", "--output", "v.npy"]
    assert main([*words, "--target", "sim:sm_80", "--profile"]) == 0
    printed = capsys.readouterr().out
    simulated = np.load("v.npy")
    assert main(words) == 0
    np.testing.assert_allclose(simulated, np.load("v.npy"), rtol=1e-14)
    assert "70 points x 3 steps" in printed and "f64, sim:sm_80)" in printed
    assert "3 launches, 210 output points" in printed
    assert "global store bytes" in printed and "st.global" in printed


@pytest.mark.parametrize(
    "schedule, arithmetic", [("sparse", "tf32"), ("dense", "tf32"), ("simt", "f32")]
)
def test_reports_name_the_type_of_products(capsys, schedule, arithmetic):
    words = ["run", KERNEL, "--shape", "70", "--dtype", "tf32", "--target", "sim:sm_90"]
    assert main([*words, "--schedule", schedule]) == 0
    assert f"({schedule}, {arithmetic}, sim:sm_90)" in capsys.readouterr().out


def test_stencils_from_python(tmp_path):
    step = twofour.stencil(STAR, boundary="reflect", dtype="f64", target="sim:sm_90")
    u = np.random.default_rng(0).integers(-8, 9, 70).astype(np.float64)
    expected = reference(u, STAR, parse_boundary("reflect", 1), 3)
    np.testing.assert_array_equal(step(u, steps=3), expected)
    step.save(tmp_path / "star.tfb")
    again = load(tmp_path / "star.tfb", "sim")
    assert repr(again) == "<LoadedStencil stencil: 1 axes of f64, simt for sm_90>"
    np.testing.assert_array_equal(again(u, steps=3), expected)
    np.testing.assert_array_equal(
        again(u, boundary="zero"), reference(u, STAR, parse_boundary("zero", 1), 1)
    )


def test_a_gpu_is_needed_for_calls_only(monkeypatch):
    monkeypatch.setitem(sys.modules, "cupy", None)
    step = twofour.stencil(STAR, dtype="f64", target="sm_90")
    with pytest.raises(twofour.TwofourError, match="expected CuPy to run on a GPU"):
        step(np.zeros(8))


def test_the_device_can_be_chosen(monkeypatch, capsys):
    gpu = fake_cupy.install(monkeypatch)
    gpu.COUNT = 2
    for device in ("cuda:1", CudaDevice(1)):
        step = twofour.stencil(STAR, dtype="f64", target="sm_90", device=device)
        assert step.device.index == 1 and pickle.loads(pickle.dumps(step)).device.index == 1
    assert twofour.compile(KERNEL, target="sm_90").device.index == 0
    words = ["run", KERNEL, "--shape", "70", "--target", "sm_90", "--device"]
    assert main([*words, "sim"]) == 0
    assert "(simt, f32, sim:sm_90)" in capsys.readouterr().out
    assert main([*words, "cuda:2"]) == 1
    assert "expected a CUDA device 2, got 2 devices" in capsys.readouterr().err
    with pytest.raises(twofour.TwofourError, match="for device 'cuda', got target 'cpu'"):
        twofour.compile(KERNEL, device="cuda")


def test_a_gpu_that_fails_is_one_line(monkeypatch, capsys):
    gpu = fake_cupy.install(monkeypatch)

    def fail(_):
        raise fake_cupy.CUDADriverError("CUDA_ERROR_LAUNCH_FAILED: unspecified\nlaunch failure")

    gpu.kernels = defaultdict(lambda: fail)
    assert main(["run", KERNEL, "--target", "sm_90", "--output", "u.npy"]) == 1
    assert capsys.readouterr().err == (
        "<command-line>:1:1: error: expected NVIDIA Fake to work, got: CUDA_ERROR_LAUNCH_FAILED: "
        "unspecified launch failure\n"
    )
    assert not Path("u.npy").exists()


def test_the_cpu_has_no_bundle():
    step = twofour.stencil(STAR)
    with pytest.raises(twofour.TwofourError, match="expected a GPU target such as sm_90 to save"):
        step.save("x.tfb")
