# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Reads and writes of the points that a kernel computes at once."""

from collections.abc import Sequence
from dataclasses import dataclass

from twofour.codegen.cpu.kernel_abi import EntryConstants
from twofour.mlir import arith, ir, memref, vector


@dataclass(frozen=True)
class Width:
    """How much of a row is computed at once: vectors of some lanes, the last ones masked.

    With `nontemporal` they are stored past the caches.
    """

    vectors: int
    lanes: int
    mask: ir.Value | None = None
    nontemporal: bool = False

    @property
    def columns(self) -> range:
        """Where the vectors begin, counted from the first."""
        return range(0, self.vectors * self.lanes, self.lanes)


def read_lanes(
    view: ir.Value, place: Sequence[ir.Value], width: Width, constants: EntryConstants
) -> ir.Value:
    """The vector of a view from a place on, zeros where it is masked; of one lane a number."""
    if width.lanes == 1:
        return memref.load(view, place)
    element = view.type.element_type
    kind = ir.VectorType.get([width.lanes], element)
    if width.mask is None:
        return vector.load(kind, view, place)
    return vector.maskedload(kind, view, place, width.mask, _zeros(kind, constants))


def _zeros(kind: ir.VectorType, constants: EntryConstants) -> ir.Value:
    element = kind.element_type
    is_float = isinstance(element, ir.FloatType)
    zero = ir.FloatAttr.get(element, 0.0) if is_float else ir.IntegerAttr.get(element, 0)
    attribute = ir.DenseElementsAttr.get_splat(kind, zero)
    return constants.get(("zeros", kind), lambda: arith.ConstantOp(kind, attribute).result)


def write_lanes(value: ir.Value, view: ir.Value, place: Sequence[ir.Value], width: Width) -> None:
    """Store a vector, or a number, from a place of a view on."""
    if width.lanes == 1:
        memref.store(value, view, place)
    elif width.nontemporal:
        alignment = width.lanes * value.type.element_type.width // 8
        vector.store(value, view, place, nontemporal=True, alignment=alignment)
    elif width.mask is None:
        vector.store(value, view, place)
    else:
        vector.maskedstore(view, place, width.mask, value)
