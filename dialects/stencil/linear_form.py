# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Symbolic evaluation of apply regions as linear forms over temps, in exact arithmetic."""

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from fractions import Fraction

from twofour.dialects.stencil.ops import ApplyOp
from twofour.mlir import ir
from twofour.mlir_support import defining_op, error_at

Offset = tuple[int, ...]
Term = tuple[ir.Value, Offset]


@dataclass(frozen=True)
class LinearForm:
    """sum_i terms[temp_i, offset_i] * temp_i[x + offset_i] + constant; no term is zero."""

    terms: Mapping[Term, Fraction] = field(default_factory=dict)
    constant: Fraction = Fraction(0)

    @property
    def is_constant(self) -> bool:
        return not self.terms

    def scaled(self, factor: Fraction) -> "LinearForm":
        if factor == 0:
            return LinearForm()
        return LinearForm(
            {term: weight * factor for term, weight in self.terms.items()}, self.constant * factor
        )

    def plus(self, other: "LinearForm") -> "LinearForm":
        terms = dict(self.terms)
        for term, weight in other.terms.items():
            total = terms.get(term, 0) + weight
            if total:
                terms[term] = total
            else:
                del terms[term]
        return LinearForm(terms, self.constant + other.constant)

    def shifted(self, offset: Offset) -> "LinearForm":
        """The form at x + offset."""
        return LinearForm(
            {
                (temp, tuple(a + b for a, b in zip(at, offset, strict=True))): weight
                for (temp, at), weight in self.terms.items()
            },
            self.constant,
        )


@dataclass(frozen=True)
class NotLinear:
    """Why a value is no linear form, and the op that makes it so."""

    reason: str
    op: object


Form = LinearForm | NotLinear


def evaluate(apply: ApplyOp, known: Mapping[ir.Value, Form]) -> list[Form]:
    """The form of each result of an apply.

    `known` gives the forms of temps computed earlier; temps that it lacks are inputs. Raises
    TwofourError where arithmetic uses a constant that is not a number.
    """
    forms: dict[ir.Value, Form] = {}

    def form_of(value: ir.Value, user) -> Form:
        if value not in forms:
            _evaluate_outside(value, user, forms)
        return forms[value]

    for op in apply.block.operations:
        name = op.operation.name
        if name == "stencil.return":
            return [form_of(value, op) for value in op.operands]
        if name == "stencil.access":
            forms[op.results[0]] = _access(op, known)
        elif name in _RULES:
            forms[op.results[0]] = _combine(name, [form_of(v, op) for v in op.operands], op)
        elif name != "arith.constant":
            for result in op.results:
                forms[result] = NotLinear(f"'{name}' is not linear", op)
    raise AssertionError("an apply ends with stencil.return")


def _evaluate_outside(value: ir.Value, user, forms: dict[ir.Value, Form]) -> None:
    """Find the form of a value from outside the apply: a constant, or arithmetic over constants."""
    waiting = [value]
    while waiting:
        current = waiting[-1]
        owner = defining_op(current)
        if owner is None or owner.name not in _RULES:
            if owner is not None and owner.name == "arith.constant":
                forms[current] = _constant(owner.attributes["value"], user)
            else:
                reason = "depends on a value from outside that is not constant"
                forms[current] = NotLinear(reason, user)
        elif missing := [operand for operand in owner.operands if operand not in forms]:
            waiting += missing
            continue
        else:
            operands = [forms[operand] for operand in owner.operands]
            forms[current] = _combine(owner.name, operands, user)
        waiting.pop()


def _combine(name: str, operands: Sequence[Form], op) -> Form:
    failed = next((form for form in operands if isinstance(form, NotLinear)), None)
    return failed or _RULES[name](operands, op)


def _access(op, known: Mapping[ir.Value, Form]) -> Form:
    temp, offset = op.operands[0], op.offset_tuple
    if "offset_mapping" in op.attributes:
        return NotLinear("reads a temp of lower rank", op)
    inner = known.get(temp)
    if isinstance(inner, LinearForm):
        return inner.shifted(offset)
    return LinearForm({(temp, offset): Fraction(1)})


def _constant(value: ir.Attribute, user) -> Form:
    """The form of a constant, reported at its user: a hoisted constant has no position."""
    if not isinstance(value, ir.FloatAttr):
        return NotLinear("uses a constant that is not a float", user)
    if math.isnan(value.value):
        raise error_at(user, "expected a number, got NaN")
    if math.isinf(value.value):
        return NotLinear("uses an infinite constant", user)
    return LinearForm(constant=Fraction(value.value))


def _product(a: LinearForm, b: LinearForm, op) -> Form:
    if a.is_constant:
        return b.scaled(a.constant)
    if b.is_constant:
        return a.scaled(b.constant)
    return NotLinear("multiplies two values that depend on the input", op)


def _quotient(operands: Sequence[LinearForm], op) -> Form:
    numerator, denominator = operands
    if not denominator.is_constant:
        return NotLinear("divides by a value that depends on the input", op)
    if denominator.constant == 0:
        return NotLinear("divides by zero", op)
    return numerator.scaled(1 / denominator.constant)


def _fma(operands: Sequence[LinearForm], op) -> Form:
    product = _product(operands[0], operands[1], op)
    return product if isinstance(product, NotLinear) else product.plus(operands[2])


def _same(operands: Sequence[LinearForm], op) -> Form:
    return operands[0]


# Conversions count as exact: the sum is formed in the accumulation type anyway.
_RULES: dict[str, Callable[[Sequence[LinearForm], object], Form]] = {
    "arith.addf": lambda operands, op: operands[0].plus(operands[1]),
    "arith.subf": lambda operands, op: operands[0].plus(operands[1].scaled(Fraction(-1))),
    "arith.negf": lambda operands, op: operands[0].scaled(Fraction(-1)),
    "arith.mulf": lambda operands, op: _product(operands[0], operands[1], op),
    "arith.divf": _quotient,
    "math.fma": _fma,
    "arith.extf": _same,
    "arith.truncf": _same,
    "stencil.store_result": _same,
}
