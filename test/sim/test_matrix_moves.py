# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""ldmatrix, stmatrix and movmatrix, element by element."""

import numpy as np
import pytest

from snippet import Snippet, check_assembles

THREADS = 64
# Rows of 16 bytes lie this far apart in shared memory.
STRIDE = 48
SHARED = THREADS * STRIDE
COUNTS = (1, 2, 4)
FORMS = [(count, trans) for count in COUNTS for trans in (False, True)]

OWN_ROW = f"""
mov.u32 %t0, %tid.x;
mov.u32 %t1, memory;
mad.lo.u32 %t2, %t0, {STRIDE}, %t1;
"""


def registers(letter: str, count: int) -> str:
    return ", ".join(f"%{letter}{i}" for i in range(count))


def load(count: int, trans: bool) -> Snippet:
    """Every thread writes a row of 16 bytes; %i4 is the offset of the row it names."""
    form = ".trans" if trans else ""
    return Snippet(
        f"{OWN_ROW}st.shared.v4.b32 [%t2], {{{registers('i', 4)}}};\nbar.sync 0;\n"
        "add.u32 %t3, %t1, %i4;\n"
        f"ldmatrix.sync.aligned.m8n8.x{count}{form}.shared.b16 {{{registers('o', count)}}}, [%t3];",
        ("b32",) * 5,
        ("b32",) * count,
        shared=SHARED,
    )


def store(count: int, trans: bool) -> Snippet:
    """%i4 is the offset of the row that a lane names; every thread reads its own row after that."""
    form = ".trans" if trans else ""
    zero = "mov.b32 %t4, -1;\nst.shared.v4.b32 [%t2], {%t4, %t4, %t4, %t4};\nbar.sync 0;\n"
    return Snippet(
        f"{OWN_ROW}{zero}add.u32 %t3, %t1, %i4;\n"
        f"stmatrix.sync.aligned.m8n8.x{count}{form}.shared.b16 [%t3], "
        f"{{{registers('i', count)}}};\n"
        f"bar.sync 0;\nld.shared.v4.b32 {{{registers('o', 4)}}}, [%t2];",
        ("b32",) * 5,
        ("b32",) * 4,
        "sm_90",
        SHARED,
    )


MOVE = Snippet("movmatrix.sync.aligned.m8n8.trans.b16 %o0, %i0;", ("b32",))


def rows_of_lanes(generator: np.random.Generator, count: int) -> tuple[np.ndarray, np.ndarray]:
    """For each warp the rows (threads of the block) that its lanes name, and their offsets.

    Lanes that name no row hold an offset that must not be used.
    """
    rows = generator.permutation(THREADS).reshape(2, 32)
    offsets = (rows * STRIDE).astype(np.uint32)
    offsets[:, 8 * count :] = 0x7FFFFFF1
    return rows, offsets.ravel()


def element(trans: bool, lane: int, half: int) -> tuple[int, int]:
    """Row and column of an element of a lane's register, as the PTX ISA draws them."""
    row, column = lane // 4, lane % 4 * 2 + half
    return (column, row) if trans else (row, column)


@pytest.mark.parametrize(("count", "trans"), FORMS)
def test_load(count, trans):
    generator = np.random.default_rng(1)
    words = generator.integers(0, 1 << 32, (4, THREADS), dtype=np.uint32)
    halves = words.T.copy().view(np.uint16)
    rows, offsets = rows_of_lanes(generator, count)
    found = load(count, trans)(*words, offsets, block=THREADS)
    for warp in range(2):
        for lane in range(32):
            for i in range(count):
                register = found[i][32 * warp + lane]
                for half in range(2):
                    row, column = element(trans, lane, half)
                    expected = halves[rows[warp, 8 * i + row], column]
                    assert register >> 16 * half & 0xFFFF == expected


@pytest.mark.parametrize(("count", "trans"), FORMS)
def test_store(count, trans):
    generator = np.random.default_rng(2)
    words = generator.integers(0, 1 << 32, (4, THREADS), dtype=np.uint32)
    rows, offsets = rows_of_lanes(generator, count)
    found = store(count, trans)(*words, offsets, block=THREADS)
    expected = np.full((THREADS, 8), 0xFFFF, dtype=np.uint16)
    for warp in range(2):
        for lane in range(32):
            for i in range(count):
                register = words[i, 32 * warp + lane]
                for half in range(2):
                    row, column = element(trans, lane, half)
                    expected[rows[warp, 8 * i + row], column] = register >> 16 * half & 0xFFFF
    np.testing.assert_array_equal(np.stack(found, axis=1).view(np.uint16), expected)


def test_move():
    generator = np.random.default_rng(3)
    words = generator.integers(0, 1 << 32, THREADS, dtype=np.uint32)
    (found,) = MOVE(words)
    matrices = words.view(np.uint16).reshape(2, 8, 8)
    for warp in range(2):
        for lane in range(32):
            for half in range(2):
                row, column = element(True, lane, half)
                expected = matrices[warp, row, column]
                assert found[32 * warp + lane] >> 16 * half & 0xFFFF == expected


def all_snippets() -> list[Snippet]:
    snippets = [make(*form) for make in (load, store) for form in FORMS]
    return [*snippets, MOVE]


def test_snippets_assemble(tmp_path):
    check_assembles(all_snippets(), tmp_path)
