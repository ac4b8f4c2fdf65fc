# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Patch operators in files are compiled for every target, whatever layout they have."""

import numpy as np
import pytest

import twofour
from twofour.opt.main import main

PROGRAM = """
!field = !stencil.field<#stencil.bounds<[-4], [68]>, f16>
!temp = !stencil.temp<1 : i64, f16>
func.func @f(%u: !field, %v: !field) {
  %t = "stencil.load"(%u) : (!field) -> !temp
  %r = "stencil.weighted_sum"(%t) {
    constant = 0.5 : f64, offsets = [[-1], [0], [1]], weights = array<f64: 1.0, 2.0, 3.0>
  } : (!temp) -> !temp
  "stencil.store"(%r, %v) {bounds = #stencil.bounds<[0], [64]>} : (!temp, !field) -> ()
  return
}
"""
FLAT = ["--convert-stencil-to-nm"]
DENSE = [*FLAT, "--nm-crush=tile=4"]
SPARSE = [*DENSE, "--nm-permute-2to4", "--nm-compress"]


@pytest.mark.parametrize("passes", [FLAT, DENSE, SPARSE], ids=["flat", "dense", "sparse"])
@pytest.mark.parametrize(
    ("target", "schedule"),
    [
        ("cpu", "auto"),
        ("cpu", "direct"),
        ("cpu", "sparse"),
        ("sim:sm_80", "auto"),
        ("sim:sm_80", "simt"),
        ("sim:sm_90", "sparse"),
        ("sim:sm_90", "dense"),
        ("sim:sm_90", "stream"),
    ],
)
def test_operators_run(passes, target, schedule, tmp_path):
    (tmp_path / "plain.mlir").write_text(PROGRAM)
    path = str(tmp_path / "operator.mlir")
    assert main([str(tmp_path / "plain.mlir"), *passes, "-o", path]) == 0
    assert "nm." in (tmp_path / "operator.mlir").read_text()
    u = np.random.default_rng(3).integers(-8, 8, 72).astype(np.float16)
    program = twofour.compile(path, target=target, schedule=schedule)
    assert schedule in ("auto", program.schedule)
    expected = 1.0 * u[3:67] + 2.0 * u[4:68] + 3.0 * u[5:69] + 0.5
    np.testing.assert_array_equal(program(u)[4:68], expected.astype(np.float16))
