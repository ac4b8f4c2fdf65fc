# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""What a warp of plain threads that marches reads, adds and keeps."""

import numpy as np
import pytest

from twofour.errors import TwofourError, Unsuitable
from twofour.kernels import built_in_kernels
from twofour.layout.rolling import (
    MANY_TERMS,
    MAX_ESTIMATE,
    MAX_ESTIMATE_LOOPED,
    MAX_ESTIMATE_OF_LEVELS,
    MAX_TERMS,
    rolling_layouts,
)

KERNELS = built_in_kernels()
ITEMSIZES = (2, 4, 8)
# By kernel: element sizes of which registers do not hold the sums.
TOO_LARGE = {
    "acoustic_iso2d_o16": (2,),
    "acoustic_iso3d_o16": (2, 4, 8),
    "an5d_box3d2r": (2, 4, 8),
    "schroedinger_kinetic3d_o12": (2, 4, 8),
    "yask_3plane_r3": (2, 4, 8),
}


def layouts(name, itemsize, **choices):
    kernel = KERNELS[name]
    columns = list(zip(*kernel.offsets, strict=True))
    reach = tuple(-min(c) for c in columns), tuple(max(c) for c in columns)
    return rolling_layouts(kernel.offsets, kernel.weights, itemsize, reach, **choices)


def march(layout, u):
    """One step of every output of a row of strips, from the layout's reads alone."""
    strips, rows = [], u.shape[0] - layout.depth
    for begin in range(0, u.shape[-1], layout.strip):
        out = np.zeros((rows, layout.strip))
        for lane in range(layout.strip // layout.chunk):
            first = begin + lane * layout.chunk
            for row in range(rows):
                for along, across, start in layout.meetings:
                    assert across == 0
                    source = row + along - layout.first
                    chunk = u[source].take(
                        range(first + start, first + start + layout.chunk), mode="wrap"
                    )
                    for (term_along, _, x), weight in layout.terms:
                        for place in range(layout.written):
                            at = x + place - start
                            if term_along == along and 0 <= at < layout.chunk:
                                out[row, lane * layout.chunk + place] += weight * chunk[at]
        strips.append(out)
    return np.hstack(strips)


@pytest.mark.parametrize("itemsize", ITEMSIZES)
@pytest.mark.parametrize("name", ["heat2d_ftcs", "wrf_advection5_2d", "paper_box2d49p"])
def test_what_is_read_and_added_is_the_stencil(name, itemsize):
    layout, kernel = layouts(name, itemsize)[0], KERNELS[name]
    u = np.random.default_rng(1).integers(-9, 9, (layout.depth + 3, 2 * layout.strip)) * 1.0
    expected = sum(
        weight * np.roll(u, -x, axis=1)[along - layout.first :][:3]
        for (along, x), weight in zip(kernel.offsets, kernel.weights, strict=True)
    )
    np.testing.assert_allclose(march(layout, u), expected, atol=1e-12)


@pytest.mark.parametrize("ring", [False, True])
@pytest.mark.parametrize("itemsize", ITEMSIZES)
@pytest.mark.parametrize("name", KERNELS)
def test_marches_fit(name, itemsize, ring):
    if not ring and itemsize in TOO_LARGE.get(name, ()):
        with pytest.raises(Unsuitable, match=f"expected at most {MAX_ESTIMATE} registers"):
            layouts(name, itemsize, ring=ring)
        return
    for layout in layouts(name, itemsize, ring=ring):
        assert layout.looped == (ring and len(layout.terms) > MANY_TERMS)
        assert layout.registers <= (MAX_ESTIMATE_LOOPED if layout.looped else MAX_ESTIMATE)
        assert 1 <= layout.unroll <= max(1, MAX_TERMS // len(layout.terms))
        assert (layout.chunk, layout.written) == (16 // itemsize,) * 2
        # Nothing is read that no output needs.
        needed = {
            (along, across, (x + place) // layout.chunk * layout.chunk)
            for (along, across, x), _ in layout.terms
            for place in range(layout.chunk)
        }
        assert set(map(tuple, layout.meetings)) == needed


def test_two_rows_of_many_sums_are_refused():
    # ptxas spills 136 sums of f32.
    assert {layout.rows for layout in layouts("acoustic_iso3d_o16", 4, ring=True)} == {1}


def test_inputs_that_are_used():
    # Of f32, an output row of four needs six numbers of its own row, four of either neighbour.
    (layout, *_) = layouts("heat2d_ftcs", 4)
    assert (layout.used, layout.reads) == (6, [(0, -4), (0, 0), (0, 4)])
    more = next(x for x in layouts("heat3d_ftcs", 4) if x.rows == 2)
    assert more.used == 2 * 6 + 2 * 4
    assert more.reads == [(-1, 0), *((y, x) for y in (0, 1) for x in (-4, 0, 4)), (2, 0)]


def test_levels_shuffle_what_neighbours_have():
    (layout, *_) = layouts("heat2d_ftcs", 8, levels=3)
    # Two steps of one column trim two outputs of 8 bytes at either end; strips begin on sectors.
    assert (layout.trimmed, layout.width) == ((2, 2), 60)
    # The columns beside the own ones, each two numbers of two words.
    assert layout.shuffles == 2 * 4


def test_what_does_not_march():
    with pytest.raises(Unsuitable, match="expected arrays of rank 1 to 3, got rank 4"):
        rolling_layouts([(0, 0, 0, 0)], [1.0], 4, ((0,) * 4, (0,) * 4))
    with pytest.raises(Unsuitable, match="expected arrays of rank 1 or 2 for several levels"):
        layouts("heat3d_ftcs", 4, levels=2)
    with pytest.raises(Unsuitable, match=f"expected at most {MAX_ESTIMATE_OF_LEVELS} registers"):
        layouts("laplacian1d_o8", 4, levels=200)
    with pytest.raises(
        Unsuitable, match="expected at most 32 terms for levels with a ring, got 49"
    ):
        layouts("paper_box2d49p", 8, levels=2, ring=True)
    assert not any(layout.ring for layout in layouts("paper_box2d49p", 8, levels=2))
    with pytest.raises(TwofourError, match=r"expected a block of 1x512 outputs, got \[1, 64\]"):
        layouts("heat2d_ftcs", 4, block=(1, 64))
