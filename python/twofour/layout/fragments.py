# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Fragments of `mma` and `mma.sp`: which lane holds which element (PTX ISA, sections mma, mma.sp).

A lane of a warp is (g, t) = (lane / 4, lane % 4). The columns of B, the tiles, are n = g in B
fragments and n = 2t, 2t + 1 in C fragments, for every instruction here.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from twofour.errors import TwofourError
from twofour.layout.compress import compress

LANES = 32
TILES = 8  # columns of B: tiles that one instruction computes
_G, _T = np.arange(LANES) // 4, np.arange(LANES) % 4


@dataclass(frozen=True, eq=False)
class Fragment:
    """One matrix instruction, as C += A B with A of m x k.

    Attributes:
        m, k: rows of A, and columns of A before compression.
        kept, of: A stores `kept` of every `of` neighbouring columns; 1 of 1 for dense ones.
        a_row, a_column: int (32, elements), the place of each element of A in the stored matrix.
        b_row: int (32, elements), the k of each element of B.
        c_row, c_tile: int (32, elements), the place of each element of C.
    """

    m: int
    k: int
    kept: int
    of: int
    a_row: np.ndarray
    a_column: np.ndarray
    b_row: np.ndarray
    c_row: np.ndarray
    c_tile: np.ndarray

    @property
    def sparse(self) -> bool:
        """Whether A is stored compressed, with metadata."""
        return self.kept != self.of

    def stored(self, block: np.ndarray) -> tuple[np.ndarray, np.ndarray | None]:
        """A as it is stored, float64 (m, k * kept / of), and metadata, uint32 (32,), one a lane.

        `block` is float64 (m, k). Every lane holds the word that its half of the quad may be asked
        for, so the sparsity selector may be 0 or 1.

        Raises:
            TwofourError: the block has more non-zeros in a group than are kept.
        """
        if not self.sparse:
            return block, None
        values, words = compress(block) if self.of == 4 else _compress_pairs(block)
        words = words.astype(np.uint32)
        half = _T % 2
        return values, words[_G, half] | words[_G + 8, half] << 16

    def operands(self, block: np.ndarray) -> tuple[np.ndarray, np.ndarray | None]:
        """The elements of A of every lane, float64 (32, elements), and its metadata word."""
        values, metadata = self.stored(block)
        return values[self.a_row, self.a_column], metadata


def _compress_pairs(block: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """1:2 compression: values (m, k / 2) and metadata words uint16 (m, k / 8).

    Nibble 0100 keeps the first column of a pair, 1110 the second.
    """
    pairs = block.reshape(len(block), -1, 2)
    if (np.count_nonzero(pairs, axis=2) > 1).any():
        raise TwofourError("expected at most 1 nonzero in each pair of columns, got 2")
    second = pairs[..., 1] != 0
    values = np.where(second, pairs[..., 1], pairs[..., 0])
    nibbles = np.where(second, 0xE, 0x4).reshape(len(block), -1, 4)
    return values, (nibbles << (4 * np.arange(4))).sum(axis=2).astype(np.uint16)


def _columns(*elements: np.ndarray) -> np.ndarray:
    return np.stack(elements, axis=1)


def _halves() -> dict:
    """A of 16 x 16 elements of 16 bits."""
    index = range(8)
    return {
        "a_row": _columns(*(_G + 8 * (i // 2 % 2) for i in index)),
        "a_column": _columns(*(2 * _T + i % 2 + 8 * (i // 4) for i in index)),
    }


def _words() -> dict:
    """A of 16 x 8 elements of 32 bits."""
    return {
        "a_row": _columns(*(_G + 8 * (i % 2) for i in range(4))),
        "a_column": _columns(*(_T + 4 * (i // 2) for i in range(4))),
    }


_C16 = {
    "c_row": _columns(*(_G + 8 * (i // 2) for i in range(4))),
    "c_tile": _columns(*(2 * _T + i % 2 for i in range(4))),
}


def _b_halves(elements: int) -> np.ndarray:
    return _columns(*(2 * _T + i % 2 + 8 * (i // 2) for i in range(elements)))


def _b_words(elements: int) -> np.ndarray:
    return _columns(*(_T + 4 * i for i in range(elements)))


# mma.sp.m16n8k32 and mma.m16n8k16 (f16, bf16), mma.sp.m16n8k16 and mma.m16n8k8 (tf32),
# mma.m8n8k4 (f64).
SPARSE_16 = Fragment(16, 32, 2, 4, **_halves(), b_row=_b_halves(8), **_C16)
DENSE_16 = Fragment(16, 16, 1, 1, **_halves(), b_row=_b_halves(4), **_C16)
SPARSE_32 = Fragment(16, 16, 1, 2, **_words(), b_row=_b_words(4), **_C16)
DENSE_32 = Fragment(16, 8, 1, 1, **_words(), b_row=_b_words(2), **_C16)
DENSE_64 = Fragment(
    8,
    4,
    1,
    1,
    a_row=_columns(_G),
    a_column=_columns(_T),
    b_row=_columns(_T),
    c_row=_columns(_G, _G),
    c_tile=_columns(2 * _T, 2 * _T + 1),
)


def fragment_for(element: str, sparse: bool) -> Fragment:
    """The fragment for operands of f16, bf16, tf32 or f64; f64 has no sparse instruction.

    Raises:
        TwofourError: another element.
    """
    if element in ("f16", "bf16"):
        return SPARSE_16 if sparse else DENSE_16
    if element == "tf32":
        return SPARSE_32 if sparse else DENSE_32
    if element == "f64":
        return DENSE_64
    raise TwofourError(f"expected operands of f16, bf16, tf32 or f64, got {element}")
