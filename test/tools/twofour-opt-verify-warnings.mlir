// RUN: not twofour-opt %s --verify-diagnostics 2>&1 | filecheck %s

// Warnings do not reach Python: a comment that expects one could never fail.

// CHECK: twofour-opt-verify-warnings.mlir:7:3: error: expected comments of the form 'expected-error', got 'expected-warning'
func.func @f() {
  // expected-warning @below {{nothing}}
  return
}
