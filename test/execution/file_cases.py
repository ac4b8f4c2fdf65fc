# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""What the tests of programs from files share: fields, their halos, and how results compare."""

import numpy as np

import reference

BOUNDARIES = [
    ("fixed", "fixed"),
    ("periodic", "periodic"),
    ("reflect", "zero"),
    ("fixed", "nearest"),
    ("constant(0.5)", "fixed"),
]

NONLINEAR = """
!field = !stencil.field<[-1,34]x[0,3]xf64>
!temp = !stencil.temp<?x?xf64>
func.func @limited(%u: !field, %out: !field) {
  %t = stencil.load %u : !field -> !temp
  %r = stencil.apply(%a = %t : !temp) -> (!temp) {
    %l = stencil.access %a[-1, 0] : !temp
    %c = stencil.access %a[0, 0] : !temp
    %h = stencil.access %a[1, 0] : !temp
    %zero = arith.constant 0.0 : f64
    %below = arith.subf %c, %l : f64
    %above = arith.subf %h, %c : f64
    %product = arith.mulf %below, %above : f64
    %same = arith.cmpf ogt, %product, %zero : f64
    %small = math.absf %below : f64
    %root = math.sqrt %small : f64
    %limited = arith.select %same, %root, %zero : f64
    %new = arith.addf %c, %limited : f64
    stencil.return %new : f64
  }
  stencil.store %r to %out(<[0, 0], [33, 3]>) : !temp to !field
  return
}
"""
# Types of `average`, the steps of which loops of a program are made.
LINE_TYPES = """
!field = !stencil.field<[-1,41]xf64>
!temp = !stencil.temp<?xf64>
"""


def average(name: str, source: str, target: str, left: str = "0.25", element: str = "f64") -> str:
    """A step target = left * source[x - 1] + 0.5 * source[x + 1]."""
    return f"""
    %t{name} = stencil.load {source} : !field -> !temp
    %r{name} = stencil.apply(%in = %t{name} : !temp) -> (!temp) {{
      %left = stencil.access %in[-1] : !temp
      %right = stencil.access %in[1] : !temp
      %weight = arith.constant {left} : {element}
      %half = arith.constant 0.5 : {element}
      %0 = arith.mulf %weight, %left : {element}
      %1 = arith.mulf %half, %right : {element}
      %2 = arith.addf %0, %1 : {element}
      stencil.return %2 : {element}
    }}
    stencil.store %r{name} to {target}(<[0], [40]>) : !temp to !field"""


def random_field(shape, seed=0, low=-1.0, high=1.0) -> np.ndarray:
    return np.random.default_rng(seed).uniform(low, high, shape)


def refilled(field: np.ndarray, halo: int, boundary) -> np.ndarray:
    """The field with a halo of one width refilled, axis by axis; `fixed` axes keep theirs."""
    for axis, mode in enumerate(boundary):
        if mode != "fixed":
            inside = field.take(range(halo, field.shape[axis] - halo), axis)
            field = reference.pad(inside, axis, mode, halo, halo)
    return field


def close(got, expected, tolerance=1e-13):
    assert got.shape == expected.shape
    np.testing.assert_allclose(got, expected, rtol=tolerance, atol=tolerance)
