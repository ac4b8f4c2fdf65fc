# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Which warps of a march take care of ends of rows, against a list of all of them."""

import pytest

from twofour.cost.march import edge_share, outputs_of_strips
from twofour.cost.rolling import rolling_costs
from twofour.layout.rolling import rolling_layouts

OFFSETS = {"narrow": (-1, 0, 1), "a whole access": (-2, 0, 2), "downwind": (-3, -1, 0)}


def layout(offsets, rank, **choices):
    points = [(0,) * (rank - 1) + (x,) for x in offsets]
    reach = [0] * (rank - 1) + [-min(offsets)], [0] * (rank - 1) + [max(offsets)]
    return rolling_layouts(points, [0.5] * len(points), 8, reach, **choices)[0]


def at_an_end(march, strip, extent):
    """Whether a strip reads what no output needs, or writes beyond the last."""
    begin = strip * march.width - march.trimmed[0]
    width = march.strip + march.overhang
    reads = [begin + start + x for _, start in march.reads for x in (0, width - 1)]
    below, above = (march.levels * side[-1] for side in (march.reach_lo, march.reach_hi))
    return min(reads) < -below or max(reads) >= extent + above or (strip + 1) * march.width > extent


@pytest.mark.parametrize("offsets", OFFSETS.values(), ids=OFFSETS)
@pytest.mark.parametrize("extent", [60, 64, 127, 128, 129, 1000, 1024])
@pytest.mark.parametrize("levels", [1, 3])
def test_strips_at_the_ends_of_rows(offsets, extent, levels):
    march = layout(offsets, 2, levels=levels)
    strips = range(-(-extent // march.width))
    found = [at_an_end(march, strip, extent) for strip in strips]
    assert edge_share(march, 16, extent) == pytest.approx(sum(found) / len(found))
    assert outputs_of_strips(march, (16, extent)) == len(strips) * march.width / extent


@pytest.mark.parametrize("offsets", OFFSETS.values(), ids=OFFSETS)
@pytest.mark.parametrize("strips", [64, 61, 128])
def test_warps_at_the_ends_of_the_only_axis(offsets, strips):
    march, steps = layout(offsets, 1), 8
    extent = strips * march.width
    per_step, marches = march.warps, -(-strips // (steps * march.warps))
    warps = [
        range(begin * steps * per_step + warp, (begin + 1) * steps * per_step, per_step)
        for begin in range(marches)
        for warp in range(per_step)
    ]
    found = [any(at_an_end(march, strip, extent) for strip in of_warp) for of_warp in warps]
    assert edge_share(march, steps, extent) == pytest.approx(sum(found) / len(found))


def test_what_warps_ask_of_the_second_level():
    """Two axes, seven points a row: warps that read to registers ask for their halos each."""
    offsets = range(-3, 4)
    for ring in (False, True):
        march = layout(offsets, 2, ring=ring, march=16)
        costs = rolling_costs(march, (16, 10 * march.tile[-1]), "f64")
        assert costs.reads_to_registers == (not ring)
        # Outputs of 8 bytes, and a sector on either side of a strip of 64.
        strips = 1 if not ring else march.warps
        read = 8 * (1 + 2 * 32 / 8 / (64 * strips))
        assert costs.l2_bytes == pytest.approx(8 + read)
        assert costs.halo_bytes == pytest.approx(8 * 2 * 32 / 8 / (64 * march.warps))
