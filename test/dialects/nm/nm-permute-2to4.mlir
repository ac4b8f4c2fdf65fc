// RUN: twofour-opt %s --nm-permute-2to4="strategy=staircase fragment=16" | filecheck %s --check-prefixes=CHECK,STAIRCASE
// RUN: twofour-opt %s --nm-permute-2to4="strategy=blossom fragment=16" | filecheck %s --check-prefixes=CHECK,BLOSSOM
// RUN: twofour-opt %s --nm-permute-2to4="strategy=exact fragment=16" | filecheck %s --check-prefixes=CHECK,EXACT
// RUN: twofour-opt %s --nm-permute-2to4=fragment=16 | filecheck %s --check-prefixes=CHECK,AUTO
// RUN: twofour-opt %s --nm-permute-2to4 | filecheck %s --check-prefix=WIDE
// RUN: twofour-opt %s --nm-permute-2to4=fragment=16 --nm-compress | filecheck %s --check-prefix=COMPRESSED
// RUN: not twofour-opt %s --nm-compress 2>&1 | filecheck %s --check-prefix=BEFORE
// RUN: not twofour-opt %s --nm-permute-2to4=fragment=24 2>&1 | filecheck %s --check-prefix=FRAGMENT
// RUN: not twofour-opt %s --nm-permute-2to4=strategy=exhaustive 2>&1 | filecheck %s --check-prefix=STRATEGY

// BEFORE: nm-permute-2to4.mlir:{{[0-9]+}}:8: error: 'nm.patch_matmul' op expected a multiple of 16 columns, got 6
// FRAGMENT: <pass-pipeline>:1:16: error: expected a fragment of 16, 32, ..., 1024 columns, got 24
// STRATEGY: <pass-pipeline>:1:16: error: expected one of auto, staircase, blossom, exact, chunks for option 'strategy' of 'nm-permute-2to4', got 'exhaustive'

!temp = !stencil.temp<1 : i64, f64>

// The staircase of three points: its six columns are paired so that no row holds both of a pair;
// the input offsets take the order of the columns, and the verifier proves that the operator still
// computes its stencil. Each strategy meets the lower bound of one fragment.

// CHECK-LABEL: func.func @staircase(
// CHECK: "nm.patch_matmul"(%{{[a-z0-9]+}}) {
// STAIRCASE-SAME: input_offsets = {{\[\[}}-1], [2], [0], [3], [1], [4], [4],
// STAIRCASE-SAME: matrix = [array<f64: 1.000000e+00, 0.000000e+00, 2.000000e+00, 0.000000e+00, 3.000000e+00, 0.000000e+00, 0.000000e+00,
// STAIRCASE-SAME: strategy = "staircase"
// BLOSSOM-SAME: strategy = "blossom"
// EXACT-SAME: strategy = "{{staircase|exact}}"
// AUTO-SAME: strategy = "staircase"
// WIDE-LABEL: func.func @staircase(
// WIDE: permutation = {fragment = 32 : i64, k_lower_bound = 32 : i64, padding_columns = 26 : i64, proven = true, strategy = "staircase"}
// COMPRESSED-LABEL: func.func @staircase(
// COMPRESSED: "nm.sparse_patch_matmul"
func.func @staircase(%t: !temp) {
  %r = "nm.patch_matmul"(%t) {
    tile = array<i64: 4>,
    matrix = [array<f64: 1.0, 2.0, 3.0, 0.0, 0.0, 0.0>, array<f64: 0.0, 1.0, 2.0, 3.0, 0.0, 0.0>,
              array<f64: 0.0, 0.0, 1.0, 2.0, 3.0, 0.0>, array<f64: 0.0, 0.0, 0.0, 1.0, 2.0, 3.0>],
    output_offsets = [[0], [1], [2], [3]], input_offsets = [[-1], [0], [1], [2], [3], [4]],
    offsets = [[-1], [0], [1]], weights = array<f64: 1.0, 2.0, 3.0>
  } : (!temp) -> !temp
  return
}

// A full row of nine points in one output is no staircase: each group of four holds two of them, so
// 18 columns are needed, that is two fragments of 16.

// CHECK-LABEL: func.func @full_row(
// CHECK: permutation = {fragment = 16 : i64, k_lower_bound = 32 : i64, padding_columns = 23 : i64, proven = true,
// COMPRESSED-LABEL: func.func @full_row(
// COMPRESSED: "nm.sparse_patch_matmul"
func.func @full_row(%t: !temp) {
  %r = "nm.patch_matmul"(%t) {
    tile = array<i64: 1>,
    matrix = [array<f64: 1.0, 2.0, 3.0, 4.0, 5.0, 6.0, 7.0, 8.0, 9.0>],
    output_offsets = [[0]], input_offsets = [[0], [1], [2], [3], [4], [5], [6], [7], [8]],
    offsets = [[0], [1], [2], [3], [4], [5], [6], [7], [8]],
    weights = array<f64: 1.0, 2.0, 3.0, 4.0, 5.0, 6.0, 7.0, 8.0, 9.0>
  } : (!temp) -> !temp
  return
}

// Columns of zeros are left out before.

// CHECK-LABEL: func.func @zero_columns(
// CHECK-NOT: [77]
// CHECK: permutation = {fragment = 16 : i64, k_lower_bound = 16 : i64, padding_columns = 15 : i64, proven = true,
func.func @zero_columns(%t: !temp) {
  %r = "nm.patch_matmul"(%t) {
    tile = array<i64: 1>, matrix = [array<f64: 0.0, 1.0, 0.0>],
    output_offsets = [[0]], input_offsets = [[77], [3], [77]], offsets = [[3]], weights = array<f64: 1.0>
  } : (!temp) -> !temp
  return
}
