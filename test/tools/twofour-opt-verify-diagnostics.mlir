// The checks of --verify-diagnostics themselves: expected errors pass, also by line, by regular
// expression and above; what was not produced, what was not expected, and what stands elsewhere fail.

// RUN: twofour-opt %S/Inputs/diagnostics.mlir --split-input-file --verify-diagnostics
// RUN: not twofour-opt %s --split-input-file --verify-diagnostics 2>&1 | filecheck %s

// CHECK: twofour-opt-verify-diagnostics.mlir:14:1: error: expected error 'no such error' was not produced
// CHECK-NEXT: twofour-opt-verify-diagnostics.mlir:21:8: error: unexpected error: 'stencil.load' op expected rank 1, got rank 2
// CHECK-NEXT: twofour-opt-verify-diagnostics.mlir:27:3: error: expected error 'expected rank 1' was not produced
// CHECK-NEXT: twofour-opt-verify-diagnostics.mlir:29:8: error: unexpected error: 'stencil.load' op expected rank 1, got rank 2
// CHECK-NEXT: twofour-opt-verify-diagnostics.mlir:36:3: error: expected error 'expected rank 1' was not produced
// CHECK-NOT: error

// expected-error @+1 {{no such error}}
func.func @missing() {
  return
}

// -----
func.func @unexpected(%u: !stencil.field<1 : i64, f64>) {
  %t = "stencil.load"(%u) : (!stencil.field<1 : i64, f64>) -> !stencil.temp<2 : i64, f64>
  return
}

// -----
func.func @elsewhere(%u: !stencil.field<1 : i64, f64>) {
  // expected-error @+1 {{expected rank 1}}

  %t = "stencil.load"(%u) : (!stencil.field<1 : i64, f64>) -> !stencil.temp<2 : i64, f64>
  return
}

// -----
func.func @once(%u: !stencil.field<1 : i64, f64>) {
  // expected-error @+2 {{expected rank 1}}
  // expected-error @+1 {{expected rank 1}}
  %t = "stencil.load"(%u) : (!stencil.field<1 : i64, f64>) -> !stencil.temp<2 : i64, f64>
  return
}
