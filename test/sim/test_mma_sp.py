# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""mma.sp: A is decompressed by the lane maps of the PTX ISA and multiplied in float64."""

from fractions import Fraction

import numpy as np
import pytest

from formats import FORMATS, rounded
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
SELECTORS = {
    (16, 16): 4,
    (16, 32): 2,
    (32, 8): 4,
    (32, 16): 2,
    (8, 32): 2,
    (8, 64): 1,
}
SHAPES = [
    *[(shape, "f16", "f16", c) for shape in ("m16n8k16", "m16n8k32") for c in ("f32", "f16")],
    *[(shape, "bf16", "bf16", "f32") for shape in ("m16n8k16", "m16n8k32")],
    *[(shape, "tf32", "tf32", "f32") for shape in ("m16n8k8", "m16n8k16")],
    *[
        (shape, a, b, "s32")
        for shape in ("m16n8k32", "m16n8k64")
        for a, b in (("s8", "s8"), ("u8", "u8"), ("s8", "u8"), ("u8", "s8"))
    ],
    ("m16n8k64", "e4m3", "e4m3", "f32"),
    ("m16n8k64", "e5m2", "e4m3", "f32"),
]


def selectors(shape: str, a: str) -> int:
    return SELECTORS[ELEMENT_BITS[a], extents(shape)[2]]


CASES = [
    (*case, selector, ordered)
    for case in SHAPES
    for selector in range(selectors(*case[:2]))
    for ordered in (True, False)
]


def name(case: tuple) -> str:
    return "-".join(case[:4]) + f"-{case[4]}" + ("-ordered" if case[5] else "")


def instruction(
    shape: str, a: str, b: str, c: str, selector: float, ordered: bool, modifier: str = ""
) -> Snippet:
    m, n, k = extents(shape)
    sizes = [m * k // 2 * ELEMENT_BITS[a] // 1024, k * n * ELEMENT_BITS[b] // 1024]
    sizes += [m * n * ELEMENT_BITS[c] // 1024, 1]
    groups = [
        ", ".join(f"%i{sum(sizes[:part]) + j}" for j in range(sizes[part])) for part in range(4)
    ]
    result = ", ".join(f"%o{j}" for j in range(sizes[2]))
    operands = ", ".join(f"{{{group}}}" for group in (result, *groups[:3]))
    kind = ".sp::ordered_metadata" if ordered else ".sp"
    return Snippet(
        f"mma{kind}.sync.aligned.{shape}.row.col{modifier}.{c}.{a}.{b}.{c} "
        f"{operands}, {groups[3]}, {selector};",
        inputs=("b32",) * sum(sizes),
        outputs=(register_type(c),) * sizes[2],
        target="sm_90" if a[0] == "e" else "sm_80",
    )


def random_indices(generator: np.random.Generator, shape: str, a: str, ordered: bool) -> np.ndarray:
    """Nibbles [warps, rows, chunks]: two 2-bit indices of kept elements, the first one low."""
    chunks = extents(shape)[2] // (2 if a == "tf32" else 4)
    if a == "tf32":
        legal = [0b0100, 0b1110]
    elif ordered:
        legal = [0b0100, 0b1000, 0b1100, 0b1001, 0b1101, 0b1110]
    else:
        legal = [nibble for nibble in range(16) if nibble % 4 != nibble // 4]
    return generator.choice(legal, (WARPS, 16, chunks))


def metadata_words(nibbles: np.ndarray, a: str, selector: int, fill: int) -> np.ndarray:
    """Metadata [warps, 32] by the maps of the PTX ISA; `fill` is in lanes that are not read."""
    warps, _, chunks = nibbles.shape
    words = np.full((warps, 32), fill, dtype=np.uint32)
    bits = ELEMENT_BITS[a]
    for warp in range(warps):
        for lane in range(32):
            g, t = divmod(lane, 4)
            if bits == 8 and chunks == 16:
                parts = [(g + 8 * (t % 2), range(8 * (t // 2), 8 * (t // 2) + 8))]
            elif bits == 8 and t // 2 == selector:
                parts = [(g + 8 * (t % 2), range(8))]
            elif bits != 8 and chunks == 8 and t // 2 == selector:
                half = range(4 * (t % 2), 4 * (t % 2) + 4)
                parts = [(g, half), (g + 8, half)]
            elif bits != 8 and chunks == 4 and t == selector:
                parts = [(g, range(4)), (g + 8, range(4))]
            else:
                continue
            word = 0
            held = [nibbles[warp, row, chunk] for row, columns in parts for chunk in columns]
            for place, nibble in enumerate(held):
                word |= int(nibble) << 4 * place
            words[warp, lane] = word
    return words


def decompressed(stored: np.ndarray, nibbles: np.ndarray, a: str) -> np.ndarray:
    """Element bits [warps, 16, k] of A from those of its stored elements [warps, 16, k / 2]."""
    warps, rows, chunks = nibbles.shape
    dense = np.zeros((warps, rows, 2 * stored.shape[2]), dtype=np.uint64)
    for warp in range(warps):
        for row in range(rows):
            for chunk in range(chunks):
                nibble = int(nibbles[warp, row, chunk])
                if a == "tf32":
                    column = 2 * chunk + {0b0100: 0, 0b1110: 1}[nibble]
                    dense[warp, row, column] = stored[warp, row, chunk]
                    continue
                for which, index in enumerate((nibble % 4, nibble // 4)):
                    dense[warp, row, 4 * chunk + index] = stored[warp, row, 2 * chunk + which]
    return dense


def run(
    case: tuple,
    a: np.ndarray,
    b: np.ndarray,
    c: np.ndarray,
    words: np.ndarray,
    modifier: str = "",
) -> np.ndarray:
    """Element bits of D for those of stored A, of B and C, and for metadata [warps, 32]."""
    shape, a_type, b_type, c_type, *_ = case
    depth = extents(shape)[2] // 2
    fragments = [
        fragment(a, a_type, A_POSITIONS[ELEMENT_BITS[a_type], 16, depth]),
        fragment(b, b_type, B_POSITIONS[ELEMENT_BITS[b_type]]),
        fragment(c, c_type, c_position),
        words[:, :, None],
    ]
    operands = [part[:, :, j].ravel() for part in fragments for j in range(part.shape[2])]
    results = instruction(*case, modifier)(*operands)
    registers = np.stack(results, axis=1).reshape(len(a), 32, -1)
    return matrices(registers, c_type, c_position, 16, 8)


def operands(case: tuple, make, seed: int) -> list[np.ndarray]:
    """Random stored A, B, C, nibbles and metadata of a case."""
    shape, a, b, c, selector, ordered = case
    m, n, k = extents(shape)
    generator = np.random.default_rng(seed)
    parts = [make(generator, a, (WARPS, m, k // 2)), make(generator, b, (WARPS, k, n))]
    nibbles = random_indices(generator, shape, a, ordered)
    # Nibbles 1111 are legal nowhere.
    words = metadata_words(nibbles, a, selector, 0xFFFFFFFF)
    return [*parts, small_integers(generator, c, (WARPS, m, n)), nibbles, words]


@pytest.mark.parametrize("case", CASES, ids=name)
def test_places_every_element(case):
    a, b, c, nibbles, words = operands(case, small_integers, 1)
    d = run(case, a, b, c, words)
    dense = values(decompressed(a, nibbles, case[1]), case[1])
    expected = dense @ values(b, case[2]) + values(c, case[3])
    np.testing.assert_array_equal(values(d, case[3]), expected)


@pytest.mark.parametrize("shape", SHAPES, ids="-".join)
def test_rounds_to_the_accumulator_once(shape):
    case = (*shape, 0, True)
    a, b, c, nibbles, words = operands(case, random_bits, 2)
    d = values(run(case, a, b, c, words), case[3])
    dense = values(decompressed(a, nibbles, case[1]), case[1])
    exact = dense @ values(b, case[2]) + values(c, case[3])
    if case[3] == "s32":
        np.testing.assert_array_equal(d, exact)
        return
    size = np.exp2(np.floor(np.log2(np.maximum(np.abs(exact), 1e-15))))
    bound = 0.5001 * 2.0 ** -FORMATS[case[3]].mantissa * size + 1e-15
    assert (np.abs(d - exact) <= bound).all()


@pytest.mark.parametrize("shape", SHAPES, ids="-".join)
def test_operator_shared_by_all_warps(shape):
    case = (*shape, selectors(*shape[:2]) - 1, True)
    a, b, c, nibbles, words = operands(case, small_integers, 3)
    a[:], words[:] = a[0], words[0]
    d = run(case, a, b, c, words)
    dense = values(decompressed(a, np.broadcast_to(nibbles[:1], nibbles.shape), case[1]), case[1])
    expected = dense @ values(b, case[2]) + values(c, case[3])
    np.testing.assert_array_equal(values(d, case[3]), expected)


def odd_number(index: int, kind: str) -> int:
    return 2 * index + 1 if kind == "s8" else rounded(Fraction(2 * index + 1), kind)


@pytest.mark.parametrize(
    "case",
    [
        ("m16n8k16", "f16", "f16", "f32", 3, True),
        ("m16n8k32", "f16", "f16", "f32", 1, True),
        ("m16n8k32", "bf16", "bf16", "f32", 0, False),
        ("m16n8k16", "tf32", "tf32", "f32", 1, True),
        ("m16n8k64", "s8", "s8", "s32", 0, False),
    ],
    ids=name,
)
def test_every_metadata_bit_matters(case):
    a, b, c, _, words = operands(case, small_integers, 4)
    # Rows of B are different multiples: another choice of elements gives another sum.
    a[:] = odd_number(0, case[1])
    for number in range(b.shape[1]):
        b[:, number] = odd_number(number, case[2])
    plain = run(case, a, b, c, words)
    lane = 4 * 5 + 2 * case[4] if case[0] != "m16n8k16" or case[1] == "tf32" else 4 * 5 + case[4]
    outcomes = []
    for bit in range(32):
        flipped = words.copy()
        flipped[1, lane] ^= np.uint32(1 << bit)
        try:
            d = run(case, a, b, c, flipped)
        except TwofourError as error:
            assert "metadata" in str(error)
            outcomes.append("refused")
            continue
        differs = (d != plain).any(axis=(1, 2))
        assert list(differs) == [False, True, False]
        outcomes.append("different")
    assert "refused" in outcomes
    assert case[1] == "tf32" or "different" in outcomes


ILLEGAL = [
    *[("f16", "m16n8k32", ordered, n) for ordered in (True, False) for n in (0, 5, 10, 15)],
    *[("f16", "m16n8k32", True, n) for n in (0b0001, 0b0110, 0b0011)],
    *[("tf32", "m16n8k16", ordered, n) for ordered in (True, False) for n in (0b1001, 0b1000, 1)],
]


@pytest.mark.parametrize(("kind", "shape", "ordered", "nibble"), ILLEGAL)
def test_illegal_metadata_is_refused(kind, shape, ordered, nibble):
    case = (shape, kind, kind, "f32", 0, ordered)
    a, b, c, nibbles, _ = operands(case, small_integers, 5)
    nibbles[2, 11, 6] = nibble
    words = metadata_words(nibbles, kind, 0, 0)
    with pytest.raises(TwofourError) as raised:
        run(case, a, b, c, words)
    # Row 11 is in the upper half of the word, chunk 6 in the odd lane of the pair.
    message = str(raised.value)
    assert f"got {nibble:04b}" in message
    assert "bits 24..27 of lane 13" in message and "row 11, chunk 6" in message


def test_unsupported_accumulator():
    a, c = (np.zeros((1, 32, registers), dtype=np.uint32) for registers in (4, 2))
    with pytest.raises(TwofourError, match="accumulators of f32 for e4m3, got f16"):
        types = ("m16n8k64", "e4m3", "e4m3", "f16", "f16")
        tensor.mma_sp(*types, a, a, c, a[:, :, 0], 0, True)


@pytest.mark.parametrize("shape", SHAPES, ids="-".join)
def test_illegal_selector_is_refused(shape):
    limit = selectors(*shape[:2])
    a, b, c, _, words = operands((*shape, 0, True), small_integers, 6)
    message = f"selector below {limit} for {shape[0]} of {shape[1]}"
    for selector in (limit, 0.5):
        with pytest.raises(TwofourError, match=message):
            run((*shape, selector, True), a, b, c, words)
    fragments = [np.zeros((1, 32, registers), dtype=np.uint32) for registers in (4, 4, 4)]
    for selector in (limit, -1):
        with pytest.raises(TwofourError, match=f"{message}, got {selector}"):
            types = (*shape[:3], shape[3], shape[3])
            tensor.mma_sp(*types, *fragments, fragments[0][:, :, 0], selector, True)


def test_dropped_elements_of_b_take_no_part():
    """B may hold infinities where A stores nothing."""
    case = ("m16n8k16", "f16", "f16", "f32", 0, True)
    a, b, c, nibbles, words = operands(case, small_integers, 7)
    nibbles[:] = 0b0100
    words = metadata_words(nibbles, "f16", 0, 0)
    dense = values(decompressed(a, nibbles, "f16"), "f16")
    expected = dense @ values(b, "f16") + values(c, "f32")
    b[1, 3::4] = 0x7C00
    np.testing.assert_array_equal(values(run(case, a, b, c, words), "f32"), expected)


def test_integers_saturate():
    case = ("m16n8k32", "s8", "s8", "s32", 0, True)
    a, b, c, _, words = operands(case, small_integers, 8)
    a[:], b[:], c[:] = 1, 8, 2**31 - 1
    assert (run(case, a, b, c, words, ".satfinite") == 2**31 - 1).all()
    assert (values(run(case, a, b, c, words), "s32") == -(2**31) + 127).all()


def all_snippets() -> list[Snippet]:
    saturating = instruction("m16n8k32", "s8", "s8", "s32", 0, True, ".satfinite")
    return [*(instruction(*case) for case in CASES), saturating]


def test_snippets_assemble(tmp_path):
    check_assembles(all_snippets(), tmp_path)
