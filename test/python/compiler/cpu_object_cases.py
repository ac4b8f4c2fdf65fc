# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""A program that is compiled for C."""

HEAT = """
!field = !stencil.field<[-1,10]x[-1,33]xELEMENT>
!temp = !stencil.temp<?x?xELEMENT>
func.func @heat(%u : !field, %v : !field) {
  %t = stencil.load %u : !field -> !temp
  %r = stencil.apply(%a = %t : !temp) -> (!temp) {
    %quarter = arith.constant 0.3 : ELEMENT
    %n = stencil.access %a[-1, 0] : !temp
    %s = stencil.access %a[1, 1] : !temp
    %sum = arith.addf %n, %s : ELEMENT
    %new = arith.mulf %sum, %quarter : ELEMENT
    stencil.return %new : ELEMENT
  }
  stencil.store %r to %v(<[0, 0], [9, 32]>) : !temp to !field
  return
}
"""


def write_heat(path, element="f64"):
    path.write_text(HEAT.replace("ELEMENT", element))
