# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Array libraries that are not installed, as far as the runtime asks for them: over NumPy arrays.

`torch` and `jax` stand for PyTorch and JAX: their tensors speak DLPack, say where they lie, and
show bfloat16 by the name of a dtype that NumPy does not have.
"""

import sys
from types import ModuleType

import numpy as np

DLPACK_CPU, DLPACK_CUDA, DLPACK_ROCM = 1, 2, 10


class DType:
    def __init__(self, name, storage):
        self.name, self.storage = name, np.dtype(storage)

    def __str__(self):
        return self.name


class Tensor:
    """A tensor of `library` over `values`; `device` is what DLPack says of it.

    A `negated` one stands for the numbers of the other sign, of which DLPack says nothing.
    """

    library = ""

    def __init__(self, values, dtype=None, device=(DLPACK_CPU, 0), refusal=None, negated=False):
        self.values = values
        self.dtype = DType(f"{self.library}.{dtype or values.dtype.name}", values.dtype)
        self.device, self.refusal = device, refusal
        self.exports, self.negated = 0, negated

    def is_neg(self):
        return self.negated

    def resolve_neg(self):
        return type(self)(-self.values)

    def __dlpack_device__(self):
        if isinstance(self.device, Exception):
            raise self.device
        return self.device

    def __dlpack__(self, **options):
        if self.refusal is not None:
            raise self.refusal
        if str(self.dtype).endswith("bfloat16"):
            raise BufferError("bfloat16 is not for everyone")
        self.exports += 1
        return self.values.__dlpack__(**options)

    def __getitem__(self, index):
        return type(self)(self.values[index], str(self.dtype).rpartition(".")[2], self.device)

    def __setitem__(self, index, value):
        if self.library == "jax":
            raise TypeError("JAX arrays are immutable\nand have x.at[idx]")
        assert type(value) is type(self) and str(value.dtype) == str(self.dtype)
        self.values[index] = -value.values if self.negated else value.values

    def view(self, dtype):
        name = str(dtype).rpartition(".")[2]
        return type(self)(self.values.view(dtype.storage), name, self.device)


def install(monkeypatch, library, tensor_module=None, namespace=False):
    """Put a fake library into sys.modules; returns its module, with a class `Tensor`."""
    module = ModuleType(library)
    kind = type("Tensor", (Tensor,), {"library": library})
    kind.__module__ = tensor_module or library
    if namespace:
        kind.__array_namespace__ = lambda self: module
    module.Tensor = kind
    module.int16 = DType(f"{library}.int16", np.int16)
    module.bfloat16 = DType(f"{library}.bfloat16", np.int16)

    def from_dlpack(array):
        device = array.__dlpack_device__()
        values = array.host if hasattr(array, "host") else np.from_dlpack(array)
        return kind(values, device=tuple(map(int, device)))

    module.from_dlpack = from_dlpack
    monkeypatch.setitem(sys.modules, library, module)
    return module
