# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Arrays of other libraries go in, and results of their kind come out."""

import subprocess
import sys

import ml_dtypes
import numpy as np
import pytest

import fake_arrays
import fake_cupy
import twofour
from fake_arrays import DLPACK_CPU, DLPACK_CUDA, DLPACK_ROCM
from runtime_reference import reference
from twofour.errors import TwofourError
from twofour.runtime import element_type, float32_to_bf16, parse_boundary
from twofour.runtime.arrays import give, take

F32, BF16 = element_type("f32"), element_type("bf16")
STAR = {(-1,): 0.25, (0,): 0.5, (1,): 0.25}


@pytest.fixture(params=["torch", "jax"])
def library(request, monkeypatch):
    if request.param == "torch":
        return fake_arrays.install(monkeypatch, "torch", "torch.nn.parameter")
    return fake_arrays.install(monkeypatch, "jax", "jaxlib._jax", namespace=True)


def test_no_copy_is_made_on_the_way(library):
    values = np.arange(6, dtype=np.float32)
    tensor = library.Tensor(values)
    taken = take(tensor, F32)
    assert np.shares_memory(taken, values)
    result = give(taken, tensor)
    assert type(result) is library.Tensor and np.shares_memory(result.values, values)
    assert take(values, F32) is values and give(taken, values) is taken


def test_bfloat16_passes_as_its_bits(library):
    bits = float32_to_bf16(np.array([1.0, -2.5, 3.0], np.float32))
    tensor = library.Tensor(bits.view(np.int16), "bfloat16")
    taken = take(tensor, BF16)
    assert taken.dtype == np.uint16 and np.shares_memory(taken, bits)
    result = give(taken.copy(), tensor)
    assert str(result.dtype) == f"{library.__name__}.bfloat16"
    np.testing.assert_array_equal(result.values.view(np.uint16), bits)


def test_a_tensor_that_is_negated_when_it_is_read(library):
    tensor = library.Tensor(np.array([1.0, -2.0], np.float32), negated=True)
    np.testing.assert_array_equal(take(tensor, F32), [-1.0, 2.0])


def test_a_tensor_goes_through_the_cpu_target(library):
    values = np.random.default_rng(0).integers(-8, 9, 30).astype(np.float64)
    step = twofour.stencil(STAR, boundary="periodic", dtype="f64", threads=1)
    result = step(library.Tensor(values[::-1]), 3)
    assert type(result) is library.Tensor
    expected = reference(values[::-1], STAR, parse_boundary("periodic", 1), 3)
    np.testing.assert_array_equal(result.values, expected)


@pytest.mark.parametrize("dtype", ["f32", "bf16"])
@pytest.mark.parametrize("negated", [False, True])
def test_a_result_in_a_tensor(dtype, negated, monkeypatch):
    library = fake_arrays.install(monkeypatch, "torch")
    step = twofour.stencil(STAR, dtype=dtype)
    values = np.arange(9).astype(step.element_type.storage)
    expected, kind = step(values), "bfloat16" if dtype == "bf16" else None
    stored = values.view(np.int16) if kind else values
    out = library.Tensor(np.zeros_like(stored), kind)
    if negated and not kind:
        out.negated = True
        expected = -expected
    assert step(library.Tensor(stored, kind), out=out) is out
    np.testing.assert_array_equal(out.values.view(values.dtype), expected)


@pytest.mark.parametrize("target", ["cpu", "sim:sm_80"])
def test_bits_of_bfloat16_in_a_tensor(target, monkeypatch):
    library = fake_arrays.install(monkeypatch, "torch")
    step = twofour.stencil(STAR, dtype="bf16", target=target)
    u = np.arange(9).astype(ml_dtypes.bfloat16)
    out = library.Tensor(np.zeros(9, np.int16), "bfloat16")
    step(u, out=out)
    np.testing.assert_array_equal(out.values.view(ml_dtypes.bfloat16), step(u))


def test_kernels_write_to_the_memory_of_a_tensor(monkeypatch):
    library = fake_arrays.install(monkeypatch, "torch")
    step, values = twofour.stencil(STAR), np.arange(9, dtype=np.float32)
    out = library.Tensor(np.zeros_like(values))
    monkeypatch.setattr(library, "from_dlpack", None)
    step(values, out=out)
    np.testing.assert_array_equal(out.values, step(values))


def test_a_result_in_what_cannot_be_written_to(monkeypatch):
    library = fake_arrays.install(monkeypatch, "jax", "jaxlib._jax", namespace=True)
    step, u = twofour.stencil(STAR), np.zeros(9, np.float32)
    message = "out: expected an array that can be written to, got one of jaxlib.Tensor: JAX arrays "
    with pytest.raises(TwofourError, match=message + "are immutable$"):
        step(u, out=library.Tensor(u))


def test_tensors_as_fields_of_a_program(library, tmp_path):
    path = tmp_path / "average.mlir"
    path.write_text(
        """func.func @average(%a : !stencil.field<[-1,9]xf64>, %b : !stencil.field<[-1,9]xf64>) {
  %t = stencil.load %a : !stencil.field<[-1,9]xf64> -> !stencil.temp<?xf64>
  %r = stencil.apply(%u = %t : !stencil.temp<?xf64>) -> (!stencil.temp<?xf64>) {
    %l = stencil.access %u[-1] : !stencil.temp<?xf64>
    %h = stencil.access %u[1] : !stencil.temp<?xf64>
    %s = arith.addf %l, %h : f64
    stencil.return %s : f64
  }
  stencil.store %r to %b(<[0], [8]>) : !stencil.temp<?xf64> to !stencil.field<[-1,9]xf64>
  func.return
}
"""
    )
    program = twofour.compile(str(path))
    values = np.arange(10.0)
    result = program(library.Tensor(values))
    assert type(result) is library.Tensor
    np.testing.assert_array_equal(result.values[1:-1], 2 * values[1:-1])
    with pytest.raises(TwofourError, match=r"input 0: expected an array of shape \(10,\), got"):
        program(library.Tensor(np.zeros(9)))


def with_members(tensor, **members):
    vars(tensor).update(members)
    return tensor


def test_bfloat16_that_requires_gradients_is_refused(library):
    tensor = library.Tensor(np.zeros(3, np.int16), "bfloat16")
    step = twofour.stencil(STAR, dtype="bf16")
    step(with_members(tensor, requires_grad=False))
    with pytest.raises(TwofourError, match="got: a tensor that requires gradient, use tensor.det"):
        step(with_members(tensor, requires_grad=True))


def test_results_go_to_the_device_of_the_input(library):
    other = (DLPACK_CPU, 1)
    library.Tensor.to_device = lambda self, device: type(self)(self.values, device=device)
    for device in (other, (DLPACK_CPU, 0)):
        u = library.Tensor(np.zeros(5, np.float32), device=device)
        assert twofour.stencil(STAR)(u).device == device
        bits = library.Tensor(np.zeros(5, np.int16), "bfloat16", device=device)
        assert twofour.stencil(STAR, dtype="bf16")(bits).device == device


@pytest.mark.parametrize(
    "make, message",
    [
        (lambda t: t(np.zeros(3)), r"u: expected f32 \(float32\), got float64"),
        (lambda t: t(np.zeros((3, 3), np.float32)), "u: expected an array of rank 1, got rank 2"),
        (lambda t: t(np.zeros(0, np.float32)), "u: expected an array with at least one element"),
        (
            lambda t: t(np.zeros(3, np.float32), device=(DLPACK_CUDA, 0)),
            r"u: expected an array in host memory for cpu, got one of \w+.Tensor on CUDA device 0",
        ),
        (
            lambda t: t(np.zeros(3, np.float32), device=(DLPACK_ROCM, 0)),
            "u: expected an array in host memory or on a CUDA device, got DLPack device type 10",
        ),
        (
            lambda t: t(np.zeros(3, np.float32), refusal=RuntimeError("requires grad\nuse detach")),
            "u: expected an array that DLPack can pass on, got: requires grad$",
        ),
        (
            lambda t: with_members(t(np.zeros(3, np.float32)), data_ptr=lambda: 0, shape=(3,)),
            "u: expected an array that DLPack can pass on, got: a tensor without storage$",
        ),
        (
            lambda t: t(np.zeros(3, np.float32), device=ValueError("no device of DLPack")),
            "u: expected an array that DLPack can pass on, got: no device of DLPack$",
        ),
        (
            lambda t: t(np.zeros(3, np.int16), "bfloat16"),
            r"u: expected f32 \(float32\), got bfloat16$",
        ),
    ],
)
def test_what_does_not_fit_is_refused(library, make, message):
    with pytest.raises(TwofourError, match=message):
        take(make(library.Tensor), F32, rank=1, what="u")


@pytest.mark.parametrize("value", [[1.0], None, 3.0, np.float32(1), "text"])
def test_what_is_no_array_is_refused(value):
    with pytest.raises(TwofourError, match="u: expected an array of NumPy or another library, got"):
        take(value, F32, what="u")


def test_what_holds_an_array_is_refused_and_how_to_get_it_said():
    class Table:
        def __array__(self, dtype=None, copy=None):
            return np.zeros(3, np.float32)

    message = "u: expected an array of NumPy or another library, got Table, of which numpy.asarray"
    with pytest.raises(TwofourError, match=f"{message} makes one$"):
        take(Table(), F32, what="u")
    take(np.asarray(Table()), F32, what="u")


def test_a_cuda_array_without_dlpack_is_refused_on_the_host():
    class DeviceArray:
        __cuda_array_interface__ = {"shape": (3,), "typestr": "<f4", "data": (0, False)}

    with pytest.raises(TwofourError, match="expected an array in host memory for cpu, got one of"):
        take(DeviceArray(), F32)


def test_what_cupy_does_not_take_is_refused(monkeypatch):
    class Masked:
        __cuda_array_interface__ = {"shape": (3,), "typestr": "<f4", "data": (0, False)}

    def refuse(_):
        raise ValueError("masks are not supported\nfor now")

    monkeypatch.setattr(fake_cupy.install(monkeypatch), "asarray", refuse)
    message = "u: expected an array that __cuda_array_interface__ can pass on, got: masks are not "
    with pytest.raises(TwofourError, match=message + "supported$"):
        take(Masked(), F32, what="u")


def test_a_library_without_from_dlpack_gets_a_numpy_array(monkeypatch):
    library = fake_arrays.install(monkeypatch, "other")
    del library.from_dlpack
    tensor = library.Tensor(np.zeros(3, np.float32))
    taken = take(tensor, F32)
    assert give(taken, tensor) is taken


def test_no_library_is_imported_for_numpy_arrays():
    code = (
        "import sys, numpy as np\n"
        "from twofour.runtime.arrays import give, take\n"
        "from twofour.runtime import element_type\n"
        "u = np.zeros(3, np.float32); give(take(u, element_type('f32')), u)\n"
        "print(*{name.partition('.')[0] for name in sys.modules})"
    )
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert not set(run.stdout.split()) & {"torch", "jax", "cupy", "ml_dtypes", "mlir"}
