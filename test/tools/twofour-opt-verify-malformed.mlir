// RUN: not twofour-opt %s --verify-diagnostics 2>&1 | filecheck %s

// Comments that could never fail are errors: warnings do not reach Python, and others are misspelt.

// CHECK: twofour-opt-verify-malformed.mlir:7:3: error: expected comments of the form 'expected-error @+1 {{[{][{]}}text}}', got 'expected-warning @below {{[{][{]}}nothing}}'
func.func @f() {
  // expected-warning @below {{nothing}}
  return
}

// CHECK: :13:3: error: expected comments of the form 'expected-error {{.*}}', got 'expected-error @+1 2 {{[{][{]}}twice}}'
func.func @count() {
  // expected-error @+1 2 {{twice}}
  return
}

// CHECK: :19:3: error: expected comments of the form 'expected-error {{.*}}', got 'expected-error @+1 {{[{][{]}}open'
func.func @open() {
  // expected-error @+1 {{open
  return
}

// CHECK: :25:3: error: expected a regular expression, got 'a{{[{][{]}}[b}}': unterminated character set at position 1
func.func @pattern() {
  // expected-error-re @+1 {{a{{[b}}}}
  return
}

// CHECK: :31:3: error: expected a regular expression, got 'a{{[{][{]}}b{4294967296}c}}': the repetition number is too large
func.func @large() {
  // expected-error-re @+1 {{a{{b{4294967296}c}}}}
  return
}

// What is expected may look like a comment.

// CHECK: :39:3: error: expected error 'say // expected-error here' was not produced
func.func @inner() {
  // expected-error @+1 {{say // expected-error here}}
  return
}

// CHECK-NOT: error
