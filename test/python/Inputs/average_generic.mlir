// The mean of both neighbours, on 64 points with a halo of one cell on each side.
func.func @average(%in: !stencil.field<#stencil.bounds<[-1], [65]>, f64>, %out: !stencil.field<#stencil.bounds<[-1], [65]>, f64>) {
  %t = "stencil.load"(%in) : (!stencil.field<#stencil.bounds<[-1], [65]>, f64>) -> !stencil.temp<1 : i64, f64>
  %r = "stencil.apply"() ({
    %a = "stencil.access"(%t) {offset = array<i64: -1>} : (!stencil.temp<1 : i64, f64>) -> f64
    %b = "stencil.access"(%t) {offset = array<i64: 1>} : (!stencil.temp<1 : i64, f64>) -> f64
    %s = arith.addf %a, %b : f64
    %h = arith.constant 0.5 : f64
    %m = arith.mulf %s, %h : f64
    "stencil.return"(%m) : (f64) -> ()
  }) : () -> !stencil.temp<1 : i64, f64>
  "stencil.store"(%r, %out) {bounds = #stencil.bounds<[0], [64]>} : (!stencil.temp<1 : i64, f64>, !stencil.field<#stencil.bounds<[-1], [65]>, f64>) -> ()
  return
}
