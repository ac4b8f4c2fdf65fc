# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Tensor maps as the simulator encodes them in 128 bytes.

CUDA's encoding is not documented. The simulator's own holds, little-endian: the text `TENSORMP`;
the address of the first element (64 bits); the number of the element type (f16, bf16, f32, f64)
and the rank (32 bits each); five extents in elements, and four strides in bytes, innermost axis
first (64 bits each); five extents of the box (16 bits each). Axes beyond the rank are zero.
"""

import struct

from twofour.errors import TwofourError
from twofour.tensor_map import BYTES, ITEMSIZES, MAX_RANK, TensorMap

_MAGIC = b"TENSORMP"
_FORMAT = struct.Struct("<8sQII5Q4Q5H")
_ELEMENTS = tuple(ITEMSIZES)


def encode(tensor: TensorMap) -> bytes:
    """A map as 128 bytes."""

    def padded(numbers: tuple[int, ...], count: int) -> tuple[int, ...]:
        return (*numbers, *(0,) * (count - len(numbers)))

    data = _FORMAT.pack(
        _MAGIC,
        tensor.address,
        _ELEMENTS.index(tensor.element),
        tensor.rank,
        *padded(tensor.extents, MAX_RANK),
        *padded(tensor.strides, MAX_RANK - 1),
        *padded(tensor.box, MAX_RANK),
    )
    return data.ljust(BYTES, b"\0")


def decode(data: bytes) -> TensorMap:
    """The map that 128 bytes encode; raises TwofourError where they are none."""
    magic, address, element, rank, *numbers = _FORMAT.unpack(data[: _FORMAT.size])
    if magic != _MAGIC or not 1 <= rank <= MAX_RANK or element >= len(_ELEMENTS):
        raise TwofourError("expected a tensor map, got other bytes")
    extents, strides, box = numbers[:MAX_RANK], numbers[MAX_RANK:-MAX_RANK], numbers[-MAX_RANK:]
    return TensorMap(
        address,
        _ELEMENTS[element],
        tuple(extents[:rank]),
        tuple(strides[: rank - 1]),
        tuple(box[:rank]),
    )
