# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Types and attributes of the stencil dialect, storage-compatible with xDSL's."""

import math
from typing import Any

from twofour.box import MAX_POINTS, Box
from twofour.mlir import ext, ir
from twofour.mlir_support import VerificationFailure, expect, index_array, int_tuple


class Stencil(ext.Dialect, name="stencil"):
    """Stencil programs: fields in memory, temps as values, and the loops between them."""


class BoundsAttr(Stencil.Attribute, name="bounds"):
    """Half-open bounds, one integer an axis: `#stencil.bounds<[0, 0], [64, 64]>`."""

    lb: ir.ArrayAttr
    ub: ir.ArrayAttr

    @classmethod
    def of(cls, box: Box) -> "BoundsAttr":
        _check_size(box)
        return cls.get(index_array(box.lower), index_array(box.upper))

    @property
    def box(self) -> Box:
        """Raises VerificationFailure where the bounds are empty or of two ranks."""
        lower = int_tuple(ir.ArrayAttr(self.params[0]), "lower bounds")
        upper = int_tuple(ir.ArrayAttr(self.params[1]), "upper bounds")
        expect(
            0 < len(lower) == len(upper),
            lambda: (
                f"expected lower and upper bounds of one rank, got {list(lower)} and {list(upper)}"
            ),
        )
        for axis, (lo, up) in enumerate(zip(lower, upper, strict=True)):
            if lo >= up:
                raise VerificationFailure(
                    f"expected bounds that are not empty, got [{lo},{up}] on axis {axis}"
                )
        box = Box(lower, upper)
        _check_size(box)
        return box


def _check_size(box: Box) -> None:
    # Beyond this, sizes in bytes and sums of bounds and offsets overflow 64 bits.
    expect(
        max(map(abs, box.lower + box.upper)) <= MAX_POINTS and math.prod(box.extents) <= MAX_POINTS,
        lambda: f"expected bounds of at most {MAX_POINTS} points within +-{MAX_POINTS}, got {box}",
    )


class GridType(Stencil.Type):
    """What fields and temps share: bounds (or only a rank, when they are unknown) and elements."""

    bounds: Any
    element: Any

    @classmethod
    def of(cls, box: Box | int, element: ir.Type) -> "GridType":
        """A type with known bounds, or of a rank with unknown ones."""
        if isinstance(box, Box):
            return cls.get(BoundsAttr.of(box), element)
        return cls.get(ir.IntegerAttr.get(ir.IntegerType.get_signless(64), box), element)

    @property
    def box(self) -> Box | None:
        """The bounds, or None while they are unknown; raises VerificationFailure when malformed."""
        parameter = self.params[0].maybe_downcast()
        if isinstance(parameter, BoundsAttr):
            return parameter.box
        self.rank  # noqa: B018 - rejects what is neither bounds nor a rank
        return None

    @property
    def rank(self) -> int:
        """The number of axes; raises VerificationFailure when malformed."""
        parameter = self.params[0].maybe_downcast()
        if isinstance(parameter, BoundsAttr):
            return parameter.box.rank
        expect(
            isinstance(parameter, ir.IntegerAttr) and parameter.value > 0,
            lambda: f"expected #stencil.bounds or a positive rank in the type, got {parameter}",
        )
        return parameter.value

    @property
    def element_type(self) -> ir.Type:
        parameter = self.params[1].maybe_downcast()
        expect(
            isinstance(parameter, ir.TypeAttr), lambda: f"expected an element type, got {parameter}"
        )
        return parameter.value

    def check(self) -> None:
        """Raises VerificationFailure when the type is malformed: MLIR checks no type by itself."""
        _ = self.box, self.element_type

    def with_box(self, box: Box | int) -> "GridType":
        return type(self).of(box, self.element_type)


class FieldType(GridType, name="field"):
    """An array in memory: `!stencil.field<#stencil.bounds<[-1], [65]>, f64>`.

    The element at coordinate c lies at index c - lower of the array. `!stencil.field<1 : i64, f64>`
    has rank 1 and unknown bounds.
    """


class TempType(GridType, name="temp"):
    """A grid of values, not in memory; the same spelling as a field's."""


class ResultType(Stencil.Type, name="result"):
    """What `stencil.store_result` yields for one point: `!stencil.result<f64>`."""

    element: Any

    @property
    def element_type(self) -> ir.Type:
        parameter = self.params[0].maybe_downcast()
        expect(
            isinstance(parameter, ir.TypeAttr), lambda: f"expected an element type, got {parameter}"
        )
        return parameter.value
