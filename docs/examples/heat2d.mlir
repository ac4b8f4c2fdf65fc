// The heat equation u_t = laplace(u) on 256 x 256 points, explicit Euler with dt/h^2 = 1/8.
// The halo is one cell wide on each side; --boundary says how it is refreshed (fixed: never).
func.func @heat2d(%u : !stencil.field<[-1,257]x[-1,257]xf64>, %v : !stencil.field<[-1,257]x[-1,257]xf64>) {
  %t = stencil.load %u : !stencil.field<[-1,257]x[-1,257]xf64> -> !stencil.temp<?x?xf64>
  %r = stencil.apply(%a = %t : !stencil.temp<?x?xf64>) -> (!stencil.temp<?x?xf64>) {
    %eighth = arith.constant 1.250000e-01 : f64
    %half = arith.constant 5.000000e-01 : f64
    %n = stencil.access %a[-1, 0] : !stencil.temp<?x?xf64>
    %s = stencil.access %a[1, 0] : !stencil.temp<?x?xf64>
    %w = stencil.access %a[0, -1] : !stencil.temp<?x?xf64>
    %e = stencil.access %a[0, 1] : !stencil.temp<?x?xf64>
    %c = stencil.access %a[0, 0] : !stencil.temp<?x?xf64>
    %ns = arith.addf %n, %s : f64
    %we = arith.addf %w, %e : f64
    %sum = arith.addf %ns, %we : f64
    %around = arith.mulf %sum, %eighth : f64
    %own = arith.mulf %c, %half : f64
    %new = arith.addf %own, %around : f64
    stencil.return %new : f64
  }
  stencil.store %r to %v(<[0, 0], [256, 256]>) : !stencil.temp<?x?xf64> to !stencil.field<[-1,257]x[-1,257]xf64>
  return
}
