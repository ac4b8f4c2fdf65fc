// RUN: twofour-opt %s --split-input-file --verify-diagnostics --stencil-to-scatter | filecheck %s

!temp = !stencil.temp<2 : i64, f64>

// Every offset is negated and keeps its weight; the order is that of the scatter offsets. The
// stencil itself, the constant and the addend stay.

// CHECK-LABEL: func.func @asymmetric(
// CHECK-SAME: %[[T:.*]]: !stencil.temp<2 : i64, f64>, %[[A:.*]]: !stencil.temp
// CHECK-NEXT: %{{.*}} = "stencil.scatter_sum"(%[[T]], %[[A]]) {
// CHECK-SAME: constant = 7.000000e+00 : f64
// CHECK-SAME: offsets = {{\[\[}}0, -1], [1, 0], [1, 2]]
// CHECK-SAME: scatter_offsets = {{\[\[}}-1, -2], [-1, 0], [0, 1]]
// CHECK-SAME: scatter_weights = array<f64: 3.000000e+00, 2.000000e+00, 1.000000e+00>
// CHECK-SAME: weights = array<f64: 1.000000e+00, 2.000000e+00, 3.000000e+00>
// CHECK-SAME: : (!stencil.temp<2 : i64, f64>, !stencil.temp<2 : i64, f64>) -> !stencil.temp<2 : i64, f64>
func.func @asymmetric(%t: !temp, %a: !temp) {
  %r = "stencil.weighted_sum"(%t, %a) {
    constant = 7.0 : f64, offsets = [[0, -1], [1, 0], [1, 2]], weights = array<f64: 1.0, 2.0, 3.0>
  } : (!temp, !temp) -> !temp
  return
}

// -----

!temp = !stencil.temp<1 : i64, f32>

// Weights of zero go; any rank has a scatter form.

// CHECK-LABEL: func.func @zeros(
// CHECK: scatter_offsets = {{\[\[}}-4]]
// CHECK-SAME: scatter_weights = array<f64: 5.000000e-01>
func.func @zeros(%t: !temp) {
  %r = "stencil.weighted_sum"(%t) {offsets = [[-1], [4]], weights = array<f64: 0.0, 0.5>} : (!temp) -> !temp
  return
}

// -----

// What is no weighted sum is left alone.

// CHECK-LABEL: func.func @other(
// CHECK-NEXT: return
func.func @other(%t: !stencil.temp<1 : i64, f32>) {
  return
}
