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


# Chips whose tiles the threads copy, and whose tiles the copy engine moves.
CHIPS = ("sm_80", "sm_90")
BULK_NAMES = [name for name in NAMES if name.values[0] != "heat1d_ftcs"]


@pytest.mark.parametrize("chip", CHIPS)
@pytest.mark.parametrize("schedule", ["sparse", "stream"])
@pytest.mark.parametrize("name", NAMES)
def test_kernels_without_a_mistake_pass(name, schedule, chip):
    assert failure(name, bundle_of(name, schedule, chip)) is None


@pytest.mark.parametrize("chip", CHIPS)
@pytest.mark.parametrize("name", NAMES)
def test_a_dropped_barrier_is_reported(name, chip):
    bundle = bundle_of(name, "dense", chip)
    barriers = list(re.finditer(BARRIER, bundle.ptx))
    assert len(barriers) >= 2
    for barrier in barriers:
        without = bundle.ptx[: barrier.start()] + bundle.ptx[barrier.end() :]
        found = failure(name, with_ptx(bundle, without))
        assert found is not None and "race" in found


@pytest.mark.parametrize("name", NAMES)
def test_a_wrong_wait_count_is_reported(name):
    bundle = bundle_of(name, "sparse", "sm_80")
    counts = list(re.finditer(WAIT, bundle.ptx))
    assert [match[1] for match in counts] == ["1"]
    ptx = re.sub(WAIT, "cp.async.wait_group 2;", bundle.ptx)
    found = failure(name, with_ptx(bundle, ptx))
    assert found is not None and "cp.async" in found


def bulk_mistake(name, pattern, replacement, which=0):
    """What is wrong with a kernel with place number `which` of a pattern replaced."""
    bundle = bundle_of(name, "dense")
    place = list(re.finditer(pattern, bundle.ptx))[which]
    ptx = bundle.ptx[: place.start()] + place.expand(replacement) + bundle.ptx[place.end() :]
    return failure(name, with_ptx(bundle, ptx))


# An instruction of a march with bulk copies, what it becomes, and what is said of it.
BULK_MISTAKES = {
    "no wait": (r"mbarrier\.try_wait\S+ P1, [^;]*;", "setp.eq.u32 P1, 0, 0;", "in flight"),
    "expected too little": (r"(arrive\.expect_tx.*), (%r\d+);", r"\1, 16;", "deadlock"),
    "no fence": (r"fence\.proxy\.async\.shared::cta;", "", "proxy fence"),
    "no fence of barriers": (r"fence\.mbarrier_init\.release\.cluster;", "", "proxy fence"),
    "no wait for results": (r"cp\.async\.bulk\.wait_group\.read \t?0;", "", "bulk wait"),
    "no group of results": (r"cp\.async\.bulk\.commit_group;", "", "bulk wait"),
}


@pytest.mark.parametrize("mistake", BULK_MISTAKES)
@pytest.mark.parametrize("name", BULK_NAMES)
def test_a_mistake_with_bulk_copies_is_reported(name, mistake):
    pattern, replacement, expected = BULK_MISTAKES[mistake]
    found = bulk_mistake(name, pattern, replacement)
    assert found is not None and expected in found


@pytest.mark.parametrize("change", [-16, 16])
@pytest.mark.parametrize("name", BULK_NAMES)
def test_a_wrong_count_of_bytes_is_reported(name, change):
    size = re.search(
        r"mov\.b32 \t?(%r\d+), (\d+);\n\s*mbarrier\.arrive", bundle_of(name, "dense").ptx
    )
    wrong = f"mov.b32 {size[1]}, {int(size[2]) + change};"
    found = bulk_mistake(name, rf"mov\.b32 \t?{size[1]}, {size[2]};", wrong)
    assert found is not None and "deadlock" in found


@pytest.mark.parametrize("which", range(4))
@pytest.mark.parametrize("name", BULK_NAMES)
def test_a_wrong_place_of_a_box_is_reported(name, which):
    # Loads ahead of the march, one within it; stores.
    found = bulk_mistake(name, r"(cp\.async\.bulk\.tensor[^{]*\{)%r\d+", r"\g<1>8", which)
    assert found is not None


@pytest.mark.parametrize("name", BULK_NAMES)
def test_a_phase_that_never_changes_is_reported(name):
    found = bulk_mistake(name, r"(try_wait\S+ P1, [^,]*), %r\d+,", r"\1, 0,")
    assert found is not None


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
@pytest.mark.parametrize(
    "access", [r"(?:ld\.global\.L2::256B\.v4\.b32|cp\.async\.ca)", r"st\.global\.v2\.b32"]
)
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
