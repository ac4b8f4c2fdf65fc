// RUN: twofour-opt %s --nm-crush=tile=2,2 | filecheck %s
// RUN: twofour-opt %s --nm-crush | filecheck %s --check-prefix=SEARCH
// RUN: not twofour-opt %s --nm-crush=tile=2,0 2>&1 | filecheck %s --check-prefix=EMPTY

// EMPTY: <pass-pipeline>:1:16: error: expected a tile of positive extents, got [2, 0]

!temp = !stencil.temp<2 : i64, f64>

// A star of five points and a tile of 2 x 2: twelve inputs, the corners of the 4 x 4 patch are not
// read.

// CHECK-LABEL: func.func @star(
// CHECK: input_offsets = {{\[\[}}-1, 0], [-1, 1], [0, -1], [0, 0], [0, 1], [0, 2], [1, -1], [1, 0], [1, 1], [1, 2], [2, 0], [2, 1]]
// CHECK-SAME: output_offsets = {{\[\[}}0, 0], [0, 1], [1, 0], [1, 1]]
// CHECK-SAME: tile = array<i64: 2, 2>

// Without a tile, that of 16 or 32 outputs is searched which needs the fewest instructions.

// SEARCH-LABEL: func.func @star(
// SEARCH: tile = array<i64: 4, 4>
func.func @star(%t: !temp) {
  %r = "nm.patch_matmul"(%t) {
    tile = array<i64: 1, 1>, matrix = [array<f64: 1.0, 2.0, 4.0, 3.0, 5.0>],
    output_offsets = [[0, 0]], input_offsets = [[-1, 0], [0, -1], [0, 0], [0, 1], [1, 0]],
    offsets = [[-1, 0], [0, -1], [0, 0], [0, 1], [1, 0]], weights = array<f64: 1.0, 2.0, 4.0, 3.0, 5.0>
  } : (!temp) -> !temp
  return
}
