# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""ld and st of every width in every state space, addresses, constants and variables."""

import numpy as np
import pytest

from integers import decoded, encoded
from snippet import Snippet, check_assembles

THREADS = 64
# Every thread has 16 bytes; registers %w5 and %t5 hold their address in the space (and %w6 the
# generic one).
SPACES = {
    "global": "mov.u64 %w4, $_data;\nmad.wide.u32 %w5, %id0, 16, %w4;\ncvta.global.u64 %w6, %w5;",
    "shared": "mov.u64 %w4, memory;\nmad.wide.u32 %w5, %id2, 16, %w4;\ncvta.shared.u64 %w6, %w5;\n"
    "cvt.u32.u64 %t5, %w5;",
    "local": ".local .align 16 .b8 own[16];\nmov.u64 %w5, own;\ncvta.local.u64 %w6, %w5;",
}
DATA = f".global .align 16 .b8 $_data[{16 * THREADS}];"
# PTX types of accesses, and the registers that may hold the value.
KINDS = [
    *[(kind, "b16") for kind in ("u8", "s8", "b8", "u16", "s16", "b16")],
    *[
        (kind, "b32")
        for kind in ("u8", "s8", "b8", "u16", "s16", "b16", "u32", "s32", "b32", "f32")
    ],
    *[(k, "b64") for k in ("u8", "s8", "u16", "s16", "u32", "s32", "u64", "s64", "b64", "f64")],
]
VECTORS = [
    *[(count, kind, "b16") for count in (2, 4) for kind in ("u8", "s8", "b16", "u16")],
    *[
        (count, kind, "b32")
        for count in (2, 4)
        for kind in ("u32", "s32", "b32", "f32", "u8", "s16")
    ],
    *[(2, kind, "b64") for kind in ("u64", "f64", "b64", "s32")],
]


def size(kind: str) -> int:
    return int(kind[1:]) // 8


def address(space: str, generic: bool, narrow: bool) -> str:
    if generic:
        return "%w6"
    return "%t5" if narrow else "%w5"


def snippet(lines: list[str], inputs: tuple[str, ...], outputs: tuple[str, ...]) -> Snippet:
    return Snippet("\n".join(lines), inputs, outputs, shared=16 * THREADS, globals=DATA)


def load(
    space: str,
    kinds: list[tuple[str, str]],
    generic: bool = False,
    narrow: bool = False,
) -> Snippet:
    """Every thread stores its 16 bytes and loads each kind from the bytes 0, 8 and (at most) 16."""
    base = address(space, generic, narrow)
    where = "" if generic else f".{space}"
    lines = [SPACES[space], f"st{where}.v4.b32 [{base}], {{%i0, %i1, %i2, %i3}};"]
    outputs = []
    for kind, register in kinds:
        for offset in (0, 8, 16 - size(kind)):
            lines.append(f"ld{where}.{kind} %o{len(outputs)}, [{base}+{offset}];")
            outputs.append(register)
    return Snippet(
        "\n".join(lines), ("b32",) * 4, tuple(outputs), shared=16 * THREADS, globals=DATA
    )


def store(space: str, kinds: list[tuple[str, str]], generic: bool = False) -> Snippet:
    """Every thread stores 16 bytes, then %w4 as each kind over a part, and loads all of them."""
    base = address(space, generic, False)
    where = "" if generic else f".{space}"
    lines = [SPACES[space]]
    outputs = 0
    for kind, register in kinds:
        lines.append(f"st{where}.v4.b32 [{base}], {{%i0, %i1, %i2, %i3}};")
        source = {"b16": "%h0", "b32": "%t0", "b64": "%w0"}[register]
        convert = {"b16": "cvt.u16.u64 %h0", "b32": "cvt.u32.u64 %t0", "b64": "mov.b64 %w0"}
        lines.append(f"{convert[register]}, %i4;")
        lines.append(f"st{where}.{kind} [{base}+{2 * size(kind) % 16}], {source};")
        loaded = ", ".join(f"%o{outputs + i}" for i in range(4))
        lines.append(f"ld{where}.v4.b32 {{{loaded}}}, [{base}];")
        outputs += 4
    return snippet(lines, ("b32",) * 4 + ("b64",), ("b32",) * outputs)


def words(seed: int) -> list[np.ndarray]:
    return list(np.random.default_rng(seed).integers(0, 1 << 32, (4, THREADS), dtype=np.uint32))


def rows(columns: list[np.ndarray]) -> list[bytes]:
    """The 16 bytes of every thread."""
    return [row.tobytes() for row in np.stack(columns, axis=1)]


PLACES = [("global", False, False), ("shared", False, False), ("shared", False, True)]
PLACES += [("local", False, False), *((space, True, False) for space in SPACES)]


def extended(raw: bytes, kind: str, register: str) -> int:
    """What a register holds of bytes in memory: signed types fill it with the sign."""
    number = int.from_bytes(raw, "little")
    return encoded(decoded(number, kind) if kind[0] == "s" else number, register)


def check_loads(snippet: Snippet, kinds: list[tuple[str, str]]) -> None:
    columns = words(1)
    found = iter(snippet(*columns, block=THREADS))
    for kind, register in kinds:
        for offset in (0, 8, 16 - size(kind)):
            part = slice(offset, offset + size(kind))
            expected = [extended(raw[part], kind, register) for raw in rows(columns)]
            assert next(found).tolist() == expected, (kind, register, offset)


@pytest.mark.parametrize(("space", "generic", "narrow"), PLACES)
def test_loads(space, generic, narrow):
    check_loads(load(space, KINDS, generic, narrow), KINDS)


# Hints and orderings that do not change what a single thread sees.
CACHED = (".ca", ".cg", ".cs", ".cv", ".lu")
ORDERED = (".volatile", ".relaxed.gpu", ".acquire.sys", ".weak")
MODIFIED = [("global", modifiers) for modifiers in (*ORDERED, *CACHED)]
MODIFIED += [("shared", ".volatile"), ("shared", ".relaxed.cta"), ("local", ".ca")]


@pytest.mark.parametrize(("space", "modifiers"), MODIFIED)
def test_modified_loads(space, modifiers):
    kinds = [("b32", "b32")]
    check_loads(modified(space, modifiers), kinds)


def modified(space: str, modifiers: str) -> Snippet:
    """The modifier stands before the space, or after it where it is a cache operator."""
    plain = load(space, [("b32", "b32")])
    opcode = f"ld.{space}{modifiers}" if modifiers in CACHED else f"ld{modifiers}.{space}"
    return snippet([plain.body.replace(f"ld.{space}", opcode)], plain.inputs, plain.outputs)


@pytest.mark.parametrize("space", SPACES)
@pytest.mark.parametrize("generic", [False, True])
def test_stores(space, generic):
    columns = words(2)
    values = np.random.default_rng(3).integers(0, 1 << 64, THREADS, dtype=np.uint64)
    found = store(space, KINDS, generic)(*columns, values, block=THREADS)
    for i, (kind, register) in enumerate(KINDS):
        offset = 2 * size(kind) % 16
        results = rows(found[4 * i : 4 * i + 4])
        for raw, value, result in zip(rows(columns), values.tolist(), results, strict=True):
            expected = bytearray(raw)
            expected[offset : offset + size(kind)] = value.to_bytes(8, "little")[: size(kind)]
            assert result == bytes(expected), (kind, register)


def vector(space: str, count: int, kind: str, register: str) -> Snippet:
    """A vector is loaded from the first half and stored back, its elements in reverse, above."""
    bits = count * size(kind)
    letter = {"b16": "h", "b32": "t", "b64": "w"}[register]
    elements = [f"%{letter}{i}" for i in range(count)]
    base = address(space, False, False)
    target = f"{base}+{16 - bits}" if bits <= 8 else base
    body = [
        SPACES[space],
        f"st.{space}.v4.b32 [{base}], {{%i0, %i1, %i2, %i3}};",
        f"ld.{space}.v{count}.{kind} {{{', '.join(elements)}}}, [{base}];",
        f"st.{space}.v{count}.{kind} [{target}], {{{', '.join(reversed(elements))}}};",
        f"ld.{space}.v4.b32 {{%o0, %o1, %o2, %o3}}, [{base}];",
    ]
    return snippet(body, ("b32",) * 4, ("b32",) * 4)


@pytest.mark.parametrize("space", SPACES)
@pytest.mark.parametrize(("count", "kind", "register"), VECTORS)
def test_vectors(space, count, kind, register):
    columns = words(4)
    found = rows(vector(space, count, kind, register)(*columns, block=THREADS))
    width = count * size(kind)
    for raw, result in zip(rows(columns), found, strict=True):
        parts = [raw[i : i + size(kind)] for i in range(0, width, size(kind))]
        expected = bytearray(raw)
        place = 16 - width if width <= 8 else 0
        expected[place : place + width] = b"".join(reversed(parts))
        assert result == bytes(expected)


WIDE = Snippet(
    "{\n.reg .b128 %q0;\n" + SPACES["global"] + "\nst.global.v4.b32 [%w5], {%i0, %i1, %i2, %i3};\n"
    "ld.global.b128 %q0, [%w5];\nmov.b128 {%w0, %w1}, %q0;\nmov.b128 %q0, {%w1, %w0};\n"
    "st.global.b128 [%w5], %q0;\nld.global.v4.b32 {%o0, %o1, %o2, %o3}, [%w5];\n}",
    ("b32",) * 4,
    ("b32",) * 4,
    "sm_90",
    globals=DATA,
)


def test_128_bits():
    columns = words(5)
    found = WIDE(*columns, block=THREADS)
    for i in range(4):
        np.testing.assert_array_equal(found[i], columns[(i + 2) % 4])


# Bodies that read read-only memory, declarations, and what %o0 becomes for %i0.
TABLE = [3, 0xFFFFFFFF, 7, 11, 13, 17, 19, 0x80000000]
LIST = ", ".join(map(str, TABLE))
INDEX = "and.b32 %t0, %i0, 7;\nmul.wide.u32 %w0, %t0, 4;\n"
VARIABLES = {
    "const": (
        f"{INDEX}mov.u64 %w1, $_table;\nadd.s64 %w1, %w1, %w0;\nld.const.b32 %o0, [%w1];",
        f".const .align 4 .b32 $_table[8] = {{{LIST}}};",
        lambda i: TABLE[i % 8],
    ),
    "const by generic address": (
        f"{INDEX}mov.u64 %w1, $_table;\ncvta.const.u64 %w1, %w1;\nadd.s64 %w1, %w1, %w0;\n"
        "ld.b32 %o0, [%w1];",
        f".const .align 4 .b32 $_table[8] = {{{LIST}}};",
        lambda i: TABLE[i % 8],
    ),
    "global": (
        f"{INDEX}mov.u64 %w1, $_table;\nadd.s64 %w1, %w1, %w0;\nld.global.nc.b32 %o0, [%w1];",
        f".global .align 4 .u32 $_table[8] = {{{LIST}}};",
        lambda i: TABLE[i % 8],
    ),
    "global through ldu": (
        "ldu.global.u32 %o0, [$_table+8];",
        f".global .align 4 .u32 $_table[8] = {{{LIST}}};",
        lambda i: TABLE[2],
    ),
    "hints": (
        "ld.global.nc.L1::no_allocate.L2::128B.b32 %o0, [$_table+4];",
        f".global .align 4 .u32 $_table[8] = {{{LIST}}};",
        lambda i: TABLE[1],
    ),
    "symbol and offset": (
        "ld.const.u16 %h0, [$_bytes+2];\ncvt.u32.u16 %o0, %h0;",
        ".const .align 8 .b8 $_bytes[8] = {1, 2, 3, 4, 5, 6, 7, 8};",
        lambda i: 0x0403,
    ),
    "address in a register": (
        "mov.u64 %w1, $_bytes+6;\nld.global.s8 %o0, [%w1+-1];",
        ".global .align 8 .b8 $_bytes[8] = {1, 2, 3, 4, 5, 0xF6, 7, 8};",
        lambda i: 0xFFFFFFF6,
    ),
    "floats": (
        "ld.global.f32 %o0, [$_f+4];",
        ".global .align 4 .f32 $_f[2] = {0f3F800000, 1.5};",
        lambda i: 0x3FC00000,
    ),
    "zeros": (
        "ld.global.b32 %o0, [$_zeros+12];",
        ".global .align 4 .b32 $_zeros[4];",
        lambda i: 0,
    ),
    "an address as initial value": (
        "ld.global.u64 %w1, [$_pointer];\nld.global.b32 %o0, [%w1];",
        f".global .align 4 .u32 $_table[8] = {{{LIST}}};\n"
        ".global .align 8 .u64 $_pointer[1] = {$_table+12};",
        lambda i: TABLE[3],
    ),
    "a generic address as initial value": (
        "ld.global.u64 %w1, [$_pointer];\nld.b32 %o0, [%w1+4];",
        f".global .align 4 .u32 $_table[8] = {{{LIST}}};\n"
        ".global .align 8 .u64 $_pointer = generic($_table);",
        lambda i: TABLE[1],
    ),
}


def variable(name: str) -> Snippet:
    body, declarations, _ = VARIABLES[name]
    return Snippet(body, ("b32",), globals=declarations)


@pytest.mark.parametrize("name", VARIABLES)
def test_variables(name):
    values = words(6)[0]
    (found,) = variable(name)(values)
    assert found.tolist() == [VARIABLES[name][2](i) for i in values.tolist()]


# One thread alone, lest others write the same bytes at the same time.
APART = Snippet(
    "setp.ne.u32 %p0, %id2, 0;\nmov.u32 %o0, 567;\n@%p0 bra DONE;\nst.shared.b32 [$_a], 5;\n"
    "st.shared.b64 [$_b+8], 6;\nst.shared.b8 [$_a+4], 7;\nst.shared.b32 [memory], 8;\n"
    "ld.shared.b32 %t0, [$_a];\nld.shared.b32 %t1, [$_b+8];\nld.shared.u8 %t2, [$_a+4];\n"
    "mad.lo.u32 %t0, %t0, 10, %t1;\nmad.lo.u32 %o0, %t0, 10, %t2;\nDONE:",
    ("b32",),
    shared=4,
    globals=".shared .align 4 .b8 $_a[5];\n.shared .align 8 .b64 $_b[2];",
)


def test_shared_variables_do_not_overlap():
    (found,) = APART(words(6)[0])
    assert (found == 567).all()


QUESTIONS = "\n".join(
    f"isspacep.{asked} %p0, %w{i};\nselp.u32 %t0, 1, 0, %p0;\nmad.lo.u32 %o0, %o0, 2, %t0;"
    for i in range(3)
    for asked in ("global", "shared", "local")
)
IS_SPACE = Snippet(
    ".local .align 4 .b8 own[4];\nmov.u32 %o0, 0;\n"
    "mov.u64 %w3, $_data;\ncvta.global.u64 %w0, %w3;\nmov.u64 %w3, memory;\n"
    "cvta.shared.u64 %w1, %w3;\nmov.u64 %w3, own;\ncvta.local.u64 %w2, %w3;\n" + QUESTIONS,
    ("b32",),
    shared=16,
    globals=DATA,
)
ROUND_TRIP = Snippet(
    ".local .align 4 .b8 own[4];\nmov.u64 %w0, memory;\ncvta.shared.u64 %w1, %w0;\n"
    "cvta.to.shared.u64 %w2, %w1;\nxor.b64 %o0, %w0, %w2;\n"
    "mov.u64 %w0, own;\ncvta.local.u64 %w1, %w0;\ncvta.to.local.u64 %w2, %w1;\n"
    "xor.b64 %o1, %w0, %w2;\nmov.u64 %w0, $_data;\ncvta.global.u64 %w1, %w0;\n"
    "cvta.to.global.u64 %w2, %w1;\nxor.b64 %o2, %w0, %w2;",
    ("b32",),
    ("b64",) * 3,
    shared=16,
    globals=DATA,
)


def test_address_conversions():
    values = words(7)[0]
    # Bits for (global, shared, local) asked of an address in each of them.
    assert (IS_SPACE(values)[0] == 0b100010001).all()
    for difference in ROUND_TRIP(values):
        assert (difference == 0).all()


HINTS = [
    "prefetch.global.L2 [%w5];",
    "prefetch.global.L1 [%w5];",
    "prefetchu.L1 [%w6];",
    "membar.gl;",
    "membar.cta;",
    "fence.acq_rel.gpu;",
    "fence.sc.cta;",
    "fence.proxy.async;",
    "nanosleep.u32 20;",
    "griddepcontrol.wait;",
    "griddepcontrol.launch_dependents;",
    "setmaxnreg.inc.sync.aligned.u32 96;",
]


def hint(instruction: str) -> Snippet:
    return Snippet(
        f"{SPACES['global']}\n{instruction}\nmov.b32 %o0, %i0;",
        ("b32",),
        target="sm_90a" if "setmaxnreg" in instruction else "sm_90",
        globals=DATA,
    )


@pytest.mark.parametrize("instruction", HINTS)
def test_instructions_without_a_result(instruction):
    values = words(8)[0]
    np.testing.assert_array_equal(hint(instruction)(values)[0], values)


def all_snippets() -> list[Snippet]:
    snippets = [load(space, KINDS, *more) for space, *more in PLACES]
    snippets += [modified(*case) for case in MODIFIED]
    snippets += [store(space, KINDS, generic) for space in SPACES for generic in (False, True)]
    snippets += [vector(space, *form) for space in SPACES for form in VECTORS]
    snippets += [variable(name) for name in VARIABLES]
    snippets += [hint(instruction) for instruction in HINTS]
    return [*snippets, WIDE, APART, IS_SPACE, ROUND_TRIP]


def test_snippets_assemble(tmp_path):
    check_assembles(all_snippets(), tmp_path)
