// RUN: twofour-opt %s --canonicalize | filecheck %s
// RUN: twofour-opt %s --cse | filecheck %s --check-prefix=CSE

!field = !stencil.field<#stencil.bounds<[-1], [65]>, f64>
!temp = !stencil.temp<#stencil.bounds<[-1], [65]>, f64>
!inner = !stencil.temp<#stencil.bounds<[0], [64]>, f64>

// Computations without effects disappear when nothing reads them; so do accesses.

// CHECK-LABEL: func.func @dead(
// CHECK-NEXT: return
func.func @dead(%t: !temp) {
  %r = "stencil.apply"() ({
    %a = "stencil.access"(%t) {offset = array<i64: 0>} : (!temp) -> f64
    "stencil.return"(%a) : (f64) -> ()
  }) : () -> !inner
  %b = "stencil.buffer"(%r) : (!inner) -> !inner
  %w = "stencil.weighted_sum"(%t) {offsets = [[1]], weights = array<f64: 1.0>} : (!temp) -> !inner
  return
}

// CHECK-LABEL: func.func @dead_access(
// CHECK: "stencil.apply"() ({
// CHECK-NEXT: %[[A:.*]] = "stencil.access"(%{{.*}}) {offset = array<i64: 1>}
// CHECK-NEXT: "stencil.return"(%[[A]])
func.func @dead_access(%t: !temp, %out: !field) {
  %r = "stencil.apply"() ({
    %0 = "stencil.access"(%t) {offset = array<i64: 0>} : (!temp) -> f64
    %i = "stencil.index"() {dim = 0 : i64, offset = array<i64: 0>} : () -> index
    %a = "stencil.access"(%t) {offset = array<i64: 1>} : (!temp) -> f64
    "stencil.return"(%a) : (f64) -> ()
  }) : () -> !inner
  "stencil.store"(%r, %out) {bounds = #stencil.bounds<[0], [64]>} : (!inner, !field) -> ()
  return
}

// A load reads memory that a store may change: neither moves nor merges.

// CHECK-LABEL: func.func @memory(
// CHECK: "stencil.load"
// CHECK-NEXT: "stencil.store"
// CHECK-NEXT: "stencil.load"
// CHECK-NEXT: "stencil.store"
// CSE-LABEL: func.func @memory(
// CSE: %[[FIRST:.*]] = "stencil.load"
// CSE-NEXT: "stencil.store"(%[[FIRST]],
// CSE-NEXT: %[[SECOND:.*]] = "stencil.load"
// CSE-NEXT: "stencil.store"(%[[SECOND]],
func.func @memory(%u: !field, %v: !field) {
  %a = "stencil.load"(%u) : (!field) -> !temp
  "stencil.store"(%a, %v) {bounds = #stencil.bounds<[0], [64]>} : (!temp, !field) -> ()
  %b = "stencil.load"(%u) : (!field) -> !temp
  "stencil.store"(%b, %v) {bounds = #stencil.bounds<[-1], [65]>} : (!temp, !field) -> ()
  return
}

// Equal accesses and equal sums are one.

// CSE-LABEL: func.func @equal(
// CSE: "stencil.apply"() ({
// CSE-NEXT: %[[A:.*]] = "stencil.access"
// CSE-NEXT: %[[S:.*]] = arith.addf %[[A]], %[[A]] : f64
// CSE-NEXT: "stencil.return"(%[[S]])
// CSE: %[[W:.*]] = "stencil.weighted_sum"
// CSE-NEXT: return %[[W]], %[[W]]
func.func @equal(%t: !temp, %out: !field) -> (!inner, !inner) {
  %r = "stencil.apply"() ({
    %a = "stencil.access"(%t) {offset = array<i64: 1>} : (!temp) -> f64
    %b = "stencil.access"(%t) {offset = array<i64: 1>} : (!temp) -> f64
    %s = arith.addf %a, %b : f64
    "stencil.return"(%s) : (f64) -> ()
  }) : () -> !inner
  "stencil.store"(%r, %out) {bounds = #stencil.bounds<[0], [64]>} : (!inner, !field) -> ()
  %v = "stencil.weighted_sum"(%t) {offsets = [[1]], weights = array<f64: 1.0>} : (!temp) -> !inner
  %w = "stencil.weighted_sum"(%t) {offsets = [[1]], weights = array<f64: 1.0>} : (!temp) -> !inner
  return %v, %w : !inner, !inner
}

// Constants are hoisted out of the region, which is not isolated; passes have to look through it.

// CHECK-LABEL: func.func @hoisted(
// CHECK-NEXT: %[[C:.*]] = arith.constant 5.000000e-01 : f64
// CHECK-NEXT: "stencil.apply"() ({
// CHECK-NEXT: %[[A:.*]] = "stencil.access"
// CHECK-NEXT: arith.mulf %[[A]], %[[C]] : f64
func.func @hoisted(%t: !temp, %out: !field) {
  %r = "stencil.apply"() ({
    %a = "stencil.access"(%t) {offset = array<i64: 1>} : (!temp) -> f64
    %c = arith.constant 0.5 : f64
    %p = arith.mulf %c, %a : f64
    "stencil.return"(%p) : (f64) -> ()
  }) : () -> !inner
  "stencil.store"(%r, %out) {bounds = #stencil.bounds<[0], [64]>} : (!inner, !field) -> ()
  return
}
