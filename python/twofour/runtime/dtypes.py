# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Element types of fields: what they are called, how NumPy stores them, and the check of arrays.

NumPy has no bfloat16. A bf16 field is stored as uint16 bit patterns; arrays of the `ml_dtypes`
package are recognised by the name of their dtype and viewed as such.
"""

import difflib
import sys
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from twofour.errors import SourceLocation, TwofourError


@dataclass(frozen=True)
class ElementType:
    """Storage of one element: `storage` is the NumPy dtype of the bits, `accumulation` the name of
    the element type that sums are formed in, `itemsize` the size in bytes.
    """

    name: str
    storage: np.dtype
    accumulation: str
    itemsize: int

    @property
    def description(self) -> str:
        """The name and what arrays of it look like in NumPy, for messages."""
        return _DESCRIPTIONS.get(self.name, f"{self.name} ({self.storage.name})")


_DESCRIPTIONS = {
    "f16": "f16 (float16)",
    "bf16": "bf16 (bfloat16, or uint16 bit patterns)",
    "f32": "f32 (float32)",
    "f64": "f64 (float64)",
}

ELEMENT_TYPES = {
    "f16": ElementType("f16", np.dtype(np.float16), "f32", 2),
    "bf16": ElementType("bf16", np.dtype(np.uint16), "f32", 2),
    "f32": ElementType("f32", np.dtype(np.float32), "f32", 4),
    "f64": ElementType("f64", np.dtype(np.float64), "f64", 8),
}


def element_type(name: str) -> ElementType:
    """Return the element type called `name`.

    Raises TwofourError, with the choices and the nearest of them, for any other name.
    """
    if isinstance(name, str) and name in ELEMENT_TYPES:
        return ELEMENT_TYPES[name]
    raise TwofourError(f"expected a dtype out of {choices(ELEMENT_TYPES, name)}")


# What fields of a program may hold besides numbers to compute with; kernels copy and add them.
_INTEGER_STORAGE = {
    "i1": np.bool_,
    "i8": np.int8,
    "i16": np.int16,
    "i32": np.int32,
    "i64": np.int64,
    "index": np.int64,
}


def field_element_type(name: str) -> ElementType:
    """Return the element type of a program's field: floats as above, or MLIR's integer types.

    Raises TwofourError for a type that no array can hold.
    """
    if name in _INTEGER_STORAGE:
        storage = np.dtype(_INTEGER_STORAGE[name])
        return ElementType(name, storage, name, storage.itemsize)
    if name in ELEMENT_TYPES:
        return ELEMENT_TYPES[name]
    allowed = (*ELEMENT_TYPES, *_INTEGER_STORAGE)
    raise TwofourError(f"expected an element type out of {choices(allowed, name)}")


def choices(allowed: Sequence[str], given: object) -> str:
    """Return 'a, b, c, got 'x'' with a suggestion where `given` looks like a misspelt choice."""
    near = difflib.get_close_matches(str(given), allowed, n=1)
    hint = f" (did you mean {near[0]!r}?)" if near else ""
    return f"{', '.join(allowed)}, got {given!r}{hint}"


def element_type_of(array: np.ndarray) -> ElementType:
    """Return the element type that stores `array`; uint16 means bf16 bit patterns.

    Raises TwofourError for a dtype that stores none.
    """
    for element in ELEMENT_TYPES.values():
        if _stores(array.dtype, element):
            return element
    supported = ", ".join(_DESCRIPTIONS.values())
    raise TwofourError(f"expected an array of {supported}, got {array.dtype.name}")


def check_array(
    array: np.ndarray,
    element: ElementType,
    rank: int | None = None,
    shape: Sequence[int] | None = None,
    what: str = "input",
    location: SourceLocation | None = None,
    array_type: type = np.ndarray,
) -> None:
    """Check that `array` can be a field of `element`: any strides, any values (NaN included).

    Raises TwofourError where it is not a NumPy array (an `array_type`), its dtype, byte order, rank
    or shape is another than expected, or it has no elements. `what` names the array in the message.
    """

    def fail(expected: str, got: str) -> None:
        raise TwofourError(f"{what}: expected {expected}, got {got}", location)

    if not isinstance(array, array_type):
        kind = "NumPy" if array_type is np.ndarray else "CuPy"
        fail(f"a {kind} array", type(array).__name__)
    if _is_masked(array):
        fail("a NumPy array without a mask", "a masked array")
    if not _stores(array.dtype, element):
        if not array.dtype.isnative and _stores(array.dtype.newbyteorder("="), element):
            fail(f"{element.description} in native byte order", f"dtype {array.dtype.str!r}")
        fitting = [name for name in ELEMENT_TYPES if array.dtype.name == f"float{name[1:]}"]
        are_floats = fitting and element.name in ELEMENT_TYPES
        hint = f"; convert it, or ask for dtype {fitting[0]}" if are_floats else ""
        fail(element.description, f"{array.dtype.name}{hint}")
    if rank is not None and array.ndim != rank:
        fail(f"an array of rank {rank}", f"rank {array.ndim} (shape {array.shape})")
    if shape is not None and array.shape != tuple(shape):
        fail(f"an array of shape {tuple(shape)}", f"shape {array.shape}")
    if array.size == 0:
        fail("an array with at least one element", f"shape {array.shape}")


def _is_masked(array: np.ndarray) -> bool:
    # NumPy takes a while to load this module, and has done so where there is such an array.
    return "numpy.ma" in sys.modules and isinstance(array, np.ma.MaskedArray)


def storage_view(array: np.ndarray, element: ElementType) -> np.ndarray:
    """Return `array` with the storage dtype of `element`: the same memory, bf16 as uint16."""
    return array if array.dtype == element.storage else array.view(element.storage)


def _stores(dtype: np.dtype, element: ElementType) -> bool:
    return dtype == element.storage or (element.name == "bf16" and dtype.name == "bfloat16")


def bf16_to_float32(bits: np.ndarray) -> np.ndarray:
    """Return the float32 values (exact) of the bf16 bit patterns `bits` (uint16, any shape)."""
    return (np.asarray(bits, np.uint16).astype(np.uint32) << np.uint32(16)).view(np.float32)


def float32_to_bf16(values: np.ndarray) -> np.ndarray:
    """Return the bf16 bit patterns (uint16) of float32 `values`, rounded to nearest, ties to even.

    Values beyond the largest bf16 become infinite; NaN stays NaN, with its sign and the upper
    bits of its payload, and quiet.
    """
    words = np.asarray(values, np.float32).view(np.uint32)
    upper = words >> np.uint32(16)
    rounded = (words + np.uint32(0x7FFF) + (upper & np.uint32(1))) >> np.uint32(16)
    # Rounding could carry a NaN payload into the sign or clear it, which would make it infinite.
    return np.where(np.isnan(values), upper | np.uint32(0x40), rounded).astype(np.uint16)


def to_storage(values: np.ndarray, element: ElementType) -> np.ndarray:
    """Return `values` (real numbers, any shape) rounded to `element`, in its storage dtype.

    bf16 is rounded from float32. Values out of range become infinite.
    """
    with np.errstate(over="ignore"):
        if element.name == "bf16":
            return float32_to_bf16(np.asarray(values, np.float32))
        return np.asarray(values, element.storage)


def from_storage(array: np.ndarray, element: ElementType) -> np.ndarray:
    """Return the values of `array` (storage dtype of `element`) as float64, exactly."""
    if element.name == "bf16":
        return bf16_to_float32(array).astype(np.float64)
    return array.astype(np.float64)
