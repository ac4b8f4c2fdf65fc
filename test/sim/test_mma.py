# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""mma: fragments by the lane maps of the PTX ISA, products and sums in float64."""

import numpy as np
import pytest

from formats import FORMATS
from fragments import (
    A_POSITIONS,
    B_POSITIONS,
    ELEMENT_BITS,
    c_position,
    extents,
    fragment,
    matrices,
    random_bits,
    register_type,
    small_integers,
    values,
)
from snippet import Snippet, check_assembles
from twofour.errors import TwofourError
from twofour.sim import tensor

WARPS = 3
CASES = [
    *[(shape, "f16", "f16", c) for shape in ("m16n8k8", "m16n8k16") for c in ("f32", "f16")],
    *[(shape, "bf16", "bf16", "f32") for shape in ("m16n8k8", "m16n8k16")],
    *[(shape, "tf32", "tf32", "f32") for shape in ("m16n8k4", "m16n8k8")],
    ("m8n8k4", "f64", "f64", "f64"),
    *[(shape, "f64", "f64", "f64") for shape in ("m16n8k4", "m16n8k8", "m16n8k16")],
    *[
        (shape, a, b, "s32")
        for shape in ("m8n8k16", "m16n8k16", "m16n8k32")
        for a, b in (("s8", "s8"), ("u8", "u8"), ("s8", "u8"), ("u8", "s8"))
    ],
    *[
        (shape, a, b, c)
        for shape in ("m16n8k16", "m16n8k32")
        for a, b, c in (("e4m3", "e4m3", "f32"), ("e5m2", "e4m3", "f32"), ("e5m2", "e5m2", "f16"))
    ],
]


def instruction(shape: str, a: str, b: str, c: str, modifier: str = "") -> Snippet:
    m, _, k = extents(shape)
    sizes = [
        max(1, m * k * ELEMENT_BITS[a] // (64 if a == "f64" else 32) // 32),
        max(1, 8 * k * ELEMENT_BITS[b] // (64 if b == "f64" else 32) // 32),
        m * 8 * ELEMENT_BITS[c] // (64 if c == "f64" else 32) // 32,
    ]
    starts = [0, sizes[0], sizes[0] + sizes[1]]
    groups = [
        ", ".join(f"%i{start + j}" for j in range(size))
        for start, size in zip(starts, sizes, strict=True)
    ]
    result = ", ".join(f"%o{j}" for j in range(sizes[2]))
    operands = ", ".join(f"{{{group}}}" for group in (result, *groups))
    new_shape = a == "f64" and m == 16
    return Snippet(
        f"mma.sync.aligned.{shape}.row.col{modifier}.{c}.{a}.{b}.{c} {operands};",
        inputs=(register_type(a),) * (sizes[0] + sizes[1]) + (register_type(c),) * sizes[2],
        outputs=(register_type(c),) * sizes[2],
        target="sm_90" if new_shape or a[0] == "e" else "sm_80",
    )


def execute(snippet: Snippet, *fragments: np.ndarray) -> np.ndarray:
    """The fragment [warps, 32, registers] of D."""
    operands = [part[:, :, j].ravel() for part in fragments for j in range(part.shape[2])]
    results = snippet(*operands)
    return np.stack(results, axis=1).reshape(len(fragments[0]), 32, -1)


def run(
    shape: str, types: tuple[str, str, str], a: np.ndarray, b: np.ndarray, c: np.ndarray, mod=""
) -> np.ndarray:
    """Element bits of D for those of the matrices A, B and C."""
    a_type, b_type, c_type = types
    m, _, k = extents(shape)
    registers = execute(
        instruction(shape, *types, mod),
        fragment(a, a_type, A_POSITIONS[ELEMENT_BITS[a_type], m, k]),
        fragment(b, b_type, B_POSITIONS[ELEMENT_BITS[b_type]]),
        fragment(c, c_type, c_position),
    )
    return matrices(registers, c_type, c_position, m, 8)


def operands(case: tuple[str, str, str, str], make, seed: int) -> list[np.ndarray]:
    shape, a, b, c = case
    m, n, k = extents(shape)
    generator = np.random.default_rng(seed)
    parts = [make(generator, a, (WARPS, m, k)), make(generator, b, (WARPS, k, n))]
    return [*parts, small_integers(generator, c, (WARPS, m, n))]


@pytest.mark.parametrize("case", CASES, ids="-".join)
def test_places_every_element(case):
    shape, *types = case
    a, b, c = operands(case, small_integers, 1)
    d = run(shape, tuple(types), a, b, c)
    expected = values(a, types[0]) @ values(b, types[1]) + values(c, types[2])
    np.testing.assert_array_equal(values(d, types[2]), expected)


@pytest.mark.parametrize("case", CASES, ids="-".join)
def test_rounds_to_the_accumulator_once(case):
    shape, *types = case
    a, b, c = operands(case, random_bits, 2)
    d = run(shape, tuple(types), a, b, c)
    exact = values(a, types[0]) @ values(b, types[1]) + values(c, types[2])
    if types[2] == "s32":
        np.testing.assert_array_equal(values(d, "s32"), exact)
        return
    steps = 20 if types[2] == "f64" else 0.5
    unit = 2.0 ** -FORMATS[types[2]].mantissa
    size = np.exp2(np.floor(np.log2(np.maximum(np.abs(exact), 1e-15))))
    assert (np.abs(values(d, types[2]) - exact) <= 1.001 * steps * unit * size + 1e-15).all()


def test_ignores_low_bits_of_tf32():
    case = ("m16n8k8", "tf32", "tf32", "f32")
    a, b, c = operands(case, random_bits, 3)
    clean = a & np.uint64(0xFFFFE000), b & np.uint64(0xFFFFE000)
    assert (clean[0] != a).any()
    np.testing.assert_array_equal(
        run("m16n8k8", case[1:], a, b, c), run("m16n8k8", case[1:], *clean, c)
    )


@pytest.mark.parametrize(("modifier", "limit"), [("", -(2**31) + 127), (".satfinite", 2**31 - 1)])
def test_integers_wrap_or_saturate(modifier, limit):
    a = np.ones((1, 16, 16), dtype=np.uint64)
    b = np.full((1, 16, 8), 8, dtype=np.uint64)
    c = np.full((1, 16, 8), 2**31 - 1, dtype=np.uint64)
    d = run("m16n8k16", ("s8", "s8", "s32"), a, b, c, modifier)
    assert (values(d, "s32") == limit).all()


def test_nan_is_canonical():
    a = np.zeros((1, 16, 16), dtype=np.uint64)
    a[0, 3, 5], a[0, 4, 5] = 0x7C00, 0xFE01
    b = np.zeros((1, 16, 8), dtype=np.uint64)
    c = np.full((1, 16, 8), 0x3C00, dtype=np.uint64)
    d = run("m16n8k16", ("f16", "f16", "f16"), a, b, c)
    assert (d[0, [3, 4]] == 0x7FFF).all()
    assert (np.delete(d[0], [3, 4], axis=0) == 0x3C00).all()


A, B, C, C16 = (np.zeros((1, 32, registers), dtype=np.uint32) for registers in (4, 2, 4, 2))


@pytest.mark.parametrize(
    ("types", "fragments", "message"),
    [
        (("m16n8k16", "f32", "f32", "f32", "f32"), (A, B, C), "operand type of f16, .* got f32"),
        (("m16n8k32", "f16", "f16", "f32", "f32"), (A, B, C), "m16n8k8, m16n8k16 for f16, got"),
        (("m16n8k16", "f16", "bf16", "f32", "f32"), (A, B, C), "same kind, got f16 and bf16"),
        (("m16n8k16", "bf16", "bf16", "f16", "f16"), (A, B, C16), "of f32 for bf16, got f16"),
        (("m16n8k16", "f16", "f16", "f16", "f32"), (A, B, C16), "f16 or f32 .* got f16 and f32"),
        (("m16n8k16", "f16", "f16", "f16", "f16"), (A, B, C), "4 / 2 / 2 registers .* 4 / 2 / 4"),
    ],
)
def test_unsupported_forms(types, fragments, message):
    with pytest.raises(TwofourError, match=message):
        tensor.mma(*types, *fragments)


def all_snippets() -> list[Snippet]:
    integers = instruction("m16n8k16", "s8", "s8", "s32", ".satfinite")
    return [*(instruction(*case) for case in CASES), integers]


def test_snippets_assemble(tmp_path):
    check_assembles(all_snippets(), tmp_path)
