# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""What the runtime asks of CuPy, with a stand-in for it: arguments, graphs, errors."""

import gc
import sys
import weakref
from concurrent.futures import ThreadPoolExecutor

import ml_dtypes
import numpy as np
import pytest

import fake_arrays
import fake_cupy
from ptx_cases import ITEMSIZE, kernel_entry, linear_bundle
from runtime_reference import convolved, reference
from twofour.errors import DeviceFailure, TwofourError
from twofour.runtime import Bundle, element_type, from_bundle, load, parse_boundary
from twofour.runtime.destinations import Destination
from twofour.runtime.devices.cuda import CudaDevice
from twofour.runtime.devices.stepping import RECORDED_SWEEPS
from twofour.runtime.programs import STEPPERS

STAR = {(0, 0): 0.5, (0, 1): 0.25, (-2, 0): 0.25}


@pytest.fixture
def gpu(monkeypatch):
    gpu = fake_cupy.install(monkeypatch)
    gpu.kernels["single"] = gpu.kernels["edges"] = fake_cupy.stencil_kernel(STAR)
    gpu.kernels["fused"] = fake_cupy.stencil_kernel(convolved(STAR, 2))
    gpu.kernels["refresh"] = fake_cupy.refresh_kernel(2)
    return gpu


def integers(shape):
    return np.random.default_rng(0).integers(-8, 9, shape).astype(np.float64)


@pytest.mark.parametrize("boundary", ["fixed", "periodic", "constant(2.5)", "reflect,nearest"])
@pytest.mark.parametrize("fused", [None, 2])
@pytest.mark.parametrize("refresh", [False, True])
def test_results_of_numpy_arrays(gpu, boundary, fused, refresh):
    program = from_bundle(linear_bundle(STAR, fused=fused, refresh=refresh))
    for shape in ((1, 1), (7, 5), (19, 43)):
        u = integers(shape)
        result = program(u, 3, boundary=boundary)
        assert type(result) is np.ndarray
        expected = reference(u, STAR, parse_boundary(boundary, 2), 3)
        np.testing.assert_array_equal(result, expected)


def test_arrays_of_the_device_stay_there(gpu, monkeypatch):
    torch = fake_arrays.install(monkeypatch, "torch")
    program = from_bundle(linear_bundle(STAR))
    u = integers((9, 33))
    expected = reference(u, STAR, parse_boundary("fixed", 2), 2)
    result = program(fake_cupy.ndarray(u), 2)
    assert type(result) is fake_cupy.ndarray
    np.testing.assert_array_equal(result.host, expected)
    for device in ((2, 0), (1, 0)):
        result = program(torch.Tensor(u, device=device), 2)
        assert type(result) is torch.Tensor and result.device == device
        np.testing.assert_array_equal(result.values, expected)
    with pytest.raises(TwofourError, match="on CUDA device 0, got one on device 1"):
        program(torch.Tensor(u, device=(2, 1)), 2)


def test_results_in_arrays_of_callers(gpu, monkeypatch):
    torch = fake_arrays.install(monkeypatch, "torch")
    program = from_bundle(linear_bundle(STAR))
    values = integers((9, 33))
    expected = reference(values, STAR, parse_boundary("fixed", 2), 2)
    for u in (values, fake_cupy.ndarray(values)):
        for make in (np.array, lambda v: fake_cupy.ndarray(v.copy())):
            out = make(values)
            assert program(u, 2, out=out) is out
            np.testing.assert_array_equal(getattr(out, "host", out), expected)
        out = torch.Tensor(values.copy(), device=(2, 0))
        assert program(u, 2, out=out) is out
        np.testing.assert_array_equal(out.values, expected)
    u = fake_cupy.ndarray(values.copy())
    assert program(u, 2, out=u) is u
    np.testing.assert_array_equal(u.host, expected)


@pytest.mark.parametrize("dtype", [ml_dtypes.bfloat16, np.uint16])
def test_bfloat16_in_arrays_of_callers(gpu, dtype):
    """CuPy has the type from version 14 on; it would convert bit patterns as numbers."""
    ones = fake_cupy.ndarray(np.ones(3, ml_dtypes.bfloat16).view(np.uint16))
    out = fake_cupy.ndarray(np.zeros(3, dtype))
    assert Destination(out, element_type("bf16"), CudaDevice(), (3,)).fill(ones) is out
    np.testing.assert_array_equal(out.host.view(np.uint16), ones.host)


def test_the_launch(gpu):
    program = from_bundle(linear_bundle(STAR))
    program(integers((9, 70)), boundary="zero")
    assert gpu.log[-1] == ("single", (9 * 3, 1, 1), (32, 1, 1), 0)


def test_contexts_are_made_once_a_thread(gpu, monkeypatch):
    made = []
    monkeypatch.setattr(gpu.cuda.runtime, "free", made.append)
    program = from_bundle(linear_bundle(STAR))
    for _ in range(2):
        program(integers((9, 33)))
    assert made == [0]
    for count in (2, 3):
        with ThreadPoolExecutor(1) as thread:
            for _ in range(2):
                thread.submit(program, integers((9, 33))).result()
        assert made == [0] * count


def test_a_refresh_is_one_launch(gpu):
    program = from_bundle(linear_bundle(STAR, refresh=True))
    program(integers((9, 70)), 2, boundary="zero,periodic")
    # Two rows above the domain, as the stencil reaches, and one column behind it.
    refresh = ("refresh", (-(-(2 * 71 + 9) // 32), 1, 1), (32, 1, 1), 0)
    sweep = ("single", (9 * 3, 1, 1), (32, 1, 1), 0)
    assert gpu.log[1:] == [refresh, sweep] * 2
    program(integers((9, 70)), 2, boundary="fixed")
    # The rim is copied to the second buffer, once.
    assert [entry[0] for entry in gpu.log[5:]] == ["refresh", "single", "single"]


def test_refreshes_are_recorded(gpu):
    program = from_bundle(linear_bundle(STAR, refresh=True))
    u, steps = integers((3, 5)), RECORDED_SWEEPS + 2
    result = program(u, steps, boundary="periodic")
    expected = reference(u, STAR, parse_boundary("periodic", 2), steps)
    np.testing.assert_allclose(result, expected, rtol=1e-12)
    assert [entry for entry in gpu.log if entry[0] == "graph"] == [("graph", 2 * RECORDED_SWEEPS)]


def test_nothing_is_launched_without_points(gpu):
    program = from_bundle(linear_bundle(STAR))
    u = integers((2, 70))
    np.testing.assert_array_equal(program(u, 3), u)
    assert [entry[0] for entry in gpu.log] == ["load"]


def test_long_runs_are_graphs(gpu):
    program = from_bundle(linear_bundle(STAR))
    u, steps = np.zeros((9, 33)), 3 * RECORDED_SWEEPS + 3
    program(u, steps)
    graphs = [entry for entry in gpu.log if entry[0] == "graph"]
    assert graphs == [("graph", RECORDED_SWEEPS)] * 3
    assert sum(entry[0] == "single" for entry in gpu.log) == steps
    gpu.log.clear()
    program(u, 2 * RECORDED_SWEEPS)
    assert [entry for entry in gpu.log if entry[0] == "graph"] == graphs[:2]


def test_runs_that_cannot_be_recorded_are_launched_one_by_one(gpu):
    gpu.CAPTURE_ERROR = "cudaErrorStreamCaptureUnsupported: operation not permitted"
    program = from_bundle(linear_bundle(STAR))
    steps = 2 * RECORDED_SWEEPS
    program(np.zeros((9, 33)), steps)
    assert sum(entry[0] == "single" for entry in gpu.log) == steps


def test_errors_of_kernels_are_not_taken_for_failed_recordings(gpu):
    device = CudaDevice()

    def broken():
        raise ValueError("a mistake")

    with pytest.raises(ValueError, match="a mistake"):
        device.record(broken)
    assert gpu.capturing is None


@pytest.mark.parametrize(
    "target, capability, cubin, loaded",
    [
        ("sm_90", "90", b"cubin", "cubin"),
        ("sm_90", "90", None, "PTX"),
        ("sm_80", "90", b"cubin", "PTX"),
        ("sm_90", "100", b"cubin", "PTX"),
        ("sm_90a", "90", b"cubin", "cubin"),
    ],
)
def test_the_cubin_is_for_its_own_chip_only(gpu, target, capability, cubin, loaded):
    gpu.CAPABILITY = capability
    bundle = linear_bundle(STAR, target=target, cubin=cubin)
    CudaDevice().load(bundle)
    wanted = cubin if loaded == "cubin" else bundle.ptx.encode()
    assert gpu.log == [("load", wanted)]


def with_shared_bytes(count, resident=None):
    bundle = linear_bundle(STAR)
    entry = kernel_entry(2, ITEMSIZE["f64"], shared_bytes=count) | {"resident": resident}
    return Bundle({**bundle.manifest, "kernels": {"single": entry}}, bundle.ptx)


def test_shared_memory_beyond_48_kib_is_asked_for(gpu):
    from_bundle(with_shared_bytes(48 * 1024)).kernels()
    assert not [entry for entry in gpu.log if entry[0] == "attribute"]
    program = from_bundle(with_shared_bytes(100_000))
    program(integers((9, 33)))
    assert ("attribute", 8, 100_000) in gpu.log
    assert gpu.log[-1][-1] == 100_000
    with pytest.raises(TwofourError, match="expected a device with 232449 bytes of shared memory"):
        from_bundle(with_shared_bytes(232_449)).kernels()


@pytest.mark.parametrize(
    "count, resident, part",
    [(13824, 6, 39), (48 * 1024, 8, 100), (13824, None, None), (0, 6, None)],
)
def test_blocks_that_are_to_be_resident_ask_for_their_part_of_the_cache(gpu, count, resident, part):
    from_bundle(with_shared_bytes(count, resident)).kernels()
    found = [entry for entry in gpu.log if entry[0] == "attribute"]
    assert found == ([] if part is None else [("attribute", 9, part)])


@pytest.mark.parametrize(
    "target, capability, message",
    [
        ("sm_90", "80", r"compute capability 9.0 or higher for sm_90, got 8.0 \(NVIDIA Fake\)"),
        ("sm_90a", "100", r"compute capability 9.0 for sm_90a, got 10.0"),
    ],
)
def test_chips_that_do_not_fit(gpu, target, capability, message, tmp_path):
    gpu.CAPABILITY = capability
    linear_bundle(STAR, target=target).save(tmp_path / "x.tfb")
    with pytest.raises(TwofourError, match=message):
        load(tmp_path / "x.tfb")


def test_a_driver_too_old_for_the_ptx(gpu):
    gpu.DRIVER = 11040
    gpu.LOAD_ERROR = "CUDA_ERROR_UNSUPPORTED_PTX_VERSION: the provided PTX was compiled\nwith ..."
    with pytest.raises(TwofourError) as caught:
        from_bundle(linear_bundle(STAR)).kernels()
    assert str(caught.value) == (
        "error: expected a driver that takes PTX 7.8 for sm_80, got CUDA 11.4: "
        "CUDA_ERROR_UNSUPPORTED_PTX_VERSION: the provided PTX was compiled with ..."
    )


def test_a_driver_too_old_for_the_cubin_gets_the_ptx(gpu):
    bundle = linear_bundle(STAR, target="sm_90", cubin=b"cubin")
    gpu.LOAD_ERROR, gpu.TAKEN = "CUDA_ERROR_INVALID_IMAGE: invalid", bundle.ptx.encode()
    assert list(from_bundle(bundle).kernels()) == ["single"]
    assert gpu.log == [("load", b"cubin"), ("load", gpu.TAKEN)]
    gpu.TAKEN = b""
    with pytest.raises(TwofourError, match=r"takes PTX 7.8 for sm_90, got CUDA 13.0: .*_IMAGE"):
        from_bundle(bundle).kernels()


def test_failures_that_are_not_of_the_code_are_not_taken_for_such(gpu):
    gpu.LOAD_ERROR = "CUDA_ERROR_OUT_OF_MEMORY: out of memory"
    with pytest.raises(DeviceFailure) as caught:
        from_bundle(linear_bundle(STAR, target="sm_90", cubin=b"cubin")).kernels()
    assert str(caught.value) == (
        "error: expected NVIDIA Fake to work, got: CUDA_ERROR_OUT_OF_MEMORY: out of memory"
    )
    assert gpu.log == [("load", b"cubin")]


@pytest.mark.parametrize("kind", [fake_cupy.CUDARuntimeError, fake_cupy.CUDADriverError])
def test_failures_of_launches_are_errors_of_one_line(gpu, kind):
    def fail(_):
        raise kind("CUDA_ERROR_ILLEGAL_ADDRESS: an illegal\nmemory access")

    gpu.kernels["single"] = fail
    message = "expected NVIDIA Fake to work, got: CUDA_ERROR_ILLEGAL_ADDRESS: an illegal memory acc"
    with pytest.raises(DeviceFailure, match=message) as caught:
        from_bundle(linear_bundle(STAR))(integers((9, 33)))
    assert type(caught.value.__cause__) is kind


def test_threads_with_streams_of_their_own_do_not_share_buffers(gpu):
    gpu.STREAM = 2  # cudaStreamPerThread
    program = from_bundle(linear_bundle(STAR))
    u = integers((9, 33))
    made = []
    zeros = gpu.zeros
    gpu.zeros = lambda shape, dtype: made.append(shape) or zeros(shape, dtype)
    program(u)
    program(u)
    assert len(made) == 2
    with ThreadPoolExecutor(1) as thread:
        thread.submit(program, u).result()
        assert len(made) == 4
        thread.submit(program, u).result()
    assert len(made) == 4


@pytest.mark.parametrize("fused", [None, 2])
def test_few_boundaries_keep_buffers(gpu, fused):
    program = from_bundle(linear_bundle(STAR, fused=fused))
    u = integers((9, 33))
    kept = []
    zeros = gpu.zeros

    def counted(shape, dtype):
        array = zeros(shape, dtype)
        kept.append(weakref.ref(array.host))
        return array

    gpu.zeros = counted
    for n in range(5):
        boundary = f"constant({n})"
        expected = reference(u, STAR, parse_boundary(boundary, 2), 2)
        np.testing.assert_array_equal(program(u, 2, boundary=boundary), expected)
    gc.collect()
    assert sum(array() is not None for array in kept) <= 2 * STEPPERS
    stepper = program.stepper("constant(4)")
    assert program.stepper("constant(4)") is stepper is not program.stepper("constant(0)")


def test_no_device(gpu):
    for make in (lambda: from_bundle(linear_bundle(STAR), "cuda:1").device, lambda: CudaDevice(-1)):
        with pytest.raises(TwofourError, match="expected a CUDA device -?1, got 1 devices"):
            make()
    gpu.COUNT_ERROR = "cudaErrorInsufficientDriver: CUDA driver version is insufficient"
    with pytest.raises(TwofourError, match="expected a CUDA driver and device, got: cudaErrorInsu"):
        from_bundle(linear_bundle(STAR)).kernels()


def test_no_cupy(monkeypatch):
    monkeypatch.setitem(sys.modules, "cupy", None)
    with pytest.raises(TwofourError, match=r"expected CuPy to run on a GPU \(pip install"):
        from_bundle(linear_bundle(STAR)).kernels()


@pytest.mark.parametrize("name", ["gpu", "cuda:x", "cuda:-1", ""])
def test_names_of_no_device(name):
    with pytest.raises(TwofourError, match="expected a device cuda, cuda:N, sim or sim:sm_XX, got"):
        from_bundle(linear_bundle(STAR), name).kernels()
