# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Logic, shifts, bit fields, integer comparisons, predicates and moves, by their definition."""

from collections.abc import Callable

import numpy as np
import pytest

from integers import INTEGERS, Case, check, decoded, encoded, every, tuples, width
from snippet import Snippet, check_assembles


def bit_field(kind: str) -> Callable[[int, int, int], int]:
    def function(a: int, position: int, length: int) -> int:
        top = width(kind) - 1
        position, length = position & 0xFF, length & 0xFF
        bits = encoded(a, kind)
        fill = 0 if kind[0] == "u" or length == 0 else bits >> min(position + length - 1, top) & 1
        found = 0
        for i in range(top + 1):
            inside = i < length and position + i <= top
            found |= (bits >> position + i & 1 if inside else fill) << i
        return found

    return function


def bit_insertion(bits: int) -> Callable[[int, int, int, int], int]:
    def function(a: int, b: int, position: int, length: int) -> int:
        position, length = position & 0xFF, length & 0xFF
        for i in range(length):
            if position + i < bits:
                b = b & ~(1 << position + i) | (a >> i & 1) << position + i
        return b

    return function


def top_bit(kind: str, as_shift: bool) -> Callable[[int], int]:
    def function(a: int) -> int:
        found = (~a if a < 0 else a).bit_length() - 1
        return width(kind) - 1 - found if as_shift and found >= 0 else found

    return function


def permutation(a: int, b: int, selector: int) -> int:
    source = b << 32 | a
    found = 0
    for i in range(4):
        nibble = selector >> 4 * i & 15
        byte = source >> 8 * (nibble & 7) & 0xFF
        if nibble & 8:
            byte = 0xFF if byte & 0x80 else 0
        found |= byte << 8 * i
    return found


# Source bytes of the result, most significant one first, by the low two bits of the selector.
PERMUTATION_MODES = {
    "f4e": ("3210", "4321", "5432", "6543"),
    "b4e": ("5670", "6701", "7012", "0123"),
    "rc8": ("0000", "1111", "2222", "3333"),
    "ecl": ("3210", "3211", "3222", "3333"),
    "ecr": ("0000", "1110", "2210", "3210"),
    "rc16": ("1010", "3232", "1010", "3232"),
}


def moded_permutation(mode: str) -> Callable[[int, int, int], int]:
    return lambda a, b, c: permutation(a, b, int(PERMUTATION_MODES[mode][c & 3], 16))


def funnel(left: bool, wrap: bool) -> Callable[[int, int, int], int]:
    def function(a: int, b: int, amount: int) -> int:
        amount = amount % 32 if wrap else min(amount, 32)
        both = b << 32 | a
        return (both << amount >> 32 if left else both >> amount) & 0xFFFFFFFF

    return function


BITS = [
    *every("and.{}", "b16 b32 b64", lambda a, b: a & b),
    *every("or.{}", "b16 b32 b64", lambda a, b: a | b),
    *every("xor.{}", "b16 b32 b64", lambda a, b: a ^ b),
    *every("not.{}", "b16 b32 b64", lambda a: ~a, 1),
    *every("cnot.{}", "b16 b32 b64", lambda a: int(a == 0), 1),
    *every("mov.{}", "b16 b32 b64 u16 s32 u64 f32 f64", lambda a: a, 1),
    *every("brev.{}", "b32", lambda a: int(f"{a:032b}"[::-1], 2), 1),
    *every("brev.{}", "b64", lambda a: int(f"{a:064b}"[::-1], 2), 1),
    Case("prmt.b32", ("b32",) * 3, "b32", permutation),
    *[
        Case(f"prmt.b32.{mode}", ("b32",) * 3, "b32", moded_permutation(mode))
        for mode in PERMUTATION_MODES
    ],
    *[
        Case(
            f"shf.{'l' if left else 'r'}.{'wrap' if wrap else 'clamp'}.b32",
            ("b32",) * 3,
            "b32",
            funnel(left, wrap),
        )
        for left in (True, False)
        for wrap in (True, False)
    ],
]
for _bits in (16, 32, 64):
    BITS.append(Case(f"shl.b{_bits}", (f"b{_bits}", "u32"), f"b{_bits}", lambda a, n: a << n))
    for _letter in "bus":
        _kind = f"{_letter}{_bits}"
        BITS.append(Case(f"shr.{_kind}", (_kind, "u32"), _kind, lambda a, n: a >> n))
for _bits in (32, 64):
    _kind = f"b{_bits}"
    BITS.append(Case(f"popc.{_kind}", (_kind,), "u32", lambda a: a.bit_count()))
    BITS.append(Case(f"clz.{_kind}", (_kind,), "u32", lambda a, w=_bits: w - a.bit_length()))
    BITS.append(Case(f"bfi.{_kind}", (_kind, _kind, "u32", "u32"), _kind, bit_insertion(_bits)))
    for _letter in "us":
        _kind = f"{_letter}{_bits}"
        BITS.append(Case(f"bfe.{_kind}", (_kind, "u32", "u32"), _kind, bit_field(_kind)))
        BITS.append(Case(f"bfind.{_kind}", (_kind,), "u32", top_bit(_kind, False)))
        BITS.append(Case(f"bfind.shiftamt.{_kind}", (_kind,), "u32", top_bit(_kind, True)))

# Every minterm alone and some common tables: x & y & z, x ^ y ^ z, majority, (x & y) | z.
TABLES = [*(1 << i for i in range(8)), 0x00, 0xFF, 0x80, 0x96, 0xE8, 0xEA]


def table(lut: int) -> Callable[[int, int, int], int]:
    def function(a: int, b: int, c: int) -> int:
        bits = [lut >> ((a >> i & 1) << 2 | (b >> i & 1) << 1 | c >> i & 1) & 1 for i in range(32)]
        return sum(bit << i for i, bit in enumerate(bits))

    return function


SELECTIONS = [
    *[
        Case(f"slct.{kind}.s32", (kind, kind, "s32"), kind, lambda a, b, c: a if c >= 0 else b)
        for kind in ("b16", "u32", "s64")
    ],
]
ORDERS = {
    "eq": lambda a, b: a == b,
    "ne": lambda a, b: a != b,
    "lt": lambda a, b: a < b,
    "le": lambda a, b: a <= b,
    "gt": lambda a, b: a > b,
    "ge": lambda a, b: a >= b,
}
UNSIGNED_ORDERS = {
    **ORDERS,
    **{"lo": ORDERS["lt"], "ls": ORDERS["le"], "hi": ORDERS["gt"], "hs": ORDERS["ge"]},
}
for _kind in INTEGERS.split():
    for _name, _order in (ORDERS if _kind[0] == "s" else UNSIGNED_ORDERS).items():
        SELECTIONS.append(
            Case(f"set.{_name}.u32.{_kind}", (_kind,) * 2, "u32", lambda a, b, o=_order: -o(a, b))
        )
CASES = [*BITS, *SELECTIONS]


def shifted(case: Case, columns: list[np.ndarray]) -> list[np.ndarray]:
    """Python would make very long integers of large shift amounts; at 200 all bits are gone."""
    if case.opcode.startswith(("shl", "shr")):
        return [columns[0], np.minimum(columns[1], np.uint32(200))]
    return columns


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.opcode)
def test_instruction(case):
    check(case, shifted(case, tuples(case.inputs, 1)))


@pytest.mark.parametrize("opcode", ["shl.b32", "shl.b64", "shr.u32", "shr.s32", "shr.s64"])
def test_shifts_by_any_amount(opcode):
    kind = opcode.split(".")[1]
    amounts = np.array([2**31, 2**32 - 1, 2**16, 256, 255, 2**32 - 32], dtype=np.uint32)
    values = np.array([1, 2 ** (width(kind) - 1) | 5], dtype=f"u{width(kind) // 8}")
    first, second = np.tile(np.repeat(values, 6), 8), np.tile(amounts, 16)
    case = next(case for case in BITS if case.opcode == opcode)
    (found,) = case.snippet(first, second)
    negative = opcode.startswith("shr.s") & (first >> (width(kind) - 1)).astype(bool)
    assert found.tolist() == [encoded(-1, kind) if shifted_in else 0 for shifted_in in negative]


@pytest.mark.parametrize("lut", TABLES)
def test_lop3(lut):
    columns = tuples(("b32",) * 3, 3, 128)
    (found,) = Snippet(f"lop3.b32 %o0, %i0, %i1, %i2, {lut:#x};", ("b32",) * 3)(*columns)
    rows = zip(*(column.tolist() for column in columns), strict=True)
    assert found.tolist() == [table(lut)(*row) for row in rows]


# Bodies that set %o0 (and %o1) to 1 or 0, and the condition on integers a and b and a flag c.
PREDICATES = {
    "setp.lt.s32 %p0, %i0, %i1;": lambda a, b, c: (a < b, False),
    "setp.ge.u32 %p0, %i0, %i1;": lambda a, b, c: (a % 2**32 >= b % 2**32, False),
    "setp.eq.b32 %p0|%p1, %i0, %i1;": lambda a, b, c: (a == b, a != b),
    "setp.lt.and.s32 %p0|%p1, %i0, %i1, %p2;": lambda a, b, c: (a < b and c, a >= b and c),
    "setp.lt.or.s32 %p0|%p1, %i0, %i1, %p2;": lambda a, b, c: (a < b or c, a >= b or c),
    "setp.lt.xor.s32 %p0|%p1, %i0, %i1, %p2;": lambda a, b, c: ((a < b) != c, (a >= b) != c),
    "setp.gt.and.s32 %p0, %i0, %i1, !%p2;": lambda a, b, c: (a > b and not c, False),
    "setp.lt.s32 %p3, %i0, %i1;\nand.pred %p0, %p3, %p2;\nor.pred %p1, %p3, %p2;": (
        lambda a, b, c: (a < b and c, a < b or c)
    ),
    "setp.lt.s32 %p3, %i0, %i1;\nxor.pred %p0, %p3, %p2;\nnot.pred %p1, %p3;": (
        lambda a, b, c: ((a < b) != c, a >= b)
    ),
    "mov.pred %p0, %p2;": lambda a, b, c: (c, False),
    "setp.ne.s32 %p0, %i0, 7;\n@!%p2 setp.eq.s32 %p0, %i1, 7;": (
        lambda a, b, c: (a != 7 if c else b == 7, False)
    ),
    "set.gt.and.u32.s32 %t0, %i0, %i1, %p2;\nsetp.eq.u32 %p0, %t0, 0xFFFFFFFF;": (
        lambda a, b, c: (a > b and c, False)
    ),
}


def predicate_snippet(body: str) -> Snippet:
    return Snippet(
        f"setp.ne.u32 %p2, %i2, 0;\nsetp.ne.u32 %p1, %i0, %i0;\n{body}\n"
        "selp.u32 %o0, 1, 0, %p0;\nselp.u32 %o1, 1, 0, %p1;",
        ("b32",) * 3,
        ("b32",) * 2,
    )


@pytest.mark.parametrize("body", PREDICATES)
def test_predicates(body):
    a, b, c = tuples(("s32",) * 3, 5)
    b[::5] = a[::5]
    c %= 2
    a[::7] = b[::11][: len(a[::7])] = 7
    first, second = predicate_snippet(body)(a, b, c)
    rows = zip(*(column.tolist() for column in (a, b, c, first, second)), strict=True)
    for row in rows:
        operands = decoded(row[0], "s32"), decoded(row[1], "s32"), bool(row[2])
        assert row[3:] == tuple(map(int, PREDICATES[body](*operands))), operands


# Bodies that pack, unpack and select, with the registers they read and make.
MOVES = {
    "mov.b32 %o0, {%i0, %i1};": (("b16", "b16"), ("b32",), lambda a, b: [b << 16 | a]),
    "mov.b32 {%o0, %o1}, %i0;": (("b32",), ("b16", "b16"), lambda a: [a & 0xFFFF, a >> 16]),
    "mov.b64 %o0, {%i0, %i1};": (("b32", "b32"), ("b64",), lambda a, b: [b << 32 | a]),
    "mov.b64 {%o0, %o1}, %i0;": (("b64",), ("b32", "b32"), lambda a: [a & 2**32 - 1, a >> 32]),
    "mov.b64 {%h0, %o0, %h1, %o1}, %i0;": (
        ("b64",),
        ("b16", "b16"),
        lambda a: [a >> 16 & 0xFFFF, a >> 48],
    ),
    "mov.b64 {_, %o0}, %i0;": (("b64",), ("b32",), lambda a: [a >> 32]),
    "{\n.reg .b128 %q<2>;\nmov.b128 %q0, {%i0, %i1};\nmov.b128 %q1, %q0;\n"
    "mov.b128 {%o1, %o0}, %q1;\n}": (("b64", "b64"), ("b64", "b64"), lambda a, b: [b, a]),
    "mov.b64 %o0, {%i0, %i1, %i1, %i0};": (
        ("b16", "b16"),
        ("b64",),
        lambda a, b: [a << 48 | b << 32 | b << 16 | a],
    ),
    "setp.lt.u32 %p0, %i0, %i1;\nselp.b32 %o0, %i0, %i1, %p0;\nselp.b32 %o1, -1, 5, %p0;": (
        ("b32", "b32"),
        ("b32", "b32"),
        lambda a, b: [min(a, b), 0xFFFFFFFF if a < b else 5],
    ),
    "setp.lt.u64 %p0, %i0, %i1;\nselp.b64 %o0, %i0, %i1, %p0;\nselp.b16 %o1, 1, 2, %p0;": (
        ("b64", "b64"),
        ("b64", "b16"),
        lambda a, b: [min(a, b), 1 if a < b else 2],
    ),
    # Literals of every base and sign.
    "mov.u32 %o0, 0x1F;\nadd.s32 %o0, %o0, -3;\nadd.s32 %o0, %o0, 017;\nadd.s32 %o0, %o0, %i0;": (
        ("b32",),
        ("b32",),
        lambda a: [a + 31 - 3 + 15 & 2**32 - 1],
    ),
    "mov.b64 %w0, 0xFFFFFFFFFFFFFFFF;\nxor.b64 %o0, %i0, %w0;": (
        ("b64",),
        ("b64",),
        lambda a: [a ^ 2**64 - 1],
    ),
    "and.b32 %o0, %i0, 0b1010;\nmov.f32 %o1, 0f3F800000;": (
        ("b32",),
        ("b32", "b32"),
        lambda a: [a & 10, 0x3F800000],
    ),
    "add.u32 %o0, %i0, WARP_SZ;": (("b32",), ("b32",), lambda a: [a + 32 & 2**32 - 1]),
    "mov.f64 %o0, 0dC000000000000001;\nmov.b16 %o1, 0x8001;": (
        ("b32",),
        ("b64", "b16"),
        lambda a: [0xC000000000000001, 0x8001],
    ),
}


@pytest.mark.parametrize("body", MOVES)
def test_moves(body):
    inputs, outputs, function = MOVES[body]
    columns = tuples(inputs, 6, 256)
    found = Snippet(body, inputs, outputs)(*columns)
    rows = zip(*(column.tolist() for column in (*columns, *found)), strict=True)
    for row in rows:
        assert list(row[len(inputs) :]) == function(*row[: len(inputs)])


def all_snippets() -> list[Snippet]:
    snippets = [case.snippet for case in CASES]
    snippets += [Snippet(f"lop3.b32 %o0, %i0, %i1, %i2, {TABLES[3]};", ("b32",) * 3)]
    snippets += [predicate_snippet(body) for body in PREDICATES]
    return snippets + [Snippet(body, *signature[:2]) for body, signature in MOVES.items()]


def test_snippets_assemble(tmp_path):
    check_assembles(all_snippets(), tmp_path)
