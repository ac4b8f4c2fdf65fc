// RUN: twofour-opt %s --split-input-file --verify-diagnostics --convert-stencil-to-nm | filecheck %s

!temp = !stencil.temp<2 : i64, f64>

// Stencil flattening: one output, one row, a column for each point.

// CHECK-LABEL: func.func @flatten(
// CHECK-SAME: %[[T:[a-z0-9]+]]: !stencil.temp<2 : i64, f64>
// CHECK-NEXT: "nm.patch_matmul"(%[[T]]) {
// CHECK-SAME: input_offsets = {{\[\[}}-1, 0], [0, 2], [1, -1]]
// CHECK-SAME: matrix = [array<f64: 1.000000e+00, 2.000000e+00, 4.000000e+00>]
// CHECK-SAME: offsets = {{\[\[}}-1, 0], [0, 2], [1, -1]]
// CHECK-SAME: output_offsets = {{\[\[}}0, 0]]
// CHECK-SAME: tile = array<i64: 1, 1>
// CHECK-SAME: weights = array<f64: 1.000000e+00, 2.000000e+00, 4.000000e+00>
// CHECK-NOT: stencil.weighted_sum
func.func @flatten(%t: !temp) {
  %r = "stencil.weighted_sum"(%t) {offsets = [[-1, 0], [0, 2], [1, -1]], weights = array<f64: 1.0, 2.0, 4.0>} : (!temp) -> !temp
  return
}

// -----

!temp = !stencil.temp<#stencil.bounds<[-3], [67]>, bf16>
!inner = !stencil.temp<#stencil.bounds<[0], [64]>, bf16>

// A chain keeps its addends and its constant.

// CHECK-LABEL: func.func @chain(
// CHECK-SAME: %[[T:[a-z0-9]+]]: !stencil.temp<#stencil.bounds<[-3], [67]>, bf16>, %[[S:[a-z0-9]+]]:
// CHECK-NEXT: %[[A:.*]] = "nm.patch_matmul"(%[[T]]) {constant = 3.000000e+00 : f64,
// CHECK-NEXT: %[[B:.*]] = "nm.patch_matmul"(%[[S]], %[[A]]) {input_offsets = {{\[\[}}-3], [3]]
// CHECK-NEXT: return %[[B]]
func.func @chain(%t: !temp, %s: !temp) -> !inner {
  %a = "stencil.weighted_sum"(%t) {constant = 3.0 : f64, offsets = [[1]], weights = array<f64: 1.0>} : (!temp) -> !inner
  %b = "stencil.weighted_sum"(%s, %a) {offsets = [[-3], [3]], weights = array<f64: 0.5, 0.5>} : (!temp, !inner) -> !inner
  return %b : !inner
}

// -----

!temp = !stencil.temp<1 : i64, f64>

// What is no sum is left alone.

// CHECK-LABEL: func.func @left(
// CHECK: "stencil.apply"
// CHECK: "stencil.access"
// CHECK-NOT: nm.
func.func @left(%t: !temp) {
  %r = "stencil.apply"() ({
    %a = "stencil.access"(%t) {offset = array<i64: 0>} : (!temp) -> f64
    %0 = arith.mulf %a, %a : f64
    "stencil.return"(%0) : (f64) -> ()
  }) : () -> !temp
  return
}
