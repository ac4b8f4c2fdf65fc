# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""`stencil-extract-weights`: turn linear applies into `stencil.weighted_sum`.

    %r = "stencil.apply"() ({
      %a = "stencil.access"(%t) {offset = array<i64: -1>} : ...
      %b = "stencil.access"(%t) {offset = array<i64: 1>} : ...
      %s = arith.addf %a, %b : f64
      %h = arith.mulf %s, %half : f64
      "stencil.return"(%h) : (f64) -> ()
    }) : () -> !stencil.temp<...>

becomes

    %r = "stencil.weighted_sum"(%t) {offsets = [[-1], [1]], weights = array<f64: 0.5, 0.5>} : ...

A form over several temps becomes a chain: each link adds its terms to the one before. Weights are
formed in exact arithmetic and rounded once, to the accumulation type.
"""

import math
from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass
from fractions import Fraction
from typing import ClassVar

import numpy as np

from twofour.dialects.stencil.linear_form import Form, LinearForm, NotLinear, evaluate
from twofour.dialects.stencil.linear_ops import (
    WeightedSumOp,
    accumulation_type,
    addend_of,
    linear_terms,
    round_weight,
)
from twofour.dialects.stencil.ops import ApplyOp, ReturnOp
from twofour.dialects.stencil.traversal import accesses, erase_unused
from twofour.errors import TwofourError
from twofour.mlir import ir
from twofour.mlir_support import VerificationFailure, nested_ops
from twofour.passes import ModulePass


@dataclass(frozen=True)
class LeftApply:
    """An apply that stays on the general path: why, and the op that decides it."""

    apply: ApplyOp
    reason: str
    op: object


def left_applies(module) -> Iterator[LeftApply]:
    """The applies of a module that are not linear with constant coefficients."""
    for apply in nested_ops(module, ApplyOp.OPERATION_NAME):
        for form in _rounded_forms(apply, {}):
            if isinstance(form, NotLinear):
                yield LeftApply(apply, form.reason, form.op)
                break


def _rounded_forms(apply: ApplyOp, known: dict[ir.Value, LinearForm]) -> list[Form]:
    """Forms whose weights are numbers of the accumulation type."""
    element = apply.results[0].type.element_type
    try:
        kind = accumulation_type(element)
    except VerificationFailure:
        return [NotLinear(f"computes elements of type {element}", apply)] * len(apply.results)
    return [
        form if isinstance(form, NotLinear) else _round(form, kind, apply)
        for form in evaluate(apply, known)
    ]


def _round(form: LinearForm, kind: type[np.floating], apply: ApplyOp) -> Form:
    element = apply.results[0].type.element_type
    other = {str(t.type.element_type) for t, _ in form.terms if t.type.element_type != element}
    if other:
        return NotLinear(f"reads elements of {min(other)} and computes {element}", apply)
    weights = {term: round_weight(weight, kind) for term, weight in form.terms.items()}
    constant = round_weight(form.constant, kind)
    if not all(map(math.isfinite, (*weights.values(), constant))):
        return NotLinear(f"has a weight beyond the range of {kind.__name__}", apply)
    terms = {term: Fraction(weight) for term, weight in weights.items() if weight}
    if not terms:
        lost = f"has no weight in the range of {kind.__name__}"
        return NotLinear(lost if form.terms else "does not depend on any input", apply)
    return LinearForm(terms, Fraction(constant))


def _forms(
    apply: ApplyOp, known: dict[ir.Value, LinearForm], sweep_terms: int | None
) -> list[Form]:
    """The forms of an apply, each composed with those that it reads where that is worth it.

    It is where at most `sweep_terms` terms are added to those of both, and always if not given.
    """
    composed = _rounded_forms(apply, known)
    if not any(access.operands[0] in known for access in accesses(apply)):
        return composed
    alone = _rounded_forms(apply, {})
    return [
        other if _is_composable(other) and _is_worth_it(form, other, known, sweep_terms) else form
        for form, other in zip(alone, composed, strict=True)
    ]


def _is_composable(form: Form) -> bool:
    """Whether a form is linear, at offsets that attributes have a place for."""
    return not isinstance(form, NotLinear) and all(
        -(2**63) <= at < 2**63 for _, offset in form.terms for at in offset
    )


def _is_worth_it(
    alone: Form, composed: LinearForm, known: dict[ir.Value, LinearForm], sweep_terms: int | None
) -> bool:
    if sweep_terms is None or isinstance(alone, NotLinear):
        return True
    temps = {temp for temp, _ in alone.terms}
    before = sum(len(known[temp].terms) for temp in temps if temp in known)
    return len(composed.terms) <= len(alone.terms) + before + sweep_terms


def _extract(apply: ApplyOp, known: dict[ir.Value, LinearForm], sweep_terms: int | None) -> None:
    forms = _forms(apply, known, sweep_terms)
    kept = []
    for result, form in zip(list(apply.results), forms, strict=True):
        if isinstance(form, NotLinear):
            kept.append(result)
            continue
        value = _build_chain(form, result.type, apply)
        result.replace_all_uses_with(value)
        known[value] = form
    if len(kept) == len(apply.results):
        return
    if kept:
        _keep_results(apply, kept)
    apply.operation.erase()


def _build_chain(form: LinearForm, result: ir.Type, apply: ApplyOp) -> ir.Value:
    """Weighted sums over one temp each; the temp with the most terms comes last."""
    by_temp: dict[ir.Value, dict] = defaultdict(dict)
    for (temp, offset), weight in form.terms.items():
        by_temp[temp][offset] = float(weight)
    value, constant = None, float(form.constant)
    for temp, weights in sorted(by_temp.items(), key=lambda item: len(item[1])):
        offsets = sorted(weights)
        with ir.InsertionPoint(apply):
            value = WeightedSumOp.build(
                result,
                temp,
                offsets,
                [weights[offset] for offset in offsets],
                addend=value,
                constant=constant,
                loc=apply.location,
            ).results[0]
        constant = 0.0
    return value


def _keep_results(apply: ApplyOp, kept: list[ir.Value]) -> None:
    """Rebuild an apply with the given results only."""
    with ir.InsertionPoint(apply):
        rebuilt = ApplyOp.build([result.type for result in kept], loc=apply.location)
    positions = [list(apply.results).index(result) for result in kept]
    terminator = list(apply.block.operations)[-1]
    values = [terminator.operands[position] for position in positions]
    for op in list(apply.block.operations)[:-1]:
        rebuilt.block.append(op)
    with ir.InsertionPoint(rebuilt.block):
        ReturnOp.build(values, loc=terminator.location)
    for old, new in zip(kept, rebuilt.results, strict=True):
        old.replace_all_uses_with(new)


def _known_form(op) -> LinearForm | None:
    """The form of a weighted sum that was there before, so that later applies compose with it."""
    if addend_of(op) is not None:
        return None
    offsets, weights, constant = linear_terms(op)
    points = zip(offsets, weights, strict=True)
    terms = {(op.operands[0], offset): Fraction(weight) for offset, weight in points if weight}
    return LinearForm(terms, Fraction(constant))


@dataclass(frozen=True)
class ExtractWeightsPass(ModulePass):
    """Turn applies that are linear with constant coefficients into `stencil.weighted_sum`.

    Sees through constants (hoisted out of the apply or not), sums, differences, negation, products
    and quotients with constants, fma, conversions between float types, repeated accesses, and,
    with `compose`, through temps that earlier applies compute linearly: always, or, given
    `sweep-terms`, where that has at most so many more terms than the sums on their own. What is not
    linear is left as it is; of an apply with several results the linear ones are taken out.
    """

    name: ClassVar[str] = "stencil-extract-weights"
    compose: bool = True
    sweep_terms: int | None = None

    def __post_init__(self):
        if self.sweep_terms is not None and self.sweep_terms < 0:
            raise TwofourError(f"expected a number of terms, got {self.sweep_terms}")

    def run(self, module: ir.Operation) -> None:
        known: dict[ir.Value, LinearForm] = {}
        for op in nested_ops(module, ApplyOp.OPERATION_NAME, WeightedSumOp.OPERATION_NAME):
            if op.operation.name == ApplyOp.OPERATION_NAME:
                _extract(op, known if self.compose else {}, self.sweep_terms)
            elif (form := _known_form(op)) is not None:
                known[op.results[0]] = form
        erase_unused(module)
