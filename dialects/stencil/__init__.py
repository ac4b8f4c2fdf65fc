# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The stencil dialect: fields, temps, applies, and the linear ops that passes find in them."""

from twofour.dialects.stencil import linear_ops, ops, outer_ops
from twofour.dialects.stencil.types import BoundsAttr, FieldType, ResultType, Stencil, TempType

__all__ = [
    "BoundsAttr",
    "FieldType",
    "ResultType",
    "Stencil",
    "TempType",
    "linear_ops",
    "ops",
    "outer_ops",
]
