# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Arrays of callers: what kernels take, and results of the same kind and in the same place.

NumPy arrays, CuPy arrays, and whatever speaks DLPack or `__cuda_array_interface__` (PyTorch, JAX,
...) come in without a copy where they already lie in the memory that kernels work on. Libraries are
found through the arrays themselves; none is imported.

NumPy has no bfloat16: such arrays pass as 16-bit integers, on the way in and on the way out.
"""

import sys
from collections.abc import Sequence
from ctypes import addressof, c_char

import numpy as np

from twofour.errors import TwofourError
from twofour.runtime.dtypes import ElementType, check_array, storage_view
from twofour.runtime.memory import HOST, Memory, address_of

# Device types of DLPack: memory of the process (pinned or not), and memory of a CUDA device.
_DLPACK_HOST = (1, 3)
_DLPACK_CUDA = (2, 13)


def is_ready(array: object, shape: tuple[int, ...], dtype: np.dtype) -> bool:
    """Whether this is a NumPy array of that shape and dtype which native code reads as it is."""
    if type(array) is not np.ndarray:
        return False
    flags = array.flags
    return array.shape == shape and array.dtype is dtype and flags.c_contiguous and flags.aligned


def begins_of(
    arrays: Sequence, kinds: Sequence[tuple[tuple[int, ...], np.dtype]]
) -> list[int] | None:
    """Where arrays begin; None unless there is one of each shape and dtype that is_ready.

    As is_ready and address_of would find out, in one function instead of two for each.
    """
    if len(arrays) != len(kinds):
        return None
    begins = []
    for array, (shape, dtype) in zip(arrays, kinds, strict=True):
        if type(array) is not np.ndarray or array.shape != shape or array.dtype is not dtype:
            return None
        flags = array.flags
        if not (flags.c_contiguous and flags.aligned):
            return None
        try:
            begins.append(addressof(c_char.from_buffer(array)))
        except (BufferError, TypeError, ValueError):
            begins.append(address_of(array))
    return begins


def take(
    array: object,
    element: ElementType,
    memory: Memory = HOST,
    rank: int | None = None,
    shape: Sequence[int] | None = None,
    what: str = "input",
):
    """Return `array` as one of the memory's array module, on its device, with `element`'s storage.

    NumPy arrays for the host and CuPy arrays for a GPU are returned as they are. Raises
    TwofourError for anything that is no such array, for a place that the memory cannot read, and as
    `check_array` does.
    """
    module = memory.array_module
    if isinstance(array, np.ndarray):
        check_array(array, element, rank, shape, what)
        return array if module is np else module.asarray(storage_view(array, element))
    device = _cuda_device(array, what)
    if _is_bf16(array) and element.name != "bf16":
        raise TwofourError(f"{what}: expected {element.description}, got bfloat16")
    if device is None:
        values = _imported(array, np, what)
        check_array(values, element, rank, shape, what)
        return values if module is np else module.asarray(values)
    if module is np:
        raise TwofourError(
            f"{what}: expected an array in host memory for {memory.name}, got one of "
            f"{kind_of(array)} on CUDA device {device}"
        )
    if device != memory.index:
        raise TwofourError(
            f"{what}: expected an array on CUDA device {memory.index}, got one on device {device}"
        )
    values = array if isinstance(array, module.ndarray) else _imported(array, module, what)
    check_array(values, element, rank, shape, what, array_type=module.ndarray)
    return values


def give(result, like: object, memory: Memory = HOST):
    """Return `result`, an array of the memory's module, as one of the kind and place of `like`.

    `like` is an array that `take` has taken. Where its library has no `from_dlpack`, the result
    stays an array of NumPy or CuPy.
    """
    module = memory.array_module
    if isinstance(like, module.ndarray):
        return result
    if module is not np and (isinstance(like, np.ndarray) or _cuda_device(like, "input") is None):
        result = module.asnumpy(result)
    as_bf16 = _is_bf16(like) and result.dtype == np.uint16
    if isinstance(like, np.ndarray):
        return result.view(like.dtype) if as_bf16 else result
    namespace = _namespace(like)
    if not hasattr(namespace, "from_dlpack"):
        return result
    if as_bf16:
        given = namespace.from_dlpack(result.view(np.int16)).view(namespace.bfloat16)
    else:
        given = namespace.from_dlpack(result)
    if hasattr(given, "to_device") and given.device != like.device:
        # JAX can have several devices in the memory of the host.
        return given.to_device(like.device)
    return given


def _cuda_device(array: object, what: str) -> int | None:
    """The CUDA device that an array lies on, None for host memory.

    Raises TwofourError for what is no array.
    """
    if hasattr(array, "__dlpack__") and hasattr(array, "__dlpack_device__"):
        try:
            kind, number = array.__dlpack_device__()
        except Exception as failure:
            raise _refused(failure, what) from None
        if kind in _DLPACK_HOST:
            return None
        if kind in _DLPACK_CUDA:
            return int(number)
        raise TwofourError(
            f"{what}: expected an array in host memory or on a CUDA device, got DLPack device type "
            f"{int(kind)}"
        )
    if hasattr(array, "__cuda_array_interface__"):
        # The interface does not say which device; CuPy asks the driver about the address.
        module = sys.modules.get("cupy")
        if module is None:
            return 0
        try:
            return int(module.asarray(array).device.id)
        except Exception as failure:
            raise _refused(failure, what, "__cuda_array_interface__") from None
    got = type(array).__name__
    if hasattr(array, "__array__"):  # such as tables of pandas and arrays of xarray
        got = f"{got}, of which numpy.asarray makes one"
    raise TwofourError(f"{what}: expected an array of NumPy or another library, got {got}")


def _imported(array: object, module, what: str):
    """The array as one of NumPy or CuPy, over the same memory."""
    try:
        if not hasattr(array, "__dlpack__"):
            return module.asarray(array)
        if _is_hollow(array):
            raise BufferError("a tensor without storage")
        if is_negated(array):
            array = array.resolve_neg()
        if _is_bf16(array):
            if getattr(array, "requires_grad", False):
                # What has another view of it to pass on would not say so.
                raise BufferError("a tensor that requires gradient, use tensor.detach()")
            bits = array.view(_namespace(array).int16)
            return module.from_dlpack(bits).view(np.uint16)
        return module.from_dlpack(array)
    except Exception as failure:
        raise _refused(failure, what) from None


def _is_hollow(array: object) -> bool:
    """Whether a tensor of PyTorch has elements and no memory, for which NumPy takes its own."""
    return hasattr(array, "data_ptr") and 0 not in array.shape and array.data_ptr() == 0


def _refused(failure: Exception, what: str, way: str = "DLPack") -> TwofourError:
    """Libraries refuse in many ways: for gradients, layouts, dtypes, devices."""
    lines = str(failure).strip().splitlines() or [type(failure).__name__]
    return TwofourError(f"{what}: expected an array that {way} can pass on, got: {lines[0]}")


def is_negated(array: object) -> bool:
    """Whether PyTorch negates such a tensor when it is read; DLPack has no word for that."""
    return hasattr(array, "is_neg") and array.is_neg()


def _is_bf16(array: object) -> bool:
    return str(getattr(array, "dtype", "")).rpartition(".")[2] == "bfloat16"


def _namespace(array: object):
    """The module of functions for an array: its own word for it, or the package of its type."""
    if hasattr(array, "__array_namespace__"):
        return array.__array_namespace__()
    return sys.modules.get(type(array).__module__.partition(".")[0])


def kind_of(array: object) -> str:
    """The library and the type of an array, for messages."""
    return f"{type(array).__module__.partition('.')[0]}.{type(array).__name__}"
