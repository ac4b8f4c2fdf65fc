// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Fields of lower rank, read by their axes: a profile over z, a map over (x, y), and a scalar.
func.func @scale(%u: !stencil.field<[-1,9]x[0,6]x[0,5]xf64>, %z: !stencil.field<[-1,6]xf64>, %xy: !stencil.field<[0,8]x[0,7]xf64>, %k: f64, %out: !stencil.field<[0,8]x[0,6]x[0,5]xf64>) {
  %ut = stencil.load %u : !stencil.field<[-1,9]x[0,6]x[0,5]xf64> -> !stencil.temp<[-1,9]x[0,6]x[0,5]xf64>
  %zt = stencil.load %z : !stencil.field<[-1,6]xf64> -> !stencil.temp<[-1,6]xf64>
  %xyt = stencil.load %xy : !stencil.field<[0,8]x[0,7]xf64> -> !stencil.temp<[0,8]x[0,7]xf64>
  %r = stencil.apply(%a = %ut : !stencil.temp<[-1,9]x[0,6]x[0,5]xf64>, %p = %zt : !stencil.temp<[-1,6]xf64>, %m = %xyt : !stencil.temp<[0,8]x[0,7]xf64>, %f = %k : f64) -> (!stencil.temp<[0,8]x[0,6]x[0,5]xf64>) {
    %0 = stencil.access %a[1, 0, 0] : !stencil.temp<[-1,9]x[0,6]x[0,5]xf64>
    %1 = stencil.access %a[-1, 0, 0] : !stencil.temp<[-1,9]x[0,6]x[0,5]xf64>
    %2 = stencil.access %p[_, _, 1] : !stencil.temp<[-1,6]xf64>
    %3 = stencil.access %m[0, 1, _] : !stencil.temp<[0,8]x[0,7]xf64>
    %4 = arith.subf %0, %1 : f64
    %5 = arith.mulf %4, %2 : f64
    %6 = arith.divf %5, %3 : f64
    %7 = arith.mulf %f, %6 : f64
    stencil.return %7 : f64
  }
  stencil.store %r to %out(<[0, 0, 0], [8, 6, 5]>) : !stencil.temp<[0,8]x[0,6]x[0,5]xf64> to !stencil.field<[0,8]x[0,6]x[0,5]xf64>
  func.return
}
