# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""`stencil-fuse-steps`: temporal fusion, several steps in one sweep (SparStencil, section 4.1).

A function that is one linear step (a load, a weighted sum, a store) keeps its place; beside it
appears a second function that advances `steps` steps at once, by the weights convolved with
themselves:

    func.func @heat(...)                                            // one step
    func.func @heat_fused3(...) attributes {stencil.steps = 3, stencil.single_step = @heat}

The fused function writes only the points whose result does not depend on how halos change between
the steps: the bounds of its store are smaller by (steps - 1) times the reach. The points nearer to
the boundary take single steps, so that the whole equals single steps everywhere.
"""

import math
import operator
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import ClassVar

import numpy as np

from twofour.box import Box
from twofour.dialects.stencil.linear_ops import (
    WeightedSumOp,
    accumulation_type,
    addend_of,
    linear_terms,
    round_weight,
)
from twofour.dialects.stencil.types import BoundsAttr, TempType
from twofour.errors import TwofourError
from twofour.identifiers import free_name
from twofour.mlir import ir
from twofour.mlir_support import error_at, nested_functions, replace_op
from twofour.passes import ModulePass
from twofour.reach import halo_of
from twofour.runtime.manifest import MAX_FUSED_STEPS

STEPS_ATTRIBUTE = "stencil.steps"
SINGLE_STEP_ATTRIBUTE = "stencil.single_step"

# A kernel is code for every term, and convolution takes a round for every step (MAX_FUSED_STEPS):
# beyond these, compiling takes minutes.
MAX_FUSED_TERMS = 4096

Offset = tuple[int, ...]


@dataclass(frozen=True)
class LinearStep:
    """The three ops of a function that is one linear step."""

    load: object
    weighted_sum: WeightedSumOp
    store: object


def linear_step(function) -> LinearStep | None:
    """The step that a function consists of, or None when it is anything else."""
    blocks = list(function.regions[0].blocks)
    by_name = defaultdict(list)
    for op in blocks[0].operations:
        by_name[op.operation.name].append(op)
    sums, loads, stores = (by_name[f"stencil.{n}"] for n in ("weighted_sum", "load", "store"))
    others = set(by_name) - {
        "stencil.weighted_sum", "stencil.load", "stencil.store", "stencil.cast",
        "func.return", "arith.constant",
    }  # fmt: skip
    if len(blocks) != 1 or others or not len(sums) == len(loads) == len(stores) == 1:
        return None
    step = LinearStep(loads[0], sums[0], stores[0])
    if addend_of(step.weighted_sum) is not None:
        return None
    if step.weighted_sum.operands[0] != step.load.results[0]:
        return None
    if step.store.operands[0] != step.weighted_sum.results[0]:
        return None
    temps = step.load.results[0], step.weighted_sum.results[0]
    # Nobody else may see them: they become larger and smaller.
    return step if all(len(list(temp.uses)) == 1 for temp in temps) else None


def convolve(
    offsets: Sequence[Offset], weights: Sequence[float], steps: int
) -> dict[Offset, Fraction]:
    """The weights of `steps` steps in one, exactly; offsets whose weights cancel are dropped."""
    exact = [Fraction(weight) for weight in weights]
    # Whole numbers over a common denominator: fractions would be reduced after every addition.
    scale = math.lcm(*(weight.denominator for weight in exact))
    single = {o: int(weight * scale) for o, weight in zip(offsets, exact, strict=True)}
    total = single
    for _ in range(steps - 1):
        product: dict[Offset, int] = defaultdict(int)
        for a, u in total.items():
            for b, v in single.items():
                product[tuple(map(operator.add, a, b))] += u * v
        total = product
    return {offset: Fraction(n, scale**steps) for offset, n in total.items() if n}


def _fused_terms(offsets: Sequence[Offset], steps: int) -> int:
    """The number of sums of `steps` offsets; beyond MAX_FUSED_TERMS, a lower bound of it."""
    # Adding n offsets to m points makes m + n - 1 points at least.
    least = steps * (len(offsets) - 1) + 1
    if least == 1 or least > MAX_FUSED_TERMS:
        return least
    sums = set(offsets)
    for _ in range(steps - 1):
        sums = {tuple(map(operator.add, a, b)) for a in sums for b in offsets}
        if len(sums) > MAX_FUSED_TERMS:
            break
    return len(sums)


def deep_interior(box: Box, offsets: Sequence[Offset], steps: int) -> Box | None:
    """The points of `box` that reach only points of `box` in all steps but the last."""
    low, high = halo_of(offsets)
    lower = tuple(lo + (steps - 1) * r for lo, r in zip(box.lower, low, strict=True))
    upper = tuple(up - (steps - 1) * r for up, r in zip(box.upper, high, strict=True))
    return Box(lower, upper) if all(a < b for a, b in zip(lower, upper, strict=True)) else None


def _fused_interior(step: LinearStep, steps: int) -> Box | None:
    """The points that the fused function writes, None where no point is far enough inside.

    Raises TwofourError for too many steps or terms.
    """
    offsets, _, _ = linear_terms(step.weighted_sum)
    if steps > MAX_FUSED_STEPS:
        raise error_at(
            step.weighted_sum, f"expected at most {MAX_FUSED_STEPS} fused steps, got {steps}"
        )
    terms = _fused_terms(offsets, steps)
    if terms > MAX_FUSED_TERMS:
        raise error_at(
            step.weighted_sum,
            f"expected at most {MAX_FUSED_TERMS} terms in {steps} fused steps, got {terms} or more",
        )
    return deep_interior(step.store.bounds.box, offsets, steps)


def _fused_sum(step: LinearStep, steps: int) -> tuple[dict[Offset, float], float]:
    """Weights by offset, and the constant, of all steps in one, rounded once."""
    offsets, weights, constant = linear_terms(step.weighted_sum)
    kind = accumulation_type(step.weighted_sum.results[0].type.element_type)
    total = {o: round_weight(w, kind) for o, w in convolve(offsets, weights, steps).items()}
    total = {offset: weight for offset, weight in sorted(total.items()) if weight}
    growth = sum(map(Fraction, weights))
    # Each step adds the constant, and later steps scale what it added.
    shift = sum((growth**k for k in range(steps)), Fraction(0)) * Fraction(constant)
    shift = round_weight(shift, kind)
    if not total or not np.all(np.isfinite([shift, *total.values()])):
        raise error_at(step.weighted_sum, f"expected weights that {steps} steps keep in range")
    return total, shift


def _fuse(function, step: LinearStep, steps: int) -> None:
    interior = _fused_interior(step, steps)
    if interior is None:
        return
    total, constant = _fused_sum(step, steps)
    name = function.attributes["sym_name"].value
    with ir.InsertionPoint.after(function):
        fused = function.operation.clone().opview
    beside = function.operation.parent.regions[0].blocks[0].operations
    taken = {op.attributes["sym_name"].value for op in beside if "sym_name" in op.attributes}
    fused.attributes["sym_name"] = ir.StringAttr.get(free_name(f"{name}_fused{steps}", taken))
    fused.attributes[STEPS_ATTRIBUTE] = ir.IntegerAttr.get(ir.IntegerType.get_signless(64), steps)
    fused.attributes[SINGLE_STEP_ATTRIBUTE] = ir.FlatSymbolRefAttr.get(name)
    inner = linear_step(fused)
    element = inner.weighted_sum.results[0].type.element_type
    with ir.InsertionPoint(inner.weighted_sum):
        value = WeightedSumOp.build(
            TempType.of(interior, element),
            inner.load.results[0],
            list(total),
            list(total.values()),
            constant=constant,
            loc=inner.weighted_sum.location,
        )
    replace_op(inner.weighted_sum, value)
    inner.store.attributes["bounds"] = BoundsAttr.of(interior)
    field = inner.load.operands[0].type
    reach = interior.reach(list(total))
    if field.box is not None and field.box.contains(reach):
        inner.load.results[0].set_type(TempType.of(field.box, element))


@dataclass(frozen=True)
class FuseStepsPass(ModulePass):
    """Beside each function that is one linear step, make one that advances `steps` steps at once.

    The weights are convolved in exact arithmetic and rounded once. Points near the boundary are
    left to single steps, so that the result equals `steps` single steps at every point. Functions
    that are not a single linear step of one field are left alone, and so are those whose steps are
    fused, or whose bounds are too small for any point to take all steps in one.
    """

    name: ClassVar[str] = "stencil-fuse-steps"
    steps: int = 2

    def __post_init__(self):
        if self.steps < 1:
            raise TwofourError(f"expected a positive number of steps, got {self.steps}")

    def run(self, module: ir.Operation) -> None:
        for function in nested_functions(module):
            if STEPS_ATTRIBUTE in function.attributes:
                continue
            step = linear_step(function)
            if step is not None and self.steps > 1:
                _fuse(function, step, self.steps)
