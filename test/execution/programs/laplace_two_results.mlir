// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Two results of one apply, one stored in part of its field, and unknown bounds of temps.
func.func @laplace(%u: !stencil.field<[-2,34]x[-2,34]xf64>, %l: !stencil.field<[-2,34]x[-2,34]xf64>, %s: !stencil.field<[0,32]x[0,32]xf64>) {
  %ut = stencil.load %u : !stencil.field<[-2,34]x[-2,34]xf64> -> !stencil.temp<?x?xf64>
  %lt, %st = stencil.apply(%a = %ut : !stencil.temp<?x?xf64>) -> (!stencil.temp<?x?xf64>, !stencil.temp<?x?xf64>) {
    %c = stencil.access %a[0, 0] : !stencil.temp<?x?xf64>
    %n = stencil.access %a[-1, 0] : !stencil.temp<?x?xf64>
    %s0 = stencil.access %a[1, 0] : !stencil.temp<?x?xf64>
    %w = stencil.access %a[0, -1] : !stencil.temp<?x?xf64>
    %e = stencil.access %a[0, 1] : !stencil.temp<?x?xf64>
    %four = arith.constant 4.0 : f64
    %0 = arith.addf %n, %s0 : f64
    %1 = arith.addf %w, %e : f64
    %sum = arith.addf %0, %1 : f64
    %center = arith.mulf %four, %c : f64
    %lap = arith.subf %sum, %center : f64
    stencil.return %lap, %sum : f64, f64
  }
  stencil.store %lt to %l(<[0, 0], [32, 32]>) : !stencil.temp<?x?xf64> to !stencil.field<[-2,34]x[-2,34]xf64>
  stencil.store %st to %s(<[4, 0], [12, 32]>) : !stencil.temp<?x?xf64> to !stencil.field<[0,32]x[0,32]xf64>
  func.return
}
