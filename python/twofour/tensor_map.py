# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Tensor maps: a tensor in global memory, and the box of it that the copy engine moves.

The limits are those of cuTensorMapEncodeTiled (CUDA driver API) without interleaving or swizzling,
for elements that follow each other.
"""

from dataclasses import dataclass

from twofour.errors import TwofourError

BYTES, ALIGNMENT = 128, 64  # of an encoded map
ITEMSIZES = {"f16": 2, "bf16": 2, "f32": 4, "f64": 8}
MAX_RANK, MAX_BOX = 5, 256
MAX_EXTENT, MAX_STRIDE = 2**32, 2**40
UNIT = 16  # bytes; addresses, strides and the rows of boxes are multiples of it


@dataclass(frozen=True)
class TensorMap:
    """A tensor of f16, bf16, f32 or f64, and a box; axes innermost first.

    `address` is that of the first element, `extents` and `box` count elements, `strides` bytes;
    they leave out the innermost axis.

    Raises TwofourError for what the copy engine does not take.
    """

    address: int
    element: str
    extents: tuple[int, ...]
    strides: tuple[int, ...]
    box: tuple[int, ...]

    def __post_init__(self):
        rank = len(self.extents)
        _require(self.element in ITEMSIZES, f"elements of {', '.join(ITEMSIZES)}", self.element)
        _require(1 <= rank <= MAX_RANK, f"1 to {MAX_RANK} axes", rank)
        _require(len(self.strides) == rank - 1, f"{rank - 1} strides", self.strides)
        _require(len(self.box) == rank, f"{rank} extents of a box", self.box)
        _require(
            0 <= self.address < 2**64 and self.address % UNIT == 0,
            f"a first element at a multiple of {UNIT} bytes",
            hex(self.address),
        )
        _require(
            all(1 <= n <= MAX_EXTENT for n in self.extents), "extents from 1 to 2^32", self.extents
        )
        _require(
            all(0 <= n < MAX_STRIDE and n % UNIT == 0 for n in self.strides),
            f"strides below 2^40 that are multiples of {UNIT} bytes",
            self.strides,
        )
        _require(all(1 <= n <= MAX_BOX for n in self.box), f"boxes up to {MAX_BOX}", self.box)
        row = self.box[0] * self.itemsize
        _require(row % UNIT == 0, f"rows of a box of a multiple of {UNIT} bytes", row)

    @property
    def itemsize(self) -> int:
        """Bytes of an element."""
        return ITEMSIZES[self.element]

    @property
    def rank(self) -> int:
        """The number of axes."""
        return len(self.extents)


def _require(holds: bool, expected: str, got: object) -> None:
    if not holds:
        raise TwofourError(f"tensor map: expected {expected}, got {got}")
