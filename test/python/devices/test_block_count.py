# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""How many blocks a launch has."""

import math
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from twofour.runtime.devices.launching import (
    MANY_WAVES,
    START_STEPS,
    balanced_block_count,
    block_count,
    launch_shape,
)
from twofour.runtime.manifest import KernelSpec

SPEC = KernelSpec("k", 2, 1, 1, (), 128, (1, 512), 128, 0, 32, resident=5)


@pytest.mark.parametrize(
    "shape, at_once, blocks",
    [
        ((10240, 10240), 660, 1320),  # 66 marches of 156 rows: two whole waves
        ((10240, 10240), 10**9, 20 * 640),  # a device that nothing fills: the shortest marches
        ((10240, 10240), 400, 1600),  # four waves: marches as asked
        ((100, 512), 660, 6),  # no shorter than an eighth
        ((1, 1), 660, 1),
        ((0, 512), 660, 0),
        ((100, 0), 660, 0),
    ],
)
def test_whole_waves(shape, at_once, blocks):
    assert balanced_block_count((1, 512), 128, shape, at_once) == blocks


@given(
    st.lists(st.integers(1, 3000), min_size=1, max_size=3),
    st.integers(1, 300),
    st.integers(1, 2000),
)
def test_blocks_share_the_first_axis(shape, march, at_once):
    tile = (8, 16, 128)[-len(shape) :]
    count = balanced_block_count(tile, march, shape, at_once)
    side_by_side = math.prod(-(-n // t) for n, t in zip(shape[1:], tile[1:], strict=True))
    segments, rest = divmod(count, side_by_side)
    steps = -(-shape[0] // tile[0])
    assert rest == 0 and 1 <= segments <= steps
    longest = -(-steps // segments)
    assert longest <= 2 * march
    assert longest >= min(steps, march // 8) or segments == 1


@given(st.integers(1, 500), st.integers(1, 40), st.integers(1, 130), st.integers(1, 600))
def test_no_other_number_of_blocks_takes_less_time(steps, side_by_side, march, at_once):
    """Against all numbers: as many waves as there are, of marches as long as they are."""

    def time(segments):
        waves = -(-side_by_side * segments // at_once)
        return waves * (-(-steps // segments) + START_STEPS), segments

    count = balanced_block_count((1, 8), march, (steps, 8 * side_by_side), at_once)
    fewest = -(-steps // (2 * march))
    most = min(max(fewest, 8 * steps // march), steps)
    best = side_by_side * min(range(fewest, most + 1), key=time)
    asked = side_by_side * -(-steps // march)
    assert count == (asked if asked >= MANY_WAVES * at_once else best)


def test_devices_that_need_no_waves_and_kernels_with_fixed_marches():
    shape = (10240, 10240)
    fixed = block_count(SPEC.tile, SPEC.march, shape)
    assert launch_shape(SPEC, shape).blocks == fixed == 20 * 80
    assert launch_shape(replace(SPEC, resident=None), shape, 132).blocks == fixed
    assert launch_shape(SPEC, shape, 132).blocks == 1320
    assert launch_shape(SPEC, (0, 5), 132) is None
