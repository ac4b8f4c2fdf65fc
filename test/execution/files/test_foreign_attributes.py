# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""What files say for the sake of LLVM and its targets does not reach the code that is made."""

import numpy as np
import pytest

from twofour.cli.main import main

MEAN = """
!field = !stencil.field<[-1,16]xf64>
!temp = !stencil.temp<?xf64>
module MODULE {
func.func @mean(%u: !field ARGUMENT, %v: !field) ATTRIBUTES {
  %t = stencil.load %u : !field -> !temp
  %r = stencil.apply(%a = %t : !temp) -> (!temp) {
    %half = arith.constant 0.5 : f64
    %root = math.sqrt %half OP : f64
    %w = stencil.access %a[-1] : !temp
    %e = stencil.access %a[1] : !temp
    %sum = arith.addf %w, %e : f64
    %new = arith.mulf %half, %sum : f64
    %none = arith.mulf %sum, %sum : f64
    %is = arith.cmpf olt, %none, %root : f64
    %value = arith.select %is, %new, %new : f64
    stencil.return %value : f64
  }
  stencil.store %r to %v(<[0], [15]>) : !temp to !field
  return RETURN
}
}
"""

PLACES = ("MODULE", "ARGUMENT", "ATTRIBUTES", "OP", "RETURN")


def mean(place: str, attribute: str) -> str:
    """The program with an attribute at one of the places."""
    text = MEAN
    for other in PLACES:
        named = "attributes " if other in ("MODULE", "ATTRIBUTES") else ""
        text = text.replace(other, f"{named}{{{attribute}}}" if other == place else "")
    return text


# Each of them ended the process or failed, on one target at least.
@pytest.mark.parametrize("target", ["cpu", "sim:sm_90"])
@pytest.mark.parametrize(
    ("place", "attribute"),
    [
        ("ATTRIBUTES", 'passthrough = [["foo"]]'),
        ("ATTRIBUTES", 'passthrough = ["naked"]'),
        ("ATTRIBUTES", 'instrument_function_entry = "x"'),
        ("ATTRIBUTES", "some.thing = array<f16: 1.0>"),
        ("ARGUMENT", "llvm.byval = f64"),
        ("MODULE", "nvvm.x = 1"),
        ("MODULE", 'llvm.module_asm = ["garbage"]'),
        ("OP", "nvvm.x = 1"),
        ("RETURN", "nvvm.x = 1"),
    ],
)
def test_attributes(capfd, tmp_path, monkeypatch, target, place, attribute):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "x.mlir").write_text(mean(place, attribute))
    np.save("u.npy", np.arange(17.0) ** 2)
    assert main(["run", "x.mlir", "--input", "u.npy", "--output", "v.npy", "--target", target]) == 0
    assert capfd.readouterr().err == ""
    found = np.load("v.npy")
    assert found[1:-1].tolist() == [1.0 + i**2 for i in range(1, 16)]
