func.func @sum(%t: !stencil.temp<1 : i64, f64>) {
  %r = "stencil.weighted_sum"(%t) {offsets = [[-1], [1]], weights = array<f64: 1.0, 2.0>} : (!stencil.temp<1 : i64, f64>) -> !stencil.temp<1 : i64, f64>
  return
}
