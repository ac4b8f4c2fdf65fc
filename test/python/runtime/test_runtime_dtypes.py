# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Element types, checks of arrays, and the rounding of bf16."""

import subprocess
import sys

import ml_dtypes
import numpy as np
import pytest

from twofour.errors import SourceLocation, TwofourError
from twofour.runtime import (
    bf16_to_float32,
    check_array,
    element_type,
    element_type_of,
    float32_to_bf16,
    from_storage,
    storage_view,
    to_storage,
)

F32, BF16 = element_type("f32"), element_type("bf16")


def test_the_element_types():
    table = {name: element_type(name) for name in ("f16", "bf16", "f32", "f64")}
    assert [e.storage.name for e in table.values()] == ["float16", "uint16", "float32", "float64"]
    assert [e.accumulation for e in table.values()] == ["f32", "f32", "f32", "f64"]
    assert all(e.itemsize == e.storage.itemsize for e in table.values())
    for element in table.values():
        assert element_type_of(np.zeros(1, element.storage)) == element


@pytest.mark.parametrize("name", ["fp32", "float32", "F64", "", None, 32, ["f32"]])
def test_misspelt_names(name):
    with pytest.raises(TwofourError, match="expected a dtype out of f16, bf16, f32, f64, got"):
        element_type(name)
    if name == "fp32":
        with pytest.raises(TwofourError, match="did you mean 'f32'"):
            element_type(name)


@pytest.mark.parametrize(
    ("array", "message"),
    [
        ([1.0, 2.0], "expected a NumPy array, got list"),
        (np.float32(1), "expected a NumPy array, got float32"),
        (np.ma.zeros((2, 3), np.float32), "expected a NumPy array without a mask"),
        (np.zeros((2, 3)), r"expected f32 \(float32\), got float64"),
        (np.zeros((2, 3), object), r"expected f32 \(float32\), got object"),
        (np.zeros((2, 3), np.int32), r"expected f32 \(float32\), got int32"),
        (np.zeros((2, 3), ">f4"), r"in native byte order, got dtype '>f4'"),
        (np.zeros(3, np.float32), r"expected an array of rank 2, got rank 1 \(shape \(3,\)\)"),
        (np.zeros((3, 2), np.float32), r"expected an array of shape \(2, 3\), got shape \(3, 2\)"),
    ],
)
def test_unfit_arrays(array, message):
    with pytest.raises(TwofourError, match=message) as error:
        check_array(array, F32, rank=2, shape=(2, 3), what="u", location=SourceLocation("a.mlir"))
    assert str(error.value).startswith("a.mlir:1:1: error: u: expected ")
    assert "\n" not in str(error.value)


def test_checks_load_no_module_of_numpy():
    """That of masked arrays takes as long as small programs do to start."""
    code = """
import sys
import numpy as np
from twofour.runtime import check_array, element_type
before = set(sys.modules)
check_array(np.zeros(3), element_type("f64"))
assert set(sys.modules) == before
"""
    subprocess.run([sys.executable, "-c", code], check=True)


def test_empty_arrays_and_unknown_dtypes():
    with pytest.raises(TwofourError, match=r"input: expected an array with at least one element"):
        check_array(np.zeros((0, 3), np.float32), F32)
    for dtype in (np.int64, ">f4"):
        with pytest.raises(TwofourError, match="expected an array of f16"):
            element_type_of(np.zeros(3, dtype))


def test_fit_arrays():
    values = np.full((2, 3), np.nan, np.float32)
    check_array(values, F32, rank=2, shape=(2, 3))
    check_array(values[:, ::-1].T, F32, rank=2)
    check_array(np.zeros(4, np.uint16), BF16)


def test_bfloat16_of_ml_dtypes_is_recognised_by_name():
    array = np.zeros(3, ml_dtypes.bfloat16)
    check_array(array, BF16)
    assert element_type_of(array) == BF16
    with pytest.raises(TwofourError, match=r"expected f32 \(float32\), got bfloat16"):
        check_array(array, F32)


def test_storage_views_share_memory():
    array = np.zeros((3, 4), np.float16)[:, ::2]
    view = storage_view(array, BF16)
    assert view.dtype == np.uint16 and np.shares_memory(view, array)
    assert storage_view(view, BF16) is view


def test_every_bf16_survives_the_round_trip():
    bits = np.arange(1 << 16, dtype=np.uint16)
    values = bf16_to_float32(bits)
    back = float32_to_bf16(values)
    nan = np.isnan(values)
    assert nan.sum() == 2 * 127
    np.testing.assert_array_equal(back[~nan], bits[~nan])
    assert np.isnan(bf16_to_float32(back[nan])).all()
    np.testing.assert_array_equal(back[nan] >> 15, bits[nan] >> 15)


def test_rounding_to_bf16_is_to_nearest_even():
    rng = np.random.default_rng(0)
    finite = np.arange(0x7F80, dtype=np.uint16)
    grid = bf16_to_float32(finite).astype(np.float64)
    words = rng.integers(0, 0x7F7F0000, 20000, dtype=np.uint32)
    # Exact ties and their neighbours as well.
    ties = (rng.integers(0, 0x7F7F, 5000, dtype=np.uint32) << 16) + 0x8000
    words = np.concatenate([words, ties, ties - 1, ties + 1])
    values = words.view(np.float32)
    below = np.searchsorted(grid, values.astype(np.float64), side="right") - 1
    down = values - grid[below]
    up = grid[below + 1] - values
    expected = np.where((down < up) | ((down == up) & (below % 2 == 0)), below, below + 1)
    np.testing.assert_array_equal(float32_to_bf16(values), expected)
    np.testing.assert_array_equal(float32_to_bf16(-values), expected + 0x8000)


def test_nan_payloads_and_overflow():
    words = np.array([0x7F800001, 0x7FFFFFFF, 0xFF800001, 0xFFFFFFFF], np.uint32)
    assert np.isnan(bf16_to_float32(float32_to_bf16(words.view(np.float32)))).all()
    largest = np.array([np.finfo(np.float32).max, -np.inf], np.float32)
    np.testing.assert_array_equal(bf16_to_float32(float32_to_bf16(largest)), [np.inf, -np.inf])


@pytest.mark.parametrize("name", ["f16", "bf16", "f32", "f64"])
def test_conversion_to_and_from_storage(name):
    element = element_type(name)
    values = np.array([[0.5, -2.0, 1.0], [np.inf, 0.0, 3.0]])
    stored = to_storage(values, element)
    assert stored.dtype == element.storage
    np.testing.assert_array_equal(from_storage(stored, element), values)
    if name != "f64":
        assert np.isinf(from_storage(to_storage(1e300, element), element))
