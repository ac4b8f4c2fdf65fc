# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Tensor maps on their way to a kernel of CUDA, with stand-ins for CuPy and the driver."""

import ctypes
from concurrent.futures import ThreadPoolExecutor
from types import SimpleNamespace

import numpy as np
import pytest

import fake_cupy
from ptx_cases import kernel_entry, linear_bundle
from twofour.errors import TwofourError
from twofour.runtime import Bundle, from_bundle
from twofour.runtime.devices import cuda_tensor_map
from twofour.runtime.devices.launching import tensor_maps
from twofour.runtime.manifest import KernelSpec, MapSpec
from twofour.sim.tensor_map import decode, encode
from twofour.tensor_map import TensorMap

# CUtensorMapDataType of cuda.h.
DATA_TYPES = {6: "f16", 7: "f32", 8: "f64", 9: "bf16"}
STAR = {(0, 0): 0.5, (0, 1): 0.25, (0, -3): 0.25}
MAPS = [
    {"view": 0, "lead": 1, "box": [3, 8], "element": "f64"},
    {"view": 1, "lead": 0, "box": [1, 4], "element": "f64"},
]


@pytest.fixture
def driver(monkeypatch):
    """A driver that encodes as the simulator does, after a `check`; `code` is what it returns."""
    state = SimpleNamespace(code=0, modes=None, check=lambda: None)

    def encode_tiled(place, kind, rank, address, extents, strides, box, steps, *modes):
        state.check()
        assert place % 64 == 0 and list(steps) == [1] * rank
        state.modes = modes
        tensor = TensorMap(
            address, DATA_TYPES[kind], tuple(extents), tuple(strides)[: rank - 1], tuple(box)
        )
        ctypes.memmove(place, encode(tensor), 128)
        return state.code

    library = SimpleNamespace(cuTensorMapEncodeTiled=encode_tiled)
    monkeypatch.setattr(ctypes, "CDLL", lambda name: library)
    cuda_tensor_map._encode_tiled.cache_clear()
    yield state
    cuda_tensor_map._encode_tiled.cache_clear()


@pytest.mark.parametrize("element", DATA_TYPES.values())
@pytest.mark.parametrize("rank", [1, 2, 3])
def test_what_the_driver_is_told(driver, element, rank):
    tensor = TensorMap(1 << 12, element, (40, 5, 6)[:rank], (96, 480)[: rank - 1], (8, 2, 3)[:rank])
    assert decode(cuda_tensor_map.encode(tensor)) == tensor
    # No interleaving, no swizzling, lines of 128 bytes, zeros beyond the tensor.
    assert driver.modes == (0, 0, 2, 0)


def test_errors_of_the_driver(driver, monkeypatch):
    driver.code = 1
    tensor = TensorMap(0, "f16", (8,), (), (8,))
    with pytest.raises(TwofourError, match="cuTensorMapEncodeTiled to take .*, got error 1"):
        cuda_tensor_map.encode(tensor)
    cuda_tensor_map._encode_tiled.cache_clear()
    monkeypatch.setattr(ctypes, "CDLL", lambda name: SimpleNamespace())
    with pytest.raises(TwofourError, match="a CUDA driver with cuTensorMapEncodeTiled"):
        cuda_tensor_map.encode(tensor)


def bundle_with_maps():
    bundle = linear_bundle(STAR, target="sm_90")
    entry = kernel_entry(2, 32) | {"maps": MAPS, "shared_bytes": 4096}
    return Bundle({**bundle.manifest, "kernels": {"single": entry}}, bundle.ptx)


def test_kernels_get_the_maps_of_their_views(driver, monkeypatch):
    gpu = fake_cupy.install(monkeypatch)
    calls = []

    def launch_kernel(function, *rest):
        *shape, stream, places, extra = rest
        pointers = np.ctypeslib.as_array((ctypes.c_uint64 * 16).from_address(places)).tolist()
        words = [int(ctypes.c_int64.from_address(x).value) for x in pointers[:14]]
        maps = [decode(ctypes.string_at(x, 128)) for x in pointers[14:]]
        calls.append((shape, words, maps))

    gpu.launch_kernel = launch_kernel
    from_bundle(bundle_with_maps())(np.zeros((9, 33)), boundary="zero")
    ((shape, words, maps),) = calls
    assert shape == [9 * 2, 1, 1, 32, 1, 1, 4096]
    source, target = words[:7], words[7:]
    # Rows of 3 + 33 + 1 elements, whose fourth lies at a multiple of 32 bytes, in 40.
    assert source[3:5] == [9, 37] and source[5] == target[5] == 40
    assert maps[0] == TensorMap(source[0] - 8, "f64", (38, 9), (320,), (8, 3))
    # Rows end with a unit of 16 bytes: the engine would write the whole of the last one.
    assert maps[1] == TensorMap(target[0], "f64", (32, 9), (320,), (4, 1))


def test_threads_that_never_called_cuda_get_a_context(driver, monkeypatch):
    gpu, calls = fake_cupy.install(monkeypatch), []
    driver.check = gpu.check_context
    gpu.launch_kernel = lambda *arguments: calls.append(arguments)
    program = from_bundle(bundle_with_maps())
    # Loading makes a context in this thread.
    program.kernels()
    with ThreadPoolExecutor(1) as thread:
        thread.submit(program, np.zeros((9, 33)), boundary="zero").result()
    assert len(calls) == 1


def spec(rank):
    maps = (MapSpec(0, 2, (*(4,) * (rank - 1), 8), "f16"),)
    return KernelSpec("k", rank, 1, 1, (), 32, (1,) * rank, 1, 0, 32, maps=maps)


def test_axes_of_one_element_have_some_stride():
    view = np.zeros((4, 64), np.float16)[:1, :33]
    strange = np.lib.stride_tricks.as_strided(view, (1, 1, 33), (3, 5, 2))
    (tensor,) = tensor_maps(spec(3), [strange], [(1 << 12) + 4])
    assert tensor == TensorMap(1 << 12, "f16", (35, 1, 1), (80, 80), (8, 4, 4))


@pytest.mark.parametrize(
    "extents, expected", [((1, 4), (96, 96)), ((4, 1), (480, 480)), ((4, 4), (96, 480))]
)
def test_strides_divide_the_next_slower_ones(extents, expected):
    view = np.lib.stride_tricks.as_strided(np.zeros(1, np.float16), (*extents, 33), (480, 96, 2))
    (tensor,) = tensor_maps(spec(3), [view], [(1 << 12) + 4])
    assert tensor.strides == expected


def test_extents_beyond_the_coordinates():
    view = np.lib.stride_tricks.as_strided(np.zeros(1, np.float16), (2**31 - 1,), (2,))
    with pytest.raises(TwofourError, match=r"extents up to 2\^31 - 1 for bulk tensor copies"):
        tensor_maps(spec(1), [view], [1 << 12])
