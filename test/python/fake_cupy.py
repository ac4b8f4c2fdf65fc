# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""CuPy and a GPU as far as the runtime asks for them: memory of the process, kernels in NumPy.

`install` puts the module `cupy` into sys.modules. Kernels are functions of NumPy views, found by
name in `kernels`; `log` tells what was asked for, in order. A test may set `launch_kernel`, the
driver's own way to launch. Each thread has a CUDA context after its first call that makes one;
memory comes from a pool, which makes none.
"""

import ctypes
import sys
import threading
from types import ModuleType, SimpleNamespace

import numpy as np

from runtime_reference import source as folded


class CUDARuntimeError(RuntimeError):
    pass


class CUDADriverError(RuntimeError):
    pass


class ndarray:  # noqa: N801 - CuPy's name
    """A CuPy array; only the operations that CuPy has as well."""

    def __init__(self, host, number=0):
        self.host = host
        self.device = SimpleNamespace(id=number)
        self.data = SimpleNamespace(ptr=host.__array_interface__["data"][0])

    dtype = property(lambda self: self.host.dtype)
    shape = property(lambda self: self.host.shape)
    ndim = property(lambda self: self.host.ndim)
    size = property(lambda self: self.host.size)
    strides = property(lambda self: self.host.strides)
    itemsize = property(lambda self: self.host.itemsize)
    flags = property(lambda self: self.host.flags)

    def __getitem__(self, index):
        return ndarray(self.host[index], self.device.id)

    def __setitem__(self, index, value):
        # CuPy takes arrays of NumPy only where they have no axes.
        assert isinstance(value, ndarray) or np.ndim(value) == 0
        self.host[index] = value.host if isinstance(value, ndarray) else value

    def copy(self):
        return ndarray(_aligned(self.host), self.device.id)

    def view(self, dtype=None):
        return ndarray(self.host.view(dtype or self.dtype), self.device.id)

    def __dlpack_device__(self):
        return (2, self.device.id)

    def __dlpack__(self, **options):
        return self.host.__dlpack__()

    __array_interface__ = property()


def _aligned(values):
    values = np.asarray(values)
    raw = np.empty(values.nbytes + 512, np.uint8)
    start = -raw.ctypes.data % 512
    array = raw[start : start + values.nbytes].view(values.dtype).reshape(values.shape)
    array[...] = values
    return array


class Gpu(ModuleType):
    """The module; attributes in capitals are what a test may change before it opens a device."""

    def __init__(self):
        super().__init__("cupy")
        self.COUNT, self.CAPABILITY, self.DRIVER, self.SHARED_MOST = 1, "90", 13000, 232448
        self.COUNT_ERROR = self.LOAD_ERROR = self.CAPTURE_ERROR = None
        self.TAKEN = None  # the code that is loaded in spite of LOAD_ERROR
        self.STREAM = 0
        self.log = []
        self.kernels = {}
        self.ndarray = ndarray
        self.capturing = self.launch_kernel = None
        self.thread = threading.local()
        gpu = self

        class Device:
            def __init__(self, number):
                self.number = number
                self.compute_capability = gpu.CAPABILITY
                self.attributes = {
                    "MaxSharedMemoryPerBlockOptin": gpu.SHARED_MOST,
                    "MaxSharedMemoryPerMultiprocessor": gpu.SHARED_MOST + 1024,
                    "ReservedSharedMemoryPerBlock": 1024,
                }

            def __enter__(self):
                return self

            def __exit__(self, *exception):
                pass

        class Module:
            def load(self, image):
                assert isinstance(image, bytes)
                gpu.make_context()
                gpu.log.append(("load", image))
                if gpu.LOAD_ERROR and (gpu.TAKEN is None or image != gpu.TAKEN):
                    raise CUDADriverError(gpu.LOAD_ERROR)

            def get_function(self, name):
                return Function(name)

        class Function:
            def __init__(self, name):
                self.name, self.ptr = name, id(name)

            def __call__(self, grid, block, arguments, shared_mem=0):
                gpu.make_context()
                call = (self.name, grid, block, tuple(arguments), shared_mem)
                if gpu.capturing is not None:
                    gpu.capturing.append(call)
                    return
                gpu.execute(call)

        class Stream:
            def __init__(self, non_blocking=False):
                assert non_blocking

            def __enter__(self):
                return self

            def __exit__(self, *exception):
                pass

            def begin_capture(self):
                gpu.capturing = []

            def end_capture(self):
                calls, gpu.capturing = gpu.capturing, None
                if gpu.CAPTURE_ERROR:
                    raise CUDARuntimeError(gpu.CAPTURE_ERROR)

                def launch():
                    gpu.log.append(("graph", len(calls)))
                    for call in calls:
                        gpu.execute(call)

                return SimpleNamespace(launch=launch)

        def device_count():
            if gpu.COUNT_ERROR:
                raise CUDARuntimeError(gpu.COUNT_ERROR)
            return gpu.COUNT

        def free(pointer):
            assert pointer == 0 and gpu.capturing is None
            gpu.make_context()

        def launch_kernel(*arguments):
            gpu.check_context()
            gpu.launch_kernel(*arguments)

        def set_attribute(pointer, attribute, value):
            gpu.log.append(("attribute", attribute, value))

        self.cuda = SimpleNamespace(
            Device=Device,
            Module=Module,
            Stream=Stream,
            get_current_stream=lambda: SimpleNamespace(
                ptr=gpu.STREAM, synchronize=lambda: gpu.log.append(("synchronize",))
            ),
            runtime=SimpleNamespace(
                CUDARuntimeError=CUDARuntimeError,
                getDeviceCount=device_count,
                getDeviceProperties=lambda number: {
                    "name": b"NVIDIA Fake",
                    "multiProcessorCount": 4,
                },
                driverGetVersion=lambda: gpu.DRIVER,
                free=free,
            ),
            driver=SimpleNamespace(
                CUDADriverError=CUDADriverError,
                funcSetAttribute=set_attribute,
                launchKernel=launch_kernel,
            ),
        )

    def make_context(self):
        """What the first call of CUDA's runtime does in a thread."""
        self.thread.has_context = True

    def check_context(self):
        """What the driver does."""
        if not getattr(self.thread, "has_context", False):
            raise CUDADriverError("CUDA_ERROR_INVALID_CONTEXT: invalid device context")

    def execute(self, call):
        name, grid, block, arguments, shared = call
        self.log.append((name, grid, block, shared))
        self.kernels[name](arguments)

    def zeros(self, shape, dtype):
        return ndarray(_aligned(np.zeros(shape, dtype)))

    def empty(self, shape, dtype):
        return ndarray(_aligned(np.full(shape, 0x7F, dtype)))

    def array(self, values, order=None, subok=False):
        return ndarray(_aligned(values.host if isinstance(values, ndarray) else values))

    def asarray(self, values):
        return values if isinstance(values, ndarray) else self.array(values)

    def ascontiguousarray(self, values):
        return values

    def asnumpy(self, values):
        return values.host.copy()

    def from_dlpack(self, array):
        return ndarray(array.values, array.device[1])


def install(monkeypatch) -> Gpu:
    gpu = Gpu()
    monkeypatch.setitem(sys.modules, "cupy", gpu)
    return gpu


def memref(words, rank, dtype):
    """The NumPy view of a flattened descriptor, and the words after it."""
    assert all(word.dtype.itemsize == 8 for word in words[: 3 + 2 * rank])
    address, aligned, offset, *rest = map(int, words[: 3 + 2 * rank])
    assert address == aligned and offset == 0
    shape, strides = rest[:rank], [s * np.dtype(dtype).itemsize for s in rest[rank:]]
    extent = sum((n - 1) * s for n, s in zip(shape, strides, strict=True)) + 8
    buffer = (ctypes.c_char * extent).from_address(address)
    return np.ndarray(shape, dtype, buffer, 0, strides), words[3 + 2 * rank :]


def stencil_kernel(weights, dtype=np.float64):
    """A kernel with one input and one output."""
    rank = len(next(iter(weights)))
    lo = [max(0, -min(o[axis] for o in weights)) for axis in range(rank)]

    def run(words):
        source, words = memref(words, rank, dtype)
        target, words = memref(words, rank, dtype)
        assert len(words) == 0
        total = np.zeros(target.shape)
        for offset, weight in weights.items():
            start = np.add(offset, lo)
            total += weight * source[tuple(map(slice, start, start + target.shape))]
        target[...] = total

    return run


def refresh_kernel(rank):
    """A boundary kernel for f64, cell by cell."""

    def run(words):
        source, words = memref(words, rank, np.float64)
        numbers, words = words[: 4 * rank], words[4 * rank :]
        assert [n.dtype.name for n in numbers] == ["int32", "int64", "int64", "int64"] * rank
        target, words = memref(words, rank, np.float64)
        assert len(words) == 0
        before = source.copy()
        for cell in np.ndindex(target.shape):
            value, place = None, list(cell)
            for axis, at in enumerate(cell):
                mode, lower, upper, filled = numbers[4 * axis : 4 * axis + 4]
                if lower <= at < upper:
                    continue
                if mode == 1:
                    value = filled.view(np.float64)
                elif mode > 1:
                    name = {2: "nearest", 3: "periodic", 4: "reflect"}[int(mode)]
                    place[axis] = lower + folded(name, int(upper - lower), int(at - lower))
            target[cell] = before[tuple(place)] if value is None else value

    return run
