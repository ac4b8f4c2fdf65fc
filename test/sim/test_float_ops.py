# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Arithmetic of every format and mode against exact fractions."""

import numpy as np
import pytest

from definitions import OPERATIONS, result
from formats import FORMATS, is_nan, samples
from twofour.sim import float_ops, numerics


def operands(kind: str, count: int) -> list[np.ndarray]:
    """Three operands: independent ones, and such that a * b and c nearly cancel or nearly tie."""
    a, b, c = (samples(kind, count, seed) for seed in (11, 12, 13))
    generator = np.random.default_rng(14)
    form = FORMATS[kind]
    near = generator.integers(0, 3, count) == 0
    wide_a, wide_b = numerics.widen(a, kind), numerics.widen(b, kind)
    with np.errstate(all="ignore"):
        opposite = numerics.round_to(-(wide_a * wide_b), kind)
        step = generator.integers(-2, 3, count).astype(np.int64) << form.padding
        shifted = (opposite.astype(np.uint64).view(np.int64) + step).view(np.uint64)
    c = np.where(near, shifted.astype(form.dtype), c)
    return [a, b, c]


KINDS_AND_MODES = [
    (kind, mode)
    for kind in ("f16", "bf16", "tf32", "f32", "f64")
    for mode in ("rn", "rz", "rm", "rp")
]


@pytest.mark.parametrize(("kind", "mode"), KINDS_AND_MODES)
@pytest.mark.parametrize("operation", OPERATIONS)
def test_arithmetic(operation, kind, mode):
    arity = {"sqrt": 1, "fma": 3}.get(operation, 2)
    arguments = operands(kind, 256)[:arity]
    found = getattr(float_ops, operation)(*arguments, kind, mode)
    for row in zip(*(argument.tolist() for argument in arguments), found.tolist(), strict=True):
        expected = result(operation, row[:-1], kind, mode)
        if is_nan(expected, kind):
            assert is_nan(row[-1], kind), [hex(bits) for bits in row]
            assert kind == "f64" or row[-1] == FORMATS[kind].nan
        else:
            assert row[-1] == expected, [hex(bits) for bits in (*row, expected)]


@pytest.mark.parametrize("tiny", [2.0**-100, -(2.0**-100), 2.0**-149, 0.0])
@pytest.mark.parametrize("factor", [1 + 2.0**-12, 1 + 3 * 2.0**-12])
@pytest.mark.parametrize("scale", [1.0, -1.0, 2.0**100, 2.0**-126])
def test_fma_where_double_rounding_would_show(factor, tiny, scale):
    """The products are ties of f32, and float64 does not hold the sum that breaks them."""
    numbers = np.array([(1 + 2.0**-12) * scale, factor, tiny * abs(scale)], dtype=np.float32)
    operands = numbers.view(np.uint32).tolist()
    columns = [np.array([bits], dtype=np.uint32) for bits in operands]
    assert float_ops.fma(*columns, "f32")[0] == result("fma", operands, "f32", "rn")


@pytest.mark.parametrize("kind", ["f16", "f32"])
def test_flushing(kind):
    form = FORMATS[kind]
    tiny = (1 << form.mantissa) - 1
    one = numerics.round_to([1.0], kind)[0]
    a = np.array([tiny, tiny | form.sign, one, one | form.sign], dtype=form.dtype)
    b = np.array([one, one, tiny, tiny], dtype=form.dtype)
    zero = np.zeros(4, dtype=form.dtype)
    signs = [0, form.sign, 0, form.sign]
    np.testing.assert_array_equal(float_ops.mul(a, b, kind, ftz=True), signs)
    np.testing.assert_array_equal(float_ops.mul(a, b, kind), [s | tiny for s in signs])
    np.testing.assert_array_equal(float_ops.add(a[:2], zero[:2], kind, ftz=True), [0, 0])
    # The least normal number times a half: only the result is subnormal.
    half = numerics.round_to([0.5], kind)
    least = np.array([1 << form.mantissa], dtype=form.dtype)
    assert float_ops.mul(least, half, kind, ftz=True) == 0
    assert float_ops.mul(least, half, kind) == 1 << form.mantissa - 1
