# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Fused steps as levels: a kernel that applies the single step once for each of them."""

from collections.abc import Sequence

from twofour.dialects.stencil.linear_ops import linear_terms
from twofour.dialects.stencil.sweep import enclosing_function
from twofour.dialects.stencil.transforms.fuse_steps import SINGLE_STEP_ATTRIBUTE, STEPS_ATTRIBUTE
from twofour.errors import Unsuitable
from twofour.mlir import func
from twofour.mlir_support import error_at
from twofour.reach import Reach, reach_of


def reach_of_op(op) -> Reach:
    """How far a linear op reaches per axis: minus its smallest and its largest offset."""
    offsets, _, _ = linear_terms(op)
    return reach_of(offsets)


def reach_of_steps(single: Reach, steps: int) -> Reach:
    """How far so many steps reach together, one after the other, each as far as `single`."""
    return tuple(tuple(steps * extent for extent in side) for side in single)


def levels_of(op, ops: Sequence) -> tuple[object, int]:
    """The op out of `ops` that is the single step of a fused one, and how many steps that fuses.

    An op that fuses none is its own single step. Raises TwofourError where the function of the
    single step has not one op, Unsuitable where the fused one reaches less far than its levels.
    """
    function = enclosing_function(op)
    if STEPS_ATTRIBUTE not in function.attributes:
        return op, 1
    levels = function.attributes[STEPS_ATTRIBUTE].value
    name = function.attributes[SINGLE_STEP_ATTRIBUTE].value
    singles = [other for other in ops if _name(enclosing_function(other)) == name]
    if len(singles) != 1:
        raise error_at(op, f"expected one operator in @{name} for levels, got {len(singles)}")
    reach = reach_of_steps(reach_of_op(singles[0]), levels)
    if reach != reach_of_op(op):
        # Weights that are too small vanished when they were convolved.
        raise error_at(op, f"expected a reach of {reach} for {levels} levels", Unsuitable)
    return singles[0], levels


def _name(function: func.FuncOp) -> str:
    return function.attributes["sym_name"].value
