// RUN: twofour-opt %s --split-input-file --verify-diagnostics --stencil-to-scatter --stencil-select-cover=option=parallel | filecheck %s --check-prefixes=CHECK,PARALLEL
// RUN: twofour-opt %s --split-input-file --verify-diagnostics --stencil-to-scatter --stencil-select-cover=option=orthogonal | filecheck %s --check-prefixes=CHECK,ORTHOGONAL
// RUN: twofour-opt %s --split-input-file --verify-diagnostics --stencil-to-scatter --stencil-select-cover=option=hybrid | filecheck %s --check-prefixes=CHECK,HYBRID
// RUN: twofour-opt %s --split-input-file --verify-diagnostics --stencil-to-scatter --stencil-select-cover=option=diagonal | filecheck %s --check-prefixes=CHECK,DIAGONAL
// RUN: twofour-opt %s --split-input-file --verify-diagnostics --stencil-to-scatter --stencil-select-cover | filecheck %s --check-prefixes=CHECK,AUTO

!temp = !stencil.temp<2 : i64, f64>

// A star (Table 1): one line a column, or one line an axis. The weight at the centre belongs to the
// row axis, and the other line keeps a zero in its place. At radius 1 parallel lines are cheapest.

// CHECK-LABEL: func.func @star(
// PARALLEL: lines = [{direction = [1, 0], start = [-1, 0], weights = array<f64: 5.000000e+00, 3.000000e+00, 1.000000e+00>},
// PARALLEL-SAME: {direction = [1, 0], start = [0, -1], weights = array<f64: 4.000000e+00>},
// PARALLEL-SAME: {direction = [1, 0], start = [0, 1], weights = array<f64: 2.000000e+00>}]
// PARALLEL-SAME: option = "parallel"
// ORTHOGONAL: lines = [{direction = [1, 0], start = [-1, 0], weights = array<f64: 5.000000e+00, 3.000000e+00, 1.000000e+00>},
// ORTHOGONAL-SAME: {direction = [0, 1], start = [0, -1], weights = array<f64: 4.000000e+00, 0.000000e+00, 2.000000e+00>}]
// ORTHOGONAL-SAME: option = "orthogonal"
// HYBRID: lines = [{direction = [1, 0], {{.*}}}, {direction = [0, 1], {{.*}}}]
// AUTO: option = "parallel"
func.func @star(%t: !temp) {
  %r = "stencil.weighted_sum"(%t) {
    offsets = [[-1, 0], [0, -1], [0, 0], [0, 1], [1, 0]], weights = array<f64: 1.0, 2.0, 3.0, 4.0, 5.0>
  } : (!temp) -> !temp
  return
}

// -----

!temp = !stencil.temp<2 : i64, f64>

// An X (equation 15): two diagonals, or three lines along the axes. A second visit of the output
// costs more than the third line.

// CHECK-LABEL: func.func @x_shape(
// DIAGONAL: lines = [{direction = [1, -1], start = [-1, 1], weights = array<f64: 4.000000e+00, 0.000000e+00, 2.000000e+00>},
// DIAGONAL-SAME: {direction = [1, 1], start = [-1, -1], weights = array<f64: 5.000000e+00, 3.000000e+00, 1.000000e+00>}]
// ORTHOGONAL: lines = [{direction = [1, 0], {{.*}}}, {direction = [1, 0], {{.*}}}, {direction = [1, 0], {{.*}}}]
// AUTO: option = "parallel"
func.func @x_shape(%t: !temp) {
  %r = "stencil.weighted_sum"(%t) {
    offsets = [[-1, -1], [-1, 1], [0, 0], [1, -1], [1, 1]], weights = array<f64: 1.0, 2.0, 3.0, 4.0, 5.0>
  } : (!temp) -> !temp
  return
}

// -----

!temp = !stencil.temp<3 : i64, f64>

// A star of seven points (Table 2): five parallel lines, three orthogonal ones, or the hybrid:
// lines along the row axis in every plane and one along the vector axis.

// CHECK-LABEL: func.func @star3d(
// PARALLEL-COUNT-5: direction = [0, 1, 0]
// PARALLEL-NOT: direction
// ORTHOGONAL: lines = [{direction = [0, 1, 0], start = [0, -1, 0], {{[^}]*}}}, {direction = [0, 0, 1], start = [0, 0, -1], {{[^}]*}}}, {direction = [1, 0, 0], start = [-1, 0, 0], {{[^}]*}}}]
// HYBRID: lines = [{direction = [0, 1, 0], start = [-1, 0, 0], {{[^}]*}}}, {direction = [0, 1, 0], start = [0, -1, 0], {{[^}]*}}}, {direction = [0, 1, 0], start = [1, 0, 0], {{[^}]*}}}, {direction = [0, 0, 1], start = [0, 0, -1], {{[^}]*}}}]
func.func @star3d(%t: !temp) {
  %r = "stencil.weighted_sum"(%t) {
    offsets = [[-1, 0, 0], [0, -1, 0], [0, 0, -1], [0, 0, 0], [0, 0, 1], [0, 1, 0], [1, 0, 0]],
    weights = array<f64: 1.0, 2.0, 3.0, 4.0, 5.0, 6.0, 7.0>
  } : (!temp) -> !temp
  return
}

// -----

// One-dimensional stencils have no lines to build tiles from (section 3.1).

func.func @one_dimension(%t: !stencil.temp<1 : i64, f64>) {
  // expected-error @+1 {{'stencil.scatter_sum' op expected a stencil of rank 2 or 3 for outer products, got rank 1}}
  %r = "stencil.weighted_sum"(%t) {offsets = [[0]], weights = array<f64: 1.0>} : (!stencil.temp<1 : i64, f64>) -> !stencil.temp<1 : i64, f64>
  return
}

// -----

func.func @far(%t: !stencil.temp<2 : i64, f64>) {
  // expected-error @+1 {{'stencil.scatter_sum' op expected offsets that span at most 256 points on each axis for outer products, got 1000001 on axis 0}}
  %r = "stencil.weighted_sum"(%t) {offsets = [[0, 0], [1000000, 0]], weights = array<f64: 1.0, 2.0>} : (!stencil.temp<2 : i64, f64>) -> !stencil.temp<2 : i64, f64>
  return
}

// -----

func.func @half(%t: !stencil.temp<2 : i64, f16>) {
  // expected-error @+1 {{'stencil.scatter_sum' op expected f64 or f32 elements for outer products, got f16}}
  %r = "stencil.weighted_sum"(%t) {offsets = [[0, 0]], weights = array<f64: 1.0>} : (!stencil.temp<2 : i64, f16>) -> !stencil.temp<2 : i64, f16>
  return
}
