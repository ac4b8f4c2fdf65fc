# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Tensor instructions on the registers of whole warps: mma, mma.sp, ldmatrix, stmatrix, movmatrix.

Fragments are arrays [warps, 32 lanes, registers] of uint32, as PTX holds them (two 16-bit or four
8-bit elements a register, the first in the low bits; one tf32, f32 or s32), or of uint64 for f64.

Arithmetic: products are exact and their sum with the accumulator is formed in float64, then rounded
once, to nearest even, to the accumulator's type. The hardware aligns and truncates terms in ways
that NVIDIA does not document, so that its last bits differ from these; both stay within the bound
that the project documents for each type. f64 rounds every product and every sum to float64, in the
order of k, where the hardware fuses them. tf32 operands are truncated: the tensor cores ignore the
low 13 bits of a register. Integers wrap unless `saturate` is set.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache

import numpy as np

from twofour.errors import TwofourError
from twofour.sim.numerics import round_to, widen

BITS = {"f16": 16, "bf16": 16, "tf32": 32, "f64": 64, "s8": 8, "u8": 8, "e4m3": 8, "e5m2": 8}
ACCUMULATORS = {
    "f16": ("f16", "f32"),
    "bf16": ("f32",),
    "tf32": ("f32",),
    "f64": ("f64",),
    "s8": ("s32",),
    "u8": ("s32",),
    "e4m3": ("f16", "f32"),
    "e5m2": ("f16", "f32"),
}
SPARSE_ACCUMULATORS = {**ACCUMULATORS, "e4m3": ("f32",), "e5m2": ("f32",)}
DENSE_SHAPES = {
    "f16": ("m16n8k8", "m16n8k16"),
    "bf16": ("m16n8k8", "m16n8k16"),
    "tf32": ("m16n8k4", "m16n8k8"),
    "f64": ("m8n8k4", "m16n8k4", "m16n8k8", "m16n8k16"),
    "s8": ("m8n8k16", "m16n8k16", "m16n8k32"),
    "u8": ("m8n8k16", "m16n8k16", "m16n8k32"),
    "e4m3": ("m16n8k16", "m16n8k32"),
    "e5m2": ("m16n8k16", "m16n8k32"),
}
# Number of legal selectors of every shape.
SPARSE_SHAPES = {
    "f16": {"m16n8k16": 4, "m16n8k32": 2},
    "bf16": {"m16n8k16": 4, "m16n8k32": 2},
    "tf32": {"m16n8k8": 4, "m16n8k16": 2},
    "s8": {"m16n8k32": 2, "m16n8k64": 1},
    "u8": {"m16n8k32": 2, "m16n8k64": 1},
    "e4m3": {"m16n8k64": 1},
    "e5m2": {"m16n8k64": 1},
}
# Types that may stand together as those of A and B.
_MIXED = ({"s8", "u8"}, {"e4m3", "e5m2"})
# So many warps at a time keep the matrices in the second-level cache.
_WARPS = 256


class MetadataError(TwofourError):
    """Metadata for which mma.sp is not defined; `warp` and `lane` say who holds it."""

    def __init__(self, message: str, warp: int, lane: int):
        super().__init__(message)
        self.warp = warp
        self.lane = lane


@dataclass(frozen=True)
class _Form:
    """Extents of an instruction, and positions of its matrix elements in the fragments.

    `a` [m, k of the fragment], `b` [k, 8] and `c` [m, 8] index the elements of one warp, counted
    lane by lane.
    """

    rows: int
    depth: int
    a: np.ndarray
    b: np.ndarray
    c: np.ndarray
    registers: tuple[int, int]


@cache
def _form(shape: str, bits: int, sparse: bool) -> _Form:
    rows, depth = int(shape[1 : shape.index("n")]), int(shape[shape.index("k") + 1 :])
    elements = max(1, 32 // bits)
    a_registers = rows // 8 * depth // (4 * elements) // (2 if sparse else 1)
    b_registers = depth // (4 * elements)
    lane, register, element = np.ogrid[:32, :a_registers, :elements]
    group, thread = lane // 4, lane % 4
    if rows == 16:
        row, block = group + 8 * (register % 2), register // 2
    else:
        row, block = group, register
    a = _positions(
        (rows, depth // 2 if sparse else depth), row, elements * (thread + 4 * block) + element
    )
    register = np.arange(b_registers)[None, :, None]
    b = _positions((depth, 8), elements * (thread + 4 * register) + element, group)
    lane, half, element = np.ogrid[:32, : rows // 8, :2]
    c = _positions((rows, 8), lane // 4 + 8 * half, lane % 4 * 2 + element)
    return _Form(rows, depth, a, b, c, (a_registers, b_registers))


def _positions(extents: tuple[int, int], row: np.ndarray, column: np.ndarray) -> np.ndarray:
    """Place in the fragment of every matrix element, from the row and column of each in it."""
    place = np.full(extents, -1)
    row, column = np.broadcast_arrays(row, column)
    place[row, column] = np.arange(row.size).reshape(row.shape)
    return place


def mma(
    shape: str,
    a_type: str,
    b_type: str,
    c_type: str,
    d_type: str,
    a: np.ndarray,
    b: np.ndarray,
    c: np.ndarray,
    saturate: bool = False,
) -> np.ndarray:
    """Fragment of D = A B + C for dense A (row major) and B (column major).

    Raises TwofourError for shapes and types that mma does not have or that are not supported, and
    for fragments of another extent than theirs.
    """
    _check_types(DENSE_SHAPES, ACCUMULATORS, shape, a_type, b_type, c_type, d_type)
    form = _form(shape, BITS[a_type], False)
    _check_fragments(form, c_type, a, b, c)
    a = _one_if_equal(a)
    d = np.empty((len(b), 32, _accumulator_registers(form, d_type)), dtype=c.dtype)
    with np.errstate(all="ignore"):
        for part in _parts(len(b)):
            matrix_a = _matrix(_of_warps(a, part), a_type, form.a)
            matrix_b = _matrix(b[part], b_type, form.b)
            matrix_c = _matrix(c[part], c_type, form.c)
            total = _product_sum(matrix_a, matrix_b, matrix_c, d_type)
            d[part] = _fragment(total, d_type, form.c, saturate)
    return d


def mma_sp(
    shape: str,
    a_type: str,
    b_type: str,
    c_type: str,
    d_type: str,
    a: np.ndarray,
    b: np.ndarray,
    c: np.ndarray,
    metadata: np.ndarray,
    selector: int,
    ordered: bool,
    saturate: bool = False,
) -> np.ndarray:
    """Fragment of D = A B + C for A with 2:4 (tf32: 1:2) non-zeros, given by them and metadata.

    `metadata` is uint32 [warps, 32]; only the lanes that the selector names are read. Elements of B
    that meet no stored element of A take no part, infinities and NaN among them.

    Raises MetadataError for metadata that leaves the result undefined: two equal indices, a first
    index above the second one if `ordered`, a tf32 nibble other than 0100 and 1110. Raises
    TwofourError as `mma` does, and for a selector out of range.
    """
    _check_types(SPARSE_SHAPES, SPARSE_ACCUMULATORS, shape, a_type, b_type, c_type, d_type)
    selectors = SPARSE_SHAPES[a_type][shape]
    if not 0 <= selector < selectors:
        raise TwofourError(
            f"expected a sparsity selector below {selectors} for {shape} of {a_type}, "
            f"got {selector}"
        )
    form = _form(shape, BITS[a_type], True)
    _check_fragments(form, c_type, a, b, c)
    a, metadata = _one_if_equal(a), _one_if_equal(metadata)
    columns = _columns(shape, a_type, metadata, selector, ordered)
    d = np.empty((len(b), 32, _accumulator_registers(form, d_type)), dtype=c.dtype)
    with np.errstate(all="ignore"):
        for part in _parts(len(b)):
            stored = _matrix(_of_warps(a, part), a_type, form.a)
            matrix_b = _matrix(b[part], b_type, form.b)
            matrix_c = _matrix(c[part], c_type, form.c)
            places = _of_warps(columns, part)
            dense = _decompressed(stored, places, form.depth)
            total = _product_sum(dense, matrix_b, matrix_c, d_type)
            # A zero of the dense matrix times infinity would be NaN.
            wild = ~np.isfinite(matrix_b).all(axis=(1, 2))
            if wild.any():
                total[wild] = matrix_c[wild] + _chosen_sum(
                    _masked(stored, wild), _masked(places, wild), matrix_b[wild]
                )
            d[part] = _fragment(total, d_type, form.c, saturate)
    return d


def _parts(warps: int) -> Iterator[slice]:
    for first in range(0, warps, _WARPS):
        yield slice(first, min(first + _WARPS, warps))


def _one_if_equal(fragment: np.ndarray) -> np.ndarray:
    """The fragment of one warp where all hold the same: as a rule the operator is one of these."""
    return fragment[:1] if (fragment == fragment[:1]).all() else fragment


def _of_warps(fragment: np.ndarray, part: slice) -> np.ndarray:
    return fragment if len(fragment) == 1 else fragment[part]


def _masked(matrices: np.ndarray, mask: np.ndarray) -> np.ndarray:
    return matrices if len(matrices) == 1 else matrices[mask]


def _chosen_sum(stored: np.ndarray, columns: np.ndarray, b: np.ndarray) -> np.ndarray:
    """A B from the elements of B that meet a stored element alone."""
    rows = np.arange(len(b))[:, None, None]
    return (stored[..., None] * b[rows, columns]).sum(axis=2)


def _decompressed(stored: np.ndarray, columns: np.ndarray, depth: int) -> np.ndarray:
    """Matrices [warps, rows, depth] of stored elements at their columns, for one or all warps."""
    warps = max(len(stored), len(columns))
    dense = np.zeros((warps, stored.shape[1], depth))
    if len(columns) == 1:
        dense[:, np.arange(stored.shape[1])[:, None], columns[0]] = stored
    else:
        starts = np.arange(0, dense.size, depth).reshape(warps, -1, 1)
        dense.reshape(-1)[starts + columns] = stored
    return dense


def _check_types(
    shapes: dict, accumulators: dict, shape: str, a_type: str, b_type: str, c_type: str, d_type: str
) -> None:
    if a_type not in shapes:
        raise TwofourError(f"expected an operand type of {', '.join(shapes)}, got {a_type}")
    if shape not in shapes[a_type]:
        raise TwofourError(
            f"expected a shape of {', '.join(shapes[a_type])} for {a_type}, got {shape}"
        )
    if b_type != a_type and {a_type, b_type} not in _MIXED:
        raise TwofourError(f"expected operands of the same kind, got {a_type} and {b_type}")
    if c_type != d_type or c_type not in accumulators[a_type]:
        raise TwofourError(
            f"expected accumulators of {' or '.join(accumulators[a_type])} for {a_type}, "
            f"got {c_type} and {d_type}"
        )


def _accumulator_registers(form: _Form, kind: str) -> int:
    return form.rows // 8 * (1 if kind == "f16" else 2)


def _check_fragments(form: _Form, c_type: str, *fragments: np.ndarray) -> None:
    expected = (*form.registers, _accumulator_registers(form, c_type))
    found = tuple(fragment.shape[-1] for fragment in fragments)
    if found != expected:
        raise TwofourError(
            f"expected {' / '.join(map(str, expected))} registers of A / B / C a lane, "
            f"got {' / '.join(map(str, found))}"
        )


def _matrix(registers: np.ndarray, kind: str, positions: np.ndarray) -> np.ndarray:
    """Matrices [warps, rows, columns] in float64 of the values in fragments."""
    flat = np.ascontiguousarray(registers).reshape(len(registers), -1)
    if kind in ("f16", "bf16"):
        flat = flat.view(np.uint16)
    elif kind in ("s8", "u8", "e4m3", "e5m2"):
        flat = flat.view(np.uint8)
    elements = np.take(flat, positions, axis=1)
    if kind == "s32":
        return elements.view(np.int32).astype(np.float64)
    if kind == "s8":
        return elements.view(np.int8).astype(np.float64)
    if kind == "u8":
        return elements.astype(np.float64)
    return widen(elements, kind)


def _product_sum(a: np.ndarray, b: np.ndarray, c: np.ndarray, kind: str) -> np.ndarray:
    if kind != "f64":
        return a @ b + c
    total = c
    # One step of k at a time: the result does not depend on the order a library sums in.
    for k in range(a.shape[2]):
        total = total + a[:, :, k, None] * b[:, k, None, :]
    return total


def _fragment(matrix: np.ndarray, kind: str, positions: np.ndarray, saturate: bool) -> np.ndarray:
    """Fragments [warps, 32, registers] of accumulators that are rounded here."""
    if kind == "s32":
        # Sums stay far below 2^53: float64 holds them exactly.
        whole = matrix.astype(np.int64)
        if saturate:
            limits = np.iinfo(np.int32)
            whole = np.clip(whole, limits.min, limits.max)
        elements = (whole & 0xFFFFFFFF).astype(np.uint32)
    else:
        elements = round_to(matrix, kind)
    flat = np.empty((len(matrix), positions.size), dtype=elements.dtype)
    flat[:, positions] = elements
    if kind == "f16":
        flat = flat.view(np.uint32)
    return flat.reshape(len(matrix), 32, -1)


@cache
def _metadata_places(shape: str, bits: int, selector: int) -> tuple[np.ndarray, np.ndarray]:
    """Lane and bit of the nibble of every row and chunk [16, chunks].

    That of m16n8k32 with 8-bit elements follows from the one of m16n8k64; it has not been confirmed
    on hardware.
    """
    depth = int(shape[shape.index("k") + 1 :])
    chunks = depth // (2 if bits == 32 else 4)
    row, chunk = np.ogrid[:16, :chunks]
    group, upper = row % 8, row // 8
    if bits == 8 and chunks == 16:
        thread, bit = upper + 2 * (chunk // 8), 4 * (chunk % 8)
    elif bits == 8:
        thread, bit = 2 * selector + upper, 4 * chunk
    elif chunks == 8:
        thread, bit = 2 * selector + chunk // 4, 16 * upper + 4 * (chunk % 4)
    else:
        thread, bit = selector, 16 * upper + 4 * chunk
    lane, bit = np.broadcast_arrays(4 * group + thread, bit)
    return lane, bit.astype(np.uint32)


# Nibbles that the instruction is defined for, by the 16 values.
_TF32_NIBBLES = np.isin(np.arange(16), (0b0100, 0b1110))
_ORDERED_NIBBLES = np.array([nibble & 3 < nibble >> 2 for nibble in range(16)])
_PLAIN_NIBBLES = np.array([nibble & 3 != nibble >> 2 for nibble in range(16)])


def _columns(
    shape: str, kind: str, metadata: np.ndarray, selector: int, ordered: bool
) -> np.ndarray:
    """Dense column of every stored element of A: [warps, 16, stored columns]."""
    bits = BITS[kind]
    lane, bit = _metadata_places(shape, bits, selector)
    nibbles = (metadata[:, lane] >> bit) & np.uint32(15)
    one_of_two = bits == 32
    legal = _TF32_NIBBLES if one_of_two else _ORDERED_NIBBLES if ordered else _PLAIN_NIBBLES
    wrong = ~legal[nibbles]
    if wrong.any():
        warp, row, chunk = (int(index[0]) for index in np.nonzero(wrong))
        expected = (
            "0100 or 1110"
            if one_of_two
            else "two increasing indices"
            if ordered
            else "two different indices"
        )
        at = int(bit[row, chunk])
        raise MetadataError(
            f"expected {expected} in a metadata nibble of {kind}, got "
            f"{int(nibbles[warp, row, chunk]):04b} in bits {at}..{at + 3} of lane "
            f"{lane[row, chunk]} of warp {warp} (row {row}, chunk {chunk})",
            warp,
            int(lane[row, chunk]),
        )
    chunk = np.arange(lane.shape[1], dtype=np.int64)
    if one_of_two:
        return 2 * chunk + (nibbles >> np.uint32(3))
    indices = np.stack([nibbles & np.uint32(3), nibbles >> np.uint32(2)], axis=-1)
    return (4 * chunk[:, None] + indices).reshape(*nibbles.shape[:2], -1)


def ldmatrix(rows: np.ndarray, count: int, trans: bool) -> np.ndarray:
    """Registers [warps, 32, count] of `count` 8x8 matrices of 16-bit elements.

    `rows` is uint16 [warps, 8 * count, 8]: the rows that lanes 0, 1, ... address. Lane 4g + t gets
    elements 2t and 2t + 1 of row g, or of column g with `trans`, of every matrix.
    """
    matrices = rows.reshape(len(rows), count, 8, 8)
    if trans:
        matrices = matrices.transpose(0, 1, 3, 2)
    registers = np.ascontiguousarray(matrices).view(np.uint32).reshape(len(rows), count, 32)
    return np.ascontiguousarray(registers.transpose(0, 2, 1))


def stmatrix(registers: np.ndarray, count: int, trans: bool) -> np.ndarray:
    """Rows uint16 [warps, 8 * count, 8] of registers [warps, 32, count]: `ldmatrix` undone."""
    warps = len(registers)
    matrices = np.ascontiguousarray(registers.transpose(0, 2, 1)).view(np.uint16)
    matrices = matrices.reshape(warps, count, 8, 8)
    if trans:
        matrices = matrices.transpose(0, 1, 3, 2)
    return np.ascontiguousarray(matrices).reshape(warps, 8 * count, 8)


def movmatrix(registers: np.ndarray) -> np.ndarray:
    """Registers [warps, 32] of the transposed 8x8 matrix of 16-bit elements."""
    rows = stmatrix(registers[:, :, None], 1, False)
    return ldmatrix(rows, 1, True)[:, :, 0]
