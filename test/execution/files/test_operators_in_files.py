# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Patch operators in files are compiled for every target, whatever layout they have."""

from pathlib import Path

import numpy as np
import pytest

import twofour
from twofour.errors import TwofourError
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
    assert "nm." in Path(path).read_text()
    u = np.random.default_rng(3).integers(-8, 8, 72).astype(np.float16)
    program = twofour.compile(path, target=target, schedule=schedule)
    assert schedule in ("auto", program.schedule)
    expected = 1.0 * u[3:67] + 2.0 * u[4:68] + 3.0 * u[5:69] + 0.5
    np.testing.assert_array_equal(program(u)[4:68], expected.astype(np.float16))


def test_operators_are_fused_and_explained(tmp_path):
    (tmp_path / "plain.mlir").write_text(PROGRAM)
    path = str(tmp_path / "operator.mlir")
    assert main([str(tmp_path / "plain.mlir"), *SPARSE, "-o", path]) == 0
    u = np.random.default_rng(3).integers(-2, 2, 72).astype(np.float16)
    steps = [
        twofour.compile(path, schedule="sparse", fuse_steps=count)(u, steps=4) for count in (1, 2)
    ]
    np.testing.assert_array_equal(*steps)
    # What another schedule says of this one is what this one does.
    said = [
        twofour.compile(path, schedule=schedule).explain()["tile"]
        for schedule in ("direct", "sparse")
    ]
    assert said == [[4], [4]]


def test_errors_name_the_operator(tmp_path, capfd):
    (tmp_path / "plain.mlir").write_text(PROGRAM.replace("[[-1], [0], [1]]", "[[-1], [0], [9]]"))
    path = str(tmp_path / "operator.mlir")
    assert main([str(tmp_path / "plain.mlir"), *FLAT, "-o", path]) == 0
    with pytest.raises(TwofourError, match="'nm.patch_matmul' op expected the field's bounds"):
        twofour.compile(path)


def test_chunks_of_columns_that_name_an_input_again(tmp_path, capfd):
    """Every output has columns of its own; no order of these is as short as the chunks."""
    outputs, weights = range(16), (1.0, 2.0, 3.0)
    matrix = [[w if row == own else 0.0 for own in outputs for w in weights] for row in outputs]
    rows = ", ".join(f"array<f64: {', '.join(map(str, row))}>" for row in matrix)
    (tmp_path / "own.mlir").write_text(
        f"""
!temp = !stencil.temp<1 : i64, f64>
func.func @f(%t: !temp) -> !temp {{
  %r = "nm.patch_matmul"(%t) {{
    tile = array<i64: 16>, matrix = [{rows}], output_offsets = {[[row] for row in outputs]},
    input_offsets = {[[row + point] for row in outputs for point in (-1, 0, 1)]},
    offsets = [[-1], [0], [1]], weights = array<f64: 1.0, 2.0, 3.0>
  }} : (!temp) -> !temp
  return %r : !temp
}}
"""
    )
    assert main([str(tmp_path / "own.mlir"), "--nm-permute-2to4=strategy=chunks"]) == 0
    assert "k_lower_bound = 32 : i64, padding_columns = 14" in capfd.readouterr().out
