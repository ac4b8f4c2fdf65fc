// RUN: twofour-opt %s --nm-crush=tile=16 --nm-permute-2to4=strategy=chunks | filecheck %s
// RUN: twofour-opt %s --nm-crush=tile=16 --nm-permute-2to4=strategy=chunks --nm-compress | filecheck %s --check-prefix=COMPRESSED
// RUN: not twofour-opt %s --nm-crush=tile=8 --nm-permute-2to4=strategy=chunks 2>&1 | filecheck %s --check-prefix=TILE
// RUN: not twofour-opt %s --nm-crush=tile=16 --nm-permute-2to4="strategy=chunks fragment=16" 2>&1 | filecheck %s --check-prefix=FRAGMENT

// TILE: nm-permute-2to4-chunks.mlir:{{[0-9]+}}:8: error: 'nm.patch_matmul' op expected a tile of [16] and fragments of 32 columns for chunks, got [8] and 32
// FRAGMENT: nm-permute-2to4-chunks.mlir:{{[0-9]+}}:8: error: 'nm.patch_matmul' op expected a tile of [16] and fragments of 32 columns for chunks, got [16] and 16

!temp = !stencil.temp<1 : i64, f64>

// Four lanes read the inputs -8, ..., 23 of a tile of sixteen outputs, eight each, and take one pair
// of each at a time: columns 0 to 7 are the first pairs of all four. Columns 1 to 7 and from 17 on
// are zeros in this stencil of three points; they keep their place, and so their inputs.

// CHECK-LABEL: func.func @three(
// CHECK: "nm.patch_matmul"
// CHECK-SAME: input_offsets = {{\[\[}}-8], [-7], [0], [1], [8], [9], [16], [17], [-6], [-5], [2], [3], [10], [11], [18], [19], [-4], [-3], [4], [5], [12], [13], [20], [21], [-2], [-1], [6], [7], [14], [15], [22], [23]]
// CHECK-SAME: output_offsets = {{\[\[}}0], [1], [4], [5], [8], [9], [12], [13], [2], [3], [6], [7], [10], [11], [14], [15]]
// CHECK-SAME: permutation = {fragment = 32 : i64, k_lower_bound = 32 : i64, padding_columns = 14 : i64, proven = true, strategy = "chunks"}
// COMPRESSED-LABEL: func.func @three(
// COMPRESSED: "nm.sparse_patch_matmul"
// COMPRESSED-SAME: strategy = "chunks"
func.func @three(%t: !temp) {
  %r = "nm.patch_matmul"(%t) {
    tile = array<i64: 1>, matrix = [array<f64: 1.0, 2.0, 3.0>],
    output_offsets = [[0]], input_offsets = [[-1], [0], [1]],
    offsets = [[-1], [0], [1]], weights = array<f64: 1.0, 2.0, 3.0>
  } : (!temp) -> !temp
  return
}

// Nine neighbours are not 2:4 in one fragment: the same inputs are read once, and multiplied twice.

// CHECK-LABEL: func.func @nine(
// CHECK: k_lower_bound = 32 : i64, padding_columns = {{[0-9]+}} : i64, proven = false, strategy = "chunks"
// COMPRESSED-LABEL: func.func @nine(
// COMPRESSED: "nm.sparse_patch_matmul"
func.func @nine(%t: !temp) {
  %r = "nm.patch_matmul"(%t) {
    tile = array<i64: 1>, matrix = [array<f64: 1.0, 2.0, 3.0, 4.0, 5.0, 6.0, 7.0, 8.0, 9.0>],
    output_offsets = [[0]],
    input_offsets = [[-4], [-3], [-2], [-1], [0], [1], [2], [3], [4]],
    offsets = [[-4], [-3], [-2], [-1], [0], [1], [2], [3], [4]],
    weights = array<f64: 1.0, 2.0, 3.0, 4.0, 5.0, 6.0, 7.0, 8.0, 9.0>
  } : (!temp) -> !temp
  return
}
