# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Kernels with one mistake: the simulator or the comparison reports each of them."""

import re

import numpy as np
import pytest

from kernel_mutations import (
    NAMES,
    bundle_of,
    changed,
    executed_lines,
    failure,
    indices_of_nonzeros,
    table,
    with_ptx,
)

BARRIER = r"\n\t(?:bar\.sync|barrier\.sync)[^\n]*;"
WAIT = r"cp\.async\.wait_group \t?(\d+);"


@pytest.mark.parametrize("schedule", ["sparse", "stream"])
@pytest.mark.parametrize("name", NAMES)
def test_kernels_without_a_mistake_pass(name, schedule):
    assert failure(name, bundle_of(name, schedule)) is None


@pytest.mark.parametrize("name", NAMES)
def test_a_dropped_barrier_is_reported(name):
    bundle = bundle_of(name, "sparse")
    barriers = list(re.finditer(BARRIER, bundle.ptx))
    assert len(barriers) >= 2
    for barrier in barriers:
        without = bundle.ptx[: barrier.start()] + bundle.ptx[barrier.end() :]
        found = failure(name, with_ptx(bundle, without))
        assert found is not None and "race" in found


@pytest.mark.parametrize("name", NAMES)
def test_a_wrong_wait_count_is_reported(name):
    bundle = bundle_of(name, "sparse")
    counts = list(re.finditer(WAIT, bundle.ptx))
    assert [match[1] for match in counts] == ["1"]
    ptx = re.sub(WAIT, "cp.async.wait_group 2;", bundle.ptx)
    found = failure(name, with_ptx(bundle, ptx))
    assert found is not None and "cp.async" in found


@pytest.mark.parametrize("seed", range(10))
@pytest.mark.parametrize("schedule", ["sparse", "stream"])
@pytest.mark.parametrize("name", NAMES)
def test_a_flipped_metadata_bit_is_reported(name, schedule, seed):
    bundle = bundle_of(name, schedule)
    places = indices_of_nonzeros(bundle.ptx)
    place, bit = places[int(np.random.default_rng(seed).integers(len(places)))]
    ptx = changed(bundle.ptx, "metadata", place, lambda byte: byte ^ 1 << bit)
    assert failure(name, with_ptx(bundle, ptx)) is not None


@pytest.mark.parametrize("seed", range(5))
@pytest.mark.parametrize("suffix", ["input_offsets", "output_offsets"])
@pytest.mark.parametrize("name", NAMES)
def test_an_offset_off_by_one_is_reported(name, suffix, seed):
    bundle = bundle_of(name, "sparse")
    words = table(bundle.ptx, suffix).view(np.int32)
    # Columns of zeros repeat the offset of another one, or weigh nothing.
    used = [i for i, word in enumerate(words) if np.count_nonzero(words == word) == 1]
    place = 4 * used[int(np.random.default_rng(seed).integers(len(used)))]
    ptx = changed(bundle.ptx, suffix, place, lambda byte: byte + 1 if byte < 255 else byte - 1)
    assert failure(name, with_ptx(bundle, ptx)) is not None


def mutated(name: str, pattern: str, replacement, seed: int):
    """A kernel that streams, with one of the places changed that a run reaches."""
    bundle, executed = bundle_of(name, "stream"), executed_lines(name, "stream")
    places = [
        place
        for place in re.finditer(pattern, bundle.ptx)
        if bundle.ptx.count("\n", 0, place.start()) + 1 in executed
    ]
    place = places[int(np.random.default_rng(seed).integers(len(places)))]
    return with_ptx(
        bundle, bundle.ptx[: place.start()] + replacement(place) + bundle.ptx[place.end() :]
    )


@pytest.mark.parametrize("seed", range(5))
@pytest.mark.parametrize("access", [r"ld\.global\.v4\.b32", r"st\.global\.v2\.b32"])
@pytest.mark.parametrize("name", NAMES)
def test_an_address_of_a_stream_off_by_eight_is_reported(name, access, seed):
    pattern = rf"({access}[^;]*\[%rd\d+)(\+-?\d+)?\]"

    def moved(place):
        return f"{place[1]}+{int((place[2] or '0').removeprefix('+')) + 16}]"

    assert failure(name, mutated(name, pattern, moved, seed)) is not None


@pytest.mark.parametrize("seed", range(5))
@pytest.mark.parametrize("name", NAMES)
def test_a_dropped_transposition_is_reported(name, seed):
    pattern = r"movmatrix\S+ (%r\d+), (%r\d+);"

    def copied(place):
        return f"mov.b32 {place[1]}, {place[2]};"

    assert failure(name, mutated(name, pattern, copied, seed)) is not None
