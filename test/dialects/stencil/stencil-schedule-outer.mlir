// RUN: twofour-opt %s --split-input-file --verify-diagnostics --stencil-schedule-outer | filecheck %s

!temp = !stencil.temp<2 : i64, f64>

// A star by parallel lines, two tiles. Line 0, of three weights, is active in the rows -1 to n, the
// lines of one weight in the rows 0 to n-1: three segments. In each, a vector of one shift is
// followed by its products with all tiles, [line, i, u, plane, shift].

// CHECK-LABEL: func.func @parallel(
// CHECK: by = "load"
// CHECK-SAME: smallest_length = 1 : i64
// CHECK-SAME: rows = [{products = {{\[\[}}0, 0, 0, 0, 0], [0, 0, 1, 0, 0]], start = [-1, 0], stop = [0, 0]},
// CHECK-SAME: {products = {{\[\[}}2, 0, 0, 0, -1], [2, 0, 1, 0, -1], [0, 0, 0, 0, 0], [0, 0, 1, 0, 0], [1, 0, 0, 0, 1], [1, 0, 1, 0, 1]], start = [0, 0], stop = [0, 1]},
// CHECK-SAME: {products = {{\[\[}}0, 0, 0, 0, 0], [0, 0, 1, 0, 0]], start = [0, 1], stop = [1, 1]}]
// CHECK-SAME: transpositions = []
func.func @parallel(%t: !temp) {
  %r = "stencil.block_sum"(%t) {
    blocks = [{row_axis = 0, skew = 0, unroll = [1, 2], lines = [0, 1, 2]}],
    lines = [{direction = [1, 0], start = [-1, 0], weights = array<f64: 5.0, 3.0, 1.0>},
             {direction = [1, 0], start = [0, -1], weights = array<f64: 4.0>},
             {direction = [1, 0], start = [0, 1], weights = array<f64: 2.0>}],
    option = "parallel",
    offsets = [[-1, 0], [0, -1], [0, 0], [0, 1], [1, 0]], weights = array<f64: 1.0, 2.0, 3.0, 4.0, 5.0>
  } : (!temp) -> !temp
  return
}

// -----

!temp = !stencil.temp<2 : i64, f64>

// A line along the vector axis: the columns -1 to n come from transposed matrices. In phase 1, from
// step n on, each tile reads the matrix of its neighbour, of which two columns are needed.

// CHECK-LABEL: func.func @transposition(
// CHECK: smallest_length = 2 : i64
// CHECK-SAME: rows = []
// CHECK-SAME: transpositions = [{column = -1 : i64, plane = 0 : i64, reach = 2 : i64, row = 3 : i64, segments = [
// CHECK-SAME: {phase = 0 : i64, products = {{\[\[}}0, 0, 0], [0, 0, 1]], start = [0, 0], stop = [0, 1]},
// CHECK-SAME: {phase = 1 : i64, products = {{\[\[}}0, 0, 0], [0, 0, 1]], start = [0, 1], stop = [2, 1]}]}]
func.func @transposition(%t: !temp) {
  %r = "stencil.block_sum"(%t) {
    blocks = [{row_axis = 0, skew = 0, unroll = [1, 2], lines = [0]}],
    lines = [{direction = [0, 1], start = [-3, -1], weights = array<f64: 4.0, 0.0, 2.0>}],
    option = "orthogonal", offsets = [[3, -1], [3, 1]], weights = array<f64: 2.0, 4.0>
  } : (!temp) -> !temp
  return
}

// -----

!temp = !stencil.temp<3 : i64, f64>

// Two planes of tiles: the vector of plane 0 goes to both, each time by another line.

// CHECK-LABEL: func.func @planes(
// CHECK: products = {{\[\[}}1, 0, 0, -1, 0], [0, 0, 0, 0, 0], [1, 1, 0, 0, 0], [0, 1, 0, 1, 0]]
func.func @planes(%t: !temp) {
  %r = "stencil.block_sum"(%t) {
    blocks = [{row_axis = 1, skew = 0, unroll = [2, 1], lines = [0, 1]}],
    lines = [{direction = [0, 1, 0], start = [0, 0, 0], weights = array<f64: 2.0>},
             {direction = [0, 1, 0], start = [1, 0, 0], weights = array<f64: 1.0>}],
    option = "parallel", offsets = [[-1, 0, 0], [0, 0, 0]], weights = array<f64: 1.0, 2.0>
  } : (!temp) -> !temp
  return
}

// -----

!temp = !stencil.temp<2 : i64, f64>

// Lines 20 rows apart: the later one gets zeros in front, so that vectors of 8 elements can run it.

// CHECK-LABEL: func.func @far(
// CHECK: lines = [{direction = [1, 0], start = [-10, 0], weights = array<f64: 1.000000e+00>},
// CHECK-SAME: start = [-2, 1], weights = array<f64: 0.000000e+00,
// CHECK-SAME: smallest_length = 8 : i64
func.func @far(%t: !temp) {
  %r = "stencil.block_sum"(%t) {
    blocks = [{row_axis = 0, skew = 0, unroll = [1, 1], lines = [0, 1]}],
    lines = [{direction = [1, 0], start = [-10, 0], weights = array<f64: 1.0>},
             {direction = [1, 0], start = [10, 1], weights = array<f64: 2.0>}],
    option = "parallel", offsets = [[10, 0], [-10, -1]], weights = array<f64: 1.0, 2.0>
  } : (!temp) -> !temp
  return
}
