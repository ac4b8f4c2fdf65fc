// Heat in one dimension on 64 points, explicit Euler with dt/h^2 = 1/4.
func.func @heat1d(%u : !stencil.field<[-1,65]xf64>, %v : !stencil.field<[-1,65]xf64>) {
  %t = stencil.load %u : !stencil.field<[-1,65]xf64> -> !stencil.temp<?xf64>
  %r = stencil.apply(%a = %t : !stencil.temp<?xf64>) -> (!stencil.temp<?xf64>) {
    %quarter = arith.constant 2.500000e-01 : f64
    %half = arith.constant 5.000000e-01 : f64
    %w = stencil.access %a[-1] : !stencil.temp<?xf64>
    %c = stencil.access %a[0] : !stencil.temp<?xf64>
    %e = stencil.access %a[1] : !stencil.temp<?xf64>
    %sum = arith.addf %w, %e : f64
    %around = arith.mulf %sum, %quarter : f64
    %own = arith.mulf %c, %half : f64
    %new = arith.addf %own, %around : f64
    stencil.return %new : f64
  }
  stencil.store %r to %v(<[0], [64]>) : !stencil.temp<?xf64> to !stencil.field<[-1,65]xf64>
  return
}
