// RUN: twofour-opt %s --stencil-extract-weights=sweep-terms=3 | filecheck %s
// RUN: twofour-opt %s --stencil-extract-weights=sweep-terms=2 | filecheck %s --check-prefix=TWO
// RUN: not twofour-opt %s --stencil-extract-weights=sweep-terms=-1 2>&1 | filecheck %s --check-prefix=LESS

// LESS: <pass-pipeline>:1:16: error: expected a number of terms, got -1

// A star of five points after another one is a sum of 13: three more than both have. The third would
// be one of 25, and 18 are what the second and the third have on their own.

!temp = !stencil.temp<2 : i64, f64>

// CHECK-LABEL: func.func @stars(
// CHECK-SAME: %[[T:[a-z0-9]+]]: !stencil.temp<2 : i64, f64>)
// CHECK-NEXT: %[[S:.*]] = "stencil.weighted_sum"(%[[T]]) {offsets = {{\[\[}}-2, 0], [-1, -1], [-1, 0], [-1, 1], [0, -2],
// CHECK-NEXT: %[[R:.*]] = "stencil.weighted_sum"(%[[S]]) {offsets = {{\[\[}}-1, 0], [0, -1], [0, 0], [0, 1], [1, 0]]
// CHECK-NEXT: return %[[R]]

// TWO-LABEL: func.func @stars(
// TWO-COUNT-3: {offsets = {{\[\[}}-1, 0], [0, -1], [0, 0], [0, 1], [1, 0]]
func.func @stars(%t: !temp) -> !temp {
  %1 = "stencil.apply"() ({
    %n = "stencil.access"(%t) {offset = array<i64: -1, 0>} : (!temp) -> f64
    %w = "stencil.access"(%t) {offset = array<i64: 0, -1>} : (!temp) -> f64
    %c = "stencil.access"(%t) {offset = array<i64: 0, 0>} : (!temp) -> f64
    %e = "stencil.access"(%t) {offset = array<i64: 0, 1>} : (!temp) -> f64
    %s = "stencil.access"(%t) {offset = array<i64: 1, 0>} : (!temp) -> f64
    %nw = arith.addf %n, %w : f64
    %es = arith.addf %e, %s : f64
    %r = arith.addf %nw, %es : f64
    %x = arith.addf %r, %c : f64
    "stencil.return"(%x) : (f64) -> ()
  }) : () -> !temp
  %2 = "stencil.apply"() ({
    %n = "stencil.access"(%1) {offset = array<i64: -1, 0>} : (!temp) -> f64
    %w = "stencil.access"(%1) {offset = array<i64: 0, -1>} : (!temp) -> f64
    %c = "stencil.access"(%1) {offset = array<i64: 0, 0>} : (!temp) -> f64
    %e = "stencil.access"(%1) {offset = array<i64: 0, 1>} : (!temp) -> f64
    %s = "stencil.access"(%1) {offset = array<i64: 1, 0>} : (!temp) -> f64
    %nw = arith.addf %n, %w : f64
    %es = arith.addf %e, %s : f64
    %r = arith.addf %nw, %es : f64
    %x = arith.addf %r, %c : f64
    "stencil.return"(%x) : (f64) -> ()
  }) : () -> !temp
  %3 = "stencil.apply"() ({
    %n = "stencil.access"(%2) {offset = array<i64: -1, 0>} : (!temp) -> f64
    %w = "stencil.access"(%2) {offset = array<i64: 0, -1>} : (!temp) -> f64
    %c = "stencil.access"(%2) {offset = array<i64: 0, 0>} : (!temp) -> f64
    %e = "stencil.access"(%2) {offset = array<i64: 0, 1>} : (!temp) -> f64
    %s = "stencil.access"(%2) {offset = array<i64: 1, 0>} : (!temp) -> f64
    %nw = arith.addf %n, %w : f64
    %es = arith.addf %e, %s : f64
    %r = arith.addf %nw, %es : f64
    %x = arith.addf %r, %c : f64
    "stencil.return"(%x) : (f64) -> ()
  }) : () -> !temp
  return %3 : !temp
}
