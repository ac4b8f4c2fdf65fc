# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Plain threads on every chip: code of each, with the same bits."""

import pytest

import kernel_cases as cases
import twofour

SHAPES = {1: (77,), 2: (9, 70), 3: (5, 6, 40)}


@pytest.mark.parametrize("chip", ["sm_80", pytest.param("sm_89", marks=pytest.mark.full), "sm_100"])
@pytest.mark.parametrize("dtype", ["f16", "bf16"])
# Of weights that are not 1 or -1, that are all, and of three axes.
@pytest.mark.parametrize("name", ["heat1d_ftcs", "emboss3x3", "curlcurl_cross2d", "heat3d_ftcs"])
def test_bits_of_sm_90(name, dtype, chip):
    kernel = cases.KERNELS[name]
    u = cases.stored(cases.random_values(3, SHAPES[kernel.rank], dtype), dtype)
    results = [
        twofour.compile(
            name, target=f"sim:{target}", dtype=dtype, schedule="simt", boundary="periodic"
        )(u, steps=2)
        for target in ("sm_90", chip)
    ]
    cases.assert_same_bits(*results, name)
