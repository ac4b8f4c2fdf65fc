# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Kernels with one mistake: the simulator or the comparison reports each of them."""

import re
from functools import cache

import numpy as np
import pytest

import kernel_cases as cases
import reference
from twofour.errors import TwofourError
from twofour.options import CompileOptions
from twofour.runtime.bundle import Bundle
from twofour.runtime.programs import from_bundle
from twofour.targets.gpu.build import compile_gpu

# Blocks march over several tiles here, so that both stages are in use.
SHAPES = {"heat1d_ftcs": (20011,), "heat2d_ftcs": (35, 531), "heat3d_ftcs": (11, 9, 261)}
NAMES = [
    pytest.param(name, marks=() if name == "heat2d_ftcs" else (pytest.mark.full,))
    for name in SHAPES
]
BARRIER = r"\n\t(?:bar\.sync|barrier\.sync)[^\n]*;"
WAIT = r"cp\.async\.wait_group \t?(\d+);"


@cache
def bundle_of(name: str) -> Bundle:
    options = CompileOptions("sim:sm_90", "sparse", "f16")
    return compile_gpu(cases.KERNELS[name], options).bundle


def with_ptx(bundle: Bundle, ptx: str) -> Bundle:
    assert ptx != bundle.ptx
    return Bundle(bundle.manifest, ptx, None)


@cache
def expected(name: str):
    """Input, exact result and bound of a run."""
    kernel = cases.KERNELS[name]
    boundary = ("periodic",) * kernel.rank
    values = cases.random_values(3, SHAPES[name], "f16")
    states = reference.run(values, kernel.offsets, kernel.weights, boundary, 1)
    sums = cases.absolute_sums(states, kernel, boundary)
    bounds = cases.error_bounds(states, sums, "f16", kernel, boundary, matrix=True)
    return cases.stored(values, "f16"), states[-1], bounds[-1]


def failure(name: str, bundle: Bundle) -> str | None:
    """What is wrong with a run of a bundle; None where nothing is."""
    values, exact, bound = expected(name)
    try:
        got = from_bundle(bundle, "sim:sm_90")(values, boundary="periodic")
    except TwofourError as error:
        return str(error)
    return None if cases.within(got, exact, bound) else "wrong result"


@pytest.mark.parametrize("name", NAMES)
def test_kernels_without_a_mistake_pass(name):
    assert failure(name, bundle_of(name)) is None


@pytest.mark.parametrize("name", NAMES)
def test_a_dropped_barrier_is_reported(name):
    bundle = bundle_of(name)
    barriers = list(re.finditer(BARRIER, bundle.ptx))
    assert len(barriers) >= 2
    for barrier in barriers:
        without = bundle.ptx[: barrier.start()] + bundle.ptx[barrier.end() :]
        found = failure(name, with_ptx(bundle, without))
        assert found is not None and "race" in found


@pytest.mark.parametrize("name", NAMES)
def test_a_wrong_wait_count_is_reported(name):
    bundle = bundle_of(name)
    counts = list(re.finditer(WAIT, bundle.ptx))
    assert [match[1] for match in counts] == ["1"]
    ptx = re.sub(WAIT, "cp.async.wait_group 2;", bundle.ptx)
    found = failure(name, with_ptx(bundle, ptx))
    assert found is not None and "cp.async" in found


def find_table(ptx: str, suffix: str) -> re.Match:
    """A table of the kernel in the PTX: its size in bytes, and the bytes."""
    return re.search(rf"\w+_{suffix}\[(\d+)\] = \{{([^}}]*)\}}", ptx)


def table(ptx: str, suffix: str) -> np.ndarray:
    """The bytes of a table; zeros at its end need not be spelled out."""
    found = find_table(ptx, suffix)
    data = np.zeros(int(found[1]), np.uint8)
    numbers = np.array(found[2].split(","), np.uint8)
    data[: len(numbers)] = numbers
    return data


def changed(ptx: str, suffix: str, index: int, change) -> str:
    found, data = find_table(ptx, suffix), table(ptx, suffix).tolist()
    data[index] = change(data[index])
    return ptx[: found.start(2)] + ", ".join(map(str, data)) + ptx[found.end(2) :]


def values_of(ptx: str) -> np.ndarray:
    """The numbers of A as the kernel holds them: fragments, rows, compressed columns."""
    halves = table(ptx, "values").view(np.float16).reshape(-1, 32, 8)
    stored = np.zeros((len(halves), 16, 16))
    for lane in range(32):
        for i in range(8):
            row, column = lane // 4 + 8 * (i // 2 % 2), 2 * (lane % 4) + i % 2 + 8 * (i // 4)
            stored[:, row, column] = halves[:, lane, i]
    return stored


def indices_of_nonzeros(ptx: str) -> list[tuple[int, int]]:
    """(byte, bit) of the metadata that say where a number that is not zero belongs."""
    places = []
    for fragment, stored in enumerate(values_of(ptx)):
        for lane in (lane for lane in range(32) if lane % 4 < 2):
            for byte in range(4):
                for bit in range(8):
                    row = lane // 4 + 8 * (byte // 2)
                    group = byte % 2 * 2 + bit // 4
                    if stored[row, 8 * (lane % 2) + 2 * group + bit % 4 // 2]:
                        places.append((128 * fragment + 4 * lane + byte, bit))
    return places


@pytest.mark.parametrize("seed", range(10))
@pytest.mark.parametrize("name", NAMES)
def test_a_flipped_metadata_bit_is_reported(name, seed):
    bundle = bundle_of(name)
    places = indices_of_nonzeros(bundle.ptx)
    place, bit = places[int(np.random.default_rng(seed).integers(len(places)))]
    ptx = changed(bundle.ptx, "metadata", place, lambda byte: byte ^ 1 << bit)
    assert failure(name, with_ptx(bundle, ptx)) is not None


@pytest.mark.parametrize("seed", range(5))
@pytest.mark.parametrize("suffix", ["input_offsets", "output_offsets"])
@pytest.mark.parametrize("name", NAMES)
def test_an_offset_off_by_one_is_reported(name, suffix, seed):
    bundle = bundle_of(name)
    words = table(bundle.ptx, suffix).view(np.int32)
    # Columns of zeros repeat the offset of another one, or weigh nothing.
    used = [i for i, word in enumerate(words) if np.count_nonzero(words == word) == 1]
    place = 4 * used[int(np.random.default_rng(seed).integers(len(used)))]
    ptx = changed(bundle.ptx, suffix, place, lambda byte: byte + 1 if byte < 255 else byte - 1)
    assert failure(name, with_ptx(bundle, ptx)) is not None
