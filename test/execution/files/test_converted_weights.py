# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Programs that run with another element type than they are written in: their weights."""

from fractions import Fraction

import numpy as np
import pytest

# Thirds, a product of constants, and a sum of what the apply before computes.
TEXT = """
!field = !stencil.field<[-2,42]xELEMENT>
!temp = !stencil.temp<?xELEMENT>
func.func @thirds(%u : !field, %v : !field) {
  %t = stencil.load %u : !field -> !temp
  %m = stencil.apply(%a = %t : !temp) -> (!temp) {
    %three = arith.constant 3.0 : ELEMENT
    %x = stencil.access %a[-1] : !temp
    %y = stencil.access %a[0] : !temp
    %s = arith.addf %x, %y : ELEMENT
    %q = arith.divf %s, %three : ELEMENT
    stencil.return %q : ELEMENT
  }
  %r = stencil.apply(%a = %m : !temp) -> (!temp) {
    %c = arith.constant 0.4375 : ELEMENT
    %d = arith.constant 1.0625 : ELEMENT
    %e = arith.constant 7.0 : ELEMENT
    %x = stencil.access %a[0] : !temp
    %y = stencil.access %a[1] : !temp
    %cd = arith.mulf %c, %d : ELEMENT
    %w = arith.divf %cd, %e : ELEMENT
    %p = arith.mulf %w, %x : ELEMENT
    %s = arith.addf %p, %y : ELEMENT
    stencil.return %s : ELEMENT
  }
  stencil.store %r to %v(<[0], [40]>) : !temp to !field
  return
}
"""
LAST = Fraction(7, 16) * Fraction(17, 16) / 7
# Of an impulse, by the point before it and those behind.
SEEN = [float(weight) for weight in (Fraction(1, 3), (LAST + 1) / 3, LAST / 3)]


@pytest.mark.parametrize("written", ["f32", "f16", "bf16"])
def test_weights_of_a_wider_type_are_rounded_to_that(compiled, written):
    impulse = np.zeros(44)
    impulse[20] = 1
    results = [
        compiled(TEXT.replace("ELEMENT", element), dtype="f64")(impulse)
        for element in (written, "f64")
    ]
    np.testing.assert_array_equal(*results)
    np.testing.assert_allclose(results[0][19:22], SEEN, rtol=1e-15)


def test_a_program_of_several_types_is_converted_when_it_has_one(compiled):
    """Its weights are rounded to the type that it is written in before."""
    text = TEXT.replace("ELEMENT", "f32").replace(
        "    %w = arith.divf %cd, %e : f32\n",
        "    %wide = arith.extf %cd : f32 to f64\n"
        "    %seven = arith.constant 7.0 : f64\n"
        "    %narrow = arith.divf %wide, %seven : f64\n"
        "    %w = arith.truncf %narrow : f64 to f32\n",
    )
    impulse = np.zeros(44)
    impulse[20] = 1
    got = compiled(text, dtype="f64")(impulse)[19:22]
    np.testing.assert_allclose(got, SEEN, rtol=1e-6)
