// RUN: twofour-opt %s --split-input-file --verify-diagnostics --stencil-block | filecheck %s
// RUN: twofour-opt %S/Inputs/lines.mlir --stencil-block=unroll=4 | filecheck %s --check-prefix=FOUR
// RUN: not twofour-opt %S/Inputs/lines.mlir --stencil-block=unroll=16 2>&1 | filecheck %s --check-prefix=MANY
// RUN: not twofour-opt %S/Inputs/lines.mlir --stencil-block='unroll=8 registers=7' 2>&1 | filecheck %s --check-prefix=SEVEN
// RUN: not twofour-opt %S/Inputs/lines.mlir --stencil-block=unroll=2,4 2>&1 | filecheck %s --check-prefix=RANK
// RUN: not twofour-opt %S/Inputs/lines.mlir --stencil-block=unroll=0 2>&1 | filecheck %s --check-prefix=ZERO
// RUN: not twofour-opt %S/Inputs/lines.mlir --stencil-block=registers=0 2>&1 | filecheck %s --check-prefix=NONE
// RUN: not twofour-opt %S/Inputs/lines.mlir --stencil-block=vector-bits=0 2>&1 | filecheck %s --check-prefix=EMPTY
// RUN: not twofour-opt %S/Inputs/lines.mlir --stencil-select-cover=vector-bits=0 2>&1 | filecheck %s --check-prefix=EMPTY
// RUN: not twofour-opt %S/Inputs/lines.mlir --stencil-block=vector-bits=64 2>&1 | filecheck %s --check-prefix=BITS

// The lines stay, and each is in a block.

// FOUR-LABEL: func.func @lines(
// FOUR: blocks = [{lines = [0, 1, 2], row_axis = 0 : i64, skew = 0 : i64, unroll = [1, 4]}]
// FOUR-SAME: start = [-1, 0], weights = array<f64: 5.000000e+00, 3.000000e+00, 1.000000e+00>
// FOUR-SAME: option = "parallel"

// MANY: lines.mlir:4:8: error: 'stencil.line_sum' op expected at most 8 matrix registers, got 16 for tiles
// SEVEN: lines.mlir:4:8: error: 'stencil.line_sum' op expected at most 7 matrix registers, got 8 for tiles
// RANK: lines.mlir:4:8: error: 'stencil.line_sum' op expected 1 unroll factors in rank 2, got [2, 4]
// ZERO: <pass-pipeline>:1:16: error: expected positive unroll factors, got [0]
// NONE: <pass-pipeline>:1:16: error: expected at least one matrix register, got 0
// EMPTY: <pass-pipeline>:1:16: error: expected vectors of a positive number of bits, got 0
// BITS: lines.mlir:4:8: error: 'stencil.line_sum' op expected vectors of two elements or more, got 64 bits

!temp = !stencil.temp<2 : i64, f64>

// Without transpositions all eight registers of f64 hold tiles.

// CHECK-LABEL: func.func @rows(
// CHECK: unroll = [1, 8]
func.func @rows(%t: !temp) {
  %r = "stencil.line_sum"(%t) {
    lines = [{direction = [1, 0], start = [0, 0], weights = array<f64: 2.0, 1.0>}],
    option = "parallel", offsets = [[-1, 0], [0, 0]], weights = array<f64: 1.0, 2.0>
  } : (!temp) -> !temp
  return
}

// -----

!temp = !stencil.temp<2 : i64, f64>

// A line along the vector axis needs a register for transpositions beside every tile of a row.

// CHECK-LABEL: func.func @column(
// CHECK: unroll = [1, 4]
func.func @column(%t: !temp) {
  %r = "stencil.line_sum"(%t) {
    lines = [{direction = [0, 1], start = [0, 0], weights = array<f64: 2.0, 1.0>}],
    option = "orthogonal", offsets = [[0, -1], [0, 0]], weights = array<f64: 1.0, 2.0>
  } : (!temp) -> !temp
  return
}

// -----

!temp = !stencil.temp<2 : i64, f32>

// f32 has half as many registers, and blocks are no wider than the output.

// CHECK-LABEL: func.func @single(
// CHECK: unroll = [1, 4]
// CHECK: unroll = [1, 2]
func.func @single(%t: !temp, %u: !stencil.temp<#stencil.bounds<[-1, 0], [64, 40]>, f32>) {
  %r = "stencil.line_sum"(%t) {
    lines = [{direction = [1, 0], start = [0, 0], weights = array<f64: 2.0, 1.0>}],
    option = "parallel", offsets = [[-1, 0], [0, 0]], weights = array<f64: 1.0, 2.0>
  } : (!temp) -> !temp
  %s = "stencil.line_sum"(%u) {
    lines = [{direction = [1, 0], start = [0, 0], weights = array<f64: 2.0, 1.0>}],
    option = "parallel", offsets = [[-1, 0], [0, 0]], weights = array<f64: 1.0, 2.0>
  } : (!stencil.temp<#stencil.bounds<[-1, 0], [64, 40]>, f32>) -> !stencil.temp<#stencil.bounds<[0, 0], [64, 40]>, f32>
  return
}

// -----

!temp = !stencil.temp<3 : i64, f64>

// Lines along axis 0 add to tiles of another shape: a second block, a second visit of the output.

// CHECK-LABEL: func.func @two_shapes(
// CHECK: blocks = [{lines = [0], row_axis = 1 : i64, skew = 0 : i64, unroll = [{{[0-9]+, [0-9]+}}]}, {lines = [1], row_axis = 0 : i64, skew = 0 : i64, unroll = [{{[0-9]+, [0-9]+}}]}]
func.func @two_shapes(%t: !temp) {
  %r = "stencil.line_sum"(%t) {
    lines = [{direction = [0, 1, 0], start = [0, 0, 0], weights = array<f64: 2.0, 1.0>},
             {direction = [1, 0, 0], start = [-1, 0, 0], weights = array<f64: 4.0, 0.0, 3.0>}],
    option = "orthogonal",
    offsets = [[-1, 0, 0], [0, -1, 0], [0, 0, 0], [1, 0, 0]], weights = array<f64: 3.0, 1.0, 2.0, 4.0>
  } : (!temp) -> !temp
  return
}

// -----

!temp = !stencil.temp<2 : i64, f64>

// So do diagonals of either direction, whose tiles are skewed.

// CHECK-LABEL: func.func @diagonals(
// CHECK: blocks = [{lines = [0], row_axis = 0 : i64, skew = -1 : i64, unroll = [1, 8]}, {lines = [1], row_axis = 0 : i64, skew = 1 : i64, unroll = [1, 8]}]
func.func @diagonals(%t: !temp) {
  %r = "stencil.line_sum"(%t) {
    lines = [{direction = [1, -1], start = [-1, 1], weights = array<f64: 4.0, 0.0, 2.0>},
             {direction = [1, 1], start = [-1, -1], weights = array<f64: 5.0, 3.0, 1.0>}],
    option = "diagonal",
    offsets = [[-1, -1], [-1, 1], [0, 0], [1, -1], [1, 1]], weights = array<f64: 1.0, 2.0, 3.0, 4.0, 5.0>
  } : (!temp) -> !temp
  return
}

// -----

func.func @bf16(%t: !stencil.temp<2 : i64, bf16>) {
  // expected-error @+1 {{'stencil.line_sum' op expected f64 or f32 elements for outer products, got bf16}}
  %r = "stencil.line_sum"(%t) {
    lines = [{direction = [1, 0], start = [0, 0], weights = array<f64: 1.0>}],
    option = "parallel", offsets = [[0, 0]], weights = array<f64: 1.0>
  } : (!stencil.temp<2 : i64, bf16>) -> !stencil.temp<2 : i64, bf16>
  return
}
