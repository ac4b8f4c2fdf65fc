# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The error bounds of tensor-core kernels are within a factor of four of what inputs can reach."""

from fractions import Fraction

import numpy as np
import pytest

import kernel_cases as cases
from twofour.accuracy import sweep_error
from twofour.kernels import Kernel
from twofour.options import CompileOptions
from twofour.runtime.programs import from_bundle
from twofour.targets.gpu.build import compile_gpu

# A weight, and inputs, whose rounding is as bad as it gets.
WORST = {
    "f16": (1 + 2.0**-6 + 2.0**-11, 1 + np.arange(64) / 1024),
    "bf16": (1 + 2.0**-4 + 2.0**-8, 1 + np.arange(64) / 128),
    "tf32": (1 + 2.0**-11, np.full(64, 1 + 2.0**-11)),
    "f32": (1 + 2.0**-11 + 2.0**-23, np.full(64, 1 + 2.0**-11 + 2.0**-23)),
    "f64": (1 + 2.0**-30 + 2.0**-52, 1 + np.random.default_rng(0).random(64) / 8),
}


@pytest.mark.parametrize("schedule", ["sparse", "dense"])
@pytest.mark.parametrize("arithmetic", WORST)
def test_bounds_are_tight_within_a_factor_of_four(arithmetic, schedule):
    weight, values = WORST[arithmetic]
    storage = "f32" if arithmetic == "tf32" else arithmetic
    kernel = Kernel("scale", ((0,),), (weight,))
    options = CompileOptions("sim:sm_90", schedule, arithmetic)
    step = from_bundle(compile_gpu(kernel, options).bundle, "sim:sm_90")
    got = cases.numbers(step(cases.stored(values, storage), boundary="periodic"))
    ratios = []
    for number, value in zip(got.tolist(), values.tolist(), strict=True):
        exact = Fraction(weight) * Fraction(value)
        bound = sweep_error(arithmetic, 1, float(exact), float(exact), matrix=True)
        ratios.append(float(abs(Fraction(number) - exact)) / bound)
    assert 0.25 <= max(ratios) <= 1
