// RUN: twofour-opt %s --split-input-file --verify-diagnostics --nm-crush=tile=4 | filecheck %s

!temp = !stencil.temp<1 : i64, f64>

// The staircase of three points and four outputs: inputs that outputs share appear once.

// CHECK-LABEL: func.func @staircase(
// CHECK: "nm.patch_matmul"(%{{[a-z0-9]+}}) {
// CHECK-SAME: input_offsets = {{\[\[}}-1], [0], [1], [2], [3], [4]]
// CHECK-SAME: matrix = [array<f64: 1.000000e+00, 2.000000e+00, 3.000000e+00, 0.000000e+00, 0.000000e+00, 0.000000e+00>,
// CHECK-SAME: array<f64: 0.000000e+00, 1.000000e+00, 2.000000e+00, 3.000000e+00, 0.000000e+00, 0.000000e+00>,
// CHECK-SAME: array<f64: 0.000000e+00, 0.000000e+00, 1.000000e+00, 2.000000e+00, 3.000000e+00, 0.000000e+00>,
// CHECK-SAME: array<f64: 0.000000e+00, 0.000000e+00, 0.000000e+00, 1.000000e+00, 2.000000e+00, 3.000000e+00>]
// CHECK-SAME: offsets = {{\[\[}}-1], [0], [1]]
// CHECK-SAME: output_offsets = {{\[\[}}0], [1], [2], [3]]
// CHECK-SAME: tile = array<i64: 4>
// CHECK-SAME: weights = array<f64: 1.000000e+00, 2.000000e+00, 3.000000e+00>
func.func @staircase(%t: !temp) {
  %r = "nm.patch_matmul"(%t) {
    tile = array<i64: 1>, matrix = [array<f64: 1.0, 2.0, 3.0>],
    output_offsets = [[0]], input_offsets = [[-1], [0], [1]],
    offsets = [[-1], [0], [1]], weights = array<f64: 1.0, 2.0, 3.0>
  } : (!temp) -> !temp
  return
}

// -----

!temp = !stencil.temp<1 : i64, f64>

// Columns that no output uses are dropped, holes stay: points 5 apart share nothing in a tile of 4.

// CHECK-LABEL: func.func @hole(
// CHECK: input_offsets = {{\[\[}}0], [1], [2], [3], [5], [6], [7], [8]]
func.func @hole(%t: !temp) {
  %r = "nm.patch_matmul"(%t) {
    tile = array<i64: 1>, matrix = [array<f64: 1.0, 2.0>],
    output_offsets = [[0]], input_offsets = [[0], [5]],
    offsets = [[0], [5]], weights = array<f64: 1.0, 2.0>
  } : (!temp) -> !temp
  return
}

// -----

!temp = !stencil.temp<#stencil.bounds<[-1], [9]>, f32>
!inner = !stencil.temp<#stencil.bounds<[0], [8]>, f32>

// Addend, constant and types stay; an operator that has a tile already gets the new one.

// CHECK-LABEL: func.func @addend(
// CHECK-SAME: %[[T:[a-z0-9]+]]: !stencil.temp<#stencil.bounds<[-1], [9]>, f32>, %[[A:[a-z0-9]+]]:
// CHECK: "nm.patch_matmul"(%[[T]], %[[A]]) {constant = 5.000000e-01 : f64,
// CHECK-SAME: input_offsets = {{\[\[}}-1], [0], [1], [2], [3], [4]]
// CHECK-SAME: tile = array<i64: 4>
// CHECK-SAME: -> !stencil.temp<#stencil.bounds<[0], [8]>, f32>
func.func @addend(%t: !temp, %a: !inner) {
  %r = "nm.patch_matmul"(%t, %a) {
    constant = 0.5 : f64,
    tile = array<i64: 2>, matrix = [array<f64: 1.0, 0.0, 2.0, 0.0>, array<f64: 0.0, 1.0, 0.0, 2.0>],
    output_offsets = [[0], [1]], input_offsets = [[-1], [0], [1], [2]],
    offsets = [[-1], [1]], weights = array<f64: 1.0, 2.0>
  } : (!temp, !inner) -> !inner
  return
}

// -----

!temp = !stencil.temp<2 : i64, f64>

func.func @tile_of_another_rank(%t: !temp) {
  // expected-error @+1 {{'nm.patch_matmul' op expected a tile of 2 positive extents, got [4]}}
  %r = "nm.patch_matmul"(%t) {
    tile = array<i64: 1, 1>, matrix = [array<f64: 1.0>], output_offsets = [[0, 0]], input_offsets = [[0, 0]],
    offsets = [[0, 0]], weights = array<f64: 1.0>
  } : (!temp) -> !temp
  return
}
