# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""CUDA devices through CuPy, which is imported when the first of them is opened."""

import re
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from types import ModuleType

import numpy as np

from twofour.errors import DeviceFailure, TwofourError, Unsuitable
from twofour.runtime.bundle import Bundle
from twofour.runtime.devices import cuda_tensor_map
from twofour.runtime.devices.device import DeviceKernel, check_chip
from twofour.runtime.devices.launching import LaunchShape
from twofour.runtime.manifest import KernelSpec
from twofour.tensor_map import TensorMap

# Dynamic shared memory that kernels may have without asking for more.
PLAIN_SHARED_BYTES = 48 * 1024
# What the driver says of code that it cannot take.
_UNTAKEN = (
    "CUDA_ERROR_INVALID_IMAGE",
    "CUDA_ERROR_INVALID_PTX",
    "CUDA_ERROR_NO_BINARY_FOR_GPU",
    "CUDA_ERROR_UNSUPPORTED_PTX_VERSION",
)
# cudaStreamPerThread: every thread has a stream of its own under this handle.
_PER_THREAD = 2
# CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES, _PREFERRED_SHARED_MEMORY_CARVEOUT (percent)
_MAX_DYNAMIC_SHARED, _SHARED_PART = 8, 9


class CudaDevice:
    """The CUDA device of number `index`. Work goes to CuPy's current stream.

    Raises TwofourError where there is no CuPy, no driver or no such device.
    """

    def __init__(self, index: int = 0):
        self.array_module = _import_cupy()
        self._cuda = self.array_module.cuda
        self.index = index
        self._thread = threading.local()
        self._check_present()
        with self._cuda.Device(index) as device:
            self.capability = int(device.compute_capability)
            properties = self._cuda.runtime.getDeviceProperties(index)
            self.multiprocessors = int(properties["multiProcessorCount"])
            name = properties["name"]
            self.name = name.decode() if isinstance(name, bytes) else str(name)

    def __reduce__(self) -> tuple[type, tuple]:
        """Copies are the same device, opened again."""
        return type(self), (self.index,)

    def _check_present(self) -> None:
        runtime = self._cuda.runtime
        try:
            count = runtime.getDeviceCount()
        except runtime.CUDARuntimeError as error:
            raise TwofourError(
                f"expected a CUDA driver and device, got: {_reason(error)}"
            ) from None
        if not 0 <= self.index < count:
            raise TwofourError(f"expected a CUDA device {self.index}, got {count} devices")

    @contextmanager
    def active(self) -> Iterator[None]:
        """A context in which CuPy's arrays and launches are of this device.

        Raises DeviceFailure where CUDA fails in it.
        """
        failures = self._cuda.runtime.CUDARuntimeError, self._cuda.driver.CUDADriverError
        try:
            with self._cuda.Device(self.index):
                if not hasattr(self._thread, "token"):
                    # The driver's own functions need a CUDA context, which a thread has after its
                    # first call of the runtime; CuPy makes none where the device is the current one
                    # anyway.
                    self._cuda.runtime.free(0)
                    self._thread.token = object()
                yield
        except failures as error:
            raise DeviceFailure(f"expected {self.name} to work, got: {_reason(error)}") from error

    @property
    def stream(self) -> object:
        handle = self._handle
        return (handle, self._thread.token) if handle == _PER_THREAD else handle

    @property
    def _handle(self) -> int:
        return self._cuda.get_current_stream().ptr

    # CuPy's allocations begin at multiples of 512 bytes.
    def empty(self, shape: Sequence[int], dtype: np.dtype | type):
        return self.array_module.empty(shape, dtype)

    def zeros(self, shape: Sequence[int], dtype: np.dtype | type):
        return self.array_module.zeros(shape, dtype)

    def array(self, values):
        return self.array_module.array(values, order="C")

    def result(self, buffer):
        return buffer

    def address(self, array) -> int:
        return array.data.ptr

    def holds(self, array) -> bool:
        return True

    def encoded(self, tensor: TensorMap) -> bytes:
        return cuda_tensor_map.encode(tensor)

    def synchronize(self) -> None:
        self._cuda.get_current_stream().synchronize()

    def record(self, calls: Callable[[], None]) -> Callable[[], None] | None:
        """A CUDA graph of these calls, launched on the current stream; None where CUDA cannot."""
        # The legacy default stream, the usual current one, cannot be captured.
        stream = self._cuda.Stream(non_blocking=True)
        try:
            with stream:
                stream.begin_capture()
                try:
                    calls()
                finally:
                    graph = stream.end_capture()
        except RuntimeError:
            return None
        return graph.launch

    def load(self, bundle: Bundle) -> dict[str, DeviceKernel]:
        """Load the bundle's cubin where it was made for this very chip, else its PTX.

        The PTX stands in for a cubin that the driver does not take, too. Raises TwofourError where
        the chip or the driver is too old, Unsuitable for kernels that need more than the chip has.
        """
        check_chip(bundle.target, self.capability, self.name)
        exact = bundle.target.rstrip("abcdefghijklmnopqrstuvwxyz") == f"sm_{self.capability}"
        with self.active():
            module = self._module(bundle, bundle.cubin if exact else None)
            return {
                spec.name: DeviceKernel(self, spec, self._function(module, spec))
                for spec in bundle.kernels.values()
            }

    def _module(self, bundle: Bundle, cubin: bytes | None):
        for image in filter(None, (cubin, bundle.ptx.encode())):
            module = self._cuda.Module()
            try:
                module.load(image)
                return module
            except self._cuda.driver.CUDADriverError as error:
                reason = _reason(error)
                if not reason.startswith(_UNTAKEN):
                    raise
        raise TwofourError(
            f"expected a driver that takes {_form(bundle)}, got CUDA "
            f"{_version(self._cuda.runtime.driverGetVersion())}: {reason}"
        )

    def _function(self, module, spec: KernelSpec):
        function = module.get_function(spec.name)
        limits = self._cuda.Device(self.index).attributes if spec.shared_bytes else {}
        if spec.shared_bytes > PLAIN_SHARED_BYTES:
            most = limits["MaxSharedMemoryPerBlockOptin"]
            if spec.shared_bytes > most:
                raise Unsuitable(
                    f"expected a device with {spec.shared_bytes} bytes of shared memory a block "
                    f"for kernel {spec.name}, got {most} ({self.name})"
                )
            self._cuda.driver.funcSetAttribute(function.ptr, _MAX_DYNAMIC_SHARED, spec.shared_bytes)
        if spec.shared_bytes and spec.resident:
            # What these blocks do not need is left to the first-level cache.
            needed = spec.resident * (spec.shared_bytes + limits["ReservedSharedMemoryPerBlock"])
            part = min(100, -(-100 * needed // limits["MaxSharedMemoryPerMultiprocessor"]))
            self._cuda.driver.funcSetAttribute(function.ptr, _SHARED_PART, part)
        return function

    def launch(self, code, shape: LaunchShape, parameters: Sequence) -> None:
        grid, block = (shape.blocks, 1, 1), (shape.threads, 1, 1)
        if not any(isinstance(parameter, bytes) for parameter in parameters):
            code(grid, block, parameters, shape.shared_bytes)
            return
        # CuPy passes numbers and pointers only; the driver takes the address of each parameter.
        values = [
            np.frombuffer(x, np.uint8) if isinstance(x, bytes) else np.asarray(x)
            for x in parameters
        ]
        places = np.array([value.ctypes.data for value in values], np.uintp)
        self._cuda.driver.launchKernel(
            code.ptr, *grid, *block, shape.shared_bytes, self._handle, places.ctypes.data, 0
        )


def _import_cupy() -> ModuleType:
    try:
        import cupy
    except Exception as error:
        # Besides ImportError, CuPy raises what the libraries that it looks for raise.
        raise TwofourError(
            f"expected CuPy to run on a GPU (pip install cupy-cuda13x), got: {_reason(error)}"
        ) from None
    return cupy


def _form(bundle: Bundle) -> str:
    version = re.search(r"^\s*\.version\s+(\S+)", bundle.ptx, re.MULTILINE)
    return f"PTX {version[1] if version else 'without a version'} for {bundle.target}"


def _version(number: int) -> str:
    return f"{number // 1000}.{number % 1000 // 10}"


def _reason(error: Exception) -> str:
    """What an exception says, in one line."""
    return " ".join(str(error).split()) or type(error).__name__
