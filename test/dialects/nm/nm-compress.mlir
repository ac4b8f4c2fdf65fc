// RUN: twofour-opt %s --split-input-file --verify-diagnostics --nm-compress | filecheck %s

!temp = !stencil.temp<1 : i64, f64>

// Two of every four columns are kept, in increasing order. Nibble q of a word names the columns of
// group q, the first in its low bits: 0x8 is (0, 2), 0x9 is (1, 2), 0x4 is (0, 1), 0xE is (2, 3).

// Row 0 keeps (0, 2), (0, 1), and (0, 1) of the empty groups: 0x4448 = 17480.
// Row 1 keeps (1, 2), (0, 3), and (0, 1): 0x44C9 = 17609.

// CHECK-LABEL: func.func @compress(
// CHECK-SAME: %[[T:[a-z0-9]+]]: !stencil.temp<1 : i64, f64>
// CHECK-NEXT: "nm.sparse_patch_matmul"(%[[T]]) {
// CHECK-SAME: input_offsets = {{\[\[}}-1], [2], [0], [7], [1], [2], [7], [3], [7], [7], [7], [7], [7], [7], [7], [7]]
// CHECK-SAME: metadata = [array<i16: 17480>, array<i16: 17609>]
// CHECK-SAME: offsets = {{\[\[}}-1], [0], [1], [2]]
// CHECK-SAME: output_offsets = {{\[\[}}0], [1]]
// CHECK-SAME: tile = array<i64: 2>
// CHECK-SAME: values = [array<f64: 1.000000e+00, 2.000000e+00, 3.000000e+00, 4.000000e+00, 0.000000e+00, 0.000000e+00, 0.000000e+00, 0.000000e+00>,
// CHECK-SAME: array<f64: 3.000000e+00, 1.000000e+00, 2.000000e+00, 4.000000e+00, 0.000000e+00, 0.000000e+00, 0.000000e+00, 0.000000e+00>]
// CHECK-SAME: weights = array<f64: 1.000000e+00, 2.000000e+00, 3.000000e+00, 4.000000e+00>
func.func @compress(%t: !temp) {
  %r = "nm.patch_matmul"(%t) {
    tile = array<i64: 2>,
    matrix = [
      array<f64: 1.0, 0.0, 2.0, 0.0, 3.0, 4.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0>,
      array<f64: 0.0, 3.0, 1.0, 0.0, 2.0, 0.0, 0.0, 4.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0>],
    output_offsets = [[0], [1]],
    input_offsets = [[-1], [2], [0], [7], [1], [2], [7], [3], [7], [7], [7], [7], [7], [7], [7], [7]],
    offsets = [[-1], [0], [1], [2]],
    weights = array<f64: 1.0, 2.0, 3.0, 4.0>
  } : (!temp) -> !temp
  return
}

// -----

!temp = !stencil.temp<#stencil.bounds<[0], [10]>, f16>
!inner = !stencil.temp<#stencil.bounds<[0], [8]>, f16>

// A lone non-zero in the last column of a group goes to the second place; the word of the second 16
// columns is the second of its row. Addend and constant stay: 0x444E = 17486, 0x444D = 17485.

// CHECK-LABEL: func.func @addend(
// CHECK-SAME: %[[T:[a-z0-9]+]]: !stencil.temp<#stencil.bounds<[0], [10]>, f16>, %[[A:[a-z0-9]+]]:
// CHECK-NEXT: "nm.sparse_patch_matmul"(%[[T]], %[[A]]) {constant = 2.500000e-01 : f64,
// CHECK-SAME: metadata = [array<i16: 17486, 17485>]
// CHECK-SAME: values = [array<f64: 0.000000e+00, 1.000000e+00,
// CHECK-SAME: -> !stencil.temp<#stencil.bounds<[0], [8]>, f16>
func.func @addend(%t: !temp, %a: !inner) {
  %r = "nm.patch_matmul"(%t, %a) {
    constant = 0.25 : f64,
    tile = array<i64: 1>,
    matrix = [
      array<f64: 0.0, 0.0, 0.0, 1.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0,
                 0.0, 1.0, 0.0, 1.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0>],
    output_offsets = [[0]],
    input_offsets = [[0], [0], [0], [0], [0], [0], [0], [0], [0], [0], [0], [0], [0], [0], [0], [0],
                     [0], [1], [1], [2], [1], [1], [1], [1], [1], [1], [1], [1], [1], [1], [1], [1]],
    offsets = [[0], [1], [2]],
    weights = array<f64: 1.0, 1.0, 1.0>
  } : (!temp, !inner) -> !inner
  return
}

// -----

!temp = !stencil.temp<1 : i64, f64>

func.func @three_in_a_group(%t: !temp) {
  // expected-error @+1 {{'nm.patch_matmul' op expected at most 2 nonzeros in columns 4 to 7 of row 0, got 3; run nm-permute-2to4 first}}
  %r = "nm.patch_matmul"(%t) {
    tile = array<i64: 1>,
    matrix = [array<f64: 0.0, 0.0, 0.0, 0.0, 1.0, 2.0, 3.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0>],
    output_offsets = [[0]],
    input_offsets = [[0], [0], [0], [0], [-1], [0], [1], [0], [0], [0], [0], [0], [0], [0], [0], [0]],
    offsets = [[-1], [0], [1]],
    weights = array<f64: 1.0, 2.0, 3.0>
  } : (!temp) -> !temp
  return
}

// -----

!temp = !stencil.temp<1 : i64, f64>

func.func @not_padded(%t: !temp) {
  // expected-error @+1 {{'nm.patch_matmul' op expected a multiple of 16 columns, got 4}}
  %r = "nm.patch_matmul"(%t) {
    tile = array<i64: 1>,
    matrix = [array<f64: 1.0, 2.0, 0.0, 0.0>],
    output_offsets = [[0]],
    input_offsets = [[-1], [0], [0], [0]],
    offsets = [[-1], [0]],
    weights = array<f64: 1.0, 2.0>
  } : (!temp) -> !temp
  return
}
