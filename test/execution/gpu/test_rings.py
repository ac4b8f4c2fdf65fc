# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Inputs that wait in rings in shared memory: the bits of kernels that keep them in registers."""

import re

import numpy as np
import pytest

import kernel_cases as cases
from spills import check_resources
from twofour.errors import TwofourError
from twofour.options import CompileOptions
from twofour.runtime.bundle import Bundle
from twofour.runtime.devices.simulated import SimulatedDevice
from twofour.runtime.programs import from_bundle
from twofour.targets.gpu.build import compile_gpu
from twofour.tuned.choice import Choice

# Rows that end within an access, a strip and a block; fewer steps than a ring has slots.
SHAPES = {
    1: ((5,), (30001,)),
    2: ((3, 5), (61, 603), (29, 1024)),
    3: ((2, 3, 7), (23, 9, 261)),
}
BOUNDARY = ("periodic", "nearest", "zero")
# A round has as many steps as the ring has slots, or not; one row of inputs, several, and far ones.
CASES = [
    ("laplacian1d_o8", "stream", "bf16", 8),
    ("heat2d_ftcs", "stream", "f16", 6),
    ("heat3d_ftcs", "stream", "f16", 4),
    ("advect1d_beam_warming", "simt", "f64", 6),
    ("heat3d_ftcs", "simt", "f32", 4),
]
MORE_CASES = [
    ("wrf_advection5_2d", "stream", "bf16", 4),
    ("heat1d_ftcs", "stream", "f16", 6),
    ("paper_box2d49p", "stream", "f16", 12),
    ("laplacian3d_o6", "stream", "f16", 4),
    ("heat2d_ftcs", "simt", "f16", 4),
    ("paper_star2d13p", "simt", "f64", 8),
    ("paper_box2d49p", "simt", "f32", 4),
    ("acoustic_iso3d_o8", "simt", "f32", 4),
]


def compiled(name, schedule, dtype, ring, steps=1, **choices):
    options = CompileOptions("sim:sm_90", schedule, dtype, fuse_steps=steps)
    rolling = True if schedule == "simt" else None
    choice = Choice(schedule, ring=ring, rolling=rolling, **choices)
    bundle = compile_gpu(cases.KERNELS[name], options, choice=choice).bundle
    spec = bundle.kernels[bundle.program.fused or bundle.program.single]
    assert (spec.shared_bytes > 0) == ring == ("cp.async" in bundle.ptx)
    return bundle


def marked(cases, more):
    return [*cases, *(pytest.param(*case, marks=pytest.mark.full) for case in more)]


@pytest.mark.parametrize("name, schedule, dtype, stages", marked(CASES, MORE_CASES))
def test_rings_give_the_bits_of_registers(name, schedule, dtype, stages):
    rank = cases.KERNELS[name].rank
    rings = compiled(name, schedule, dtype, True, stages=stages)
    registers = compiled(name, schedule, dtype, False)
    check_resources(rings.ptx, "sm_90")
    for shape in SHAPES[rank]:
        u = cases.stored(cases.random_values(1, shape, dtype), dtype)
        results = [
            from_bundle(bundle, "sim:sm_90")(u, 2, boundary=BOUNDARY[:rank])
            for bundle in (rings, registers)
        ]
        cases.assert_same_bits(*results)


@pytest.mark.parametrize(
    "name, schedule, dtype, steps, boundary",
    marked(
        [("heat2d_ftcs", "simt", "f32", 2, "reflect")],
        [("heat2d_ftcs", "stream", "f16", 3, "periodic")],
    ),
)
def test_first_levels_read_from_rings(name, schedule, dtype, steps, boundary):
    rings, registers = (
        compiled(name, schedule, dtype, ring, steps, levels=True) for ring in (True, False)
    )
    for shape in SHAPES[cases.KERNELS[name].rank][1:]:
        u = cases.stored(cases.random_values(2, shape, dtype), dtype)
        results = [
            from_bundle(bundle, "sim:sm_90")(u, steps + 1, boundary=boundary)
            for bundle in (rings, registers)
        ]
        cases.assert_same_bits(*results)


@pytest.mark.parametrize("schedule, dtype", [("stream", "f16"), ("simt", "f64")])
def test_levels_along_the_only_axis_have_no_rings(schedule, dtype):
    with pytest.raises(TwofourError, match="expected two axes for 3 levels with a ring, got one"):
        compiled("heat1d_ftcs", schedule, dtype, True, 3, levels=True)


@pytest.mark.parametrize("march", [1, 7])
@pytest.mark.parametrize("kernel", [("heat2d_ftcs", "stream"), ("gauss7x7_binomial", "simt")])
def test_marches_of_fewer_steps_than_a_ring_has(kernel, march):
    bundle = compiled(*kernel, "f16", True, stages=8, march=march)
    u = cases.stored(cases.random_values(4, (23, 300), "f16"), "f16")
    got = from_bundle(bundle, "sim:sm_90")(u, 1, boundary="periodic")
    expected = from_bundle(compiled(*kernel, "f16", False), "sim:sm_90")
    cases.assert_same_bits(got, expected(u, 1, boundary="periodic"))


def test_any_number_of_blocks():
    bundle = compiled("heat3d_ftcs", "stream", "f16", True)
    u = cases.stored(cases.random_values(1, (60, 9, 140), "f16"), "f16")
    results = []
    for multiprocessors in (None, 1, 7):
        device = SimulatedDevice("sm_90")
        device.multiprocessors = multiprocessors
        results.append(from_bundle(bundle, device)(u, 1, boundary="periodic"))
    for result in results[1:]:
        np.testing.assert_array_equal(result, results[0])


class DirtyDevice(SimulatedDevice):
    """Memory holds what is no number where nothing was written to it."""

    def zeros(self, shape, dtype):
        array = super().zeros(shape, dtype)
        array[...] = np.nan
        return array


def test_what_lies_beside_the_array_does_not_matter():
    bundle = compiled("heat2d_ftcs", "stream", "f16", True)
    u = cases.stored(cases.random_values(5, (9, 301), "f16"), "f16")
    clean, dirty = (
        from_bundle(bundle, device("sm_90"))(u, 1, boundary="periodic")
        for device in (SimulatedDevice, DirtyDevice)
    )
    cases.assert_same_bits(dirty, clean)


SYNC = r"\n\tbar\.warp\.sync[^\n]*;"
WAIT = r"cp\.async\.wait_group \t?(\d+);"


def failure(ptx):
    """What the simulator says of a changed kernel of heat2d_ftcs; None where it runs well."""
    bundle = compiled("heat2d_ftcs", "stream", "f16", True, stages=8)
    changed = Bundle(bundle.manifest, ptx(bundle.ptx), None)
    assert changed.ptx != bundle.ptx
    u = cases.stored(cases.random_values(3, (67, 1100), "f16"), "f16")
    try:
        got = from_bundle(changed, "sim:sm_90")(u, 1, boundary="periodic")
    except TwofourError as error:
        return str(error)
    expected = from_bundle(bundle, "sim:sm_90")(u, 1, boundary="periodic")
    return None if np.array_equal(got, expected) else "wrong result"


def test_a_warp_that_does_not_meet_is_reported():
    found = failure(lambda ptx: re.sub(SYNC, "", ptx))
    assert found is not None and "race" in found


def test_a_wait_for_too_few_copies_is_reported():
    def one_group_less(ptx):
        return re.sub(WAIT, lambda wait: f"cp.async.wait_group {int(wait[1]) + 1};", ptx)

    found = failure(one_group_less)
    assert found is not None and "cp.async" in found


def test_a_slot_that_is_still_read_is_reported():
    """Copies that go to the slot of the step itself."""

    def into_the_same_slot(ptx):
        copy = re.search(r"(@%p\d+ cp\.async\S+ \[%r\d+)\+0\]", ptx)
        return ptx.replace(copy[0], copy[1] + "+288]")

    assert failure(into_the_same_slot) is not None
