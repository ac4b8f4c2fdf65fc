# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Tensor-core kernels with values, weights and reaches at the limits of what they can hold."""

from itertools import product

import numpy as np
import pytest

import reference
import twofour
from twofour.runtime.dtypes import float32_to_bf16

TENSOR_SCHEDULES = ("stream", "sparse", "dense")
# Without and with a copy engine.
TARGETS = ("sim:sm_80", "sim:sm_90")

PROGRAM = """
func.func @f(%u : !stencil.field<{bounds}x{element}>, %v : !stencil.field<{bounds}x{element}>) {{
  %t = stencil.load %u : !stencil.field<{bounds}x{element}> -> !stencil.temp<?x?x{element}>
  %r = stencil.apply(%a = %t : !stencil.temp<?x?x{element}>) -> (!stencil.temp<?x?x{element}>) {{
    %weight = arith.constant {weight:.17e} : {element}
    %constant = arith.constant {constant:.17e} : {element}
    %left = stencil.access %a[0, -1] : !stencil.temp<?x?x{element}>
    %right = stencil.access %a[0, 1] : !stencil.temp<?x?x{element}>
    %sum = arith.addf %left, %right : {element}
    %product = arith.mulf %sum, %weight : {element}
    %new = arith.addf %product, %constant : {element}
    stencil.return %new : {element}
  }}
  stencil.store %r to %v(<[0, 0], [17, 17]>)
    : !stencil.temp<?x?x{element}> to !stencil.field<{bounds}x{element}>
  return
}}
"""


def program(
    tmp_path, schedule: str, target: str, *, halo: int, weight: float, constant: float, dtype: str
):
    """A file of weight * (left + right) + constant, 17 x 17 points, halos of `halo` cells."""
    bounds = "x".join([f"[{-halo},{17 + halo}]"] * 2)
    text = PROGRAM.format(bounds=bounds, element="f32", weight=weight, constant=constant)
    (tmp_path / "p.mlir").write_text(text)
    return twofour.compile(tmp_path / "p.mlir", target=target, schedule=schedule, dtype=dtype)


@pytest.mark.parametrize("schedule", TENSOR_SCHEDULES)
@pytest.mark.parametrize("extent", [1, 3, 4, 5, 130, 1025])
def test_a_row_is_shorter_than_the_reach_below(schedule, extent):
    offsets, weights = ((-5,), (-4,)), (2.0, 0.5)
    step = twofour.stencil(
        dict(zip(offsets, weights, strict=True)),
        boundary="periodic",
        dtype="f16",
        target="sim:sm_80",
        schedule=schedule,
    )
    u = (np.arange(extent) % 7 + 1).astype(np.float16)
    expected = reference.run(u.astype(np.float64), offsets, weights, ("periodic",), 1)[-1]
    np.testing.assert_array_equal(step(u), expected)


@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize("schedule", TENSOR_SCHEDULES)
def test_cells_beyond_the_reach_are_not_multiplied(tmp_path, schedule, target):
    step = program(tmp_path, schedule, target, halo=7, weight=0.5, constant=0.0, dtype="f16")
    u = np.full((31, 31), np.nan, np.float16)
    u[7:-7, 6:-6] = 1
    assert (step(u)[7:-7, 7:-7] == 1).all()


@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize("schedule", TENSOR_SCHEDULES)
@pytest.mark.parametrize("weight, u, expected", [(1e-35, 1.0, 100), (2.0**17, 2.0**-14, 116)])
def test_a_constant_is_not_scaled_with_the_weights(tmp_path, schedule, target, weight, u, expected):
    step = program(tmp_path, schedule, target, halo=1, weight=weight, constant=100.0, dtype="f16")
    assert (step(np.full((19, 19), u, np.float16))[1:-1, 1:-1] == expected).all()


@pytest.mark.parametrize("schedule", TENSOR_SCHEDULES)
@pytest.mark.parametrize(
    "weight, u", [(2.0**-20 * (1 + 2.0**-5), 2.0**14), (1.5 * 2.0**16, 2.0**-10)]
)
def test_weights_beyond_f16_keep_their_digits(schedule, weight, u):
    step = twofour.stencil({(0,): weight}, dtype="f16", target="sim:sm_80", schedule=schedule)
    assert (step(np.full(9, u, np.float16)) == weight * u).all()


@pytest.mark.parametrize(
    "dtype, schedule",
    [
        *product(["bf16", "tf32", "f32"], ["sparse", "dense"]),
        ("bf16", "stream"),
    ],
)
def test_the_largest_weights_stay_finite(schedule, dtype):
    largest = float(np.finfo(np.float32).max)
    step = twofour.stencil({(0,): largest}, dtype=dtype, target="sim:sm_80", schedule=schedule)
    u = np.full(9, 2.0**-100, np.float32)
    if dtype == "bf16":
        result = step(float32_to_bf16(u)).astype(np.uint32) << 16
        result = result.view(np.float32)
    else:
        result = step(u)
    np.testing.assert_allclose(
        result,
        largest * 2.0**-100,
        rtol={"bf16": 2.0**-7, "tf32": 2.0**-10, "f32": 2.0**-20}[dtype],
    )
