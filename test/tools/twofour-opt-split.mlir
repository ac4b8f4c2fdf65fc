// RUN: twofour-opt %s --split-input-file --convert-stencil-to-nm | filecheck %s
// RUN: twofour-opt %s --split-input-file --verify-diagnostics --convert-stencil-to-nm | filecheck %s
// RUN: not twofour-opt %s 2>&1 | filecheck %s --check-prefix=WHOLE
// RUN: not twofour-opt %s --split-input-file --convert-stencil-to-nm --nm-compress 2>&1 | filecheck %s --check-prefix=FAIL

// Without the flag the second @f is a redefinition.

// WHOLE: twofour-opt-split.mlir:32:1: error: redefinition of symbol named 'f'

// Errors of each part are located in the file; the command to reproduce them splits it too.

// FAIL: twofour-opt-split.mlir:25:8: error: 'nm.patch_matmul' op expected a multiple of 16 columns, got 1
// FAIL-NEXT: note: to reproduce: twofour-opt {{.*}}twofour-opt-split.mlir --split-input-file --pass-pipeline='builtin.module(convert-stencil-to-nm,nm-compress)'
// FAIL-NEXT: twofour-opt-split.mlir:33:8: error: 'nm.patch_matmul' op expected a multiple of 16 columns, got 2

// CHECK: module {
// CHECK-NEXT: func.func @f(
// CHECK-NEXT: "nm.patch_matmul"(%{{.*}}) {input_offsets = {{\[\[}}0]]
// CHECK: // -----
// CHECK-NEXT: module {
// CHECK-NEXT: func.func @f(
// CHECK-NEXT: "nm.patch_matmul"(%{{.*}}) {input_offsets = {{\[\[}}1], [2]]

func.func @f(%t: !stencil.temp<1 : i64, f64>) {
  %r = "stencil.weighted_sum"(%t) {offsets = [[0]], weights = array<f64: 1.0>} : (!stencil.temp<1 : i64, f64>) -> !stencil.temp<1 : i64, f64>
  return
}

// -----

// A part of its own.
func.func @f(%t: !stencil.temp<1 : i64, f64>) {
  %r = "stencil.weighted_sum"(%t) {offsets = [[1], [2]], weights = array<f64: 1.0, 1.0>} : (!stencil.temp<1 : i64, f64>) -> !stencil.temp<1 : i64, f64>
  return
}
