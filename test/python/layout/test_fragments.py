# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Fragments of matrix instructions, against the simulator's instructions."""

import numpy as np
import pytest

from twofour.codegen.gpu.matrix_ops import MatrixOps
from twofour.errors import TwofourError
from twofour.layout.fragments import (
    DENSE_16,
    DENSE_32,
    DENSE_64,
    SPARSE_16,
    SPARSE_32,
    fragment_for,
)
from twofour.sim import tensor

CASES = {
    "f16": (SPARSE_16, "m16n8k32", "f32"),
    "bf16": (SPARSE_16, "m16n8k32", "f32"),
    "tf32": (SPARSE_32, "m16n8k16", "f32"),
    "dense f16": (DENSE_16, "m16n8k16", "f32"),
    "dense tf32": (DENSE_32, "m16n8k8", "f32"),
    "dense f64": (DENSE_64, "m8n8k4", "f64"),
}


def sparse_block(fragment, rng):
    """A random block of A with as many non-zeros in a group as the fragment keeps."""
    block = rng.integers(1, 9, (fragment.m, fragment.k)).astype(float)
    groups = block.reshape(fragment.m, -1, fragment.of)
    drop = rng.permuted(np.broadcast_to(np.arange(fragment.of), groups.shape), axis=2)
    groups[drop >= fragment.kept] = 0
    block[rng.random(block.shape) < 0.2] = 0
    return block


def registers(ops, elements):
    """Elements (32, n) of B as the simulator takes registers: (1, 32, registers)."""
    if ops.operands == "f64":
        return elements.view(np.uint64)[None]
    return ops.packed(elements).view(np.uint32)[None]


@pytest.mark.parametrize("name", CASES)
def test_operands_multiply_to_the_product(name):
    fragment, shape, accumulator = CASES[name]
    kind = name.split()[-1]
    ops = MatrixOps(fragment, kind)
    rng = np.random.default_rng(0)
    for _ in range(20):
        a = sparse_block(fragment, rng)
        b = rng.integers(-8, 9, (fragment.k, 8)).astype(float)
        elements, metadata = fragment.operands(a)
        b_elements = b[fragment.b_row, np.arange(32)[:, None] // 4]
        count = fragment.c_row.shape[1]
        zeros = np.zeros((1, 32, count), np.uint64 if kind == "f64" else np.uint32)
        types = (shape, kind, kind, accumulator, accumulator)
        left, right = registers(ops, elements), registers(ops, b_elements)
        if fragment.sparse:
            for selector in (0, 1):
                d = tensor.mma_sp(*types, left, right, zeros, metadata[None], selector, True)
        else:
            d = tensor.mma(*types, left, right, zeros)
        product = a @ b
        expected = product[fragment.c_row, fragment.c_tile]
        assert np.array_equal(d[0].view(np.float64 if kind == "f64" else np.float32), expected)


def test_too_many_nonzeros_are_refused():
    dense = np.ones((16, 32))
    with pytest.raises(TwofourError, match="at most 2 nonzeros"):
        SPARSE_16.operands(dense)
    with pytest.raises(TwofourError, match="at most 1 nonzero in each pair"):
        SPARSE_32.operands(dense[:, :16])


def test_f64_is_dense_and_other_types_are_refused():
    assert fragment_for("f64", sparse=True) is DENSE_64
    with pytest.raises(TwofourError, match="expected operands"):
        fragment_for("f32", sparse=True)


def test_two_parts_hold_f32_but_for_their_last_bit():
    values = np.random.default_rng(2).standard_normal((32, 4)).astype(np.float32)
    packed = MatrixOps(SPARSE_32, "tf32", parts=2).packed(values.astype(float))
    parts = packed.view(np.float32).astype(float)
    held = parts[:, :4] + parts[:, 4:]
    assert (parts.view(np.uint64) & 0x3FFFFFFFFFF == 0).all()  # 11 bits of significand
    assert (np.abs(held - values) <= 2.0**-23 * np.abs(values)).all()
    assert np.abs(held - values).max() > 0
