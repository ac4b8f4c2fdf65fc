# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""atom and red: the old value, the new one, and that no update is lost."""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import pytest

from definitions import result
from formats import FORMATS, is_nan, samples
from integers import decoded, encoded, tuples
from snippet import Snippet, check_assembles

THREADS = 64
SPACES = ("global", "shared", "generic global", "generic shared")


@dataclass(frozen=True)
class Case:
    """`atom.space.operation.kind` and the new value for the old one, a and b."""

    operation: str
    kind: str
    function: Callable[[int, int, int], int]
    target: str = "sm_80"

    @property
    def operands(self) -> str:
        return "%i1, %i2" if self.operation == "cas" else "%i1"


def per_half(function: Callable[[int, int], int]) -> Callable[[int, int, int], int]:
    return lambda old, a, b: function(old >> 16, a >> 16) << 16 | function(old & 0xFFFF, a & 0xFFFF)


def added(kind: str) -> Callable[[int, int], int]:
    return lambda old, a: result("add", (old, a), kind)


CASES = [
    *[Case("add", kind, lambda old, a, b: old + a) for kind in ("u32", "s32", "u64")],
    *[Case("exch", kind, lambda old, a, b: a) for kind in ("b32", "b64")],
    *[Case("cas", kind, lambda old, a, b: b if old == a else old) for kind in ("b32", "b64")],
    *[Case("and", kind, lambda old, a, b: old & a) for kind in ("b32", "b64")],
    *[Case("or", kind, lambda old, a, b: old | a) for kind in ("b32", "b64")],
    *[Case("xor", kind, lambda old, a, b: old ^ a) for kind in ("b32", "b64")],
    *[Case("min", kind, lambda old, a, b: min(old, a)) for kind in ("u32", "s32", "u64", "s64")],
    *[Case("max", kind, lambda old, a, b: max(old, a)) for kind in ("u32", "s32", "u64", "s64")],
    Case("inc", "u32", lambda old, a, b: 0 if old >= a else old + 1),
    Case("dec", "u32", lambda old, a, b: a if old == 0 or old > a else old - 1),
]
FLOAT_CASES = [
    *[Case("add", kind, lambda old, a, b, k=kind: added(k)(old, a)) for kind in ("f32", "f64")],
    Case("add.noftz", "f16", lambda old, a, b: added("f16")(old, a)),
    Case("add.noftz", "bf16", lambda old, a, b: added("bf16")(old, a), "sm_90"),
    Case("add.noftz", "f16x2", per_half(added("f16"))),
    Case("add.noftz", "bf16x2", per_half(added("bf16")), "sm_90"),
]


def width(case: Case) -> int:
    kind = case.kind.removesuffix("x2")
    bits = FORMATS[kind].width if kind in FORMATS else int(kind[1:])
    return 32 if case.kind.endswith("x2") else bits


def place(space: str, size: int) -> tuple[str, str]:
    """The address of a thread's own element in %w5, and the state space as instructions say it."""
    kind = space.removeprefix("generic ")
    base = "memory" if kind == "shared" else "$_data"
    lines = f"mov.u64 %w4, {base};\nmad.wide.u32 %w5, %id2, {size}, %w4;"
    if space == kind:
        return lines, f".{kind}"
    return f"{lines}\ncvta.{kind}.u64 %w5, %w5;", ""


def snippet(case: Case, space: str, red: bool = False) -> Snippet:
    """%i0 is stored, changed by the operation, and loaded again; %o0 is what atom returns."""
    bits = width(case)
    lines, where = place(space, bits // 8)
    root = f"red{where}" if red else f"atom{where}"
    outcome = "" if red else "%o0, "
    body = (
        f"{lines}\nst{where}.b{bits} [%w5], %i0;\nmov.b{bits} %o0, %i0;\n"
        f"{root}.{case.operation}.{case.kind} {outcome}[%w5], {case.operands};\n"
        f"ld{where}.b{bits} %o1, [%w5];"
    )
    register = f"b{bits}"
    return Snippet(
        body,
        (register,) * 3,
        (register,) * 2,
        case.target,
        shared=8 * THREADS,
        globals=f".global .align 8 .b8 $_data[{8 * THREADS}];",
    )


def name(case: Case) -> str:
    return f"{case.operation}.{case.kind}"


@pytest.mark.parametrize("space", SPACES)
@pytest.mark.parametrize("case", CASES, ids=name)
def test_integers(case, space):
    old, a, b = tuples((case.kind,) * 3, 1, THREADS)
    a[::3] = old[::3]
    before, after = snippet(case, space)(old, a, b, block=THREADS)
    np.testing.assert_array_equal(before, old)
    for *operands, d in zip(*(column.tolist() for column in (old, a, b, after)), strict=True):
        numbers = [decoded(bits, case.kind) for bits in operands]
        assert d == encoded(case.function(*numbers), case.kind), numbers


@pytest.mark.parametrize("space", SPACES)
@pytest.mark.parametrize("case", FLOAT_CASES, ids=name)
def test_floats(case, space):
    scalar = case.kind.removesuffix("x2")
    columns = [samples(scalar, 2 * THREADS, seed)[40 : 40 + THREADS] for seed in (2, 3, 4)]
    if case.kind.endswith("x2"):
        upper = [samples(scalar, 2 * THREADS, seed)[40 : 40 + THREADS] for seed in (5, 6, 7)]
        columns = [
            high.astype(np.uint32) << 16 | low for low, high in zip(columns, upper, strict=True)
        ]
    old, a, b = columns
    before, after = snippet(case, space)(old, a, b, block=THREADS)
    np.testing.assert_array_equal(before, old)
    for *operands, d in zip(*(column.tolist() for column in (old, a, b, after)), strict=True):
        expected = case.function(*operands)
        if case.kind == "f64" and is_nan(expected, "f64"):
            assert is_nan(d, "f64")
        else:
            assert d == expected, [hex(bits) for bits in operands]


REDUCTIONS = [case for case in (*CASES, *FLOAT_CASES) if case.operation not in ("exch", "cas")]


@pytest.mark.parametrize("space", ("global", "shared"))
@pytest.mark.parametrize("case", REDUCTIONS, ids=name)
def test_reductions(case, space):
    """Red leaves in memory what atom does."""
    kind = case.kind.removesuffix("x2")
    if kind in FORMATS:
        columns = [samples("f64" if width(case) == 64 else "f32", THREADS, s) for s in (8, 9, 10)]
        columns = [column.astype(f"u{width(case) // 8}") for column in columns]
    else:
        columns = tuples((case.kind,) * 3, 2, THREADS)
    np.testing.assert_array_equal(
        snippet(case, space, red=True)(*columns, block=THREADS)[1],
        snippet(case, space)(*columns, block=THREADS)[1],
    )


def contended(space: str, operation: str) -> Snippet:
    """All threads of a block change one word; %o0 is the old value, %o1 that after a barrier."""
    where = ".shared" if space == "shared" else ".global"
    address = "memory" if space == "shared" else "$_data"
    return Snippet(
        "setp.ne.u32 %p0, %id2, 0;\n"
        f"@!%p0 st{where}.u32 [{address}], 1000;\nbar.sync 0;\n"
        f"atom{where}.{operation} %o0, [{address}], %i0;\nbar.sync 0;\n"
        f"ld{where}.u32 %o1, [{address}];",
        ("b32",),
        ("b32",) * 2,
        shared=4,
        globals=".global .align 4 .b32 $_data[1];",
    )


@pytest.mark.parametrize("space", ("global", "shared"))
def test_no_update_is_lost(space):
    values = np.random.default_rng(11).integers(1, 100, THREADS, dtype=np.uint32)
    before, after = contended(space, "add.u32")(values, block=THREADS)
    assert (after == 1000 + values.sum()).all()
    # In some order, each thread saw the sum of those before it.
    order = np.argsort(before)
    expected = 1000 + np.concatenate([[0], np.cumsum(values[order])[:-1]])
    np.testing.assert_array_equal(before[order], expected)


@pytest.mark.parametrize("space", ("global", "shared"))
def test_one_thread_takes_what_is_exchanged(space):
    values = np.arange(1, THREADS + 1, dtype=np.uint32)
    before, after = contended(space, "exch.b32")(values, block=THREADS)
    assert len(set(after.tolist())) == 1
    assert sorted([*before.tolist(), int(after[0])]) == [*range(1, THREADS + 1), 1000]


def all_snippets() -> list[Snippet]:
    snippets = [snippet(c, space) for c in (*CASES, *FLOAT_CASES) for space in SPACES]
    snippets += [snippet(case, "global", red=True) for case in REDUCTIONS]
    snippets += [contended(s, o) for s in ("global", "shared") for o in ("add.u32", "exch.b32")]
    return snippets


def test_snippets_assemble(tmp_path):
    check_assembles(all_snippets(), tmp_path)
