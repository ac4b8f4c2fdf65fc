# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Tensor maps as CUDA encodes them, by cuTensorMapEncodeTiled, which CuPy has no binding for."""

import ctypes
import sys
from collections.abc import Callable
from functools import cache

from twofour.errors import TwofourError
from twofour.tensor_map import ALIGNMENT, BYTES, TensorMap

# Enumerations of cuda.h: CUtensorMapDataType, and without interleaving, swizzling or NaNs beyond
# the tensor. What a copy asks of memory comes to the second-level cache in lines of 128 bytes.
_DATA_TYPES = {"f16": 6, "f32": 7, "f64": 8, "bf16": 9}
_INTERLEAVE_NONE = _SWIZZLE_NONE = _FILL_ZEROS = 0
_PROMOTION_128_BYTES = 2


@cache
def _encode_tiled() -> Callable[..., int]:
    """The driver's function; raises TwofourError where the driver has none."""
    name = "nvcuda.dll" if sys.platform == "win32" else "libcuda.so.1"
    try:
        function = ctypes.CDLL(name).cuTensorMapEncodeTiled
    except (OSError, AttributeError):
        raise TwofourError(
            "expected a CUDA driver with cuTensorMapEncodeTiled (CUDA 12 or later), got none"
        ) from None
    words, longs = ctypes.POINTER(ctypes.c_uint32), ctypes.POINTER(ctypes.c_uint64)
    function.restype = ctypes.c_int
    function.argtypes = [
        ctypes.c_void_p,
        ctypes.c_int,
        ctypes.c_uint32,
        ctypes.c_void_p,
        longs,
        longs,
        words,
        words,
        *[ctypes.c_int] * 4,
    ]
    return function


def encode(tensor: TensorMap) -> bytes:
    """A map as the 128 bytes that kernels take.

    Raises TwofourError where the driver has no such function or refuses the map.
    """
    rank = tensor.rank
    buffer = ctypes.create_string_buffer(BYTES + ALIGNMENT)
    place = -ctypes.addressof(buffer) % ALIGNMENT
    code = _encode_tiled()(
        ctypes.addressof(buffer) + place,
        _DATA_TYPES[tensor.element],
        rank,
        tensor.address,
        (ctypes.c_uint64 * rank)(*tensor.extents),
        # A tensor of one axis has no stride, but a pointer is still asked for.
        (ctypes.c_uint64 * max(1, rank - 1))(*tensor.strides),
        (ctypes.c_uint32 * rank)(*tensor.box),
        (ctypes.c_uint32 * rank)(*[1] * rank),
        _INTERLEAVE_NONE,
        _SWIZZLE_NONE,
        _PROMOTION_128_BYTES,
        _FILL_ZEROS,
    )
    if code:
        raise TwofourError(f"expected cuTensorMapEncodeTiled to take {tensor}, got error {code}")
    return buffer.raw[place : place + BYTES]
