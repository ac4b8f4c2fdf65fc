# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The built-in kernels on a GPU against float64: element types, schedules, boundaries, extents."""

import numpy as np
import pytest

import kernel_cases as cases
import reference

# Not multiples of any tile, smaller than one, and larger than several.
SHAPES = {
    1: [(1,), (67,), (4099,)],
    2: [(1, 1), (3, 130), (65, 257), (131, 31)],
    3: [(1, 2, 3), (9, 31, 65), (18, 17, 130)],
}


def storage_of(case):
    return "f32" if case["dtype"] == "tf32" else case["dtype"]


@pytest.mark.parametrize("steps", [1, 3])
def test_kernel(kernel_case, loaded, steps):
    kernel, program = cases.KERNELS[kernel_case["kernel"]], loaded(kernel_case)
    storage, matrix = storage_of(kernel_case), kernel_case["schedule"] != "simt"
    if steps > 1:
        # A sweep of all fused steps, and one of what is left.
        steps = max(steps, kernel_case["fuse_steps"] + 1)
    if not cases.holds(kernel, kernel_case["dtype"], steps):
        pytest.skip("states may leave the range of f16")
    for boundary in cases.boundaries(kernel.rank):
        for shape in SHAPES[kernel.rank]:
            values = cases.random_values(len(shape), shape, storage)
            states = reference.run(values, kernel.offsets, kernel.weights, boundary, steps)
            sums = cases.absolute_sums(states, kernel, boundary)
            dtype = kernel_case["dtype"] if matrix else storage
            found = cases.error_bounds(states, sums, dtype, kernel, boundary, matrix=matrix)
            # A fused sweep adds other products up; weights that are all positive bound its error
            # by that of single steps, at the worst point.
            allowed = found[-1] if kernel_case["fuse_steps"] == 1 else found[-1].max()
            u = cases.stored(values, storage)
            got = program(u, steps, boundary=boundary)
            assert got.dtype == u.dtype
            assert cases.within(got, states[-1], allowed), (boundary, shape)
            # Deterministic: the same bits again.
            cases.assert_same_bits(got, program(u, steps, boundary=boundary), (boundary, shape))


def test_arrays_stay_on_the_device(kernel_case, loaded):
    import cupy

    kernel, program = cases.KERNELS[kernel_case["kernel"]], loaded(kernel_case)
    storage = storage_of(kernel_case)
    values = cases.random_values(1, SHAPES[kernel.rank][-1], storage)
    u = cases.stored(values, storage)
    expected = program(u, 1)
    strided = cupy.zeros((*u.shape[:-1], 2 * u.shape[-1]), u.dtype)[..., ::2]
    strided[...] = cupy.asarray(u)
    got = program(strided, 1)
    assert type(got) is cupy.ndarray
    cases.assert_same_bits(cupy.asnumpy(got), expected)


def test_long_runs_as_graphs_equal_single_steps(kernel_case, loaded):
    kernel, program = cases.KERNELS[kernel_case["kernel"]], loaded(kernel_case)
    steps = 150
    # Constant fields stay in range whatever the weights are; zeros are exact.
    storage = storage_of(kernel_case)
    shape = SHAPES[kernel.rank][1]
    u = cases.stored(np.where(cases.random_values(2, shape, storage) > 0.9, 2.0**-8, 0), storage)
    expected = u
    if program.bundle.program.fused is not None and not kernel_case["choice"].get("levels"):
        pytest.skip("fused steps round differently")
    for _ in range(steps):
        expected = program(expected, 1, boundary="zero")
    got = program(u, steps, boundary="zero")
    same = cases.numbers(got) == cases.numbers(expected)
    assert (same | ~np.isfinite(cases.numbers(expected))).all()
