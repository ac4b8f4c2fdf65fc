# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Integer arithmetic against its definition on Python integers."""

from collections.abc import Callable

import pytest

from integers import INTEGERS, Case, check, decoded, encoded, every, limits, tuples, width
from snippet import Snippet, check_assembles


def quotient(a: int, b: int) -> int:
    """Truncating division; of what PTX leaves open, the simulator's choice is not tested."""
    return abs(a) // abs(b) * (1 if (a < 0) == (b < 0) else -1)


def high(kind: str) -> Callable[..., int]:
    return lambda a, b, c=0: (a * b >> width(kind)) + c


def clamped(kind: str, function: Callable[..., int]) -> Callable[..., int]:
    low, top = limits(kind)
    return lambda *operands: min(max(function(*operands), low), top)


def low24(number: int, signed: bool) -> int:
    number &= 0xFFFFFF
    return number - (1 << 24) if signed and number >> 23 else number


ARITHMETIC = [
    *every("add.{}", INTEGERS, lambda a, b: a + b),
    *every("sub.{}", INTEGERS, lambda a, b: a - b),
    *every("add.sat.{}", "s32", clamped("s32", lambda a, b: a + b)),
    *every("sub.sat.{}", "s32", clamped("s32", lambda a, b: a - b)),
    *every("mul.lo.{}", INTEGERS, lambda a, b: a * b),
    *every("mad.lo.{}", INTEGERS, lambda a, b, c: a * b + c, 3),
    *every("sad.{}", INTEGERS, lambda a, b, c: abs(a - b) + c, 3),
    *every("min.{}", INTEGERS, min),
    *every("max.{}", INTEGERS, max),
    *every("abs.{}", "s16 s32 s64", abs, 1),
    *every("neg.{}", "s16 s32 s64", lambda a: -a, 1),
]
for _kind in INTEGERS.split():
    ARITHMETIC.append(Case(f"mul.hi.{_kind}", (_kind,) * 2, _kind, high(_kind)))
    ARITHMETIC.append(Case(f"mad.hi.{_kind}", (_kind,) * 3, _kind, high(_kind)))
for _kind, _wide in (("s16", "s32"), ("u16", "u32"), ("s32", "s64"), ("u32", "u64")):
    ARITHMETIC.append(Case(f"mul.wide.{_kind}", (_kind,) * 2, _wide, lambda a, b: a * b))
    ARITHMETIC.append(
        Case(f"mad.wide.{_kind}", (_kind, _kind, _wide), _wide, lambda a, b, c: a * b + c)
    )
for _kind in ("s32", "u32"):
    for _part, _shift in (("lo", 0), ("hi", 16)):

        def _product24(a: int, b: int, signed=_kind == "s32", shift=_shift) -> int:
            return low24(a, signed) * low24(b, signed) >> shift

        ARITHMETIC.append(Case(f"mul24.{_part}.{_kind}", (_kind,) * 2, _kind, _product24))
        ARITHMETIC.append(
            Case(
                f"mad24.{_part}.{_kind}",
                (_kind,) * 3,
                _kind,
                lambda a, b, c, product=_product24: product(a, b) + c,
            )
        )
for _a in ("s32", "u32"):
    for _b in ("s32", "u32"):
        _d = "u32" if _a == _b == "u32" else "s32"

        def _dot4(a: int, b: int, c: int, kinds=(_a, _b)) -> int:
            return c + sum(
                decoded(a >> 8 * i, f"{kinds[0][0]}8") * decoded(b >> 8 * i, f"{kinds[1][0]}8")
                for i in range(4)
            )

        def _dot2(a: int, b: int, c: int, kinds=(_a, _b)) -> int:
            return c + sum(
                decoded(a >> 16 * i, f"{kinds[0][0]}16") * decoded(b >> 8 * i, f"{kinds[1][0]}8")
                for i in range(2)
            )

        ARITHMETIC.append(Case(f"dp4a.{_a}.{_b}", ("b32", "b32", _d), _d, _dot4))
        ARITHMETIC.append(Case(f"dp2a.lo.{_a}.{_b}", ("b32", "b32", _d), _d, _dot2))
        ARITHMETIC.append(
            Case(
                f"dp2a.hi.{_a}.{_b}",
                ("b32", "b32", _d),
                _d,
                lambda a, b, c, dot=_dot2: dot(a, b >> 16, c),
            )
        )


def by_halves(kind: str, function: Callable[[int, int], int]) -> Callable[[int, int], int]:
    def both(a: int, b: int) -> int:
        low, upper = (
            encoded(function(decoded(a >> shift, kind), decoded(b >> shift, kind)), kind)
            for shift in (0, 16)
        )
        return upper << 16 | low

    return both


for _kind in ("s16", "u16"):
    for _name, _function in (("add", lambda a, b: a + b), ("min", min), ("max", max)):
        ARITHMETIC.append(
            Case(
                f"{_name}.{_kind}x2",
                ("b32",) * 2,
                "b32",
                by_halves(_kind, _function),
                target="sm_90",
            )
        )

DIVISIONS = [
    *every("div.{}", INTEGERS, quotient),
    *every("rem.{}", INTEGERS, lambda a, b: a - b * quotient(a, b)),
]


@pytest.mark.parametrize("case", ARITHMETIC, ids=lambda case: case.opcode)
def test_instruction(case):
    check(case, tuples(case.inputs, 1))


@pytest.mark.parametrize("case", DIVISIONS, ids=lambda case: case.opcode)
def test_division(case):
    a, b = tuples(case.inputs, 2)
    # A zero divisor, and the least integer by -1, have no defined result.
    least, minus_one = encoded(limits(case.output)[0], case.output), encoded(-1, case.output)
    undefined = b == 0
    if case.output[0] == "s":
        undefined |= (a == least) & (b == minus_one)
    b[undefined] = 3
    check(case, [a, b])


# Bodies on (%i1, %i0), (%i3, %i2) as numbers of twice the width, and what they compute.
CARRIES = {
    "add.cc.{0} %o0, %i0, %i2;\naddc.{0} %o1, %i1, %i3;": lambda a, b, w: a + b,
    "sub.cc.{0} %o0, %i0, %i2;\nsubc.{0} %o1, %i1, %i3;": lambda a, b, w: a - b,
    # The carry goes through two instructions; the last sum is that of both carries alone.
    "add.cc.{0} %o0, %i0, %i2;\naddc.cc.{0} %o0, %i1, %i3;\naddc.{0} %o1, 0, 0;": (
        lambda a, b, w: a + b >> w
    ),
    "sub.cc.{0} %o0, %i0, %i2;\nsubc.cc.{0} %o0, %i1, %i3;\nsubc.{0} %o1, 0, 0;": (
        lambda a, b, w: a - b >> w
    ),
    # a_low * b_low + b_high, in both halves.
    # (a_low * b_low's upper half) + b_high, and its carry.
    "mad.hi.cc.{0} %o0, %i0, %i2, %i3;\naddc.{0} %o1, 0, 0;": (
        lambda a, b, w: ((a & (1 << w) - 1) * (b & (1 << w) - 1) >> w) + (b >> w)
    ),
    "mad.lo.cc.{0} %o0, %i0, %i2, %i3;\nmadc.hi.{0} %o1, %i0, %i2, 0;": (
        lambda a, b, w: (a & (1 << w) - 1) * (b & (1 << w) - 1) + (b >> w)
    ),
}


def carry_snippet(body: str, kind: str) -> Snippet:
    register = f"b{width(kind)}"
    return Snippet(body.format(kind), (register,) * 4, (register,) * 2)


CARRY_KINDS = ("u32", "u64")


@pytest.mark.parametrize("kind", CARRY_KINDS)
@pytest.mark.parametrize("body", CARRIES)
def test_carries(body, kind):
    bits = width(kind)
    columns = tuples((kind,) * 4, 4)
    low, upper = carry_snippet(body, kind)(*columns)
    rows = zip(*(column.tolist() for column in (*columns, low, upper)), strict=True)
    for a_low, a_high, b_low, b_high, d_low, d_high in rows:
        exact = CARRIES[body](a_high << bits | a_low, b_high << bits | b_low, bits)
        assert d_high << bits | d_low == exact & (1 << 2 * bits) - 1


def all_snippets() -> list[Snippet]:
    snippets = [case.snippet for case in (*ARITHMETIC, *DIVISIONS)]
    return snippets + [carry_snippet(body, kind) for body in CARRIES for kind in CARRY_KINDS]


def test_snippets_assemble(tmp_path):
    check_assembles(all_snippets(), tmp_path)
