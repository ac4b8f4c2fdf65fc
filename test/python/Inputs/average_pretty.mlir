// The mean of both neighbours, on 64 points with a halo of one cell on each side.
func.func @average(%in : !stencil.field<[-1,65]xf64>, %out : !stencil.field<[-1,65]xf64>) {
  %t = stencil.load %in : !stencil.field<[-1,65]xf64> -> !stencil.temp<?xf64>
  %r = stencil.apply(%u = %t : !stencil.temp<?xf64>) -> (!stencil.temp<?xf64>) {
    %a = stencil.access %u[-1] : !stencil.temp<?xf64>
    %b = stencil.access %u[1] : !stencil.temp<?xf64>
    %s = arith.addf %a, %b : f64
    %h = arith.constant 5.000000e-01 : f64
    %m = arith.mulf %s, %h : f64
    stencil.return %m : f64
  }
  stencil.store %r to %out(<[0], [64]>) : !stencil.temp<?xf64> to !stencil.field<[-1,65]xf64>
  return
}
