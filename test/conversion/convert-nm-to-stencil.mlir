// RUN: twofour-opt %s --split-input-file --convert-nm-to-stencil | filecheck %s
// RUN: twofour-opt %s --split-input-file --convert-nm-to-stencil --convert-stencil-to-nm --nm-crush --nm-permute-2to4 --nm-compress --convert-nm-to-stencil | filecheck %s

!temp = !stencil.temp<2 : i64, f64>

// CHECK-LABEL: func.func @dense(
// CHECK-SAME: %[[T:[a-z0-9]+]]: !stencil.temp<2 : i64, f64>
// CHECK-NEXT: %[[R:.*]] = "stencil.weighted_sum"(%[[T]]) {offsets = {{\[\[}}0, 0], [1, -1]], weights = array<f64: 1.000000e+00, 4.000000e+00>}
// CHECK-NEXT: return %[[R]]
func.func @dense(%t: !temp) -> !temp {
  %r = "nm.patch_matmul"(%t) {
    tile = array<i64: 1, 2>,
    matrix = [array<f64: 4.0, 0.0, 1.0, 0.0>, array<f64: 0.0, 4.0, 0.0, 1.0>],
    output_offsets = [[0, 0], [0, 1]],
    input_offsets = [[1, -1], [1, 0], [0, 0], [0, 1]],
    offsets = [[0, 0], [1, -1]],
    weights = array<f64: 1.0, 4.0>
  } : (!temp) -> !temp
  return %r : !temp
}

// -----

!temp = !stencil.temp<#stencil.bounds<[-3], [67]>, bf16>
!inner = !stencil.temp<#stencil.bounds<[0], [64]>, bf16>

// A chain keeps its addends and its constant.

// CHECK-LABEL: func.func @chain(
// CHECK-SAME: %[[T:[a-z0-9]+]]: !stencil.temp<#stencil.bounds<[-3], [67]>, bf16>, %[[S:[a-z0-9]+]]:
// CHECK-NEXT: %[[A:.*]] = "stencil.weighted_sum"(%[[T]]) {constant = 3.000000e+00 : f64, offsets = {{\[\[}}1]], weights = array<f64: 1.000000e+00>}
// CHECK-NEXT: %[[B:.*]] = "stencil.weighted_sum"(%[[S]], %[[A]]) {offsets = {{\[\[}}-3], [3]], weights = array<f64: 5.000000e-01, 5.000000e-01>}
// CHECK-NEXT: return %[[B]]
func.func @chain(%t: !temp, %s: !temp) -> !inner {
  %a = "nm.patch_matmul"(%t) {
    constant = 3.0 : f64,
    tile = array<i64: 1>, matrix = [array<f64: 1.0>], output_offsets = [[0]],
    input_offsets = [[1]], offsets = [[1]], weights = array<f64: 1.0>
  } : (!temp) -> !inner
  %b = "nm.sparse_patch_matmul"(%s, %a) {
    tile = array<i64: 1>,
    values = [array<f64: 0.5, 0.5, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0>],
    metadata = [array<i16: 17476>],
    output_offsets = [[0]],
    input_offsets = [[-3], [3], [3], [3], [3], [3], [3], [3], [3], [3], [3], [3], [3], [3], [3], [3]],
    offsets = [[-3], [3]],
    weights = array<f64: 0.5, 0.5>
  } : (!temp, !inner) -> !inner
  return %b : !inner
}
