# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Single steps in arrays that hold the halo, carried out in NumPy, against explicit indices."""

import itertools

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from runtime_reference import reference
from tile_cases import (
    BOUNDARIES,
    CASES_2D,
    STAR_3D,
    Arrays,
    carry_out,
    geometry_of,
    random_cases,
)
from twofour.runtime import element_type, parse_boundary
from twofour.runtime.box import Box
from twofour.runtime.page_offset import CACHE_LINE
from twofour.runtime.tiles.haloed import HaloedSteps
from twofour.runtime.tiles.parts import cut
from twofour.runtime.tiles.resident import Residence, resident_layout
from twofour.runtime.tiles.steps import TARGET, Layout


def residence_of(geometry, shape):
    """A residence whose programs are their layouts, and whose fresh arrays are NaN."""
    return Residence(
        lambda layouts: layouts,
        geometry,
        shape,
        element_type("f64"),
        take=lambda size: np.full(-(-size // 8), np.nan).view(np.uint8),
    )


def lies_in(copy, box):
    """Whether all cells that a copy reads are those of a box."""
    axes = zip(copy.source.start, copy.source.steps, copy.shape, box.lower, box.upper, strict=True)
    return all(
        least <= first + step * number < most
        for first, step, count, least, most in axes
        for number in (0, count - 1)
    )


def sweep(source, target, layouts, weights, geometry, extents):
    """All tiles of a step, the last ones first."""
    origins = [layout.origin for layout in layouts]
    for limits in reversed(list(itertools.product(*cut(geometry, extents)))):
        box = Box(*map(tuple, zip(*limits, strict=True)))
        tile = HaloedSteps(geometry, box, *layouts)
        if layouts[0].halo:
            assert all(action.target.array == TARGET for action in tile.actions)
        # Other tiles may not have written theirs.
        images = [one for one in tile.actions if one.source and one.source.array == TARGET]
        assert all(lies_in(image, box) for image in images)
        carry_out(tile, Arrays(source, target, origins), weights, geometry)


def check(weights, boundary, shape, steps, extents):
    entries = parse_boundary(boundary, len(shape))
    u = np.random.default_rng(1).integers(-8, 9, shape).astype(np.float64)
    geometry = geometry_of(weights, entries, shape)
    if geometry.interior.empty:
        return
    residence, before, result = residence_of(geometry, shape), u.copy(), u.copy()
    with residence.lent(u) as lent:
        arrays = [*lent]
        sweep(u, arrays[0], residence.enter, weights, geometry, extents)
        for _ in range(steps - 2):
            sweep(*arrays, residence.inside, weights, geometry, extents)
            arrays.reverse()
        sweep(arrays[0], result, residence.leave, weights, geometry, extents)
    np.testing.assert_array_equal(u, before)
    # Data are small integers and weights dyadic: nothing rounds.
    np.testing.assert_array_equal(result, reference(u, weights, entries, steps))


@pytest.mark.parametrize("boundary", list(itertools.product(BOUNDARIES, BOUNDARIES)))
def test_every_pair_of_boundaries(boundary):
    for (weights, shape, extents), steps in itertools.product(CASES_2D, (2, 3, 5)):
        check(weights, ",".join(boundary), shape, steps, extents)


@settings(max_examples=100, deadline=None)
@given(st.data(), st.integers(1, 3))
def test_random_stencils(data, rank):
    weights, boundary, shape, extents = data.draw(random_cases(rank))
    check(weights, boundary, shape, data.draw(st.integers(2, 4)), extents)


@pytest.mark.parametrize("itemsize", [2, 4, 8])
def test_interior_rows_begin_on_cache_lines(itemsize):
    name = {2: "f16", 4: "f32", 8: "f64"}[itemsize]
    geometry = geometry_of(STAR_3D, parse_boundary("periodic", 3), (5, 6, 100))
    residence = Residence(lambda layouts: None, geometry, (5, 6, 100), element_type(name))
    u = np.zeros((5, 6, 100), element_type(name).storage)
    layout = resident_layout(geometry, itemsize)
    begin = layout.offset(geometry.interior.lower) * itemsize
    with residence.lent(u) as arrays:
        for array in arrays:
            assert (array.ctypes.data + begin) % CACHE_LINE == 0
            assert all(stride % CACHE_LINE == 0 for stride in array.strides[:-1])


def test_two_arrays_are_lent_to_one_run_at_a_time():
    geometry = geometry_of(CASES_2D[0][0], parse_boundary("constant(2.5),fixed", 2), (6, 7))
    residence = residence_of(geometry, (6, 7))

    def lent(value):
        return residence.lent(np.full((6, 7), value))

    def values(array):
        return set(np.unique(array[~np.isnan(array)]))

    with lent(1.0) as arrays, lent(3.0) as others:
        assert not any(np.shares_memory(*two) for two in itertools.product(arrays, others))
        # Rims are those of the array that they are lent for, constants the same ones.
        assert values(arrays[0]) == values(arrays[1]) == {1.0, 2.5}
        assert values(others[0]) == {3.0, 2.5}
    with lent(4.0) as again:
        assert any(again[0] is one for one in (arrays[0], others[0]))
        assert values(again[1]) == {4.0, 2.5}
    with pytest.raises(KeyboardInterrupt), lent(5.0):
        raise KeyboardInterrupt
    with lent(6.0) as others:
        assert others[0] is not again[0]


def test_places_in_a_layout():
    layout = Layout((4, 5, 6), (-1, 2, 0))
    assert layout.strides == (30, 6, 1)
    assert layout.offset((-1, 2, 0)) == 0 and layout.offset((1, 3, 4)) == 60 + 6 + 4
