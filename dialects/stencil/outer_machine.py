# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""What stencil matrixization assumes of the machine, and reads from the type of a result."""

from twofour.errors import TwofourError
from twofour.mlir_support import error_at

_BITS = {"f64": 64, "f32": 32}


def _element_bits(op) -> int:
    """Raises TwofourError, at the op, for elements that matrix registers do not add up."""
    element = str(op.results[0].type.element_type)
    if element not in _BITS:
        raise error_at(op, f"expected f64 or f32 elements for outer products, got {element}")
    return _BITS[element]


def matrix_registers(op) -> int:
    """Matrix registers of Arm SME for the op's elements: as many as an element has bytes."""
    return _element_bits(op) // 8


def vector_length(op, bits: int) -> int:
    """Elements of a vector of this many bits; raises TwofourError for fewer than two."""
    length = bits // _element_bits(op)
    if length < 2:
        raise error_at(op, f"expected vectors of two elements or more, got {bits} bits")
    return length


def check_vector_bits(bits: int) -> None:
    """Raises TwofourError for vectors of no bits."""
    if bits < 1:
        raise TwofourError(f"expected vectors of a positive number of bits, got {bits}")


def extents(op) -> tuple[int | None, ...]:
    """Outputs along each axis; None where the bounds are unknown."""
    result = op.results[0].type
    return (None,) * result.rank if result.box is None else result.box.extents
