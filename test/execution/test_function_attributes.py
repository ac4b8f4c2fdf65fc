# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""What files say of functions for LLVM's sake does not reach the code that is made of them."""

import numpy as np
import pytest

from twofour.cli.main import main

MEAN = """
!field = !stencil.field<[-1,16]xf64>
!temp = !stencil.temp<?xf64>
func.func @mean(%u: !field ARGUMENT, %v: !field) ATTRIBUTES {
  %t = stencil.load %u : !field -> !temp
  %r = stencil.apply(%a = %t : !temp) -> (!temp) {
    %half = arith.constant 0.5 : f64
    %w = stencil.access %a[-1] : !temp
    %e = stencil.access %a[1] : !temp
    %sum = arith.addf %w, %e : f64
    %new = arith.mulf %half, %sum : f64
    stencil.return %new : f64
  }
  stencil.store %r to %v(<[0], [15]>) : !temp to !field
  return
}
"""


def mean(argument: str = "", attributes: str = "") -> str:
    text = MEAN.replace("ARGUMENT", argument and f"{{{argument}}}")
    return text.replace("ATTRIBUTES", attributes and f"attributes {{{attributes}}}")


# Each of them ended the process or failed, on one target at least.
@pytest.mark.parametrize("target", ["cpu", "sim:sm_90"])
@pytest.mark.parametrize(
    ("argument", "attributes"),
    [
        ("", 'passthrough = [["foo"]]'),
        ("", 'passthrough = ["naked"]'),
        ("", 'instrument_function_entry = "x"'),
        ("", "some.thing = array<f16: 1.0>"),
        ("llvm.byval = f64", ""),
    ],
)
def test_attributes_of_functions(capfd, tmp_path, monkeypatch, target, argument, attributes):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "x.mlir").write_text(mean(argument, attributes))
    np.save("u.npy", np.arange(17.0) ** 2)
    assert main(["run", "x.mlir", "--input", "u.npy", "--output", "v.npy", "--target", target]) == 0
    assert capfd.readouterr().err == ""
    found = np.load("v.npy")
    assert found[1:-1].tolist() == [1.0 + i**2 for i in range(1, 16)]
