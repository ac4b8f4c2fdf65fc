// RUN: twofour-opt %s | filecheck %s
// RUN: twofour-opt %s | twofour-opt | filecheck %s
// RUN: twofour-opt %s --mlir-print-op-generic | twofour-opt | filecheck %s

!temp = !stencil.temp<1 : i64, f64>

// The stencil 1, 2, 3 at offsets -1, 0, 1, by two outputs at a time.

// CHECK-LABEL: func.func @dense(
// CHECK-SAME: %[[T:[a-z0-9]+]]: !stencil.temp<1 : i64, f64>
func.func @dense(%t: !temp) {
  // CHECK-NEXT: "nm.patch_matmul"(%[[T]]) {
  // CHECK-SAME: input_offsets = {{\[\[}}-1], [0], [1], [2]]
  // CHECK-SAME: matrix = [array<f64: 1.000000e+00, 2.000000e+00, 3.000000e+00, 0.000000e+00>, array<f64: 0.000000e+00, 1.000000e+00, 2.000000e+00, 3.000000e+00>]
  // CHECK-SAME: offsets = {{\[\[}}-1], [0], [1]]
  // CHECK-SAME: output_offsets = {{\[\[}}0], [1]]
  // CHECK-SAME: tile = array<i64: 2>
  // CHECK-SAME: weights = array<f64: 1.000000e+00, 2.000000e+00, 3.000000e+00>
  // CHECK-SAME: (!stencil.temp<1 : i64, f64>) -> !stencil.temp<1 : i64, f64>
  %r = "nm.patch_matmul"(%t) {
    tile = array<i64: 2>,
    matrix = [array<f64: 1.0, 2.0, 3.0, 0.0>, array<f64: 0.0, 1.0, 2.0, 3.0>],
    output_offsets = [[0], [1]],
    input_offsets = [[-1], [0], [1], [2]],
    offsets = [[-1], [0], [1]],
    weights = array<f64: 1.0, 2.0, 3.0>
  } : (!temp) -> !temp
  return
}

// Rows and columns may stand in any order; two columns may read one input, for rows of their own,
// and zero columns any; points of weight zero do not count.

// CHECK-LABEL: func.func @any_order(
// CHECK: "nm.patch_matmul"
// CHECK-SAME: input_offsets = {{\[\[}}2], [0], [1], [-1], [0], [77]]
// CHECK-SAME: output_offsets = {{\[\[}}1], [0]]
func.func @any_order(%t: !temp) {
  %r = "nm.patch_matmul"(%t) {
    tile = array<i64: 2>,
    matrix = [array<f64: 3.0, 1.0, 2.0, 0.0, 0.0, 0.0>,
              array<f64: 0.0, 0.0, 3.0, 1.0, 2.0, 0.0>],
    output_offsets = [[1], [0]],
    input_offsets = [[2], [0], [1], [-1], [0], [77]],
    offsets = [[-1], [0], [1], [2]],
    weights = array<f64: 1.0, 2.0, 3.0, 0.0>
  } : (!temp) -> !temp
  return
}

// An addend, a constant and bounds, in two dimensions.

// CHECK-LABEL: func.func @addend(
// CHECK-SAME: %[[T:[a-z0-9]+]]: !stencil.temp<#stencil.bounds<[0, -1], [8, 9]>, f32>, %[[A:[a-z0-9]+]]:
// CHECK-NEXT: "nm.patch_matmul"(%[[T]], %[[A]]) {constant = 5.000000e-01 : f64,
func.func @addend(
    %t: !stencil.temp<#stencil.bounds<[0, -1], [8, 9]>, f32>,
    %a: !stencil.temp<#stencil.bounds<[0, 0], [8, 8]>, f32>) {
  %r = "nm.patch_matmul"(%t, %a) {
    constant = 0.5 : f64,
    tile = array<i64: 2, 1>,
    matrix = [array<f64: 1.0, 2.0, 0.0, 0.0>, array<f64: 0.0, 0.0, 1.0, 2.0>],
    output_offsets = [[0, 0], [1, 0]],
    input_offsets = [[0, -1], [0, 1], [1, -1], [1, 1]],
    offsets = [[0, -1], [0, 1]],
    weights = array<f64: 1.0, 2.0>
  } : (!stencil.temp<#stencil.bounds<[0, -1], [8, 9]>, f32>, !stencil.temp<#stencil.bounds<[0, 0], [8, 8]>, f32>)
      -> !stencil.temp<#stencil.bounds<[0, 0], [8, 8]>, f32>
  return
}

// Two values of every four columns; metadata words are printed as signed integers.

// CHECK-LABEL: func.func @sparse(
// CHECK-SAME: %[[T:[a-z0-9]+]]: !stencil.temp<1 : i64, f64>
func.func @sparse(%t: !temp) {
  // CHECK-NEXT: "nm.sparse_patch_matmul"(%[[T]]) {
  // CHECK-SAME: metadata = [array<i16: 17480>, array<i16: -7095>]
  // CHECK-SAME: values = [array<f64: 1.000000e+00, 2.000000e+00, 3.000000e+00,
  // CHECK-SAME: array<f64: 3.000000e+00, 1.000000e+00, 2.000000e+00,
  // CHECK-SAME: (!stencil.temp<1 : i64, f64>) -> !stencil.temp<1 : i64, f64>
  %r = "nm.sparse_patch_matmul"(%t) {
    tile = array<i64: 2>,
    values = [array<f64: 1.0, 2.0, 3.0, 0.0, 0.0, 0.0, 0.0, 0.0>,
              array<f64: 3.0, 1.0, 2.0, 0.0, 0.0, 0.0, 0.0, 0.0>],
    metadata = [array<i16: 0x4448>, array<i16: -7095>],
    output_offsets = [[0], [1]],
    input_offsets = [[-1], [2], [0], [0], [1], [1], [1], [1], [1], [1], [1], [1], [1], [1], [1], [1]],
    offsets = [[-1], [0], [1]],
    weights = array<f64: 1.0, 2.0, 3.0>
  } : (!temp) -> !temp
  return
}
