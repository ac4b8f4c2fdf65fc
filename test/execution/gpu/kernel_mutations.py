# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Kernels to put mistakes into, and whether a run of them reports one."""

import re
from functools import cache

import numpy as np
import pytest

import kernel_cases as cases
import reference
from twofour.errors import TwofourError
from twofour.options import CompileOptions
from twofour.runtime.bundle import Bundle
from twofour.runtime.devices.simulated import SimulatedDevice
from twofour.runtime.programs import from_bundle
from twofour.targets.gpu.build import compile_gpu

# Blocks march over several tiles here, so that all stages are in use twice.
SHAPES = {"heat1d_ftcs": (20011,), "heat2d_ftcs": (67, 531), "heat3d_ftcs": (19, 9, 261)}
NAMES = [
    pytest.param(name, marks=() if name == "heat2d_ftcs" else (pytest.mark.full,))
    for name in SHAPES
]


@cache
def bundle_of(name: str, schedule: str, chip: str = "sm_90") -> Bundle:
    options = CompileOptions(f"sim:{chip}", schedule, "f16")
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


@cache
def executed_lines(name: str, schedule: str) -> frozenset[int]:
    """The lines of the PTX that a run of a kernel reaches."""
    device = SimulatedDevice("sm_90")
    values, _, _ = expected(name)
    bundle = bundle_of(name, schedule)
    from_bundle(bundle, device)(values, boundary="periodic")
    profile = device.profiles[bundle.program.single]
    return frozenset(line for line, found in profile.counters.lines.items() if found.executions)


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
