// One row of three weights along the vector axis, as parallel lines over two tiles.
!temp = !stencil.temp<2 : i64, f64>
func.func @three_shifts(%t: !temp) {
  %r = "stencil.outer_sum"(%t) {
    by = "load", smallest_length = 1, option = "parallel",
    lines = [{direction = [1, 0], start = [0, -1], weights = array<f64: 3.0>},
             {direction = [1, 0], start = [0, 0], weights = array<f64: 2.0>},
             {direction = [1, 0], start = [0, 1], weights = array<f64: 1.0>}],
    sweeps = [{row_axis = 0, skew = 0, unroll = [1, 2], lines = [0, 1, 2], transpositions = [],
      rows = [{start = [0, 0], stop = [0, 1], products = [
        [2, 0, 0, 0, -1], [2, 0, 1, 0, -1], [1, 0, 0, 0, 0], [1, 0, 1, 0, 0], [0, 0, 0, 0, 1], [0, 0, 1, 0, 1]]}]}],
    offsets = [[0, -1], [0, 0], [0, 1]], weights = array<f64: 1.0, 2.0, 3.0>
  } : (!temp) -> !temp
  return
}
