// Three parallel lines of a star in f64, so that 8 tiles fit.
!temp = !stencil.temp<2 : i64, f64>
func.func @lines(%t: !temp) {
  %r = "stencil.line_sum"(%t) {
    lines = [{direction = [1, 0], start = [-1, 0], weights = array<f64: 5.0, 3.0, 1.0>},
             {direction = [1, 0], start = [0, -1], weights = array<f64: 4.0>},
             {direction = [1, 0], start = [0, 1], weights = array<f64: 2.0>}],
    option = "parallel",
    offsets = [[-1, 0], [0, -1], [0, 0], [0, 1], [1, 0]], weights = array<f64: 1.0, 2.0, 3.0, 4.0, 5.0>
  } : (!temp) -> !temp
  return
}
