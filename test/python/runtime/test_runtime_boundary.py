# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Boundaries: spelling, the fold of coordinates, and halos against np.pad and scipy.ndimage."""

import itertools
import re

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import ndimage

from runtime_reference import source
from twofour.errors import SourceLocation, TwofourError
from twofour.runtime import (
    AxisBoundary,
    HaloRefresh,
    element_type,
    field_element_type,
    float32_to_bf16,
    parse_boundary,
    refresh_halo,
    source_index,
)
from twofour.runtime.boundary import storage_constant

PAD_MODES = {"periodic": "wrap", "reflect": "symmetric", "nearest": "edge"}
BOUNDARIES = ("fixed", "zero", "constant(2.5)", "periodic", "reflect", "nearest")


@pytest.mark.parametrize(
    ("text", "rank", "expected"),
    [
        ("periodic", 3, ["periodic"] * 3),
        ("periodic, fixed", 2, ["periodic", "fixed"]),
        ("constant(2.5),zero", 2, ["constant(2.5)", "zero"]),
        ("constant( -1e3 )", 1, ["constant(-1000.0)"]),
        (["reflect", AxisBoundary("constant", 1)], 2, ["reflect", "constant(1)"]),
        (AxisBoundary("nearest"), 2, ["nearest", "nearest"]),
        (("zero",), 2, ["zero", "zero"]),
    ],
)
def test_parsing(text, rank, expected):
    entries = parse_boundary(text, rank)
    assert [str(entry) for entry in entries] == expected
    assert parse_boundary(expected, rank) == entries


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("perodic", "got 'perodic' (did you mean 'periodic'?)"),
        ("Periodic", "did you mean 'periodic'"),
        ("constant=2.5", "did you mean 'constant(c)'"),
        ("", "expected a boundary out of fixed, zero, constant(c), periodic, reflect, nearest"),
        ("zero,", "got ''"),
        ("zero,zero,zero", "expected 1 or 2 boundaries, got 'zero,zero,zero'"),
        ([], "expected 1 or 2 boundaries, got 0"),
        ("constant", "expected a value as in 'constant(2.5)'"),
        ("constant()", "expected a number in constant(...), got 'constant()'"),
        ("constant(x)", "expected a number in constant(...)"),
        ("constant(nan)", "expected a finite boundary constant, got nan"),
        ("constant(inf)", "expected a finite boundary constant, got inf"),
        ("constant(1e999)", "expected a finite boundary constant"),
        ("constant(2.5", "expected a boundary out of"),
        (["zero", 3], "got 3"),
        (None, "expected a boundary as text or a sequence of texts, got NoneType"),
    ],
)
def test_bad_spelling(text, message):
    with pytest.raises(TwofourError) as error:
        parse_boundary(text, 2, SourceLocation("b.mlir", 3, 4))
    assert message in str(error.value)
    assert str(error.value).startswith("b.mlir:3:4: error: ")


@pytest.mark.parametrize("mode", PAD_MODES)
@pytest.mark.parametrize("extent", [1, 2, 3, 7, 31])
def test_source_index(mode, extent):
    far = 5 * extent + 3
    padded = np.pad(np.arange(extent), far, mode=PAD_MODES[mode])
    coordinates = np.arange(-far, extent + far)
    np.testing.assert_array_equal(source_index(mode, extent, coordinates), padded)
    assert [source(mode, extent, c) for c in coordinates.tolist()] == padded.tolist()


@pytest.mark.parametrize("mode", PAD_MODES)
def test_modes_mean_what_scipy_means(mode):
    u = np.arange(5.0)
    for shift in range(-9, 10):
        at = np.arange(5) + shift
        name = {"periodic": "grid-wrap"}.get(mode, mode)
        wanted = ndimage.map_coordinates(u, at[None].astype(float), order=0, mode=name)
        np.testing.assert_array_equal(u[source_index(mode, 5, at)], wanted)


def expected_halo(array, interior, boundary):
    """np.pad, axis by axis: each pads the interior slice over the axes' full cross-section."""
    result = array.copy()
    for axis, entry in enumerate(boundary):
        lower, upper = interior[0][axis], interior[1][axis]
        if entry.mode == "fixed":
            continue
        widths = [(0, 0)] * array.ndim
        widths[axis] = (lower, array.shape[axis] - upper)
        core = np.take(result, range(lower, upper), axis)
        if entry.mode in PAD_MODES:
            result = np.pad(core, widths, PAD_MODES[entry.mode])
        else:
            value = entry.value if entry.mode == "constant" else 0
            result = np.pad(core, widths, "constant", constant_values=value)
    return result


@st.composite
def halos(draw):
    rank = draw(st.integers(1, 3))
    sizes = [draw(st.tuples(*[st.integers(0, 6)] * 2)) for _ in range(rank)]
    extents = [draw(st.integers(1, 8)) for _ in range(rank)]
    lower = tuple(low for low, _ in sizes)
    upper = tuple(low + n for (low, _), n in zip(sizes, extents, strict=True))
    shape = tuple(u + high for u, (_, high) in zip(upper, sizes, strict=True))
    return shape, (lower, upper), [draw(st.sampled_from(BOUNDARIES)) for _ in range(rank)]


@given(halos())
@settings(max_examples=300, deadline=None)
def test_halos(halo):
    shape, interior, boundary = halo
    entries = parse_boundary(boundary, len(shape))
    array = np.random.default_rng(0).standard_normal(shape)
    expected = expected_halo(array, interior, entries)
    refresh_halo(array, interior, entries)
    np.testing.assert_array_equal(array, expected)


@pytest.mark.parametrize("boundary", list(itertools.product(BOUNDARIES[1:], repeat=2)))
def test_the_later_axis_decides_in_corners(boundary):
    entries = parse_boundary(boundary, 2)
    array = np.full((4, 4), np.nan)
    array[1:3, 1:3] = [[1.0, 2.0], [3.0, 4.0]]
    refresh_halo(array, ((1, 1), (3, 3)), entries)
    assert not np.isnan(array).any()
    later = {"zero": 0.0, "constant": 2.5}.get(entries[1].mode)
    if later is not None:
        assert array[0, 0] == array[3, 3] == later


@pytest.mark.parametrize("value", [float("nan"), "2", None, 1j])
def test_bad_constants(value):
    with pytest.raises(TwofourError, match="expected a finite boundary constant, got"):
        AxisBoundary("constant", value)


@pytest.mark.parametrize(
    ("kind", "value", "expected"),
    [
        ("i8", -128, -128),
        ("i8", 128, "from -128 to 127 (i8) as boundary constant, got 128"),
        ("i8", 1.5, "got 1.5"),
        ("i1", 1, True),
        ("i1", 2, "from 0 to 1 (i1)"),
        ("i64", 2.0**63, "(i64)"),
        ("i64", -(2.0**63), -(2**63)),
    ],
)
def test_constants_of_integers(kind, value, expected):
    entry, element = AxisBoundary("constant", value), field_element_type(kind)
    if isinstance(expected, str):
        with pytest.raises(TwofourError, match=re.escape(expected)):
            storage_constant(entry, element)
        return
    found = storage_constant(entry, element)
    assert found == expected and found.dtype == element.storage
    assert storage_constant(AxisBoundary("zero"), element) == 0


def test_the_rim_of_a_fixed_axis_has_images():
    array = np.arange(25.0).reshape(5, 5)
    rim = array[0].copy()
    refresh_halo(array, ((1, 1), (4, 4)), parse_boundary("fixed,periodic", 2))
    np.testing.assert_array_equal(array[0, 1:4], rim[1:4])
    assert array[0, 0] == rim[3] and array[0, 4] == rim[1]


def test_only_axes_with_a_halo_are_refilled():
    modes = parse_boundary("periodic,fixed,zero,reflect", 4)
    refresh = HaloRefresh((9,) * 4, ((0, 1, 2, 0), (9, 8, 9, 9)), modes, element_type("f64"))
    assert [[value for _, _, value in axis] for axis in refresh.by_axis] == [[0.0]]


def test_nothing_to_do_is_empty():
    def empty(shape, interior, boundary):
        return HaloRefresh(shape, interior, parse_boundary(boundary, 2), element_type("f64")).empty

    assert empty((4, 4), ((1, 1), (3, 3)), "fixed")
    assert empty((4, 4), ((0, 0), (4, 4)), "periodic")
    assert not empty((4, 4), ((0, 0), (4, 3)), "periodic")
    assert not empty((4, 4), ((1, 1), (3, 3)), "fixed,zero")


def test_bf16_constants_are_bits():
    bits = float32_to_bf16(np.array([9, 1, 9], np.float32))
    refresh_halo(bits, ((1,), (2,)), [AxisBoundary("constant", 1.5)])
    np.testing.assert_array_equal(bits, float32_to_bf16(np.array([1.5, 1, 1.5], np.float32)))


def test_constants_out_of_range():
    with pytest.raises(TwofourError, match="in the range of f16, got 100000.0"):
        refresh_halo(np.zeros(3, np.float16), ((1,), (2,)), parse_boundary("constant(1e5)", 1))


@pytest.mark.parametrize("interior", [((1,), (1,)), ((-1,), (2,)), ((1,), (5,))])
def test_bad_interiors(interior):
    with pytest.raises(TwofourError, match=r"expected an interior within \[0, 4\) on axis 0"):
        refresh_halo(np.zeros(4), interior, parse_boundary("zero", 1))
